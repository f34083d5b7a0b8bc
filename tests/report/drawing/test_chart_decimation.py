from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.report.drawing.chart import extremes, gaps, over_places, parted

values = st.lists(st.floats(-1e9, 1e9), max_size=300)


@given(values, st.integers(4, 60))
def test_ends_and_peaks_survive(ys: list[float], most: int) -> None:
    xs = [float(index) for index in range(len(ys))]
    kept_xs, kept_ys = extremes(xs, ys, most)
    assert len(kept_xs) == len(kept_ys) <= max(most, 4)
    assert kept_xs == sorted(set(kept_xs))
    assert all(ys[int(x)] == y for x, y in zip(kept_xs, kept_ys, strict=True))
    if ys:
        assert (min(kept_ys), max(kept_ys)) == (min(ys), max(ys))
        assert (kept_xs[0], kept_xs[-1]) == (0, len(ys) - 1)


@given(st.integers(100, 5000), st.integers(0, 4999), st.integers(10, 80))
def test_a_single_stall_is_kept_wherever_it_is(count: int, at: int, most: int) -> None:
    ys = [1.0] * count
    ys[at % count] = 900.0
    xs, kept = extremes([float(x) for x in range(count)], ys, most)
    assert (float(at % count), 900.0) in zip(xs, kept, strict=True)


def test_every_stretch_keeps_its_own_extremes() -> None:
    ys = [float(each % 10) + each // 100 * 20 for each in range(1000)]
    xs, kept = extremes([float(x) for x in range(1000)], ys, 22)
    for stretch in range(10):
        of_it = [y for x, y in zip(xs, kept, strict=True) if stretch * 100 <= x < (stretch + 1) * 100]
        assert {stretch * 20.0, stretch * 20.0 + 9} <= set(of_it)


def test_what_is_short_enough_is_left_alone() -> None:
    assert extremes([1, 2, 3, 4], [4, 3, 2, 1], 4) == ([1, 2, 3, 4], [4, 3, 2, 1])


def test_series_that_are_none() -> None:
    with pytest.raises(ValueError, match="fewer than 4"):
        extremes([1.0], [1.0], 3)
    with pytest.raises(ValueError, match="no series"):
        extremes([1.0], [], 10)


def test_a_series_in_even_steps_has_gaps_where_points_are_missing() -> None:
    assert gaps([1.0, 2.0, 3.1, 6.0, 7.0]) == [(3.1, 6.0)]
    assert gaps([1.0, 2.0, 3.0]) == gaps([5.0]) == gaps([]) == []


def test_no_line_leads_over_a_gap_and_no_point_is_lost() -> None:
    xs, ys = parted([1.0, 2.0, 6.0, 7.0], [10.0, 20.0, 60.0, 70.0], [(2.0, 6.0)])
    assert xs == [1.0, 2.0, 4.0, 6.0, 7.0]
    assert math.isnan(ys[2])
    assert [y for y in ys if not math.isnan(y)] == [10.0, 20.0, 60.0, 70.0]
    # Of a decimated series the points beside the gap may be further apart than the gap is wide.
    assert math.isnan(parted([0.0, 9.0], [1.0, 1.0], [(2.0, 6.0)])[1][1])


def test_places_that_are_skipped_part_a_series() -> None:
    _, ys = over_places([0, 1, 3], [0.1, 1.1, 3.1], [1.0, 2.0, 3.0])
    assert [math.isnan(y) for y in ys] == [False, False, True, False]
