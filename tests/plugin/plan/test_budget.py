from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from support.builders import strategies
from support.fakes.inner_session import Inner

from pytest_ssdqual.plugin.plan import budget, order
from pytest_ssdqual.plugin.plan.budget import Fitted, KeptBudget
from pytest_ssdqual.plugin.plan.order import Steps
from pytest_ssdqual.plugin.plan.step_prices import Prices
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import protocol, spec
from pytest_ssdqual.qual.spec.protocol_rules import Fill, PreconditionRule, VisitRule
from pytest_ssdqual.qual.stats.group_sequential import Decision
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import Build, CampaignStep, StepKind
from pytest_ssdqual.rig.measure.session import BudgetSpent

HOUR, GB = 3600.0, 10**9
SHEET = spec.load("intel-dc-s3500-800gb")
RULE = VisitRule(cells=(2, 2, 3), cell_s=60.0, ramp_s=5.0, refresh_s=0.0)
#: Hardly any conditioning.
OURS = replace(
    protocol.load("acceptance"),
    precondition=PreconditionRule(0.0, 48 * HOUR, capacities=1, limit_capacities=6, drift_percent=1, of="drives"),
    fill=Fill(0, "128k"),
    visits=RULE,
)
READS = Workload("randread", "4k", 8)
ARRAYS = {width: Geometry.parse(f"raid5x{width}") for width in (3, 4, 5)}
BARE = Geometry.parse("drivex5")


def measured(geometry: Geometry, depth: int = 8) -> CampaignStep:
    return CampaignStep(StepKind.MEASURED, geometry, READS.at(depth))


#: Two cells in each of two visits, 68.5 s each; arrays take 20 s to build.
POINT_S, ARRAY_S = 2 * 2 * 68.5, 2 * 20.0
ANCHOR = measured(BARE)
DEEP = {width: measured(array) for width, array in ARRAYS.items()}
SHALLOW = measured(ARRAYS[4], 1)
MIDDLE = measured(ARRAYS[4], 4)
SEARCH = CampaignStep(StepKind.SEARCH, BARE, READS)
STEPS: Steps = order.in_order([ANCHOR, *DEEP.values(), SHALLOW, MIDDLE], of_drives=True)


def prices(settings: protocol.Protocol = OURS) -> Prices:
    return Prices(settings, SHEET, 800 * GB)


def fitted(seconds: float, steps: Sequence[CampaignStep] = STEPS) -> Fitted:
    return budget.fit(seconds, steps, prices())


def test_a_budget_that_suffices_leaves_nothing_out() -> None:
    found = fitted(100 * HOUR)
    assert (found.measured, found.left_out, found.groups) == (6, (), "")
    least_s = 20 + 6 * POINT_S + 3 * ARRAY_S
    assert found.least_s == pytest.approx(least_s)
    assert fitted(least_s + 1).left_out == ()
    assert fitted(least_s - 1).left_out == (MIDDLE,)


def test_measurements_are_picked_in_the_order_of_their_worth() -> None:
    anchor_s = 20 + POINT_S
    array_s = POINT_S + ARRAY_S
    picked = [
        set(STEPS) - set(fitted(seconds + 1).left_out)
        for seconds in (anchor_s, anchor_s + 2 * array_s, anchor_s + 3 * array_s, anchor_s + 3 * array_s + POINT_S)
    ]
    outermost = {ANCHOR, DEEP[3], DEEP[5]}
    assert picked == [{ANCHOR}, outermost, {*outermost, DEEP[4]}, {*outermost, DEEP[4], SHALLOW}]


def test_members_come_before_arrays_and_are_no_measurements() -> None:
    member = CampaignStep(StepKind.MEMBER, BARE, READS.at(16))
    steps = order.in_order([member, *DEEP.values()], of_drives=True)
    least_s = 20 + 38.5 + POINT_S + ARRAY_S
    assert budget.least_of(steps, prices()) == pytest.approx(least_s)
    found = fitted(least_s + 1, steps)
    assert set(steps) - set(found.left_out) == {member, DEEP[5]}
    assert found.measured == 1
    assert fitted(least_s - 1, steps).measured == 0


