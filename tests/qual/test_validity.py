from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import geometries, histogram, interval, run, workloads

from pytest_ssdqual.qual.geometry import Geometry
from pytest_ssdqual.qual.measurement import Run
from pytest_ssdqual.qual.validity import objections
from pytest_ssdqual.qual.workload import Workload


@given(geometries, workloads, st.lists(st.integers(2_000, 50_000), min_size=5, max_size=20))
def test_nothing_is_said_against_a_run_in_order(geometry: Geometry, workload: Workload, iops: list[int]) -> None:
    assert objections(run(iops, geometry=str(geometry), workload=workload, cpu_busy=0.3)) == ()


def with_latency(factor: float) -> Run:
    true = run([1_000] * 5)
    return replace(
        true,
        intervals=tuple(
            replace(each, read_latency=histogram({int(each.latency.max_ns * factor): each.ios}))
            for each in true.intervals
        ),
    )


@pytest.mark.parametrize("factor", [0.85, 1.10])
def test_littles_law(factor: float) -> None:
    (said,) = objections(with_latency(factor))
    assert "were outstanding (IOPS × mean latency), 8 were asked for" in said
    assert f"{8 * factor:.1f}"[:3] in said


@pytest.mark.parametrize("factor", [0.92, 1.03])
def test_a_little_submission_time_is_believed(factor: float) -> None:
    assert objections(with_latency(factor)) == ()


def test_no_io_at_all_is_one_objection() -> None:
    assert objections(run([0] * 5)) == ("no I/O in 5 s",)


def test_a_handful_of_ios() -> None:
    (said,) = objections(run([90] * 5))
    assert said == "only 450 I/Os in the window, at least 500 are needed"


def test_a_window_cut_short() -> None:
    (said,) = objections(run([1_000] * 5, window_s=10))
    assert said == "only 5.0 s of the window of 10 s were recorded"


def test_a_stall_inside_an_interval_and_between_two() -> None:
    true = run([1_000] * 5, window_s=9)
    first, *others = true.intervals
    late = tuple(replace(each, start_s=each.start_s + 4) for each in others)
    slow = interval(0, seconds=5, reads=5_000, latency_ns=8_000_000)
    assert objections(replace(true, intervals=(slow, *late))) == ("fio was silent for 5.0 s at 0.0 s",)
    said = objections(replace(true, intervals=(first, *late)))
    assert "4.0 s without a record at 1.0 s" in said


def test_a_direction_that_is_missing_or_should_not_be_there() -> None:
    reads = run([1_000] * 5)
    assert any("no writes" in said for said in objections(replace(reads, workload=Workload("randrw", "4k", 8, 70))))
    said = objections(replace(reads, workload=Workload("randwrite", "4k", 8)))
    assert any("no writes" in each for each in said)
    assert any("1,000 reads per second in a workload without reads" in each for each in said)


def test_a_mix_that_is_off() -> None:
    asked = replace(
        run([10_000] * 5, workload=Workload("randrw", "4k", 8, 66)), workload=Workload("randrw", "4k", 8, 70)
    )
    assert objections(asked) == ("66.0% of the I/Os were reads, 70% were asked for",)
    # 4 points of 600 I/Os are chance.
    few = replace(run([120] * 5, workload=Workload("randrw", "4k", 8, 66)), workload=Workload("randrw", "4k", 8, 70))
    assert objections(few) == ()


def test_bytes_have_to_be_ios_times_size() -> None:
    said = objections(replace(run([1_000] * 5), workload=Workload("randread", "8k", 8)))
    assert said == ("4,096 bytes per I/O, 8,192 were asked for",)


def test_every_io_has_a_latency() -> None:
    true = run([1_000] * 5)
    lost = tuple(replace(each, read_latency=histogram({each.latency.max_ns: each.ios // 2})) for each in true.intervals)
    assert objections(replace(true, intervals=lost)) == ("2,500 latencies for 5,000 I/Os",)


def test_a_busy_host() -> None:
    (said,) = objections(run([1_000] * 5, cpu_busy=0.97))
    assert "97% busy" in said


def test_latencies_beyond_fios_range() -> None:
    assert any("17 s" in said for said in objections(run([500] * 5, workload=Workload("randread", "4k", 9_000))))
