from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.detect.change_point import SHORTEST_AFTER, SHORTEST_BEFORE, Fall, _levels, find, first_fall

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
    assert found.is_from_level
    assert first_fall(noisy, LEAST) == found
    assert found.factor == pytest.approx(factor, rel=0.07)


@given(st.lists(st.floats(91, 109), max_size=200), st.floats(1e-3, 1e6))
def test_what_steady_drives_do_is_no_fall(values: list[float], unit: float) -> None:
    assert find([each * unit for each in values], LEAST) is None
    assert first_fall([each * unit for each in values], LEAST) is None


def test_a_small_step_is_no_fall_however_clear() -> None:
    assert find([109.0] * 20 + [91.0] * 20, LEAST) is None
    assert find([113.0] * 20 + [91.0] * 20, LEAST) is not None


@given(st.integers(SHORTEST_BEFORE, 40), st.integers(SHORTEST_AFTER, 40))
def test_a_rise_is_no_fall(before: int, after: int) -> None:
    assert find([100.0] * before + [1_000.0] * after, LEAST) is None
    assert first_fall([100.0] * before + [1_000.0] * after, LEAST) is None


def test_single_stalls_and_spikes_neither_make_nor_move_a_fall() -> None:
    stalls = [1_000.0 if index % 7 else 100.0 for index in range(60)]
    assert find(stalls, LEAST) is None
    series = [9_000.0 if index % 7 else 900.0 for index in range(60)] + stalls
    found = find(series, LEAST)
    assert found is not None
    assert (found.index, found.is_clear) == (60, True)
    assert first_fall(series, LEAST) == found


def test_the_fall_that_divides_best_is_told_of_several() -> None:
    series = [100_000.0] * 4 + [40_000.0] * 40 + [10_000.0] * 40
    found = find(series, LEAST)
    assert found is not None
    assert found.index == 44
    found = first_fall(series, LEAST)
    assert found is not None
    assert found.index == 4


@given(
    st.integers(SHORTEST_BEFORE, 40),
    st.lists(st.tuples(st.integers(2 * SHORTEST_AFTER, 40), st.floats(1.5, 20)), min_size=2, max_size=4),
    st.randoms(use_true_random=False),
)
def test_of_several_levels_the_end_of_the_first_is_told(
    before: int, later: list[tuple[int, float]], source: random.Random
) -> None:
    series, level = [1e6] * before, 1e6
    for length, factor in later:
        level /= factor
        series += [level] * length
    found = first_fall([each * source.uniform(0.97, 1.03) for each in series], LEAST)
    assert found is not None
    # The last value of the first level and the first of the next can look alike to those behind them.
    assert abs(found.index - before) <= 1
    assert (found.is_clear, found.is_from_level) == (True, True)


def test_first_fall_is_clear_among_equal_levels() -> None:
    series = [100.0] * 10 + [10.0] * 10 + [1.0] * 10
    found = find(series, LEAST)
    assert found is not None
    assert (found.index, found.is_clear) == (10, False)
    fall = first_fall(series, LEAST)
    assert fall is not None
    assert fall.factor == pytest.approx(10)
    assert replace(fall, factor=10) == Fall(10, 10, is_clear=True, is_from_level=True, is_in_scatter=False)


@pytest.mark.parametrize("noise", [0.0, 0.03])
@pytest.mark.parametrize(("depth", "step"), [(1.0, 1.0), (3.0, 1.0), (0.3, 0.7), (1.0, 0.7), (3.0, 0.7)])
def test_a_long_decline_behind_a_level_does_not_hide_its_end(depth: float, step: float, noise: float) -> None:
    """With a step at the beginning of the decline it is found there; else when it can be seen in the noise."""
    source = random.Random(9)  # noqa: S311
    decline = [step * math.exp(-depth * (1 - math.exp(-index / 100))) for index in range(600)]
    series = [each * math.exp(source.gauss(0, noise)) for each in [1.0] * 40 + decline]
    found = first_fall(series, LEAST)
    assert found is not None
    assert (found.is_clear, found.is_from_level) == (True, True)
    late = next(index for index, each in enumerate(decline) if each < 1 / LEAST)
    assert 39 <= found.index <= 40 + late + (0 if step < 1 else SHORTEST_AFTER)


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


def test_decline_is_a_fall_and_one_in_noise_is_unclear() -> None:
    decline = [1_000 * math.exp(-index / 30) for index in range(90)]
    found = find(decline, LEAST)
    assert found is not None
    assert found.is_clear
    assert first_fall(decline, LEAST) == found
    source = random.Random(5)  # noqa: S311
    found = find([each * math.exp(source.gauss(0, 0.8)) for each in decline], LEAST)
    assert found is not None
    assert (found.is_clear, found.is_in_scatter) == (False, True)


#: By how many e-foldings a series has come down at a part of its length: evenly, fast at first, faster and faster.
DECLINES: dict[str, Callable[[float], float]] = {
    "exponential": lambda at: 3 * at,
    "power law": lambda at: 2 * math.log1p(3 * at),
    "root": lambda at: 2 * math.sqrt(at),
    "square": lambda at: 3 * at**2,
}


@pytest.mark.parametrize("noise", [0.0, 0.03])
@pytest.mark.parametrize("length", [40, 90, 400])
@pytest.mark.parametrize("decline", DECLINES.values(), ids=DECLINES)
def test_a_decline_from_the_beginning_on_is_from_no_level(
    decline: Callable[[float], float], length: int, noise: float
) -> None:
    source, levels = random.Random(11), 0  # noqa: S311
    for _ in range(20):
        series = [math.exp(-decline(index / length) + source.gauss(0, noise)) for index in range(length)]
        found = first_fall(series, LEAST)
        assert found is not None
        assert found.is_clear or not found.is_in_scatter
        levels += found.is_clear and found.is_from_level
    # A few samples at its beginning may look like a level in the noise.
    assert levels <= (5 if noise else 0)


@pytest.mark.parametrize("scatter", [0.05, 0.15, 0.3, 1.0])
def test_plain_noise_seldom_has_a_clear_fall(scatter: float) -> None:
    source = random.Random(6)  # noqa: S311
    noise = [[math.exp(source.gauss(0, scatter)) for _ in range(60)] for _ in range(300)]
    for search in (find, first_fall):
        found = [search(each, LEAST) for each in noise]
        assert sum(each is not None and each.is_clear for each in found) <= 3


def test_neither_has_that_of_a_level_before_a_fall() -> None:
    source = random.Random(10)  # noqa: S311
    noise = [[math.exp(source.gauss(-level, 0.3)) for level in (0, 2) for _ in range(60)] for _ in range(100)]
    found = [first_fall(each, LEAST) for each in noise]
    assert sum(each is not None and each.is_from_level and abs(each.index - 60) <= 2 for each in found) >= 98


def test_noise_that_wanders_seldom_has_a_clear_fall_either() -> None:
    # Autocorrelation 0.8 from sample to sample: not independent, as a drive's minutes are.
    source = random.Random(7)  # noqa: S311

    def series() -> list[float]:
        return [
            math.exp(each) for each in accumulate((source.gauss(0, 0.2) for _ in range(100)), lambda x, y: 0.8 * x + y)
        ]

    noise = [series() for _ in range(300)]
    for search in (find, first_fall):
        found = [search(each, LEAST) for each in noise]
        assert sum(each is not None and each.is_clear for each in found) <= 15
