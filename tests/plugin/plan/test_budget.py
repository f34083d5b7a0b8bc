from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from support.fakes.inner_session import Inner

from pytest_ssdqual.plugin.plan import budget, order
from pytest_ssdqual.plugin.plan.budget import Fitted, KeptBudget
from pytest_ssdqual.plugin.plan.durations import Durations
from pytest_ssdqual.plugin.plan.order import Steps
from pytest_ssdqual.plugin.plan.step_prices import Prices
from pytest_ssdqual.plugin.plan.stopping import Promises
from pytest_ssdqual.qual.measured.run import Look, Measured, Run
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import protocol, spec
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.stats import group_sequential
from pytest_ssdqual.qual.stats.group_sequential import Decision
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import Build, CampaignStep, StepKind
from pytest_ssdqual.rig.measure.session import BudgetSpent

HOUR, GB = 3600.0, 10**9
SHEET = spec.load("intel-dc-s3500-800gb")
SHIPPED = protocol.load("sequential")
assert SHIPPED.sequential
#: Few looks, so that a test takes a moment, and hardly any conditioning.
LOOKS = replace(SHIPPED.sequential, growth=1.5)
OURS = replace(SHIPPED, sequential=LOOKS, precondition_s=0.0, fill_passes=0)
READS = Workload("randread", "4k", 32)
ARRAYS = [Geometry.parse(f"raid0x{width}") for width in (2, 3, 4)]
STEPS: Steps = order.in_order(CampaignStep(StepKind.MEASURED, each, READS) for each in ARRAYS)

INTEL = replace(protocol.load("intel"), precondition_s=0.0, fill_passes=0)
SEARCH = CampaignStep(StepKind.SEARCH, Geometry.parse("drivex4"), READS)
SATURATION = CampaignStep(StepKind.SATURATION, ARRAYS[0], Workload("randwrite", "4k", 32))


def prices(*claims: Claim, settings: protocol.Protocol = OURS) -> Prices:
    asked = {(each, READS): frozenset(claims or {Claim.STEADY_IOPS, Claim.SCALING_SLOPE}) for each in ARRAYS}
    return Prices(settings, SHEET, 800 * GB, durations=Durations(Promises(SHEET, settings, asked)))


def test_a_budget_that_suffices_changes_nothing() -> None:
    found = budget.fit(100 * HOUR, STEPS, prices())
    assert (found.measured, found.left_out) == (3, ())
    assert set(found.ends_s.values()) == {LOOKS.limit_s}
    assert found.ninety_s < 15 * HOUR


def test_a_smaller_budget_ends_measurements_earlier_and_a_very_small_one_leaves_some_out() -> None:
    enough, short, least = (budget.fit(hours * HOUR, STEPS, prices()) for hours in (100, 4.5, 1.5))
    assert short.left_out == ()
    assert max(budget.fit(14 * HOUR, STEPS, prices()).ends_s.values()) < LOOKS.limit_s, "it may not suffice"
    assert short.ninety_s <= 4.5 * HOUR < enough.ninety_s
    assert all(group_sequential.earliest_end_s(LOOKS) <= each < LOOKS.limit_s for each in short.ends_s.values())
    assert set(short.ends_s.values()) <= set(group_sequential.look_times(LOOKS))
    # From the end of the plan.
    assert least.left_out
    assert least.left_out == STEPS[-len(least.left_out) :]
    assert least.ninety_s <= 1.5 * HOUR
    assert least.measured == 3 - len(least.left_out)


def test_nothing_fits_into_a_minute() -> None:
    found = budget.fit(60, STEPS, prices())
    assert (found.measured, found.left_out) == (0, STEPS)


@pytest.mark.parametrize("settings", [INTEL, OURS])
def test_least_budget_measures_something_and_half_of_it_nothing(settings: protocol.Protocol) -> None:
    steps, of = (SATURATION, *STEPS), prices(settings=settings)
    least_s = budget.least_of(steps, of)
    assert budget.fit(least_s + 60, steps, of).measured >= 1
    assert budget.fit(budget.least_of(STEPS, of) / 2, STEPS, of).measured == 0


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


