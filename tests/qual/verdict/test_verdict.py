from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders.strategies import estimates, geometries, run, side_by_side, visited, watched, workloads

from pytest_ssdqual.qual.measured.judgeable import Subject
from pytest_ssdqual.qual.measured.run import Measured, Visited
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.measured.sweep import Sweep
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Accountable, Claim, Direction, Limit
from pytest_ssdqual.qual.stats.estimate import Estimate, TooFew, ratio
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.validity.attribution import Cause, Culprit
from pytest_ssdqual.qual.verdict.verdict import (
    Outcome,
    Verdict,
    attributed,
    judge,
    judge_all,
    worst,
)
from pytest_ssdqual.qual.workload.workload import Workload

SUBJECT = Subject((Geometry.parse("raid5x4"),), (Workload("randread", "4k", 8),))


def latency(value: float, low: float, high: float, limit_ns: float) -> Verdict:
    limit = Limit(Direction.AT_MOST, limit_ns, Unit.NANOSECONDS, "test")
    return judge(Claim.P99_LATENCY, SUBJECT, Estimate(value, low, high, 1_000, Unit.NANOSECONDS), limit)


def iops(value: float, low: float, high: float, limit: float) -> Verdict:
    bound = Limit(Direction.AT_LEAST, limit, Unit.IOPS, "test")
    return judge(Claim.STEADY_IOPS, SUBJECT, Estimate(value, low, high, 5, Unit.IOPS), bound)


def test_inconclusive_verdict_tells_how_much_longer_it_takes() -> None:
    verdict = iops(100, 90, 110, 95)
    assert not verdict
    assert verdict.times_longer == pytest.approx(4)


def near(low: float, high: float, percent: float = 1.0) -> Verdict:
    """Of 1,000 IOPS at a limit of as many."""
    bound = Limit(Direction.AT_LEAST, 1_000, Unit.IOPS, "test")
    return judge(Claim.STEADY_IOPS, SUBJECT, Estimate(1_000, low, high, 40, Unit.IOPS), bound, percent)


def read(limit_ns: float) -> Verdict:
    """Of a maximum that was read as 99…101 ns."""
    bound = Limit(Direction.AT_MOST, limit_ns, Unit.NANOSECONDS, "test")
    return judge(Claim.MAX_LATENCY, SUBJECT, Estimate(100, 99, 101, 9, Unit.NANOSECONDS, is_reading=True), bound)


def cliff(limit: float) -> Verdict:
    """Of a cliff that did not come in twice the capacity."""
    estimate = Estimate(2.0, 1.9, math.inf, 9, Unit.RATIO, is_reading=True)
    return judge(Claim.CLIFF_AFTER, SUBJECT, estimate, Limit(Direction.AT_LEAST, limit, Unit.RATIO, "test"))


@pytest.mark.parametrize(
    ("verdict", "is_settled"),
    [
        (latency(812_000, 810_000, 818_000, 500_000), True),
        (iops(9_412, 9_390, 9_440, 9_000), True),
        (iops(100, 90, 110, 95), False),
        (read(100.5), True),
        (near(991, 1_009), True),
        (near(989, 1_009), False),
        (near(991, 1_011), False),
        (near(991, 1_009, 0.5), False),
        (near(991, 1_009, 0.0), False),
    ],
)
def test_what_needs_no_more_time_is_settled(verdict: Verdict, is_settled: bool) -> None:
    assert verdict.is_settled is is_settled


def test_indifference_margin_decides_nothing() -> None:
    assert near(991, 1_009).outcome is Outcome.INCONCLUSIVE
    assert near(1_000, 1_009)
    assert near(1_000, 1_000)


@given(estimates(), st.floats(1e-3, 1e12), st.floats(1.0, 1e6), st.floats(0, 50))
def test_a_harder_limit_is_never_kept_where_an_easier_one_is_not(
    estimate: Estimate, bound: float, factor: float, percent: float
) -> None:
    order = [Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS]

    def outcomes(direction: Direction) -> list[int]:
        limits = (Limit(direction, each, Unit.IOPS, "test") for each in (bound, bound * factor))
        return [order.index(judge(Claim.STEADY_IOPS, SUBJECT, estimate, limit, percent).outcome) for limit in limits]

    at_least, at_most = outcomes(Direction.AT_LEAST), outcomes(Direction.AT_MOST)
    assert at_least[0] >= at_least[1]
    assert at_most[0] <= at_most[1]


