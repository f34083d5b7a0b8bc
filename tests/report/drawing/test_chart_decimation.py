from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.report.drawing.chart import extremes, gaps
from pytest_ssdqual.report.drawing.plot import Point, interrupted, over_places

values = st.lists(st.floats(-1e9, 1e9), max_size=300)


def pairs(ys: list[float]) -> list[tuple[float, float]]:
    return [(float(x), y) for x, y in enumerate(ys)]


@given(values, st.integers(4, 60))
def test_ends_and_peaks_survive(ys: list[float], most: int) -> None:
    points = pairs(ys)
    kept = extremes(points, most)
    assert len(kept) <= most
    assert kept == sorted(set(kept)) == [point for point in points if point in kept]
    if ys:
        kept_ys = [y for _, y in kept]
        assert (min(kept_ys), max(kept_ys)) == (min(ys), max(ys))
        assert (kept[0], kept[-1]) == (points[0], points[-1])


@given(st.integers(100, 5000), st.integers(0, 4999), st.integers(10, 80))
def test_a_single_stall_is_kept_wherever_it_is(count: int, at: int, most: int) -> None:
    ys = [1.0] * count
    ys[at % count] = 900.0
    assert (float(at % count), 900.0) in extremes(pairs(ys), most)


def test_every_stretch_keeps_its_own_extremes() -> None:
    kept = extremes(pairs([float(each % 10) + each // 100 * 20 for each in range(1000)]), 22)
    for stretch in range(10):
        of_it = [y for x, y in kept if stretch * 100 <= x < (stretch + 1) * 100]
        assert {stretch * 20.0, stretch * 20.0 + 9} <= set(of_it)


def test_what_is_short_enough_is_left_alone() -> None:
    assert extremes(pairs([4, 3, 2, 1]), 4) == pairs([4, 3, 2, 1])


def test_fewer_than_four_points_are_no_course() -> None:
    with pytest.raises(ValueError, match="fewer than 4"):
        extremes([(1.0, 1.0)], 3)


def test_a_series_in_even_steps_has_gaps_at_missing_points() -> None:
    assert gaps([(x, 0.0) for x in (1.0, 2.0, 3.1, 6.0, 7.0)]) == [(3.1, 6.0)]
    assert gaps(pairs([1.0, 2.0, 3.0])) == gaps([(5.0, 1.0)]) == gaps([]) == []


def test_no_line_leads_over_a_gap_and_no_point_is_lost() -> None:
    points = [Point(1.0, 10.0), Point(2.0, 20.0), Point(6.0, 60.0), Point(7.0, 70.0)]
    parted = interrupted(points, [(2.0, 6.0)])
    assert [point.x for point in parted] == [1.0, 2.0, 4.0, 6.0, 7.0]
    assert math.isnan(parted[2].y)
    assert [point for point in parted if not math.isnan(point.y)] == points
    # Of a decimated series the points beside the gap may be further apart than the gap is wide.
    assert len(interrupted([Point(0.0, 1.0), Point(9.0, 1.0)], [(2.0, 6.0)])) == 3


def test_places_that_are_skipped_part_a_series() -> None:
    points = over_places([Point(0.1, 1.0), Point(1.1, 2.0), Point(3.1, 3.0)], range(4))
    assert [math.isnan(point.y) for point in points] == [False, False, True, False]
    assert len(over_places([Point(3.1, 1.0), Point(6.2, 2.0)], [3, 6, 8])) == 2
