from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import (
    geometries,
    histogram,
    interval,
    run,
    seen,
    seen_drive,
    side_by_side,
    unusual_workloads,
    workloads,
)

from pytest_ssdqual.qual.measured.environment import DriveTemperature
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.validity.check import Check
from pytest_ssdqual.qual.validity.checks import (
    checks,
    objections,
    objections_by_drive,
    objections_in,
    of_environment,
    worst,
)
from pytest_ssdqual.qual.workload.workload import Workload


@given(geometries, workloads | unusual_workloads, st.lists(st.integers(2_000, 50_000), min_size=5, max_size=20))
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


SOUND, BY_4_MS = run([1_000] * 5), [replace(each, start_s=each.start_s + 4) for each in run([1_000] * 5).intervals]
THREADS = run([2_000] * 5, geometry="raid0x4", workload=Workload("randwrite", "4k", 32, threads=4))
#: Of 1,000 I/Os a second at a depth of 8.
WRONG = [
    (run([0] * 5), [("ios", 0)]),
    (run([90] * 5), [("ios", 450)]),
    # How many are enough depends on the rounds.
    (run([150], rounds=1), []),
    (run([99], rounds=1), [("ios", 99)]),
    (run([1_000] * 5, window_s=10), [("counted_s", 5)]),
    # A stall inside of an interval, and between two.
    (
        replace(run([1_000] * 5, window_s=9), intervals=(interval(0, seconds=5, reads=5_000, latency_ns=8 * 10**6),
                                                         *BY_4_MS[1:])),
        [("longest_silence_s", 5)],
    ),
    (
        replace(run([1_000] * 5, window_s=9), intervals=(SOUND.intervals[0], *BY_4_MS[1:])),
        [("counted_s", 5), ("longest_silence_s", 4)],
    ),
    # Directions that are missing or should not be there, and the share of both.
    (replace(SOUND, workload=Workload("randrw", "4k", 8, 70)), [("reads_percent", 100)] * 2),
    (replace(SOUND, workload=Workload("randread+randwrite", "4k", 8)), [("reads_percent", 100)]),
    (replace(SOUND, workload=Workload("randwrite", "4k", 8)), [("reads_percent", 100)] * 2),
    (replace(SOUND, workload=Workload("randread", "8k", 8)), [("bytes_per_io", 4096)]),
    (
        replace(run([200] * 5), intervals=(replace(run([200]).intervals[0], read_bytes=200 * 4096 + 512),
                                           *run([200] * 5).intervals[1:])),
        [("bytes_per_io", 4096.512)],
    ),
    (
        replace(SOUND, intervals=tuple(replace(each, read_latency=histogram({8 * 10**6: 500}))
                                       for each in SOUND.intervals)),
        [("latencies_missing", 2_500)],
    ),
    # Little's law: 8 were asked for; a little submission time is believed.
    (with_latency(0.85), [("littles_law_percent", 85.6)]),
    (with_latency(0.92), []),
    (with_latency(1.03), []),
    (with_latency(1.10), [("littles_law_percent", 110.6)]),
    # All jobs together have to keep outstanding what was asked for.
    (replace(THREADS, workload=THREADS.workload.at(64)), [("littles_law_percent", 50.2)]),
    # Beyond fio's range.
    (run([500] * 5, workload=Workload("randread", "4k", 9_000)), [("max_latency_s", 17.1)]),
    # Each drive side by side is looked at and named: together they have I/Os in plenty.
    (side_by_side([[1_000] * 5] * 3), []),
    (side_by_side([[1_000] * 5, [50] * 5, [1_000] * 5]), [("ios", 250, "S1")]),
    (side_by_side([[1_000] * 5, [1_000] * 5, [0] * 5]), [("ios", 0, "S2")]),
]  # fmt: skip


def failed(found: Run, fewest: int | None = None) -> list[tuple[object, ...]]:
    """Name, figure and, if there is one, drive of each objection's check."""
    return [
        (check.name, pytest.approx(check.figure, rel=5e-3), *filter(None, [check.drive]))
        for check in checks(found, fewest)
        for _ in check.objections
    ]


@pytest.mark.parametrize(("wrong", "expected"), WRONG, ids=range(len(WRONG)))
def test_checks_that_fail_have_their_figure_and_drive(wrong: Run, expected: list[tuple[object, ...]]) -> None:
    assert failed(wrong) == expected
    assert len(objections(wrong)) == len(expected)


def test_the_caller_may_ask_for_fewer_or_more_ios() -> None:
    assert objections(run([99], rounds=1), fewest=50) == ()
    assert failed(run([1_000] * 5), fewest=6_000) == [("ios", 5_000)]