@given(estimates(), st.floats(1e-3, 1e12), st.floats(1, 10), st.floats(0, 1))
def test_wider_interval_decides_nothing_left_open_before(
    estimate: Estimate, bound: float, up: float, down: float
) -> None:
    wider = iops(estimate.value, estimate.low * down, estimate.high * up, bound)
    verdict = iops(estimate.value, estimate.low, estimate.high, bound)
    assert wider.outcome in (verdict.outcome, Outcome.INCONCLUSIVE)


def test_the_limit_itself_is_good() -> None:
    assert iops(100, 100, 100, 100)
    assert latency(100, 100, 100, 100)


def test_an_unbounded_estimate_never_passes() -> None:
    assert latency(17.1e9, 17e9, math.inf, 10e6).outcome is Outcome.FAIL
    assert latency(17.1e9, 17e9, math.inf, 17.05e9).outcome is Outcome.INCONCLUSIVE


@given(estimates(), st.floats(1e-3, 1e12))
def test_the_two_directions_mirror_each_other(estimate: Estimate, bound: float) -> None:
    at_least = iops(estimate.value, estimate.low, estimate.high, bound)
    at_most = latency(estimate.value, estimate.low, estimate.high, bound)
    assert at_least.margin_percent == -at_most.margin_percent
    if at_least.outcome is Outcome.FAIL:
        assert at_most
    if at_most.outcome is Outcome.FAIL:
        assert at_least


@given(estimates(), st.floats(1e-3, 1e12))
def test_the_outcome_agrees_with_the_margin(estimate: Estimate, bound: float) -> None:
    verdict = iops(estimate.value, estimate.low, estimate.high, bound)
    if verdict:
        assert verdict.margin_percent >= 0
    if verdict.outcome is Outcome.FAIL:
        assert verdict.margin_percent < 0
    if verdict.outcome is Outcome.INCONCLUSIVE:
        assert verdict.times_longer is None or verdict.times_longer >= 1 - 1e-9


@settings(max_examples=30)
@given(
    st.lists(geometries, min_size=1, max_size=9),
    st.lists(workloads, min_size=1, max_size=9),
    estimates(),
    st.floats(1e-3, 1e12),
)
def test_the_sentence_stays_one_short_line(
    arrays: list[Geometry], loads: list[Workload], estimate: Estimate, bound: float
) -> None:
    limit = Limit(Direction.AT_LEAST, bound, Unit.IOPS, "x" * 500)
    verdict = judge(Claim.STEADY_IOPS, Subject(tuple(arrays), tuple(loads)), estimate, limit)
    assert len(repr(verdict)) < 250
    assert "\n" not in repr(verdict)


def test_units_are_not_mixed() -> None:
    limit = Limit(Direction.AT_MOST, 1.0, Unit.NANOSECONDS, "test")
    with pytest.raises(ValueError, match="p99_latency is in"):
        judge(Claim.P99_LATENCY, SUBJECT, Estimate(1, 1, 1, 1, Unit.IOPS), limit)


def test_a_subject_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="needs an array"):
        Subject((), ())


def test_reading_is_undecided_only_within_its_bucket() -> None:
    assert read(101)
    assert read(98).outcome is Outcome.FAIL
    assert read(100.5).times_longer is None
    assert cliff(1.5)


# Drives side by side


def of_members(*iops: int, claim: Claim = Claim.STEADY_IOPS, limit: float = 900) -> tuple[Verdict, ...]:
    measured = Measured((side_by_side([[rate - 1, rate + 1, rate, rate + 1, rate - 1] for rate in iops]),))
    return judge_all(claim, measured, Limit(Direction.AT_LEAST, limit, claim.unit, "test"))


