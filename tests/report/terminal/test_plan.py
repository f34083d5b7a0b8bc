from __future__ import annotations

from dataclasses import replace

import pytest
from support.documents import golden

from pytest_ssdqual.qual.progress_events import Planned
from pytest_ssdqual.report.terminal.plan import PlannedArray, PrintedPlan, comparison_lines, plan_lines

THREE = PlannedArray("raid5x3", 16, 3600, 12480, 5_040_000_000_000)
FOUR = PlannedArray("raid5x4", 16, 4800, 12480, 6_720_000_000_000, most_s=21_600, most_bytes=9 * 10**12)


SMALL = PlannedArray("drivex1", 1, 0, 60, 0)
OF_STEC = PrintedPlan((THREE,), 8, "stec", acceptance=True)
VISITED = PrintedPlan((FOUR,), 4, "acceptance", acceptance=True, least_visits=2, most_visits=6)
IN_BUDGET = PrintedPlan((FOUR,), 4, "acceptance", acceptance=True, budget=("8 h",), assumptions=("slow writes",))
PLANS = {
    "with its sum": PrintedPlan((THREE, FOUR), 8, "intel", True, endurance_bytes=275 * 10**12),
    "caches stay": OF_STEC,
    "caches are switched": replace(OF_STEC, write_cache="off"),
    "one array needs no sum": PrintedPlan((SMALL,), 1, "quick", acceptance=False),
    "nothing to do destroys nothing": PrintedPlan((), 8, "intel", acceptance=True),
    "a range of visits": VISITED,
    "one visit": replace(VISITED, least_visits=1),
    "what a budget buys and what is assumed": IN_BUDGET,
    "nothing within the budget": replace(IN_BUDGET, arrays=()),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_plans(plan: PrintedPlan) -> None:
    golden.same("plans.txt", plan_lines(plan))


def test_totals() -> None:
    plan = PrintedPlan((THREE, FOUR), 8, "intel", acceptance=True, drive_bytes=490 * 10**9)
    assert (plan.seconds, plan.bytes_written) == (33_360, 11_760_000_000_000)
    assert (plan.at_most_s, plan.at_most_bytes) == (16_080 + 21_600, 14_040_000_000_000)
    least, most = plan.drive_writes
    assert (round(least, 3), round(most, 3)) == (3.0, 3.582)


def test_those_who_watch_are_told_when_each_array_is_begun() -> None:
    starts = (("drivex4", 0.0), ("raid1x2", 100.0), ("drivex4", 130.0), ("raid1x2", 135.0))
    planned = PrintedPlan((THREE,), 4, "all", acceptance=False, starts=starts).planned
    assert planned.seconds == THREE.seconds
    assert [planned.start_s("raid1x2", times) for times in (0, 1, 2)] == [100.0, 135.0, None]
    assert PrintedPlan((), 4, "all", acceptance=False).planned == Planned(0)


def test_protocols_side_by_side() -> None:
    known = PrintedPlan((THREE,), 3, "intel", acceptance=True, endurance_bytes=275 * 10**12, drive_bytes=480 * 10**9)
    unknown = PrintedPlan((FOUR,), 4, "stec", acceptance=True)
    golden.same("plans.txt", comparison_lines((known, unknown)))
