from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import stopping_rules
from drive_kinds import KINDS
from hypothesis import given, settings
from hypothesis import strategies as st
from stopping_rules import Ending
from support.builders.strategies import run, side_by_side

from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule, VerdictRule
from pytest_ssdqual.qual.stats import batch_means, group_sequential
from pytest_ssdqual.qual.stats.estimate import Estimate, TooFew
from pytest_ssdqual.qual.stats.group_sequential import Question, Side
from pytest_ssdqual.qual.stats.shared_evidence import SharedEvidence
from pytest_ssdqual.qual.stats.throughput import iops
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.verdict import Outcome

pytestmark = pytest.mark.slow

RULE = SequentialRule()
#: One look only, and no allowances: what is left is the interval itself.
ONCE = SequentialRule(first_s=1_800, limit_s=1_800, slowest_s=1, plateau_s=0, pause_s=0)
VERDICT = VerdictRule()
STEP_S = 5.0


def ended(
    rates: Sequence[float], limit: float = 1_000.0, rule: SequentialRule = RULE, verdict: VerdictRule = VERDICT
) -> Ending:
    """What comes of a series of IOPS that are held against a limit."""
    question = Question({Claim.STEADY_IOPS: Limit(Direction.AT_LEAST, limit, Unit.IOPS, "test")})
    return stopping_rules.judged(stopping_rules.reported(np.asarray(rates), STEP_S), question, rule, verdict)


def drive(kind: str, seed: int, mean: float, rule: SequentialRule = RULE) -> list[float]:
    """IOPS of a simulated drive, a value each 5 s."""
    seconds = int(rule.limit_s)
    series = KINDS[kind](np.random.default_rng([seed, 77]), mean, seconds)
    return np.asarray(series)[:seconds].reshape(-1, 5).mean(axis=1).tolist()  # type: ignore[no-any-return]


def test_looks_grow_up_to_the_limit() -> None:
    times = group_sequential.look_times(SequentialRule(first_s=100, growth=2, limit_s=500))
    assert times == (100, 200, 400, 500)
    assert group_sequential.look_times(SequentialRule(first_s=100, limit_s=100)) == (100,)
    assert group_sequential.level(SequentialRule(first_s=100, limit_s=100), 0.9) == 0.9


@pytest.mark.parametrize("kind", ["flat", "residual", "undershoot", "hump", "slowgc", "heavy", "fresh"])
def test_bad_drives_are_not_accepted_nor_good_ones_rejected(kind: str) -> None:
    """At 5 % off the limit, on forty drives of each kind: an error rate of 1 % would show in a third of the runs."""
    outcomes = [ended(drive(kind, seed, mean)).outcome for mean in (950.0, 1_050.0) for seed in range(40)]
    assert "pass" not in outcomes[:40]
    assert "fail" not in outcomes[40:]
    assert outcomes.count(Outcome.INCONCLUSIVE) <= 2


def test_on_the_limit_looking_often_does_not_add_up_errors() -> None:
    """The rule looks 41 times. Fixed-time intervals looked at as often would decide a third of these drives."""
    naive = errors = 0
    for seed in range(60):
        rates = drive("flat", seed, 1_000.0)
        errors += ended(rates).outcome != "inconclusive"
        for seconds in group_sequential.look_times(RULE):
            seen = np.array(rates[: int(seconds / STEP_S)])
            half = 1.96 * seen.std() / np.sqrt(len(seen))
            if abs(seen.mean() - 1_000.0) > half:
                naive += 1
                break
    assert naive >= 15
    assert errors <= 6  # 5 % of 60 is 3; more than 6 are seen once in 30


def test_forty_looks_err_no_more_often_than_one() -> None:
    """White noise on the limit, without any allowance: 5 % are stated. Looks of 95 % each decide a third wrongly."""
    rule = SequentialRule(first_s=200, growth=1.1, limit_s=7_200, slowest_s=1, plateau_s=0, pause_s=0)
    assert group_sequential.level(rule, 0.95) == pytest.approx(0.9953, abs=5e-4)
    rng = np.random.default_rng(5)
    wrong = sum(
        ended(rng.normal(1_000, 50, 1_440).tolist(), rule=rule, verdict=VerdictRule(indifference_percent=0)).outcome
        != "inconclusive"
        for _ in range(200)
    )
    # 10 are expected, and 22 are four standard errors more.
    assert wrong <= 22