def test_each_drive_has_its_verdict() -> None:
    verdicts = of_members(1_000, 600, 1_010)
    assert [bool(verdict) for verdict in verdicts] == [True, False, True]
    assert verdicts[1].subject.drive == "S1"


def test_an_array_has_one_verdict_and_a_single_drive_its_name() -> None:
    limit = Limit(Direction.AT_LEAST, 900, Unit.IOPS, "test")
    (array,) = judge_all(Claim.STEADY_IOPS, Measured((run([1_000] * 5, geometry="raid5x4"),)), limit)
    assert str(array.subject) == "raid5x4 randread_4k_qd8"
    assert array.subject.drive == ""
    (single,) = judge_all(Claim.STEADY_IOPS, Measured((run([1_000] * 5),)), limit)
    assert str(single.subject) == "drive S0 (drivex1) randread_4k_qd8"


def test_saturations_side_by_side_are_judged_one_by_one() -> None:
    write = Workload("randwrite", "4k", 8)
    together = side_by_side([[2_700] * 20 + [170] * 60, [1_000] * 80], workload=write, rounds=80)
    limit = Limit(Direction.AT_LEAST, 500, Unit.IOPS, "test")
    bad, good = judge_all(Claim.SETTLED_IOPS, Saturation(together, 2 * 10**8), limit)
    assert not bad
    assert good
    assert bad.subject.drive == "S0"
    with pytest.raises(TooFew):
        judge_all(Claim.SETTLED_IOPS, Saturation(together, 2 * 10**10), limit)


def test_the_likeness_of_drives_is_one_verdict_about_all() -> None:
    (verdict,) = of_members(1_000, 600, 1_010, claim=Claim.MEMBER_SPREAD, limit=0.8)
    assert (verdict.outcome, verdict.subject.drive) == (Outcome.FAIL, "")


def test_a_protocols_confidence_reaches_every_interval() -> None:
    measured = Measured((side_by_side([[998, 1_002, 1_000, 1_002, 998], [1_000] * 5]),))
    limit = Limit(Direction.AT_LEAST, 900, Unit.IOPS, "test")
    plain, surer = (judge_all(Claim.STEADY_IOPS, measured, limit, confidence, 2.0)[0] for confidence in (0.95, 0.99))
    assert surer.estimate.low < plain.estimate.low
    assert (surer.estimate.confidence, surer.indifference_percent) == (0.99, 2.0)


def test_the_worst_verdict_is_the_one_to_be_told() -> None:
    failed, worse, kept, barely, undecided = (
        iops(80, 79, 81, 100), iops(50, 49, 51, 100), iops(200, 199, 201, 100), iops(110, 109, 111, 100),
        iops(100, 90, 120, 95),
    )  # fmt: skip
    assert worst([kept, undecided, failed, worse, barely]) is worse
    assert worst([kept, undecided, barely]) is undecided
    assert worst([kept, barely]) is barely
    with pytest.raises(ValueError, match="empty"):
        worst([])


@settings(max_examples=30)
@given(st.lists(st.tuples(estimates(), st.floats(1e-3, 1e12)), min_size=1, max_size=8))
def test_all_is_well_exactly_if_the_worst_is(held: list[tuple[Estimate, float]]) -> None:
    verdicts = [iops(each.value, each.low, each.high, bound) for each, bound in held]
    assert bool(worst(verdicts)) is all(verdicts)
    assert (worst(verdicts).outcome is Outcome.FAIL) is any(each.outcome is Outcome.FAIL for each in verdicts)


# What a maximum proves


def slowest(limit_ms: float, *latency_ms: int, of_visits: Visited | None = None) -> Verdict:
    """Of a measurement with these slowest I/Os, one in each minute."""
    measured = watched([each * 10**6 for each in latency_ms], of_visits=of_visits)
    (found,) = judge_all(
        Claim.MAX_LATENCY, measured, Limit(Direction.AT_MOST, limit_ms * 1e6, Unit.NANOSECONDS, "test")
    )
    return found