def test_a_mix_that_is_off() -> None:
    asked = replace(
        run([10_000] * 5, workload=Workload("randrw", "4k", 8, 66)), workload=Workload("randrw", "4k", 8, 70)
    )
    assert failed(asked) == [("reads_percent", 66)]
    # 8 points may be the queue's: 128 I/Os were in flight at the end of few, and of many they are nothing.
    deep, less = (Workload("randrw", "64k", 32, percent, threads=4) for percent in (65, 57))
    for rate, count in ((120, 0), (12_000, 1)):
        assert len(mix_check(replace(run([rate] * 5, workload=less), workload=deep)).objections) == count
    # 4 points of 600 I/Os are chance.
    few = replace(run([120] * 5, workload=Workload("randrw", "4k", 8, 66)), workload=Workload("randrw", "4k", 8, 70))
    assert objections(few) == ()


def mix_check(found: Run) -> Check:
    return next(check for check in checks(found) if check.name == "reads_percent")


@pytest.mark.parametrize(("rate", "holds"), [(20, None), (80, True), (10_000, False)])
def test_a_mix_of_too_few_ios_is_not_checked(rate: int, holds: bool | None) -> None:
    """With 256 outstanding of 100 I/Os, any share of reads may be chance."""
    asked, other = (Workload("randrw", "64k", 64, percent, threads=4) for percent in (70, 60))
    found = mix_check(replace(run([rate] * 5, workload=other), workload=asked))
    assert (found.holds, found.figure is not None, found.answered) == (holds, True, holds is not None)


def test_a_busy_host() -> None:
    # Once, however many drives it has.
    for busy in (run([1_000] * 5, cpu_busy=0.97), replace(side_by_side([[1_000] * 5] * 3), seen=seen(cpu_busy=0.97))):
        assert failed(busy) == [("cpu_busy_percent", 97)]


def test_every_check_has_its_figure() -> None:
    found = {check.name: check for check in checks(run([1_000] * 5, cpu_busy=0.3))}
    figures = {name: check.figure for name, check in found.items()}
    assert figures | {
        "ios": 5_000, "counted_s": 5, "longest_silence_s": 1, "reads_percent": 100, "bytes_per_io": 4096,
        "latencies_missing": 0, "cpu_busy_percent": 30,
    } == figures  # fmt: skip
    assert figures["littles_law_percent"] == pytest.approx(100, abs=1)
    assert figures["max_latency_s"] == pytest.approx(0.008, rel=0.01)
    assert all(check.holds for check in found.values())


def test_checks_of_drives_side_by_side_bear_their_names() -> None:
    found = checks(side_by_side([[1_000] * 5, [50] * 5]))
    assert {(check.drive, check.holds) for check in found if check.name == "ios"} == {("S0", True), ("S1", False)}


def test_worst_check_fails_or_is_unknown_or_has_the_worst_figure() -> None:
    holding, better = Check("temperature_c", 60.0, drive="A"), Check("temperature_c", 40.0, drive="B")
    silent, failing = Check("temperature_c"), Check("temperature_c", 30.0, ("no",))
    assert worst([better, holding, better])["temperature_c"] is holding
    assert worst([better, silent, holding])["temperature_c"] is silent
    assert worst([silent, failing, holding])["temperature_c"] is failing
    full, half = (Check("link_percent", share, low_is_bad=True) for share in (100.0, 50.0))
    assert worst([half, full])["link_percent"] is half
    assert set(worst([full, silent])) == {"link_percent", "temperature_c"}


def test_what_went_on_around_it_is_part_of_it() -> None:
    calm = seen([seen_drive("S0", None, None)])
    warm = replace(calm.drives[0], heat=DriveTemperature(80.0, 70.0, True, 0, 0))
    of = replace(run([1_000] * 5), seen=replace(calm, drives=(warm,), clock_jump_s=-3600.0))
    assert failed(of) == [("temperature_c", 80, "S0"), ("clock_jump_s", -3600)]
    assert objections_in(of_environment(of)) == objections(of)


def test_few_slow_ios_may_be_under_way_at_either_end() -> None:
    # 128 outstanding, 640 I/Os counted: started from an empty queue, a tenth of their time lies outside of the window.
    cold = run([128] * 5, workload=Workload("randread", "1m", 32, threads=4))
    short = tuple(
        replace(each, read_latency=histogram({int(each.latency.max_ns * 0.8): each.ios})) for each in cold.intervals
    )
    assert objections(replace(cold, intervals=short)) == ()
    # With a hundred times as many I/Os the ends are nothing.
    many = run([12_800] * 5, workload=Workload("randread", "1m", 32, threads=4))
    short = tuple(
        replace(each, read_latency=histogram({int(each.latency.max_ns * 0.8): each.ios})) for each in many.intervals
    )
    (check,) = [each for each in checks(replace(many, intervals=short)) if each.objections]
    assert check.name == "littles_law_percent"
    assert "90% to 105%" in check.objections[0]


