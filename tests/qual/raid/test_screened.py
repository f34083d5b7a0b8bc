"""Figures of points that were not measured."""

from __future__ import annotations

import pytest

from pytest_ssdqual.qual.measured.judgeable import Judgeable
from pytest_ssdqual.qual.raid import screened
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.raid.screened import ScreenedRun
from pytest_ssdqual.qual.raid.screening import Agreement
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.stats.estimate import Estimate, NotApplicable
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict import estimators, verdict
from pytest_ssdqual.qual.workload.workload import Workload

RAID, LOAD = Geometry(RaidLevel.RAID5, 4), Workload("randrw", "4k", 8, 75)
AGREEMENT = Agreement("raid5", 20, 6, 8, 12, 10.0, 0.95)
IOPS = Estimate(1000.0, 800.0, 1250.0, 5, Unit.IOPS, is_predicted=True)
RUN = ScreenedRun(RAID, LOAD, IOPS, AGREEMENT)


def ends(claim: Claim) -> tuple[float, float, float]:
    found = estimators.estimate(claim, RUN)
    assert found.unit is claim.unit
    assert found.is_predicted
    return found.low, found.value, found.high


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (Claim.STEADY_IOPS, (800, 1000, 1250)),
        (Claim.READ_IOPS, (600, 750, 937.5)),
        (Claim.WRITE_IOPS, (200, 250, 312.5)),
        (Claim.THROUGHPUT, (800 * 4096, 1000 * 4096, 1250 * 4096)),
        # 32 I/Os are outstanding.
        (Claim.MEAN_LATENCY, (25.6e6, 32e6, 40e6)),
    ],
)
def test_figures_follow_from_iops(claim: Claim, expected: tuple[float, float, float]) -> None:
    assert ends(claim) == pytest.approx(expected)


def test_all_claims_that_follow_are_listed() -> None:
    assert {claim for claim in Claim if _follows(claim)} == screened.OF_IOPS


def _follows(claim: Claim) -> bool:
    try:
        screened.figure(claim, RAID, LOAD, IOPS)
    except NotApplicable:
        return False
    return True


def test_reads_without_reads_have_no_figure() -> None:
    writes = Workload("randwrite", "4k", 8)
    with pytest.raises(NotApplicable, match="does not follow"):
        screened.figure(Claim.READ_IOPS, RAID, writes, IOPS)


@pytest.mark.parametrize("claim", [Claim.P99_LATENCY, Claim.MAX_LATENCY, Claim.ARRAY_EFFICIENCY, Claim.MEMBER_SPREAD])
def test_no_other_claim_is_judged_on_a_prediction(claim: Claim) -> None:
    with pytest.raises(NotApplicable):
        estimators.estimate(claim, RUN)
    with pytest.raises(NotApplicable):
        estimators.of_kind(claim, RUN)


def test_a_screened_run_is_judged_as_one_array() -> None:
    assert isinstance(RUN, Judgeable)
    limit = Limit(Direction.AT_LEAST, 700.0, Unit.IOPS, "a spec")
    (found,) = verdict.judge_all(Claim.STEADY_IOPS, RUN, limit)
    assert found
    assert repr(found) == (
        "steady IOPS of raid5x4 randrw75_4k_qd8: 1,000 IOPS (predicted 800…1,250 IOPS), limit 700 IOPS: PASS by 42.9 %"
    )


def test_a_prediction_is_no_counterpart_of_another_run() -> None:
    with pytest.raises(NotApplicable, match="not measured"):
        RUN.counterpart(lambda one: one)