def test_a_maximum_that_is_kept_has_the_rate_it_may_be_broken_at() -> None:
    slower = slowest(50, 38, *[20] * 19).slower
    assert slower
    assert (slower.ios, slower.spells, slower.seconds, slower.low_per_hour) == (0, 20, 1_200.0, 0)
    assert slower.high_per_hour == pytest.approx(8.99, abs=0.01)


def test_how_often_is_what_decides_and_not_how_long_was_watched() -> None:
    """Slower than 30 ms: six times an hour is within the promise, forty times is not, in half an hour and in five."""
    for minutes in (40, 300):
        seldom = [38 if at % 10 == 5 else 20 for at in range(minutes)]
        often = [38 if at % 3 else 20 for at in range(minutes)]
        assert slowest(30, *often).outcome is Outcome.FAIL
        assert slowest(30, *seldom).outcome is (Outcome.INCONCLUSIVE if minutes == 40 else Outcome.PASS)


def test_a_short_look_proves_only_what_is_bad() -> None:
    assert slowest(50, *[20] * 10).outcome is Outcome.INCONCLUSIVE
    assert slowest(10, *[20] * 10).outcome is Outcome.FAIL


# Sweeps


def of_widths(shares: dict[int, float], claim: Claim = Claim.SCALING_DEVIATION, bound: float = 10) -> Verdict:
    """RAID 0 arrays of drives of 10,000 IOPS that do less than they could."""
    sweep = tuple(
        Measured((run([round(10_000 * width * share * factor) for factor in (0.99, 1.0, 1.01, 1.0, 1.0)],
                      geometry=f"raid0x{width}"),))
        for width, share in shares.items()
    )  # fmt: skip
    (verdict,) = judge_all(claim, Sweep(sweep), Limit(claim.direction, bound, claim.unit, "test"))
    return verdict


BENT = {8: 0.8, 2: 1.0, 6: 1.0, 7: 0.8}


@pytest.mark.parametrize(
    ("verdict", "outcome", "because"),
    [
        (of_widths(BENT), Outcome.FAIL, "the bend begins at raid0x7, the first with drive S6"),
        (
            of_widths(BENT, Claim.SCALING_SLOPE, 0.9),
            Outcome.FAIL,
            "the bend begins at raid0x7, the first with drive S6",
        ),
        (of_widths({2: 1.0, 6: 1.0, 7: 0.98}), Outcome.PASS, ""),
        # Of three, the narrowest makes the others seem short.
        (of_widths({2: 1.4, 6: 1.0, 7: 1.0}), Outcome.FAIL, "raid0x2 is out of line: it does 1.4 times"),
        (of_widths({2: 1.0, 4: 1.0}, Claim.LATENCY_GROWTH_BETWEEN_WIDTHS, 0.5), Outcome.FAIL, ""),
    ],
)
def test_a_sweep_that_bends_says_where(verdict: Verdict, outcome: Outcome, because: str) -> None:
    assert verdict.outcome is outcome
    assert because in verdict.because
    assert bool(because) is bool(verdict.because)


# Relations


def relation(percent: float, limit: float, direction: Direction = Direction.AT_LEAST) -> Verdict:
    writes = Subject((Geometry.parse("raid5x4"),), (Workload("randwrite", "4k", 8),))
    estimate = ratio(Estimate(percent, percent - 1, percent + 1, 5, Unit.IOPS), Estimate(100, 100, 100, 5, Unit.IOPS))
    bound = Limit(direction, limit, Unit.PERCENT, "test")
    return judge(Claim.STEADY_IOPS, writes, estimate, bound, reference=Workload("randread", "4k", 8))


def test_a_relation_has_its_own_direction() -> None:
    assert relation(42, 40)
    assert not relation(42, 40, Direction.AT_MOST)
    assert relation(38, 40, Direction.AT_MOST)
    assert relation(40.5, 40).outcome is Outcome.INCONCLUSIVE