def test_uneven_load_is_found_although_the_sum_is_right() -> None:
    true = side_by_side([[1_000] * 5] * 2)
    busier, idler = (
        tuple(replace(each, read_latency=histogram({int(8e6 * factor): each.ios})) for each in part)
        for part, factor in zip(true.parts, (1.2, 0.8), strict=True)
    )
    law = "littles_law_percent"
    assert failed(replace(true, parts=(busier, idler))) == [(law, 120, "S0"), (law, 80, "S1")]


def test_drives_have_the_load_of_one_also_as_a_sum() -> None:
    threads = Workload("randwrite", "4k", 32, threads=4)
    together = replace(side_by_side([[2_000] * 5] * 3, workload=threads), parts=())
    assert objections(together) == ()


@pytest.mark.parametrize("shift", [0.94, 1.06])
def test_the_mean_of_drawn_sizes_may_be_off_by_chance_only(shift: float) -> None:
    profile = Workload("randrw", "4k/60:64k/40", 8, 70, name="fileserver")
    for rates, believed in (([300] * 5, True), ([30_000] * 5, False)):
        true = run(rates, workload=profile)
        off = tuple(
            replace(each, read_bytes=round(each.read_bytes * shift), write_bytes=round(each.write_bytes * shift))
            for each in true.intervals
        )
        assert (objections(replace(true, intervals=off)) == ()) is believed
    assert "bytes_per_io" in [name for name, *_ in failed(replace(true, intervals=off))]


def streams(read_ns: int, write_ns: int) -> Run:
    """1,000 reads and 3,000 writes a second, of two jobs that should each keep 8 outstanding."""
    asked = run([4_000] * 5, workload=Workload("randread+randwrite", "4k", 8))
    intervals = tuple(
        replace(
            interval(second, reads=1_000, writes=3_000),
            read_latency=histogram({read_ns: 1_000}),
            write_latency=histogram({write_ns: 3_000}),
        )
        for second in range(5)
    )
    return replace(asked, intervals=intervals)


def test_independent_streams_have_no_mix_but_each_its_queue() -> None:
    assert objections(streams(8_000_000, 2_666_667)) == ()
    # 16 outstanding in all, as asked; but 11 of them are reads and 5 writes.
    law = "littles_law_percent"
    assert failed(streams(11_000_000, 1_666_667)) == [(law, 136.7), (law, 62.5)]


def neighbours(read_ns: int, write_ns: int, beside: str = "write_128k_qd16") -> Run:
    """1,000 reads of 4 KiB and 2,000 writes of 128 KiB a second, of jobs that should keep 1 and 16 outstanding."""
    asked = run([3_000] * 5, workload=Workload("randread", "4k", 1, beside=beside))
    intervals = tuple(
        replace(
            interval(second, reads=1_000, writes=2_000),
            write_bytes=2_000 << 17,
            read_latency=histogram({read_ns: 1_000}),
            write_latency=histogram({write_ns: 2_000}),
        )
        for second in range(5)
    )
    return replace(asked, intervals=intervals)


def test_reads_and_their_neighbour_have_each_its_size_and_queue() -> None:
    assert objections(neighbours(1_000_000, 8_000_000)) == ()
    law = "littles_law_percent"
    assert failed(neighbours(2_000_000, 8_000_000)) == [(law, 200)]
    assert failed(neighbours(1_000_000, 4_000_000)) == [(law, 50)]
    assert failed(neighbours(1_000_000, 4_000_000, "trimwrite_128k_qd16")) == [], "discards are not timed"
    assert "bytes_per_io" in [name for name, *_ in failed(neighbours(1_000_000, 8_000_000, "write_64k_qd16"))]


def test_flushes_take_time_that_is_in_no_latency() -> None:
    """fio drains its queue for each: seen with fio 3.33 at depth 4, 78 % of Little's law."""
    workload = Workload("randwrite", "4k", 8, fsync=1)
    flushed = run([1000] * 5, workload=workload)
    slow = replace(flushed, intervals=tuple(_half_as_slow(each) for each in flushed.intervals))
    # More than was asked for is not believed either way.
    twice = replace(flushed, workload=workload.at(4))
    assert failed(slow) == []
    assert failed(replace(slow, workload=replace(workload, fsync=0))) == [("littles_law_percent", 50)]
    assert failed(twice) == [("littles_law_percent", 200)]


def _half_as_slow(interval: Interval) -> Interval:
    half = {value_ns // 2: count for value_ns, count in interval.write_latency.bins}
    return replace(interval, write_latency=histogram(half))


def test_objections_belong_to_the_drive_that_they_are_about() -> None:
    found = objections_by_drive(side_by_side([[1_000] * 5, [1] * 5, [1_000] * 5]))
    assert {drive: len(each) for drive, each in found.items()} == {"S1": 1}
    assert objections_by_drive(side_by_side([[1_000] * 5] * 2)) == {}
