"""Measurements that the suites of the levels plan: depth 8 on every width, depth 1 on the narrowest and the widest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual import INTEL_RAID
from pytest_ssdqual.plugin.plan.order import Steps
from pytest_ssdqual.plugin.plan.stopping import ClaimsByMeasurement
from pytest_ssdqual.plugin.stash import RUN
from pytest_ssdqual.qual.methods import intel_s3500
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import OF_EXTREMES, Claim
from pytest_ssdqual.rig.campaign.campaign_plan import StepKind

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

WIDTHS = {
    "raid0": range(2, 9),
    "raid1": range(2, 5),
    "raid5": range(3, 9),
    "raid6": range(4, 9),
    "raid10": range(4, 9, 2),
}
#: Of all claims that the suite of a level judges, with a limit or without one.
JUDGED = {
    Claim.STEADY_IOPS, Claim.P99_LATENCY, Claim.SCALING_SLOPE, Claim.SCALING_DEVIATION, Claim.LATENCY_SPREAD_OVER_TIME,
    Claim.LATENCY_SPREAD_BETWEEN_WIDTHS, Claim.MAX_LATENCY,
}  # fmt: skip
#: An array and the id of a workload.
Point = tuple[str, str]


@dataclass
class Planned:
    """pytest plugin: keeps the steps of the plan and the claims about each measurement."""

    steps: Steps = ()
    asked: ClaimsByMeasurement = field(default_factory=dict)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        run = session.config.stash[RUN]
        self.steps, self.asked = run.steps, run.asked

    def points(self, kind: StepKind = StepKind.MEASURED) -> list[Point]:
        return [(str(each.geometry), str(each.what)) for each in self.steps if each.kind is kind]

    def claims(self, array: str, workload: str) -> frozenset[Claim]:
        return next(
            claims
            for (geometry, asked), claims in self.asked.items()
            if (str(geometry), str(asked)) == (array, workload)
        )


def planned(inner: Inner, name: str, drives: int, *options: str) -> Planned:
    """Collect a shipped suite for so many drives, everything that it may measure."""
    plan = Planned()
    options = (f"--ssd-devices=lab:{drives}", "--collect-only", "-q", "-o", "ssd_measure_unpromised=true", *options)
    argv = ["-p", "support.simulator.simulated_rig", *options, inner.suite(name)]
    assert inner.pytester.runpytest_inprocess(*argv, plugins=[plan]).ret == pytest.ExitCode.OK
    return plan


def matrix(level: str, widths: Iterable[int]) -> set[Point]:
    built = sorted(widths)
    depths = {width: {8} | ({1} if width in (built[0], built[-1]) else set()) for width in built}
    return {
        (f"{level}x{width}", str(workload))
        for width in built
        for workload in INTEL_RAID
        if workload.qd_per_drive in depths[width]
    }


def maxima(drives: int, depth: str = "qd32") -> set[Point]:
    return {(f"drivex{drives}", f"{kind}_4k_{depth}") for kind in ("randread", "randwrite")}


@pytest.mark.parametrize("level", WIDTHS)
def test_level_has_depth_8_everywhere_and_depth_1_at_the_ends(inner: Inner, level: str) -> None:
    points = planned(inner, level, 8).points()
    assert len(points) == len(set(points)) == 4 * len(WIDTHS[level]) + 4 * 2 + 2
    assert set(points) == matrix(level, WIDTHS[level]) | maxima(8)


def test_raid5_of_eight_drives_has_32_points_and_its_bare_drives(inner: Inner) -> None:
    plan = planned(inner, "raid5", 8, "-o", "ssd_members=true")
    assert len(plan.points()) == 32 + 2
    others = [each for each in plan.steps if each.kind not in (StepKind.MEASURED, StepKind.ARRAY)]
    assert {each.kind for each in others} == {StepKind.MEMBER, StepKind.ALONE}
    assert {each.geometry for each in others} == {Geometry.parse("drivex8")}


def test_raid5_of_three_drives_has_one_width_at_both_depths(inner: Inner) -> None:
    assert set(planned(inner, "raid5", 3).points()) == matrix("raid5", [3]) | maxima(3)


def test_slowest_ios_are_observed_at_the_ends_only(inner: Inner) -> None:
    plan = planned(inner, "raid5", 8)
    observed = {place for place, claims in plan.asked.items() if claims & OF_EXTREMES}
    assert {(str(array), workload.qd_per_drive) for array, workload in observed} == {("raid5x3", 8), ("raid5x8", 8)}
    assert len(observed) == 2 * 4
    assert plan.claims("raid5x8", "randread_4k_qd8") == JUDGED
    assert plan.claims("raid5x5", "randread_4k_qd8") == JUDGED - OF_EXTREMES
    assert plan.claims("raid5x3", "randread_4k_qd1") == {Claim.STEADY_IOPS}


def test_depth_1_is_left_out_by_a_sheet_without_figures_of_it(inner: Inner) -> None:
    bought = "-o", "ssd_measure_unpromised=false", "--ssd-spec=samsung-pm9a3-7t68"
    points = set(planned(inner, "raid5", 8, *bought).points())
    assert points == maxima(8, "t8xqd64") | {
        point for point in matrix("raid5", range(3, 9)) if point[1].endswith("qd8")
    }


def test_measured_members_are_the_figures_of_every_depth(inner: Inner) -> None:
    bought = "-o", "ssd_measure_unpromised=false", "-o", "ssd_members=true", "--ssd-spec=samsung-pm9a3-7t68"
    points = set(planned(inner, "raid5", 8, *bought).points())
    assert {point for point in points if point[0] != "drivex8"} == set(matrix("raid5", range(3, 9)))


def test_efficiency_has_the_matrix_of_every_level(inner: Inner) -> None:
    points = planned(inner, "efficiency", 8, "-o", "ssd_members=true").points()
    widths = WIDTHS | {"raid1": range(2, 9)}
    assert set(points) == {point for level in widths for point in matrix(level, widths[level])}


@pytest.mark.slow
def test_paper_has_all_depths_and_widths_with_the_levels_claims(inner: Inner) -> None:
    plan = planned(inner, "intel_s3500", 8)
    places = {(f"raid5x{width}", str(workload)) for width in range(3, 9) for workload in INTEL_RAID}
    assert intel_s3500.PUBLISHED == INTEL_RAID
    assert len(places) == 96
    assert places <= set(plan.points())
    of_the_paper = JUDGED - {Claim.MAX_LATENCY}
    of_all_depths = of_the_paper - {Claim.P99_LATENCY, Claim.LATENCY_SPREAD_OVER_TIME}
    assert all(of_all_depths <= plan.claims(*place) for place in places)
    assert all(plan.claims(*place) >= of_the_paper for place in places if place[1].endswith("qd8"))
