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
    (run([0] * 5), ["no I/O in 5 s"]),
    (run([90] * 5), ["only 450 I/Os in the window, at least 500 are needed"]),
    # How many are enough depends on the rounds.
    (run([150], rounds=1), []),
    (run([99], rounds=1), ["only 99 I/Os in the window, at least 100 are needed"]),
    (run([1_000] * 5, window_s=10), ["only 5.0 s of the window of 10 s were recorded"]),
    # A stall inside of an interval, and between two.
    (
        replace(run([1_000] * 5, window_s=9), intervals=(interval(0, seconds=5, reads=5_000, latency_ns=8 * 10**6),
                                                         *BY_4_MS[1:])),
        ["fio was silent for 5.0 s at 0.0 s"],
    ),
    (
        replace(run([1_000] * 5, window_s=9), intervals=(SOUND.intervals[0], *BY_4_MS[1:])),
        ["only 5.0 s of the window of 9 s were recorded", "4.0 s without a record at 1.0 s"],
    ),
    # Directions that are missing, or should not be there.
    (replace(SOUND, workload=Workload("randrw", "4k", 8, 70)), ["no writes", "100.0% of the I/Os were reads"]),
    (replace(SOUND, workload=Workload("randread+randwrite", "4k", 8)), ["no writes in a workload that has them"]),
    (
        replace(SOUND, workload=Workload("randwrite", "4k", 8)),
        ["1,000 reads per second in a workload without reads", "no writes"],
    ),
    (replace(SOUND, workload=Workload("randread", "8k", 8)), ["4,096 bytes per I/O, 8,192 were asked for"]),
    (
        replace(run([200] * 5), intervals=(replace(run([200]).intervals[0], read_bytes=200 * 4096 + 512),
                                           *run([200] * 5).intervals[1:])),
        ["4,097 bytes per I/O, 4,096 were asked for"],
    ),
    (
        replace(SOUND, intervals=tuple(replace(each, read_latency=histogram({8 * 10**6: 500}))
                                       for each in SOUND.intervals)),
        ["2,500 latencies for 5,000 I/Os"],
    ),
    # Little's law: 8 were asked for; a little submission time is believed.
    (with_latency(0.85), ["6.8 I/Os were outstanding (IOPS × mean latency), 8 were asked for"]),
    (with_latency(0.92), []),
    (with_latency(1.03), []),
    (with_latency(1.10), ["8.8 I/Os were outstanding (IOPS × mean latency), 8 were asked for"]),
    # All jobs together have to keep outstanding what was asked for.
    (replace(THREADS, workload=THREADS.workload.at(64)), ["128.5 I/Os were outstanding"]),
    # Beyond fio's range.
    (run([500] * 5, workload=Workload("randread", "4k", 9_000)), ["latencies of 17 s and more"]),
    # Each drive side by side is looked at and named: together they have I/Os in plenty.
    (side_by_side([[1_000] * 5] * 3), []),
    (side_by_side([[1_000] * 5, [50] * 5, [1_000] * 5]), ["S1: only 250 I/Os in the window, at least 500 are needed"]),
    (side_by_side([[1_000] * 5, [1_000] * 5, [0] * 5]), ["S2: no I/O in 5 s"]),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "sentences"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_with_a_run_is_told(wrong: Run, sentences: list[str]) -> None:
    told = objections(wrong)
    assert len(told) == len(sentences)
    for objection, sentence in zip(told, sentences, strict=True):
        assert sentence in objection


def test_the_caller_may_ask_for_fewer_or_more_ios() -> None:
    assert objections(run([99], rounds=1), fewest=50) == ()
    (objection,) = objections(run([1_000] * 5), fewest=6_000)
    assert "6,000" in objection


def test_a_mix_that_is_off() -> None:
    asked = replace(
        run([10_000] * 5, workload=Workload("randrw", "4k", 8, 66)), workload=Workload("randrw", "4k", 8, 70)
    )
    (objection,) = objections(asked)
    assert objection.startswith("66.0% of")
    # 8 points may be the queue's: 128 I/Os were in flight at the end of few, and of many they are nothing.
    deep, less = (Workload("randrw", "64k", 32, percent, threads=4) for percent in (65, 57))
    for rate, count in ((120, 0), (12_000, 1)):
        found = objections(replace(run([rate] * 5, workload=less), workload=deep))
        assert len([each for each in found if "were reads" in each]) == count
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
    assert (found.holds, found.figure is not None) == (holds, True)
    assert found.believable.startswith("not checked") is (holds is None)