def test_an_array_without_all_of_its_members_is_left_out() -> None:
    bare = order.of_members(STEPS, OURS, SHEET)
    steps = order.in_order([*STEPS, *bare], of_drives=True)
    least_s = next(
        seconds for seconds in range(600, 36_000, 60) if not set(fitted(seconds, steps).left_out) & set(bare)
    )
    left_out = set(fitted(least_s - 60, steps).left_out)
    assert left_out & set(bare)
    assert left_out >= {*DEEP.values(), SHALLOW}


def test_degraded_arrays_and_sequential_loads_are_worth_least() -> None:
    degraded = measured(Geometry.parse("raid5x3-1failed"))
    streamed = CampaignStep(StepKind.MEASURED, ARRAYS[3], Workload("read", "128k", 8))
    steps = order.in_order([degraded, streamed, DEEP[3], DEEP[5]], of_drives=True)
    assert set(fitted(20 + 2 * (POINT_S + ARRAY_S) + 1, steps).left_out) == {degraded, streamed}


def test_a_step_longer_than_the_budget_costs_no_measurement() -> None:
    assert prices().of(SEARCH).least.seconds > 3 * HOUR
    found = fitted(3 * HOUR, (*STEPS, SEARCH))
    assert (found.measured, found.left_out) == (6, (SEARCH,))


def test_nothing_fits_into_a_minute() -> None:
    found = fitted(60)
    assert (found.measured, found.left_out) == (0, STEPS)


def test_the_least_budget_measures_something_and_less_nothing() -> None:
    least_s = budget.least_of(STEPS, prices())
    assert fitted(least_s).measured == 1
    assert fitted(least_s - 1).measured == 0


def test_a_plan_of_fixed_times_is_fitted_too() -> None:
    intel = replace(protocol.load("intel"), precondition=PreconditionRule(0.0, 0.0), fill=Fill(0, "128k"))
    steps = order.in_order(DEEP.values())
    each_s = 20 + 2 * (720 + 3.5)
    assert set(budget.fit(2 * each_s + 1, steps, prices(intel)).left_out) == {DEEP[4]}


def test_the_plan_says_what_is_left_out_by_group() -> None:
    bought, left_out, _ = fitted(20 + 3 * POINT_S + 2 * ARRAY_S + 1).lines()
    assert bought.startswith("the budget of ")
    assert "3 of 6" in bought
    assert left_out.count("1 of ") == 3
    assert len(list(fitted(100 * HOUR).lines())) == 2


def test_budget_that_suffices_for_nothing_is_refused(inner: Inner, promises: str) -> None:
    given = (promises, "--ssd-devices=lab:4", "--ssd-protocol=intel")
    refused = inner.run(*given, "--ssd-budget=10s")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    sentence = refused.stderr.str()
    assert "--ssd-budget=10 s " in sentence
    least = re.search(r"needs (.+), with", sentence)
    assert least
    planned = inner.run(*given, f"--ssd-budget={least[1].replace(' ', '')}", "--collect-only")
    assert planned.ret == pytest.ExitCode.OK


def kept(found: Fitted, now_s: Sequence[float] = (0.0,) * 9, over_s: float = 10 * HOUR) -> KeptBudget:
    times = iter(now_s)
    return KeptBudget(found, prices(), lambda: next(times), over_s)


def test_a_search_that_is_left_out_probes_nothing() -> None:
    left_out = kept(Fitted(8 * HOUR, left_out=(SEARCH,)))
    other = Workload("randrw", "8k", 4, read_percent=70)
    with pytest.raises(BudgetSpent):
        left_out.require(CampaignStep(StepKind.SEARCH, SEARCH.geometry, other), ())
    left_out.require(CampaignStep(StepKind.SEARCH, SEARCH.geometry, Workload("read", "128k", 4)), ())
    left_out.require(CampaignStep(StepKind.SEARCH, ARRAYS[3], other), ())


