"""The simulation of whole suites: its plans, its runs, and that a forecast can fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import suite_plans
from suite_hours import SuiteRow
from suite_plans import SuitePlan
from suite_runs import Needs, Pools, Simulation, SuiteRun

from pytest_ssdqual.plugin.plan import order
from pytest_ssdqual.plugin.plan.order import Steps
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.stats.group_sequential import Side
from pytest_ssdqual.qual.verdict.multiplicity import ALONE
from pytest_ssdqual.qual.verdict.verdict import Outcome
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignStep, StepKind

READS = Workload("randread", "4k", 8)
ARRAYS = [Geometry.parse(f"raid5x{width}") for width in (3, 4)]
SATA = suite_plans.models()["sata"]


def steps(protocol: Protocol) -> Steps:
    return order.in_order(CampaignStep(StepKind.MEASURED, each, READS) for each in ARRAYS)


PLAN = SuitePlan("two", steps, {(each, READS): frozenset({Claim.STEADY_IOPS}) for each in ARRAYS}, 2)


def shortened(name: str) -> Protocol:
    """The protocol with few looks, so that a test takes a moment."""
    found = suite_plans.protocols()[name]
    rule = found.interleave and replace(found.interleave, growth=2.0, rounds=24, workloads=2)
    return replace(found, sequential=found.sequential and replace(found.sequential, growth=2.0), interleave=rule)


@pytest.mark.parametrize("name", ["sequential", "intel", "snia", "stec"])
def test_good_drives_pass_and_bad_ones_do_not(name: str) -> None:
    one = Simulation.of(PLAN, SATA, shortened(name), 0.1, Pools(2, 1, ("flat", "fastgc")))
    rng = np.random.default_rng(1)
    good, bad = one.run(1.1, rng), one.run(0.9, rng)
    assert set(good.outcomes) == {Outcome.PASS}
    assert Outcome.PASS not in bad.outcomes
    assert len(good.outcomes) == 2
    # Both arrays are filled and conditioned, whatever is measured on them.
    assert good.seconds > 2 * one.protocol.fill_passes * SATA.drive_bytes / 450e6
    assert good.bytes_written > 7 * SATA.drive_bytes


def test_workloads_that_take_turns_are_judged_by_their_cells() -> None:
    pair = [READS, READS.at(4)]

    def of_pairs(settings: Protocol) -> Steps:
        return order.in_order(CampaignStep(StepKind.MEASURED, each, one) for each in ARRAYS for one in pair)

    asked = {(each, one): frozenset({Claim.STEADY_IOPS}) for each in ARRAYS for one in pair}
    one = Simulation.of(
        SuitePlan("four", of_pairs, asked, 4), SATA, shortened("interleaved"), 0.1, Pools(2, 1, ("flat",))
    )
    rng = np.random.default_rng(1)
    good, bad = one.run(1.1, rng), one.run(0.9, rng)
    assert set(good.outcomes) == {Outcome.PASS}
    assert set(bad.outcomes) == {Outcome.FAIL}


def test_a_level_takes_the_place_of_another() -> None:
    moved = PLAN.of_level("raid0", RaidLevel.RAID0)
    assert {str(each.geometry) for each in moved.steps(shortened("intel"))} == {"raid0x3", "raid0x4"}
    assert {str(geometry) for geometry, _ in moved.asked} == {"raid0x3", "raid0x4"}


def test_a_row_counts_claims_and_runs() -> None:
    plan = Simulation.of(PLAN, SATA, shortened("intel"), 0.1, Pools(1, 1)).forecast()
    passed, mixed = (Outcome.PASS, Outcome.PASS), (Outcome.PASS, Outcome.FAIL)
    good = [SuiteRun(plan.seconds, 8.0 * SATA.drive_bytes, passed), SuiteRun(1.0, 8.0 * SATA.drive_bytes, mixed)]
    row = SuiteRow("two", SATA, "intel", 0.1, plan, good, [SuiteRun(1.0, 0.0, passed), SuiteRun(1.0, 0.0, mixed)])
    assert row.inside == 0.5
    assert list(row.cells())[6:] == ["50%", "1.0", "75.00 / 50%", "25.00 / 50%", "0.0 / 50%"]


def test_outcomes_of_a_pool_are_the_same_each_time() -> None:
    needs = Needs(
        has_limit=True,
        precision_percent=None,
        precision_side=Side.BOTH,
        has_tail=True,
        has_spread=True,
        is_observed=True,
        writes=False,
    )
    first, second = (Pools(1, 1).sequential(shortened("sequential"), needs, 1.1, ALONE, "flat", 0) for _ in range(2))
    assert first == second
    assert first.seconds >= 2100, "the slowest I/Os are observed for 35 minutes"


@pytest.mark.parametrize(("suite", "measurements"), [("raid5", 32), ("drive", 18)])
def test_plans_are_those_of_the_shipped_suites(
    suite: str, measurements: int, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of its own: a plugin is not imported twice."""
    code = f"import suite_plans; plan = suite_plans.of_suite({suite!r}); print('claims', plan.claims, len(plan.asked))"
    monkeypatch.setenv("PYTHONPATH", f"{suite_plans.SUITES.parent / 'bench'}:{suite_plans.SUITES.parent}")
    result = pytester.runpython_c(code)
    result.stdout.re_match_lines([rf"claims \d+ {measurements}$"])


def test_every_rate_of_the_models_has_a_limit() -> None:
    for model in suite_plans.models().values():
        spec = model.at(0.05)
        limit = spec.limit(Claim.STEADY_IOPS, Geometry.parse("drivex8"), READS)
        published = spec.published(Claim.STEADY_IOPS, Geometry.parse("drivex8"), READS)
        assert limit
        assert published
        assert published.value / limit.bound == pytest.approx(1.05)
