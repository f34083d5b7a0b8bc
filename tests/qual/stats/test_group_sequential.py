from __future__ import annotations

from dataclasses import replace

import pytest
from support.builders.strategies import run, side_by_side, visited, watched

from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.spec.protocol_rules import VerdictRule
from pytest_ssdqual.qual.stats.group_sequential import Question, decide
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.multiplicity import BONFERRONI, ErrorControl

RULE = VerdictRule()


def at_least(iops: float) -> Question:
    return Question({Claim.STEADY_IOPS: Limit(Direction.AT_LEAST, iops, Unit.IOPS, "test")})


def cells(*rates: int, scatter: float = 0.01) -> Measured:
    return Measured(tuple(run([rate] * 5, rounds=1) for rate in rates), visited(scatter=scatter))


@pytest.mark.parametrize(("limit", "is_done"), [(900, True), (990, False), (1_010, False), (1_100, True)])
def test_what_is_clear_is_decided_and_what_is_close_is_not(limit: float, is_done: bool) -> None:
    found = decide(cells(1_000, 1_004, 996, 1_000), at_least(limit), RULE)
    assert found.done is is_done
    assert "limit" in found.sentence


def test_within_the_margin_it_ends() -> None:
    calm = cells(1_000, 1_000, 1_000, 1_000, scatter=0.002)
    assert decide(calm, at_least(1_000), RULE)
    assert not decide(calm, at_least(1_000), replace(RULE, indifference_percent=0.0))


def test_a_failure_among_many_claims_takes_more() -> None:
    measured, question = cells(1_000, 1_004, 996, 1_000), at_least(1_018)
    assert decide(measured, question, RULE)
    assert not decide(measured, question, RULE, ErrorControl(1_000, BONFERRONI))


def test_extremes_are_decided_when_their_verdict_is_settled() -> None:
    question = Question({Claim.MAX_LATENCY: Limit(Direction.AT_MOST, 50e6, Unit.NANOSECONDS, "test")})
    slow, fast = ([ms * 10**6] * 10 for ms in (80, 10))
    assert decide(watched(slow, of_visits=visited()), question, RULE)
    # Ten minutes prove nothing good about what may happen ten times an hour, and an hour does.
    assert not decide(watched(fast, of_visits=visited()), question, RULE)
    assert decide(watched(fast * 6, of_visits=visited()), question, RULE)


def test_every_drive_side_by_side_has_to_be_decided() -> None:
    rates = [[1_000] * 5, [905] * 5]
    measured = Measured((replace(side_by_side(rates), rounds=1),) * 4, visited())
    found = decide(measured, at_least(900), RULE)
    assert not found
    assert "drive S1" in found.sentence
    assert decide(measured, at_least(850), RULE)


def test_drives_without_a_limit_of_their_own_ask_nothing() -> None:
    measured = Measured((side_by_side([[1000] * 5, [500] * 5]),))
    of_another = Limit(Direction.AT_LEAST, 900, Unit.IOPS, "test")
    limit = replace(of_another, own={"S9": of_another})
    assert decide(measured, Question({Claim.STEADY_IOPS: limit}), RULE).done


@pytest.mark.parametrize(("percent", "is_done"), [(1.0, False), (2.0, True)])
def test_a_figure_without_a_limit_is_as_precise_as_asked(percent: float, is_done: bool) -> None:
    # ± 1.4 %
    found = decide(cells(1_000, 1_004, 996, 1_000), Question(precision_percent=percent), RULE)
    assert found.done is is_done
    assert f"{percent:g} % is wanted" in found.sentence
    assert not decide(cells(0, 0, 0, 0), Question(precision_percent=percent), RULE)


def test_too_little_decides_nothing() -> None:
    one = Measured((run([1_000] * 5, rounds=1),), visited((1,)))
    assert not decide(one, at_least(1), RULE)
    assert not decide(one, Question(precision_percent=50.0), RULE)
