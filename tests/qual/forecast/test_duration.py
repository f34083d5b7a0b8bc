from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ssdqual.qual.forecast import duration, simulated_drive
from pytest_ssdqual.qual.forecast.duration import Asked, Judging, SteadySteps, Turns
from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.protocol_rules import InterleaveRule, SequentialRule, SteadyRule, VerdictRule
from pytest_ssdqual.qual.stats import group_sequential
from pytest_ssdqual.qual.verdict.multiplicity import ALONE

SEQUENTIAL = protocol.load("sequential")
#: Few looks, so that a test takes a moment.
COARSE = Judging(SequentialRule(growth=2.0), VerdictRule())
KINDS = st.sampled_from(sorted(simulated_drive.KINDS))


def mean_s(*asked: Asked, judging: Judging = COARSE) -> float:
    return fmean(each for kind in simulated_drive.KINDS for each in duration.durations(judging, asked, kind))


def test_a_smaller_margin_takes_longer() -> None:
    far, near, on = (mean_s(Asked(Claim.STEADY_IOPS, margin)) for margin in (1.1, 1.03, 1.0))
    assert far < 0.8 * near < 0.7 * on


def test_a_broken_promise_is_decided_sooner_than_one_that_is_kept_as_narrowly() -> None:
    """A pause that was not seen yet would make a drive slower, never faster."""
    kept, broken = (mean_s(Asked(Claim.STEADY_IOPS, margin)) for margin in (1.1, 1 / 1.1))
    assert 0.4 * kept < broken < kept


def test_a_figure_far_from_its_limit_waits_for_the_end_of_a_plateau() -> None:
    plateau_s = COARSE.looks.plateau_s
    found = [duration.durations(COARSE, [Asked(Claim.STEADY_IOPS, margin)], "flat") for margin in (2.0, 1.1)]
    assert min(found[0]) >= plateau_s > min(found[1])


def test_what_is_asked_for_besides_never_shortens_a_measurement() -> None:
    alone, tail = Asked(Claim.STEADY_IOPS, 1.05), Asked(Claim.P99_LATENCY, 1.3)
    for kind in simulated_drive.KINDS:
        each, both = (duration.durations(COARSE, asked, kind) for asked in ([alone], [alone, tail]))
        assert all(one <= other for one, other in zip(each, both, strict=True))


INTERLEAVED = protocol.load("interleaved")
RULE = replace(INTERLEAVED.interleave or InterleaveRule(), growth=2.0, rounds=24)
TURNS = Turns(replace(INTERLEAVED, interleave=RULE), ALONE, workloads=12, overhead_s=3.0)


def test_rounds_end_at_looks_and_a_smaller_margin_takes_more() -> None:
    def rounds(margin: float, turns: Turns = TURNS) -> list[int]:
        asked = [Asked(Claim.STEADY_IOPS, margin)]
        return [each for kind in simulated_drive.KINDS for each in duration.rounds(turns, asked, kind)]

    far, near = rounds(1.1), rounds(1.02)
    assert set(far) | set(near) <= {6, 12, 24}
    assert fmean(far) < 0.8 * fmean(near)
    # Few workloads take more rounds for the same time.
    assert min(rounds(1.1, replace(TURNS, workloads=3))) == 24


@pytest.mark.parametrize("margin", [1.1, 4.0])
def test_slowest_ios_take_the_cells_of_their_observation(margin: float) -> None:
    asked = [Asked(Claim.LATENCY_SPREAD_OVER_TIME, margin, 10.0)]
    looks = INTERLEAVED.sequential
    assert looks
    turns = replace(TURNS, protocol=replace(INTERLEAVED, interleave=replace(RULE, rounds=48)))
    found = duration.rounds(turns, asked, "flat")
    assert all(each * RULE.cell_s >= looks.observe_s for each in found)


@pytest.mark.parametrize(
    "asked",
    [
        Asked(),
        Asked(Claim.P99_LATENCY, 2.0),
        Asked(Claim.MAX_LATENCY, 4.0),
        Asked(Claim.LATENCY_SPREAD_OVER_TIME, 2, 10),
    ],
    ids=str,
)
def test_every_kind_of_question_has_a_duration_between_the_looks(asked: Asked) -> None:
    times = group_sequential.look_times(COARSE.looks)
    found = duration.durations(COARSE, [asked], "flat")
    assert set(found) <= set(times)
    assert len(found) == duration.DRIVES
    if asked.claim in duration.OF_SLOWEST:
        assert min(found) >= COARSE.looks.observe_s


def test_a_claim_that_is_not_simulated_is_refused() -> None:
    with pytest.raises(ValueError, match="read IOPS is not simulated"):
        duration.durations(COARSE, [Asked(Claim.READ_IOPS, 1.1)], "flat")


def test_an_earlier_limit_ends_what_is_undecided() -> None:
    short = replace(COARSE, looks=replace(COARSE.looks, limit_s=1800.0))
    assert set(duration.durations(short, [Asked(Claim.STEADY_IOPS, 1.0)], "random")) == {1800.0}


@settings(max_examples=20, deadline=None)
@given(KINDS, st.integers(0, 1000))
def test_a_simulated_drive_does_its_true_figure_in_the_long_run(kind: str, number: int) -> None:
    hours = 40
    drive = simulated_drive.drive(kind, 1, number, hours * 3600)
    assert drive.done[-1] / (hours * 3600) == pytest.approx(1.0, abs=0.02)
    assert (drive.done[1:] > drive.done[:-1]).all()
    again = simulated_drive.drive(kind, 1, number, hours * 3600)
    assert (drive.done == again.done).all()


def test_steps_end_when_all_figures_are_steady() -> None:
    rule = SteadyRule()
    asked = SteadySteps(rule, 60.0, 60.0, 1, 25)
    one, eight = (duration.steps(replace(asked, figures=figures), "slow collection") for figures in (1, 8))
    assert min(one) >= rule.window
    assert max(eight) <= 25
    assert fmean(eight) > fmean(one)
    lenient = replace(asked, rule=SteadyRule(range_percent=90, slope_percent=90))
    assert set(duration.steps(lenient, "slow collection")) == {rule.window}


def test_rounds_that_are_too_short_to_simulate_are_steady_at_once() -> None:
    assert duration.steps(SteadySteps(SteadyRule(), 1.0, 1.0, 5, 12), "random") == (1,)
    assert duration.steps(SteadySteps(SteadyRule(), 2.0, 20.0, 1, 25), "random") == (5,)


def test_buckets_are_fios() -> None:
    from pytest_ssdqual.qual.measured.histogram import bucket_of

    for ns in (100, 1000, 1e6, 3.7e7, 1e8, 2e8):
        middle = duration._bucket(ns)
        bucket = bucket_of(middle)
        assert bucket.low_ns <= ns < bucket.high_ns
        assert math.isclose(middle, ns, rel_tol=1 / 64)
