from __future__ import annotations

from dataclasses import replace

from pytest_ssdqual.qual.progress_events import Planned
from pytest_ssdqual.report.terminal.plan import PlannedArray, PrintedPlan, comparison_lines, plan_lines

THREE = PlannedArray("raid5x3", 16, 3600, 12480, 5_040_000_000_000)
FOUR = PlannedArray("raid5x4", 16, 4800, 12480, 6_720_000_000_000, most_s=21_600, most_bytes=9 * 10**12)


def test_the_plan_and_its_sum() -> None:
    assert plan_lines(PrintedPlan((THREE, FOUR), 8, "intel", True, endurance_bytes=275 * 10**12)) == [
        "ssdqual: the plan for 8 drives, protocol intel",
        "  array    workloads  conditioning  measuring  in all  at most  written  at most",
        "  raid5x3         16        60 min     3.47 h  4.47 h   4.47 h  5.04 TB  5.04 TB",
        "  raid5x4         16        80 min     3.47 h   4.8 h      6 h  6.72 TB     9 TB",
        "  total           32        2.33 h     6.93 h  9.27 h   10.5 h  11.8 TB    14 TB",
        "  9.27 h if drives are steady at once; at most 10.5 h, when the protocol gives up",
        "  about 1.47 TB to 1.75 TB per drive, 0.53 to 0.64 % of its rated endurance of 275 TB",
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
        "  array    workloads  conditioning  measuring  in all  at most  written  at most",
        "  drivex1          1             -       60 s    60 s     60 s        -        -",
        "  times are estimates",
        "  all data on the drives will be destroyed",
    ]


def test_nothing_to_do_destroys_nothing() -> None:
    assert plan_lines(PrintedPlan((), 8, "intel", acceptance=True)) == [
        "ssdqual: no array is needed by the tests selected, nothing will be written"
    ]


def test_totals() -> None:
    plan = PrintedPlan((THREE, FOUR), 8, "intel", acceptance=True, drive_bytes=490 * 10**9)
    assert (plan.seconds, plan.bytes_written) == (33_360, 11_760_000_000_000)
    assert (plan.at_most_s, plan.at_most_bytes) == (16_080 + 21_600, 14_040_000_000_000)
    least, most = plan.drive_writes
    assert (round(least, 3), round(most, 3)) == (3.0, 3.582)


def test_the_range_of_visits() -> None:
    plan = PrintedPlan((FOUR,), 4, "acceptance", acceptance=True, least_visits=2, most_visits=6)
    (line,) = [line for line in plan_lines(plan) if "visits" in line]
    assert "4.8 h" in line
    assert "two visits" in line
    assert "at most 6 h" in line
    assert "6 times" in line
    (line,) = [line for line in plan_lines(replace(plan, least_visits=1)) if "visit of" in line]
    assert "one visit " in line


def test_what_a_budget_buys_and_what_is_assumed_is_printed() -> None:
    plan = PrintedPlan((FOUR,), 4, "acceptance", acceptance=True, budget=("8 h",), assumptions=("slow writes",))
    lines = plan_lines(plan)
    assert "  8 h" in lines
    assert "  assumed: slow writes" in lines
    assert plan_lines(replace(plan, arrays=()))[1:] == ["  8 h"]


def test_those_who_watch_are_told_when_each_array_is_begun() -> None:
    starts = (("drivex4", 0.0), ("raid1x2", 100.0), ("drivex4", 130.0), ("raid1x2", 135.0))
    planned = PrintedPlan((THREE,), 4, "all", acceptance=False, starts=starts).planned
    assert planned.seconds == THREE.seconds
    assert [planned.start_s("raid1x2", times) for times in (0, 1, 2)] == [100.0, 135.0, None]
    assert PrintedPlan((), 4, "all", acceptance=False).planned == Planned(0)


def test_protocols_side_by_side() -> None:
    known = PrintedPlan((THREE,), 3, "intel", acceptance=True, endurance_bytes=275 * 10**12, drive_bytes=480 * 10**9)
    unknown = PrintedPlan((FOUR,), 4, "stec", acceptance=True)
    assert comparison_lines((known, unknown)) == [
        "ssdqual: the same tests by each protocol for acceptance",
        "  protocol  at least  at most  drive writes  of rated endurance",
        "  intel       4.47 h   4.47 h           3.5              0.61 %",
        "  stec         4.8 h      6 h             -             unknown",
    ]