def test_a_step_that_would_end_late_is_not_begun() -> None:
    noted: list[object] = []
    step = CampaignStep(StepKind.MEMBER, BARE, READS)
    takes_s = prices().of(step).least.seconds
    kept(Fitted(10 * HOUR), [10 * HOUR - takes_s]).require(step, ())
    late = kept(Fitted(10 * HOUR), [10 * HOUR - takes_s + 1] * 2)
    late.note = lambda kind, **facts: noted.append((kind, facts["step"], facts["begun"]))
    with pytest.raises(BudgetSpent, match=r"^member drivex5 "):
        late.require(step, ())
    assert noted == [(budget.SPENT, str(step), False)]
    with pytest.raises(BudgetSpent):  # what the array needs before it counts, too
        kept(Fitted(10 * HOUR), [10 * HOUR - takes_s] * 2).require(step, (build(),))
    # An experiment asks before each visit, not before each cell; what is before its first one counts.
    kept(Fitted(10 * HOUR), [10 * HOUR - 1] * 2).require(DEEP[3], ())
    with pytest.raises(BudgetSpent):
        kept(Fitted(10 * HOUR), [10 * HOUR - 1] * 2).require(DEEP[3], (build(),))


def build() -> Build:
    return Build(ARRAYS[3], Fill(1, "128k"))


def test_what_is_left_out_is_not_measured_for_another_test() -> None:
    with pytest.raises(BudgetSpent, match="of 8 h"):
        kept(Fitted(8 * HOUR, left_out=(DEEP[4],))).require(DEEP[4], ())


def at_look(*cells: int, is_last: bool = False, left_out: str = "") -> Measured:
    """A point after visits of so many cells."""
    run = strategies.run([1000] * 20, geometry="raid5x3", rounds=1)
    visited = strategies.visited(cells)
    of = sum(cells) if is_last else sum(RULE.cells)
    return Measured((run,) * sum(cells), replace(visited, of=of, left_out=left_out))


def undecided(measured: Measured, others: Sequence[Measured]) -> Decision:
    return Decision(done=False, sentence="a part")


def test_a_last_look_before_all_visits_is_the_budgets_end() -> None:
    noted: list[object] = []
    run = kept(Fitted(8 * HOUR))
    run.note = lambda kind, **facts: noted.append((kind, facts["step"], facts["begun"]))
    decide = run.until_spent(undecided)
    early, last = at_look(2, 2), at_look(2, 2, is_last=True)
    assert decide(early, ()) == Decision(done=False, sentence="a part")
    assert run.why(early) == ""
    ended = decide(last, ())
    assert not ended.done
    assert ended.sentence.startswith("a part: ")
    assert "8 h" in ended.sentence
    assert run.why(last).endswith(f" {ARRAYS[3]} {READS}")
    assert noted == [(budget.SPENT, f"{ARRAYS[3]} {READS}", True)]


def test_the_protocols_last_look_is_no_end_by_the_budget() -> None:
    run = kept(Fitted(8 * HOUR))
    decide = run.until_spent(undecided)
    for ended in (at_look(2, 2, 3, is_last=True), at_look(2, 3, is_last=True, left_out="it differs")):
        assert decide(ended, ()) == Decision(done=False, sentence="a part")
        assert run.why(ended) == ""


def test_a_decision_stays_one() -> None:
    run = kept(Fitted(8 * HOUR))
    decide = run.until_spent(lambda measured, others: Decision(done=True))
    assert decide(at_look(2, 2, is_last=True), ()) == Decision(done=True)
    assert not run.why(at_look(2, 2))


def test_errors_of_the_option(inner: Inner) -> None:
    devices = "--ssd-devices=/dev/sdb"
    assert inner.refused(devices, "--ssd-budget=soon").startswith("--ssd-budget=soon: ")
    assert inner.refused(devices, "--ssd-budget=0s").startswith("--ssd-budget=0s: ")