def test_a_busy_host() -> None:
    (objection,) = objections(run([1_000] * 5, cpu_busy=0.97))
    assert "97% busy" in objection
    # Once, however many drives it has.
    assert len(objections(replace(side_by_side([[1_000] * 5] * 3), seen=seen(cpu_busy=0.97)))) == 1


def test_every_check_has_its_figure_and_what_would_be_believable() -> None:
    found = {check.name: check for check in checks(run([1_000] * 5, cpu_busy=0.3))}
    figures = {name: check.figure for name, check in found.items()}
    assert figures | {
        "ios": 5_000, "counted_s": 5, "longest_silence_s": 1, "reads_percent": 100, "bytes_per_io": 4096,
        "latencies_missing": 0, "cpu_busy_percent": 30,
    } == figures  # fmt: skip
    assert figures["littles_law_percent"] == pytest.approx(100, abs=1)
    assert figures["max_latency_s"] == pytest.approx(0.008, rel=0.01)
    assert all(check.believable for check in found.values())
    assert all(check.holds for check in found.values())


def test_checks_of_drives_side_by_side_bear_their_names() -> None:
    found = checks(side_by_side([[1_000] * 5, [50] * 5]))
    assert {(check.drive, check.holds) for check in found if check.name == "ios"} == {("S0", True), ("S1", False)}


def test_worst_check_fails_or_is_unknown_or_has_the_worst_figure() -> None:
    holding, better = Check("temperature_c", 60.0, "", drive="A"), Check("temperature_c", 40.0, "", drive="B")
    silent, failing = Check("temperature_c", None, ""), Check("temperature_c", 30.0, "", ("no",))
    assert worst([better, holding, better])["temperature_c"] is holding
    assert worst([better, silent, holding])["temperature_c"] is silent
    assert worst([silent, failing, holding])["temperature_c"] is failing
    full, half = (Check("link_percent", share, "", low_is_bad=True) for share in (100.0, 50.0))
    assert worst([half, full])["link_percent"] is half
    assert set(worst([full, silent])) == {"link_percent", "temperature_c"}


def test_what_went_on_around_it_is_part_of_it() -> None:
    calm = seen([seen_drive("S0", None, None)])
    warm = replace(calm.drives[0], heat=DriveTemperature(80.0, 70.0, True, 0, 0))
    of = replace(run([1_000] * 5), seen=replace(calm, drives=(warm,), clock_jump_s=-3600.0))
    assert objections(of) == (
        "drive S0 was too warm: 80 °C, its warning threshold is 70 °C",
        "the machine's clock was set back by 60 min",
    )
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
    (objection,) = objections(replace(many, intervals=short))
    assert objection.endswith("90% to 105%")


def test_uneven_load_is_found_although_the_sum_is_right() -> None:
    true = side_by_side([[1_000] * 5] * 2)
    busier, idler = (
        tuple(replace(each, read_latency=histogram({int(8e6 * factor): each.ios})) for each in part)
        for part, factor in zip(true.parts, (1.2, 0.8), strict=True)
    )
    objection = objections(replace(true, parts=(busier, idler)))
    assert [each[:3] for each in objection] == ["S0:", "S1:"]
    assert "9.6 I/Os were" in objection[0]


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
    assert any(", 28,672 were" in objection for objection in objections(replace(true, intervals=off)))


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
    reads, writes = objections(streams(11_000_000, 1_666_667))
    assert "10.9 I/Os of" in reads
    assert "5.0 I/Os of" in writes


def test_flushes_take_time_that_is_in_no_latency() -> None:
    """fio drains its queue for each: seen with fio 3.33 at depth 4, 78 % of Little's law."""
    workload = Workload("randwrite", "4k", 8, fsync=1)
    flushed = run([1000] * 5, workload=workload)
    slow = replace(flushed, intervals=tuple(_half_as_slow(each) for each in flushed.intervals))
    assert [each for each in objections(slow) if "outstanding" in each] == []
    unflushed = replace(slow, workload=replace(workload, fsync=0))
    assert [each for each in objections(unflushed) if "outstanding" in each]
    # More than was asked for is not believed either way.
    twice = replace(flushed, workload=workload.at(4))
    assert [each for each in objections(twice) if "outstanding" in each]


def _half_as_slow(interval: Interval) -> Interval:
    half = {value_ns // 2: count for value_ns, count in interval.write_latency.bins}
    return replace(interval, write_latency=histogram(half))


def test_objections_belong_to_the_drive_that_they_are_about() -> None:
    found = objections_by_drive(side_by_side([[1_000] * 5, [1] * 5, [1_000] * 5]))
    assert list(found) == ["S1"]
    assert all(each.startswith("S1: ") for each in found["S1"])
    assert objections_by_drive(side_by_side([[1_000] * 5] * 2)) == {}