def test_what_is_clear_is_decided_soon_and_what_is_close_later() -> None:
    seconds = {
        percent: np.mean([
            ended(drive("flat", seed, 10.0 * (100 + percent))).seconds
            for seed in range(30)
        ])
        for percent in (2, 5, 10)
    }  # fmt: skip
    assert seconds[10] < seconds[5] < seconds[2]
    # Of simulated time: nothing here depends on the computer.
    assert seconds[5] < 35 * 60


@given(st.integers(0, 30), st.floats(900, 1_100), st.floats(1, 60))
def test_a_verdict_is_monotone_in_its_limit(seed: int, limit: float, stricter: float) -> None:
    order = ["fail", "inconclusive", "pass"]
    rates = drive("flat", seed, 1_000.0, ONCE)
    loose, strict = (ended(rates, each, ONCE) for each in (limit, limit + stricter))
    assert order.index(strict.outcome) <= order.index(loose.outcome)


@settings(max_examples=15)  # each judges two series at forty looks
@given(st.floats(0.01, 100), st.sampled_from(["flat", "residual"]))
def test_scale_does_not_matter(factor: float, kind: str) -> None:
    rates = drive(kind, 5, 1_030.0)
    plain = ended(rates)
    scaled = ended([factor * each for each in rates], factor * 1_000.0)
    assert (plain.outcome, plain.seconds) == (scaled.outcome, scaled.seconds)


def test_within_the_margin_it_ends() -> None:
    rates = [1_000.0 + (-1) ** index for index in range(int(RULE.limit_s / STEP_S))]
    found = ended(rates)
    assert found.outcome == "inconclusive"
    assert found.seconds < RULE.limit_s
    never = ended(rates, verdict=replace(VERDICT, indifference_percent=0.0))
    assert never.seconds == RULE.limit_s


def test_a_plateau_is_not_believed() -> None:
    """15 minutes at 1.3 times the limit, as steady as can be, then the cliff."""
    values = np.full(int(RULE.limit_s / STEP_S), 900.0)
    values[: 15 * 12] = 1_300.0
    assert ended(values.tolist()).outcome == "fail"
    assert group_sequential.is_too_early(600, 1_300, 1_000, RULE)
    assert group_sequential.is_too_early(600, 1_000, 1_300, RULE)
    assert not group_sequential.is_too_early(2_100, 1_300, 1_000, RULE)
    assert not group_sequential.is_too_early(600, 1_050, 1_000, RULE)
    # However far it is: a cache that had refilled is two to four times as fast as the drive behind it.
    assert group_sequential.is_too_early(600, 2_500, 1_000, RULE)
    assert group_sequential.is_too_early(600, 1_000, 2_500, RULE)


@pytest.mark.parametrize(("loaded_s", "is_enough"), [(0, False), (1_600, False), (1_700, True), (9_000, True)])
def test_drives_that_were_under_load_for_longer_than_a_plateau_have_none(loaded_s: float, is_enough: bool) -> None:
    """At the first look, after 420 s, a steady figure far from its limit."""
    intervals = stopping_rules.reported(np.full(int(RULE.first_s / STEP_S), 1_300.0), STEP_S)
    question = Question({Claim.STEADY_IOPS: Limit(Direction.AT_LEAST, 1_000, Unit.IOPS, "test")})
    whole = stopping_rules.run_of(intervals, RULE.first_s)
    run = group_sequential.at_look(whole, 1, RULE, VERDICT.confidence, SharedEvidence(loaded_s))
    found = group_sequential.decide(Measured((run.condensed(),)), question, RULE, VERDICT)
    assert found.done is is_enough


@pytest.mark.parametrize("times", [1.3, 2.5, 4.0])
def test_a_cache_that_had_refilled_while_the_drive_idled_is_not_accepted(times: float) -> None:
    """20 minutes at up to four times the settled rate, which is 5 % below the limit."""
    values = np.full(int(RULE.limit_s / STEP_S), 950.0)
    values[: 20 * 12] *= times
    assert ended(values.tolist()).outcome == "fail"


