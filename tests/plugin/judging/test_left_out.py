from __future__ import annotations

from dataclasses import replace

import pytest
from support.builders import strategies
from support.builders.drives import drive

from pytest_ssdqual.plugin.judging import left_out
from pytest_ssdqual.qual.measured.judgeable import LeftOutDrive
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.sweep import Curve, Sweep
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.validity.drive_failure import FailedDrive
from pytest_ssdqual.qual.verdict import verdict as verdicts
from pytest_ssdqual.qual.verdict.verdict import Outcome, Verdict
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignStep, StepKind
from pytest_ssdqual.rig.drives.failed import DriveFailures
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement

READS, DEEP = Workload("randread", "4k", 8), Workload("randread", "4k", 32)


DRIVES = tuple(map(drive, range(5)))
DEAD = DriveFailures(failed={"S2": FailedDrive("S2", ("it dropped out",), (), under="drivex3")})


def measured(present: int, width: int = 3, workload: Workload = READS) -> Measured:
    """Of the first ``present`` drives of ``width``."""
    run = strategies.side_by_side([[1000] * 5] * present, workload=workload)
    return Measured((replace(run, geometry=Geometry.parse(f"drivex{width}")),))


def test_failed_drive_is_found_with_the_test_in_which_it_failed() -> None:
    (found,) = left_out.find(measured(2), DRIVES, DEAD, {"S2": "test_a"})
    assert found == LeftOutDrive("S2", 2, "failed in test_a", failed=True)
    (unreported,) = left_out.find(measured(2), DRIVES, DEAD, {})
    assert unreported.why.endswith(" drivex3")
    assert left_out.find(measured(3), DRIVES, DEAD, {}) == ()


def test_drive_without_a_figure_is_found_with_its_reason() -> None:
    drives = Geometry.parse("drivex3")
    subjects = ((drives, READS.pattern), CampaignStep(StepKind.MEASURED, drives, READS))
    for subject in subjects:
        failures = DriveFailures(undecided={subject: {"S2": "did not settle"}})
        assert left_out.find(measured(2), DRIVES, failures, {}) == (LeftOutDrive("S2", 2, "did not settle", False),)
    (recalled,) = left_out.find(measured(2), DRIVES, DriveFailures(), {})
    assert not recalled.failed


def test_arrays_and_single_drives_are_without_nothing() -> None:
    array = Measured((strategies.run([1000] * 5, geometry="raid5x3"),))
    assert left_out.find(array, DRIVES, DEAD, {}) == ()
    assert left_out.find(Measured((strategies.run([1000] * 5),)), DRIVES, DEAD, {}) == ()


def test_measurements_of_other_drives_are_not_compared() -> None:
    (found,) = left_out.find(Curve((measured(2), measured(2, workload=DEEP))), DRIVES, DEAD, {})
    assert found.serial == "S2"
    with pytest.raises(InvalidMeasurement, match="S2"):
        left_out.find(Curve((measured(3), measured(2, workload=DEEP))), DRIVES, DEAD, {})
    with pytest.raises(InvalidMeasurement, match="S2"):
        left_out.find(Sweep((measured(2, 2), measured(2, 3))), DRIVES, DEAD, {})


def of(claim: Claim, limit: float) -> Verdict:
    unit = claim.unit
    (found, *_) = verdicts.judge_all(claim, measured(2), Limit(Direction.AT_LEAST, limit, unit, "here"))
    return found


@pytest.mark.parametrize(
    ("claim", "limit", "failed", "outcome"),
    [
        (Claim.STEADY_IOPS, 900, True, Outcome.PASS),
        (Claim.STEADY_IOPS, 900, False, Outcome.INCONCLUSIVE),
        (Claim.STEADY_IOPS, 1100, True, Outcome.FAIL),
        (Claim.STEADY_IOPS, 1100, False, Outcome.FAIL),
        (Claim.MEMBER_SPREAD, 0.5, True, Outcome.INCONCLUSIVE),
        (Claim.MEMBER_SPREAD, 0.5, False, Outcome.INCONCLUSIVE),
        (Claim.MEMBER_SPREAD, 1.5, True, Outcome.FAIL),
    ],
)
def test_verdict_without_a_drive_names_it(claim: Claim, limit: float, failed: bool, outcome: Outcome) -> None:
    lost = LeftOutDrive("S2", 2, "failed in test_a", failed)
    verdict = left_out.without(of(claim, limit), [lost])
    assert verdict.outcome is outcome
    assert "(failed in test_a)" in repr(verdict)
    assert left_out.without(verdict, []) is verdict