def test_fixed_times_are_never_shortened() -> None:
    intel = replace(protocol.load("intel"), precondition_s=0.0, fill_passes=0)
    found = budget.fit(1.4 * HOUR, STEPS, prices(settings=intel))
    assert not found.ends_s
    assert found.left_out == STEPS[-1:]


def test_a_step_longer_than_the_budget_costs_no_measurement() -> None:
    of = prices(settings=INTEL)
    assert of.step(SEARCH).most.seconds > 3 * HOUR
    assert of.step(SATURATION).most.seconds > 3 * HOUR
    found = budget.fit(3 * HOUR, (SATURATION, *STEPS, SEARCH), of)
    assert (found.measured, found.left_out, found.too_long) == (3, (SATURATION, SEARCH), (SATURATION, SEARCH))
    assert of.durations
    (line,) = (each for each in budget.lines(found, of.durations) if each.startswith("left out"))
    assert "from the end" not in line


@pytest.mark.parametrize("settings", [INTEL, OURS])
def test_a_search_at_the_end_of_the_plan_is_left_out_before_measurements(settings: protocol.Protocol) -> None:
    of = prices(settings=settings)
    ample = budget.fit(100 * HOUR, (*STEPS, SEARCH), of)
    alone = budget.fit(100 * HOUR, STEPS, of)
    assert (ample.measured, ample.left_out) == (4, ())
    assert ample.ends_s.keys() == alone.ends_s.keys(), "a search has no looks"
    found = budget.fit(4.5 * HOUR, (*STEPS, SEARCH), of)
    assert (found.measured, found.left_out, found.too_long) == (3, (SEARCH,), ())


def test_a_search_that_is_left_out_probes_nothing() -> None:
    left_out = kept(Fitted(8 * HOUR, left_out=(SEARCH,)), [0.0] * 9)
    other = Workload("randrw", "8k", 4, read_percent=70)
    with pytest.raises(BudgetSpent, match="leaves it out"):
        left_out.require(CampaignStep(StepKind.SEARCH, SEARCH.geometry, other), ())
    left_out.require(CampaignStep(StepKind.SEARCH, SEARCH.geometry, Workload("read", "128k", 4)), ())
    left_out.require(CampaignStep(StepKind.SEARCH, ARRAYS[0], other), ())


def kept(fitted: Fitted, now_s: Sequence[float], over_s: float = 10 * HOUR) -> KeptBudget:
    times = iter(now_s)
    return KeptBudget(fitted, OURS, prices(), lambda: next(times), over_s)


def test_a_step_that_would_end_late_is_not_begun() -> None:
    found = Fitted(10 * HOUR)
    needed_s = OURS.ramp_s + group_sequential.earliest_end_s(LOOKS) + 3.5
    kept(found, [10 * HOUR - needed_s]).require(STEPS[0], ())
    with pytest.raises(BudgetSpent, match=r"^measured raid0x2 randread_4k_qd32 was not begun: it takes .* remain of "):
        kept(found, [10 * HOUR - needed_s + 1] * 2).require(STEPS[0], ())
    with pytest.raises(BudgetSpent):  # what the array needs before it counts, too
        kept(found, [10 * HOUR - needed_s] * 2).require(STEPS[0], (Build(ARRAYS[0], budget_fill()),))


def budget_fill() -> protocol.Fill:
    return protocol.Fill(1, "128k")


def test_what_is_left_out_is_not_measured_for_another_test() -> None:
    with pytest.raises(BudgetSpent, match="was not measured: the budget of 8 h leaves it out"):
        kept(Fitted(8 * HOUR, left_out=STEPS[2:]), []).require(STEPS[2], ())


def at(number: int) -> Measured:
    times = group_sequential.look_times(LOOKS)
    look = Look(number, len(times), 0.99, 0.0)
    return Measured((Run(READS, ARRAYS[0], ("A",), (), 0.0, times[number - 1], 80, "", look=look),))


