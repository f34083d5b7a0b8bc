from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import cache
from itertools import combinations, permutations
from statistics import NormalDist, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.detect import trend as drifts
from pytest_ssdqual.qual.detect.trend import FEWEST, FEWEST_FOR_STEP, drift

figures = st.lists(st.floats(1e-3, 1e9), min_size=0, max_size=7)


def scattered(count: int, seed: int, share: float = 0.01) -> list[float]:
    draw = random.Random(seed)  # noqa: S311
    return [1000 * math.exp(draw.gauss(0, share)) for _ in range(count)]


@given(figures)
def test_two_runs_are_no_trend(values: list[float]) -> None:
    found = drift(values)
    if len(values) < FEWEST:
        assert not found.is_enough
        assert (found.trend, found.step) == (None, None)
    assert (found.scatter_percent is None) == (len(values) < 2)


def test_a_steady_figure_shows_nothing_most_of_the_time() -> None:
    """Each test spends half of 5 %; of 80 series a few may. A step takes ten runs."""
    shown = sum(bool((found := drift(scattered(12, seed))).trend or found.step) for seed in range(80))
    assert shown <= 8


def test_a_trend_is_found_with_its_slope() -> None:
    found = drift([each * 0.98**index for index, each in enumerate(scattered(12, 1, 0.005))])
    assert found.trend
    assert found.trend.low_percent < -2 < found.trend.high_percent
    assert found.trend.percent == pytest.approx(-2, abs=0.2)
    assert not found.is_rather_step


def test_a_single_change_is_found_where_it_was() -> None:
    found = drift([each * (1 if index < 9 else 0.9) for index, each in enumerate(scattered(14, 2, 0.005))])
    assert found.step
    assert found.step.at == 9
    assert found.step.ratio == pytest.approx(0.9, abs=0.01)
    assert found.is_rather_step


@pytest.mark.parametrize("count", range(FEWEST, FEWEST_FOR_STEP + 1))
def test_the_clearest_change_needs_ten_runs(count: int) -> None:
    found = drift([(1000 if index < count // 2 else 1) + index for index in range(count)])
    assert (found.step is not None) is (count == FEWEST_FOR_STEP)


def test_one_bad_run_is_no_change() -> None:
    values = scattered(14, 3)
    values[6] /= 5
    found = drift(values)
    assert (found.trend, found.step) == (None, None)
    assert found.scatter_percent is not None
    assert found.scatter_percent > 30


@given(st.lists(st.floats(1, 10), min_size=5, max_size=6), st.floats(0.1, 10))
def test_the_unit_does_not_matter(values: list[float], factor: float) -> None:
    here, there = drift(values), drift([factor * each for each in values])
    assert (here.trend is None, here.step is None) == (there.trend is None, there.step is None)


def concordance(order: Sequence[float]) -> int:
    return sum((b > a) - (b < a) for a, b in combinations(order, 2))


@cache
def every_concordance(count: int) -> list[int]:
    return [abs(concordance(order)) for order in permutations(range(count))]


@given(st.lists(st.floats(-10, 10), min_size=5, max_size=7, unique=True))
def test_trend_p_value_is_share_of_all_orders(logs: list[float]) -> None:
    every, measured = every_concordance(len(logs)), abs(concordance(logs))
    expected = sum(each >= measured for each in every) / len(every)
    assert drifts._trend(logs).p_value == pytest.approx(expected)


@given(st.lists(st.floats(-1, 1), min_size=5, max_size=20, unique=True))
def test_trend_slope_is_median_of_pairs_with_sens_interval(logs: list[float]) -> None:
    """Sen's ranks of the ends, rounded: at most one rank inside of those rounded outwards."""
    slopes = sorted((b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(logs), 2))
    count, found = len(logs), drifts._trend(logs)
    spread = NormalDist().inv_cdf(0.975) * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    rank = max(0, math.floor((len(slopes) - spread) / 2) - 1)
    low, high = (slopes[each : each + 2] for each in (rank, len(slopes) - 2 - rank))
    near = 1e-9
    assert found.percent == pytest.approx(100 * math.expm1(median(slopes)), abs=near)
    assert 100 * math.expm1(low[0]) - near <= found.low_percent <= 100 * math.expm1(low[1]) + near
    assert 100 * math.expm1(high[0]) - near <= found.high_percent <= 100 * math.expm1(high[1]) + near


def test_trend_of_equal_figures_is_none() -> None:
    found = drift([7.0] * 8)
    assert (found.trend, found.step) == (None, None)


def test_figures_of_nothing_have_no_drift() -> None:
    with pytest.raises(ValueError, match="above zero"):
        drift([1, 0, 2])
