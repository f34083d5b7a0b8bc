"""Latencies from the intended starts: what a job omits while it waits is added, and nothing else changes."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram, from_intended_starts

MS = 1_000_000
BINS = st.dictionaries(st.integers(1_000, 100 * MS), st.integers(1, 1000), max_size=8)


def stall(jobs: int, rate: float, stall_s: float) -> LatencyHistogram:
    """As fio counts ten seconds of Poisson arrivals, of a drive that answers nothing for a while in their middle."""
    chance, begin = random.Random(1), 5.0  # noqa: S311
    latencies: dict[int, int] = {}
    for _ in range(jobs):
        intended = free = 0.0
        while (intended := intended + chance.expovariate(rate / jobs)) < 10:
            started = max(intended, free)
            free = (begin + stall_s if begin <= started < begin + stall_s else started) + 1e-4
            latency = round((free - started) * 1e9)
            latencies[latency] = latencies.get(latency, 0) + 1
    return LatencyHistogram.from_bins(latencies)


def test_a_stall_of_a_second_delays_a_second_of_ios() -> None:
    for jobs in (1, 8, 32):
        counted = stall(jobs, 1000, 1.0)
        (corrected,) = from_intended_starts([counted], 1e9 * jobs / 1000)
        assert counted.count_above(50 * MS) <= jobs
        assert 850 < corrected.count_above(50 * MS) < 1050
        assert corrected.total == counted.total


def test_a_sound_drive_is_not_changed() -> None:
    counted = stall(32, 1000, 0.0)
    assert list(from_intended_starts([counted], 32 * MS)) == [counted]


def test_ios_that_end_in_a_later_interval_are_late_there() -> None:
    slow, after = LatencyHistogram.from_bins({1000 * MS: 1}), LatencyHistogram.from_bins({100_000: 2000})
    first, second = from_intended_starts([slow, after], MS)
    assert first == slow
    assert 940 < second.count_above(50 * MS) < 960


@given(st.lists(BINS, max_size=4), st.floats(50_000, 1e9))
def test_the_number_and_the_slowest_remain(intervals: list[dict[int, int]], gap_ns: float) -> None:
    counted = [LatencyHistogram.from_bins(bins) for bins in intervals]
    corrected = list(from_intended_starts(counted, gap_ns))
    assert [each.total for each in corrected] == [each.total for each in counted]
    for before, after in zip(counted, corrected, strict=True):
        if before and before.max_ns >= gap_ns:
            assert after.max_ns >= before.max_ns
