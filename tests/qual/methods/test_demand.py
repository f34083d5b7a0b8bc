from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ssdqual.qual.methods import snia
from pytest_ssdqual.qual.methods.demand import MAX_IOPS, MID_IOPS, MIN_IOPS, DemandPoint, is_grid, required
from pytest_ssdqual.qual.workload.workload import Workload

ONE = DemandPoint(1, 1, 8_000, 125e3)
HALF, BEST = DemandPoint(4, 2, 45_000, 180e3), DemandPoint(32, 8, 80_000, 3.2e6)
SLOW = DemandPoint(32, 32, 82_000, 12.5e6)


def test_required_points_are_the_best_one_io_and_the_middle() -> None:
    assert required([SLOW, BEST, HALF, ONE]) == {MIN_IOPS: ONE, MID_IOPS: HALF, MAX_IOPS: BEST}


def test_the_middle_is_that_of_the_named_points_not_of_the_grid() -> None:
    """The middle of 8,000 and 80,000 is 44,000; that of 8,000 and 82,000 would be 45,000."""
    near = DemandPoint(2, 4, 43_500, 180e3)
    assert required([SLOW, BEST, HALF, near, ONE])[MID_IOPS] == near


def test_of_equal_iops_the_faster_response_counts() -> None:
    slower_best, slower_half = replace(BEST, mean_latency_ns=4e6), replace(HALF, mean_latency_ns=200e3)
    found = required([slower_best, BEST, slower_half, HALF, ONE])
    assert (found[MAX_IOPS], found[MID_IOPS]) == (BEST, HALF)


def test_exactly_5_ms_is_not_below() -> None:
    at = replace(BEST, mean_latency_ns=5e6)
    assert required([at, ONE])[MAX_IOPS] == ONE


@pytest.mark.parametrize(
    ("points", "names"),
    [((replace(ONE, mean_latency_ns=6e6), SLOW), {MIN_IOPS}), ((BEST, HALF), {MAX_IOPS}), ((), set())],
)
def test_what_the_grid_does_not_have_is_left_out(points: tuple[DemandPoint, ...], names: set[str]) -> None:
    assert set(required(points)) == names


def test_a_grid_is_one_mix_over_threads_and_depths() -> None:
    assert all(is_grid(loop.workloads) for loop in snia.DEMAND_VARIATIONS)
    for loop in (snia.IOPS, snia.LATENCY, *snia.THROUGHPUT):
        assert not is_grid(loop.workloads)
    grid = [Workload("randread", "4k", depth, threads=threads) for threads in (1, 2) for depth in (1, 2)]
    assert is_grid(grid)
    assert not is_grid(grid[:2])  # one number of threads
    assert not is_grid([*grid, Workload("randread", "8k", 1, threads=1)])
    assert not is_grid([replace(each, threads=None) for each in grid])
