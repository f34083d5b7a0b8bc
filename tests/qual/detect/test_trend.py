from __future__ import annotations

import math
import random
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.detect import trend as drifts
from pytest_ssdqual.qual.detect.trend import FEWEST, drift

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
    """Each test spends half of 5 %; of 80 series a few may."""
    shown = sum(bool((found := drift(scattered(8, seed))).trend or found.step) for seed in range(80))
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


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_the_distribution_of_kendalls_statistic_is_that_of_all_orders(count: int) -> None:
    def concordance(order: tuple[int, ...]) -> int:
        return sum(1 if b > a else -1 for i, a in enumerate(order) for b in order[i + 1 :])

    every = [abs(concordance(order)) for order in permutations(range(count))]
    for statistic in set(every):
        expected = sum(each >= statistic for each in every) / len(every)
        assert drifts._kendall_p(count, statistic) == pytest.approx(min(1, expected))


def test_beyond_the_exact_distribution_the_normal_one_goes_on() -> None:
    last, next_one = (drifts._kendall_p(count, round(0.25 * count**1.5)) for count in (60, 61))
    assert next_one == pytest.approx(last, rel=0.05)


def test_figures_of_nothing_have_no_drift() -> None:
    with pytest.raises(ValueError, match="above zero"):
        drift([1, 0, 2])