def test_relations_are_in_per_cent_and_nothing_else_is() -> None:
    percent, plain = Estimate(38, 37, 39, 5, Unit.PERCENT), Estimate(38, 37, 39, 5, Unit.IOPS)
    limit, of_iops = (Limit(Direction.AT_LEAST, 40, unit, "test") for unit in (Unit.PERCENT, Unit.IOPS))
    for estimate, bound in ((plain, limit), (percent, of_iops)):
        with pytest.raises(ValueError, match="steady_iops is in %"):
            judge(Claim.STEADY_IOPS, SUBJECT, estimate, bound, reference=SUBJECT.workloads[0])
    with pytest.raises(ValueError, match="IOPS, the estimate"):
        judge(Claim.STEADY_IOPS, SUBJECT, percent, limit)


@pytest.mark.parametrize("culprit", Culprit)
def test_only_a_cause_beside_the_drives_takes_a_failure_back(culprit: Culprit) -> None:
    failed, cause = iops(800, 790, 810, 1_000), Cause(culprit, "why", confidence=0.9)
    kept = culprit in (Culprit.DRIVE, Culprit.DRIVES, Culprit.PRODUCT, Culprit.UNKNOWN)
    assert (attributed(failed, cause, Accountable.DRIVE).outcome is Outcome.FAIL) is kept
    assert attributed(failed, cause, Accountable.SYSTEM).outcome is Outcome.FAIL


#: Sentences of verdicts, or parts of them.
SENTENCES = [
    (
        latency(812_000, 810_000, 818_000, 500_000),
        "p99 latency of raid5x4 randread_4k_qd8: 812 µs (95 % CI 810…818 µs), limit 500 µs: FAIL by 62.4 %",
    ),
    (
        iops(9_412, 9_390, 9_440, 9_000),
        "steady IOPS of raid5x4 randread_4k_qd8: 9,412 IOPS (95 % CI 9,390…9,440 IOPS), limit 9,000 IOPS: PASS by "
        "4.6 %",
    ),
    (
        of_members(1_000, 600, 1_010)[1],
        "steady IOPS of drive S1 (drivex3) randread_4k_qd8: 600 IOPS (95 % CI 599…601 IOPS), limit 900 IOPS: FAIL by "
        "33.3 %",
    ),
    (
        relation(38, 40),
        "steady IOPS of raid5x4 randwrite_4k_qd8: 38.0 % (95 % CI 37.0…39.0 %) of randread_4k_qd8, limit 40.0 %: FAIL "
        "by 2.0 percentage points",
    ),
    (
        slowest(50, 38, *[20] * 19),
        "max latency of drive S0 (drivex1) randread_4k_qd8: 20.1 ms (95 % CI 19.9…38.3 ms, exceeded 10 times an hour), "
        "limit 50 ms: PASS by 59.9 %; none slower in 20 min, so fewer than 8.99 times an hour (95 %)",
    ),
    (slowest(30, *[38, 20] * 10), "10 slower in 20 min, in 10 of 20 spells: 19…78.1 times an hour (95 %)"),
    (slowest(10, *[38] * 20), "in 20 of 20 spells: more than 118 times an hour (95 %)"),
    (slowest(50, *[20] * 10), "what happens 10 times an hour takes 18 min of observation, 10 min were observed"),
    # As sure as all looks together need.
    (slowest(50, *[20] * 40, of_visits=visited(level=0.995)), "so fewer than 7.95 times an hour (95 %)"),
    (iops(100, 90, 110, 95), "INCONCLUSIVE, about 4 times the measuring time would decide"),
    (iops(1_000, 900, 1_100, 993), "INCONCLUSIVE, about 204 times the measuring time would decide"),
    (iops(100, 90, 110, 100), "INCONCLUSIVE, on the limit itself"),
    (near(991, 1_009), "INCONCLUSIVE, within 1 % of the limit, the indifference margin of the protocol"),
    (read(100.5), "INCONCLUSIVE, closer than could be measured"),
    (cliff(3.0), "INCONCLUSIVE, beyond what could be measured"),
    (of_widths(BENT), "; the bend begins at raid0x7, the first with drive S6"),
]


@pytest.mark.parametrize(("verdict", "sentence"), SENTENCES)
def test_sentence_of_a_verdict(verdict: Verdict, sentence: str) -> None:
    assert sentence in repr(verdict)
