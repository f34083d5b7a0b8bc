from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.report.charts.decimate import extremes

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
