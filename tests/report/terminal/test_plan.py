from __future__ import annotations

from dataclasses import replace

from pytest_ssdqual.qual.progress_events import Planned
from pytest_ssdqual.report.terminal.plan import PlannedArray, PrintedPlan, comparison_lines, plan_lines

THREE = PlannedArray("raid5x3", 16, 3600, 12480, 5_040_000_000_000)
FOUR = PlannedArray("raid5x4", 16, 4800, 12480, 6_720_000_000_000)


def test_the_plan_and_its_sum() -> None:
    assert plan_lines(PrintedPlan((THREE, FOUR), 8, "intel", True, endurance_bytes=275 * 10**12)) == [
        "ssdqual: the plan for 8 drives, protocol intel",
        "  array    workloads  conditioning  measuring  in all  written",
        "  raid5x3         16        60 min     3.47 h  4.47 h  5.04 TB",
        "  raid5x4         16        80 min     3.47 h   4.8 h  6.72 TB",
        "  total           32        2.33 h     6.93 h  9.27 h  11.8 TB",
        "  times are estimates: conditioning goes on until the array is steady",
        "  about 1.47 TB per drive, 0.53 % of its rated endurance of 275 TB",
        "  all data on the drives will be destroyed",
    ]


def test_plan_announces_a_switch_of_write_caches() -> None:
    announced = "  write caches are switched off where the drives let them be, and restored when the run ends"
    plan = PrintedPlan((THREE,), 8, "stec", acceptance=True)
    assert announced not in plan_lines(plan)
    assert announced in plan_lines(replace(plan, write_cache="off"))


def test_one_array_needs_no_sum() -> None:
    lines = plan_lines(PrintedPlan((PlannedArray("drivex1", 1, 0, 60, 0),), 1, "quick", acceptance=False))
    assert lines == [
        "ssdqual: the plan for 1 drive, protocol quick (not for acceptance)",
        "  array    workloads  conditioning  measuring  in all  written",
        "  drivex1          1             -       60 s    60 s        -",
        "  times are estimates: conditioning goes on until the array is steady",
        "  all data on the drives will be destroyed",
    ]


def test_nothing_to_do_destroys_nothing() -> None:
    assert plan_lines(PrintedPlan((), 8, "intel", acceptance=True)) == [
        "ssdqual: no array is needed by the tests selected, nothing will be written"
    ]


def test_totals() -> None:
    plan = PrintedPlan((THREE, FOUR), 8, "intel", acceptance=True)
    assert (plan.seconds, plan.bytes_written) == (33_360, 11_760_000_000_000)


def test_what_a_loop_may_take_beyond_the_least() -> None:
    loop = PlannedArray(
        "drivex4 snia-iops", 56, 4800, 16_800, 3_840_000_000_000, more_s=67_200, more_bytes=9 * 10**11, is_loop=True
    )
    lines = plan_lines(PrintedPlan((loop, THREE), 4, "snia", acceptance=True, most_rounds=25))
    assert lines[1:4] == [
        "  array              workloads  conditioning  measuring  in all  written",
        "  drivex4 snia-iops         56        80 min     4.67 h     6 h  3.84 TB",
        "  raid5x3                   16        60 min     3.47 h  4.47 h  5.04 TB",
    ]
    assert lines[6] == "  loops go on until they are steady, 25 rounds at most: that is up to 18.7 h and 900 GB more"


def test_what_a_measurement_may_take_beyond_its_first_look() -> None:
    array = PlannedArray("raid5x3", 16, 3600, 8192, 5 * 10**12, more_s=222_720, more_bytes=10**12)
    plan = PrintedPlan((array,), 4, "sequential", acceptance=True, first_s=480, limit_s=14_400)
    assert plan_lines(plan)[4:] == [
        "  each workload is measured until its verdicts are certain, 8 min at least and 4 h at most: "
        "that is up to 2.58 d and 1 TB more",
        "  all data on the drives will be destroyed",
    ]
    reads = PlannedArray("raid5x3", 1, 3600, 512, 0, more_s=13_920)
    assert plan_lines(PrintedPlan((reads,), 4, "sequential", acceptance=True, first_s=480, limit_s=14_400))[4].endswith(
        "at most: that is up to 3.87 h more"
    )


def test_plan_announces_that_workloads_take_turns() -> None:
    array = PlannedArray("raid5x3", 16, 3600, 8192, 5 * 10**12, more_s=222_720)
    plain = PrintedPlan((array,), 4, "interleaved", acceptance=True, first_s=360, limit_s=14_400)
    (line,) = set(plan_lines(replace(plain, cell_s=60.0))) - set(plan_lines(plain))
    assert "take turns, 60 s each" in line


def test_those_who_watch_are_told_when_each_array_is_begun() -> None:
    rows = [("drivex4 saturation", 20, 30), ("drivex4", 5, 45), ("raid1x2", 26, 4), ("raid1x2-1failed", 0, 28)]
    arrays = tuple(PlannedArray(name, 1, condition_s, measure_s, 0) for name, condition_s, measure_s in rows)
    planned = PrintedPlan(arrays, 4, "all", acceptance=False).planned
    assert (planned.seconds, planned.arrays, planned.starts_s) == (158, ("drivex4", "raid1x2"), (0, 100))
    assert PrintedPlan((), 4, "all", acceptance=False).planned == Planned(0)


def test_the_range_of_a_plan_and_what_it_assumes() -> None:
    plan = PrintedPlan(
        (THREE,), 4, "sequential", acceptance=True, low_s=14_400, high_s=36_000, assumptions=("p99 latency is good",)
    )
    assert plan_lines(plan)[3:5] == [
        "  times are expected ones, from simulations; all took 4 h to 10 h in nine of ten of them, longer on drives "
        "with cycles of 20 min and more",
        "  assumed: p99 latency is good",
    ]


def test_protocols_side_by_side() -> None:
    known = PrintedPlan(
        (THREE,), 3, "intel", acceptance=True, endurance_bytes=275 * 10**12, drive_bytes=480 * 10**9, ninety_s=20_000
    )
    unknown = PrintedPlan((FOUR,), 4, "stec", acceptance=True)
    assert comparison_lines((known, unknown)) == [
        "ssdqual: the same tests by each protocol for acceptance",
        "  protocol  expected  nine of ten simulated  drive writes  of rated endurance",
        "  intel       4.47 h                 5.56 h           3.5              0.61 %",
        "  stec         4.8 h                  4.8 h             -             unknown",
    ]
