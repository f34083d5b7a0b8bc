from __future__ import annotations

import math
import random
from itertools import accumulate
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.cliff import SHORTEST_AFTER, SHORTEST_BEFORE, _levels, find

LEAST = 11 / 9


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=40))
def test_running_medians_and_their_deviations(values: list[float]) -> None:
    heads = [values[: index + 1] for index in range(len(values))]
    for head, (middle, cost) in zip(heads, _levels(values), strict=True):
        assert middle == pytest.approx(median(head))
        assert cost == pytest.approx(sum(abs(each - median(head)) for each in head), abs=1e-9)


@given(
    st.floats(1, 1e6),
    st.floats(1.5, 100),
    st.integers(SHORTEST_BEFORE, 40),
    st.integers(SHORTEST_AFTER, 40),
    st.randoms(use_true_random=False),
)
def test_a_step_is_found_where_it_is(
    level: float, factor: float, before: int, after: int, source: random.Random
) -> None:
    values = [factor * level] * before + [level] * after
    noisy = [each * source.uniform(0.97, 1.03) for each in values]
    found = find(noisy, LEAST)
    assert found is not None
    assert found.index == before
    assert found.is_clear
    assert found.factor == pytest.approx(factor, rel=0.07)


@given(st.lists(st.floats(91, 109), max_size=200), st.floats(1e-3, 1e6))
def test_what_steady_drives_do_is_no_fall(values: list[float], unit: float) -> None:
    assert find([each * unit for each in values], LEAST) is None


def test_a_small_step_is_no_fall_however_clear() -> None:
    assert find([109.0] * 20 + [91.0] * 20, LEAST) is None
    assert find([113.0] * 20 + [91.0] * 20, LEAST) is not None


@given(st.integers(SHORTEST_BEFORE, 40), st.integers(SHORTEST_AFTER, 40))
def test_a_rise_is_no_fall(before: int, after: int) -> None:
    assert find([100.0] * before + [1_000.0] * after, LEAST) is None


def test_single_stalls_and_spikes_neither_make_nor_move_a_fall() -> None:
    stalls = [1_000.0 if index % 7 else 100.0 for index in range(60)]
    assert find(stalls, LEAST) is None
    found = find([9_000.0 if index % 7 else 900.0 for index in range(60)] + stalls, LEAST)
    assert found is not None
    assert (found.index, found.is_clear) == (60, True)


def test_the_fall_that_divides_best_is_told_of_several() -> None:
    found = find([100_000.0] * 4 + [40_000.0] * 40 + [10_000.0] * 40, LEAST)
    assert found is not None
    assert found.index == 44


def test_undershoot_and_recovery_do_not_hide_the_fall() -> None:
    found = find([2_700.0] * 10 + [100.0] * 5 + [800.0] * 100, LEAST)
    assert found is not None
    assert found.index == 10


def test_a_level_has_to_last() -> None:
    assert find([1_000.0] * 20 + [100.0] * 3, LEAST) is None
    assert find([1_000.0] * (SHORTEST_BEFORE - 1) + [100.0] * 20, LEAST) is None
    assert find([1_000.0] * SHORTEST_BEFORE + [100.0] * (SHORTEST_AFTER - 1), LEAST) is None
    assert find([], LEAST) is None
    # Four of five are a level with one outlier: found, one value early.
    found = find([1_000.0] * 20 + [100.0] * 4, LEAST)
    assert found is not None
    assert found.index == 19


def test_nothing_at_all_can_be_fallen_to_but_not_from() -> None:
    found = find([1_000.0] * 10 + [0.0] * 10, LEAST)
    assert found is not None
    assert (found.index, found.is_clear) == (10, True)
    assert find([0.0] * 20, LEAST) is None


def test_a_steady_decline_is_a_fall_and_one_in_noise_is_told_as_unclear() -> None:
    decline = [1_000 * math.exp(-index / 30) for index in range(90)]
    found = find(decline, LEAST)
    assert found is not None
    assert found.is_clear
    source = random.Random(5)  # noqa: S311
    found = find([each * math.exp(source.gauss(0, 0.8)) for each in decline], LEAST)
    assert found is not None
    assert not found.is_clear


@pytest.mark.parametrize("scatter", [0.05, 0.15, 0.3, 1.0])
def test_plain_noise_seldom_has_a_clear_fall(scatter: float) -> None:
    source = random.Random(6)  # noqa: S311
    noise = [[math.exp(source.gauss(0, scatter)) for _ in range(60)] for _ in range(300)]
    found = [find(each, LEAST) for each in noise]
    assert sum(each is not None and each.is_clear for each in found) <= 3


def test_noise_that_wanders_seldom_has_a_clear_fall_either() -> None:
    # Autocorrelation 0.8 from sample to sample: not independent, as a drive's minutes are.
    source = random.Random(7)  # noqa: S311

    def series() -> list[float]:
        return [
            math.exp(each) for each in accumulate((source.gauss(0, 0.2) for _ in range(100)), lambda x, y: 0.8 * x + y)
        ]

    found = [find(series(), LEAST) for _ in range(300)]
    assert sum(each is not None and each.is_clear for each in found) <= 15