def test_an_undecided_measurement_ends_by_its_budget_but_never_on_a_plateau() -> None:
    times, least_s = group_sequential.look_times(LOOKS), group_sequential.earliest_end_s(LOOKS)
    ends = kept(Fitted(8 * HOUR, {(ARRAYS[0], READS): least_s}), [0.0] * 100)
    first = times.index(least_s) + 1
    assert [bool(ends.end(at(number))) for number in range(1, first + 1)] == [False] * (first - 1) + [True]
    assert ends.why(at(first)) == f"the budget of 8 h ended the measurement of {ARRAYS[0]} {READS}"
    # Time is over, but too little was seen to judge.
    late = kept(Fitted(8 * HOUR), [11 * HOUR] * 100)
    assert late.end(at(1)) == ""
    assert late.end(at(first)) == "the budget of 8 h ended it"
    assert late.end(at(len(times))) == "", "the last look ends by itself"


def test_no_rule_goes_on_after_the_budget_and_a_decision_stays_one() -> None:
    least_s = group_sequential.earliest_end_s(LOOKS)
    number = group_sequential.look_times(LOOKS).index(least_s) + 1
    spent = kept(Fitted(8 * HOUR, {(ARRAYS[0], READS): least_s}), [0.0] * 9)
    undecided = spent.until_spent(lambda measured: Decision(done=False, sentence="a part"))(at(number))
    assert undecided == Decision(done=True, sentence="a part: the budget of 8 h ended it")
    decided = kept(Fitted(8 * HOUR, {(ARRAYS[0], READS): least_s}), [0.0] * 9)
    assert decided.until_spent(lambda measured: Decision(done=True))(at(number)) == Decision(done=True)
    assert not decided.why(at(number))


def test_a_measurement_that_was_not_planned_ends_with_the_latest_planned_one() -> None:
    fitted = Fitted(8 * HOUR, {(ARRAYS[0], READS): 3000.0, (ARRAYS[1], READS): 5000.0})
    assert fitted.end_of(ARRAYS[0], READS, LOOKS) == 3000.0
    assert fitted.end_of(ARRAYS[2], READS, LOOKS) == 5000.0
    assert Fitted(8 * HOUR).end_of(ARRAYS[2], READS, LOOKS) == LOOKS.limit_s


def test_the_plan_says_what_a_budget_buys() -> None:
    of = prices(Claim.STEADY_IOPS)
    assert of.durations
    fitted = Fitted(8 * HOUR, {(ARRAYS[0], READS): 2 * HOUR}, STEPS[2:], 1, 7 * HOUR)
    bought, left_out, errors, ends, shortfall = budget.lines(fitted, of.durations)
    assert bought == "the budget of 8 h: 1 of 2 measurements, in nine of ten runs within 7 h"
    assert left_out == "left out, from the end of the plan: 1 on raid0x4; their tests are errors"
    assert errors.endswith(" has at most 2.5 %")
    assert ends.startswith("what is undecided then ends as inconclusive after 2 h, instead of 5 h; about ")
    assert shortfall.startswith("shortfalls that nine of ten runs detect: steady IOPS ")


def test_a_claim_without_a_detectable_shortfall_says_what_it_needs() -> None:
    point = Geometry.parse("raid5x8"), Workload("randwrite", "4k", 8)
    simulated = Durations(Promises(SHEET, OURS, {point: frozenset({Claim.P99_LATENCY})}))
    *_, shortfall = budget.lines(Fitted(HOUR, {point: 2400.0}, (), 1, HOUR), simulated)
    wanted = r".* detect: p99 latency none: 30 % needs [0-9.]+ (min|h), and the earliest end is 40 min"
    assert re.fullmatch(wanted, shortfall), shortfall


def test_errors_of_the_option(inner: Inner) -> None:
    devices = "--ssd-devices=/dev/sdb"
    assert inner.refused(devices, "--ssd-budget=soon").startswith("--ssd-budget=soon: ")
    assert inner.refused(devices, "--ssd-budget=0s") == "--ssd-budget=0s: write a time above zero, e.g. 8h"
    sentence = inner.refused(devices, "--ssd-budget=8h", "--ssd-protocol=interleaved")
    assert sentence.startswith("--ssd-budget ends measurements one by one")
    assert inner.refused("--ssd-budget=8h") == "--ssd-budget needs drives: add --ssd-devices or --ssd-bays"
