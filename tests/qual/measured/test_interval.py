from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import interval

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.interval import Interval, merged

reports = st.lists(
    st.builds(
        lambda seconds, reads, writes: interval(0, seconds=seconds, reads=reads, writes=writes),
        st.sampled_from([0.004, 0.5, 1.0, 2.5]),
        st.integers(0, 500),
        st.integers(0, 500),
    ),
    min_size=1,
    max_size=6,
)


def following(each: list[Interval]) -> list[Interval]:
    ends = [sum(one.seconds for one in each[:number]) for number in range(len(each))]
    return [replace(one, start_s=start_s) for one, start_s in zip(each, ends, strict=True)]


def test_it_is_as_long_as_it_really_was() -> None:
    late = interval(3, seconds=2, reads=300, writes=100, block=4096)
    assert (late.end_s, late.ios, late.bytes_per_s) == (5, 400, 200 * 4096)
    assert late.latencies == (late.read_latency, late.write_latency)
    assert late.latency == late.read_latency + late.write_latency


@given(reports.map(following))
def test_nothing_is_lost_when_intervals_become_one(parts: list[Interval]) -> None:
    whole = merged(parts)
    assert whole.start_s == 0
    assert whole.end_s == pytest.approx(parts[-1].end_s)
    for name in ("read_ios", "write_ios", "read_bytes", "write_bytes"):
        assert getattr(whole, name) == sum(getattr(each, name) for each in parts)
    assert whole.read_latency == LatencyHistogram.merged(each.read_latency for each in parts)
    assert whole.write_latency == LatencyHistogram.merged(each.write_latency for each in parts)


@given(reports.map(following), st.integers(1, 5))
def test_it_does_not_matter_in_how_many_steps(parts: list[Interval], cut: int) -> None:
    """Of the rates, too: those of intervals that were merged before are remembered."""
    halves = [merged(part) for part in (parts[:cut], parts[cut:]) if part]
    if all(half.seconds >= 0.5 for half in halves) and all(each.seconds >= 0.5 for each in parts):
        assert merged(halves).slowest_bytes_per_s == merged(parts).slowest_bytes_per_s
        assert merged(halves).fastest_bytes_per_s == merged(parts).fastest_bytes_per_s
    assert merged(halves).latency == merged(parts).latency


def test_a_report_of_milliseconds_has_no_rate() -> None:
    parts = following([interval(0, seconds=0.004, reads=500), interval(0, reads=100), interval(0, reads=90)])
    whole = merged(parts)
    assert (whole.slowest_bytes_per_s, whole.fastest_bytes_per_s) == (90 * 4096, 100 * 4096)
    assert merged(parts[:1]).fastest_bytes_per_s == 500 * 4096 / 0.004


def test_one_that_was_not_merged_is_its_own_slowest_and_fastest() -> None:
    alone = interval(0, seconds=2, reads=100)
    assert alone.slowest_bytes_per_s == alone.fastest_bytes_per_s == alone.bytes_per_s == 50 * 4096