def test_a_series_that_changes_its_level_decides_nothing() -> None:
    """Two levels of ten minutes in turn: where more than a third is cut, what is left is one of the two by chance."""
    values = np.tile(np.repeat([1_200.0, 850.0], 10 * 12), 20)[: int(RULE.limit_s / STEP_S)]
    values += 5 * np.random.default_rng(3).standard_normal(len(values))
    seconds = group_sequential.look_times(RULE)
    refused = 0
    for number, until_s in enumerate(seconds, 1):
        seen = stopping_rules.reported(values[: int(until_s / STEP_S)], STEP_S)
        found = group_sequential.at_look(stopping_rules.run_of(seen, until_s), number, RULE, 0.95)
        assert found.look is not None
        if found.look.left_out + found.look.head > found.rounds / 3:
            refused += 1
            with pytest.raises(TooFew, match="not settled on one level"):
                iops(Measured((found,)))
    assert refused


def test_drives_without_a_limit_of_their_own_ask_nothing() -> None:
    measured = Measured((side_by_side([[1000] * 5, [500] * 5]),))
    of_another = Limit(Direction.AT_LEAST, 900, Unit.IOPS, "test")
    limit = replace(of_another, own={"S9": of_another})
    question = Question({Claim.STEADY_IOPS: limit})
    assert group_sequential.decide(measured, question, None, VerdictRule()).done


def test_a_series_without_io_fails_a_promise_and_too_short_a_one_decides_nothing() -> None:
    nothing = [0.0] * int(RULE.limit_s / STEP_S)
    assert ended(nothing).outcome == "fail"
    assert ended([1_000.0] * 5, 10.0).outcome == "inconclusive"


def test_warm_up_is_where_the_rest_is_least_uncertain() -> None:
    rng = np.random.default_rng(1)
    settled = (1_000 + 10 * rng.standard_normal(100)).tolist()
    assert group_sequential.warmup([1_500.0] * 25 + settled, 40) == 25
    assert group_sequential.warmup(settled, 40) <= 30
    # Never more than it may leave out.
    assert group_sequential.warmup([1_500.0] * 25 + settled, 110) <= 15


def test_a_run_is_cut_at_its_look_and_keeps_its_warm_up() -> None:
    rule = SequentialRule(first_s=60, growth=2, limit_s=240, report_s=1)
    ios = [2_000] * 20 + [1_000] * 280
    whole = run(ios, ramp_s=10, window_s=240)
    found = group_sequential.at_look(whole, 2, rule, 0.95)
    assert found.look is not None
    assert (found.look.number, found.look.of, found.look.level) == (2, 3, group_sequential.level(rule, 0.95))
    assert (found.ramp_s, found.window_s, found.rounds) == (10, 120, batch_means.COUNT)
    # 10 s of the high plateau are ramp, the other 10 warm-up: of 7 blocks of 1.5 s the first 4 are left out.
    assert found.look.warmup_s == pytest.approx(10)
    assert (found.look.left_out, found.look.head) == (4, 3)
    mean = iops(Measured((found,)))
    assert mean.value == pytest.approx(1_000)
    assert found.iops > 1_050
    assert group_sequential.at_look(found, 3, rule, 0.95) is found


def test_of_drives_side_by_side_the_latest_warm_up_counts() -> None:
    rule = SequentialRule(first_s=100, limit_s=100, report_s=1)
    one, other = [1_000] * 100, [3_000] * 30 + [1_000] * 70
    alone = group_sequential.at_look(side_by_side([one, one]), 1, rule, 0.95)
    both = group_sequential.at_look(side_by_side([one, other]), 1, rule, 0.95)
    assert alone.look is not None
    assert both.look is not None
    assert alone.look.warmup_s == 0
    assert both.look.warmup_s == 0  # nothing may be left out: the first look is the last one
    longer = SequentialRule(first_s=50, growth=2, limit_s=100, report_s=1)
    cut = group_sequential.at_look(side_by_side([one, other]), 2, longer, 0.95)
    assert cut.look is not None
    assert cut.look.warmup_s == pytest.approx(30)


@pytest.mark.parametrize(("side", "percent"), [(Side.BOTH, 6.0), (Side.BELOW, 2.0), (Side.ABOVE, 10.0)])
def test_precision_is_the_distance_of_the_end_that_is_asked_for(side: Side, percent: float) -> None:
    assert side.percent(Estimate(1000.0, 980.0, 1100.0, 80, Unit.IOPS)) == pytest.approx(percent)
    assert side.percent(Estimate(0.0, 0.0, 1.0, 80, Unit.IOPS)) == math.inf
