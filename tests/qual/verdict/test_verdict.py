from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import estimates, geometries, run, side_by_side, visited, watched, workloads

from pytest_ssdqual.qual.measured.judgeable import Subject
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.measured.sweep import Sweep
from pytest_ssdqual.qual.measured.visited import Visited
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
    judge_relation,
    worst,
)
from pytest_ssdqual.qual.workload.workload import Workload

SUBJECT = Subject((Geometry.parse("raid5x4"),), (Workload("randread", "4k", 8),))


def latency(value: float, low: float, high: float, limit_ns: float) -> Verdict:
    limit = Limit(Direction.AT_MOST, limit_ns, Unit.NANOSECONDS, "test")
    return judge("p99_latency", SUBJECT, Estimate(value, low, high, 1_000, Unit.NANOSECONDS), limit)


def iops(value: float, low: float, high: float, limit: float) -> Verdict:
    bound = Limit(Direction.AT_LEAST, limit, Unit.IOPS, "test")
    return judge(Claim.STEADY_IOPS, SUBJECT, Estimate(value, low, high, 5, Unit.IOPS), bound)


def test_the_sentence_of_a_failure() -> None:
    verdict = latency(812_000, 810_000, 818_000, 500_000)
    assert verdict.outcome is Outcome.FAIL
    assert not verdict
    assert repr(verdict) == (
        "p99 latency of raid5x4 randread_4k_qd8: 812 µs (95 % CI 810…818 µs), limit 500 µs: FAIL by 62.4 %"
    )


def test_the_sentence_of_a_pass() -> None:
    verdict = iops(9_412, 9_390, 9_440, 9_000)
    assert verdict
    assert repr(verdict) == (
        "steady IOPS of raid5x4 randread_4k_qd8: 9,412 IOPS (95 % CI 9,390…9,440 IOPS), limit 9,000 IOPS: PASS by 4.6 %"
    )


def test_what_cannot_be_told_is_neither() -> None:
    verdict = iops(100, 90, 110, 95)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert not verdict
    assert verdict.times_longer == pytest.approx(4)
    assert repr(verdict).endswith("INCONCLUSIVE, about 4 times the measuring time would decide")
    assert repr(iops(1_000, 900, 1_100, 993)).endswith("INCONCLUSIVE, about 204 times the measuring time would decide")
    assert repr(iops(100, 90, 110, 100)).endswith("INCONCLUSIVE, on the limit itself")


def test_nobody_needs_to_know_on_which_side_of_the_limit_it_is() -> None:
    bound = Limit(Direction.AT_LEAST, 1_000, Unit.IOPS, "test")

    def near(low: float, high: float, percent: float = 1.0) -> Verdict:
        return judge("steady_iops", SUBJECT, Estimate(1_000, low, high, 40, Unit.IOPS), bound, percent)

    within = near(991, 1_009)
    assert (within.outcome, within.is_settled, bool(within)) == (Outcome.INCONCLUSIVE, True, False)
    assert repr(within).endswith("INCONCLUSIVE, within 1 % of the limit, the indifference margin of the protocol")
    for wider in (near(989, 1_009), near(991, 1_011), near(991, 1_009, 0.5), near(991, 1_009, 0.0)):
        assert not wider.is_settled
        assert repr(wider).endswith("INCONCLUSIVE, on the limit itself")
    # The margin decides nothing: what is surely kept or broken is told as ever.
    assert near(1_000, 1_009)
    assert near(1_000, 1_000)


def test_what_is_decided_or_read_needs_no_more_time() -> None:
    assert latency(812_000, 810_000, 818_000, 500_000).is_settled
    assert iops(9_412, 9_390, 9_440, 9_000).is_settled
    assert not iops(100, 90, 110, 95).is_settled
    limit = Limit(Direction.AT_MOST, 100.5, Unit.NANOSECONDS, "test")
    assert judge("max_latency", SUBJECT, Estimate(100, 99, 101, 9, Unit.NANOSECONDS, is_reading=True), limit).is_settled


@given(estimates(), st.floats(1e-3, 1e12), st.floats(1.0, 1e6), st.floats(0, 50))
def test_a_harder_limit_is_never_kept_where_an_easier_one_is_not(
    estimate: Estimate, bound: float, factor: float, percent: float
) -> None:
    order = [Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS]

    def outcomes(direction: Direction) -> list[int]:
        limits = (Limit(direction, each, Unit.IOPS, "test") for each in (bound, bound * factor))
        return [order.index(judge("steady_iops", SUBJECT, estimate, limit, percent).outcome) for limit in limits]

    at_least, at_most = outcomes(Direction.AT_LEAST), outcomes(Direction.AT_MOST)
    assert at_least[0] >= at_least[1]
    assert at_most[0] <= at_most[1]


@given(estimates(), st.floats(1e-3, 1e12), st.floats(1, 10), st.floats(0, 1))
def test_a_wider_interval_decides_nothing_that_a_narrower_one_left_open(
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
    verdict = judge("steady_iops", Subject(tuple(arrays), tuple(loads)), estimate, limit)
    assert len(repr(verdict)) < 250
    assert "\n" not in repr(verdict)


def test_units_are_not_mixed() -> None:
    limit = Limit(Direction.AT_MOST, 1.0, Unit.NANOSECONDS, "test")
    with pytest.raises(ValueError, match="p99_latency is in ns, the estimate in IOPS"):
        judge("p99_latency", SUBJECT, Estimate(1, 1, 1, 1, Unit.IOPS), limit)
    with pytest.raises(ValueError, match="not a valid Claim"):
        judge("speed", SUBJECT, Estimate(1, 1, 1, 1, Unit.IOPS), limit)


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="above zero"):
        Limit(Direction.AT_MOST, 0.0, Unit.NANOSECONDS, "test")
    with pytest.raises(ValueError, match="needs an array and a workload"):
        Subject((), ())


def test_every_claim_has_its_shape() -> None:
    for claim in Claim:
        assert claim.unit in Unit
        assert claim.direction in Direction
    assert Claim.P99_LATENCY.label == "p99 latency"


def test_the_maximum_is_decided_by_one_stall_and_within_its_bucket_not_at_all() -> None:
    def slowest(limit_ns: float) -> Verdict:
        bound = Limit(Direction.AT_MOST, limit_ns, Unit.NANOSECONDS, "test")
        return judge("max_latency", SUBJECT, Estimate(100, 99, 101, 9, Unit.NANOSECONDS, is_reading=True), bound)

    assert slowest(101)
    assert slowest(98).outcome is Outcome.FAIL
    close = slowest(100.5)
    assert close.outcome is Outcome.INCONCLUSIVE
    assert close.times_longer is None
    assert repr(close).endswith("INCONCLUSIVE, closer than could be measured")


def test_a_limit_beyond_what_was_measured_is_not_reached_by_luck() -> None:
    estimate = Estimate(2.0, 1.9, math.inf, 9, Unit.RATIO, is_reading=True)
    far = judge("cliff_after", SUBJECT, estimate, Limit(Direction.AT_LEAST, 3.0, Unit.RATIO, "test"))
    assert repr(far).endswith("INCONCLUSIVE, beyond what could be measured")
    assert judge("cliff_after", SUBJECT, estimate, Limit(Direction.AT_LEAST, 1.5, Unit.RATIO, "test"))


# Drives side by side


def of_members(*iops: int, limit: float = 900) -> tuple[Verdict, ...]:
    measured = Measured((side_by_side([[rate - 1, rate + 1, rate, rate + 1, rate - 1] for rate in iops]),))
    return judge_all("steady_iops", measured, Limit(Direction.AT_LEAST, limit, Unit.IOPS, "test"))


def test_each_drive_has_its_verdict_and_its_name_in_the_sentence() -> None:
    verdicts = of_members(1_000, 600, 1_010)
    assert [each.outcome for each in verdicts] == [Outcome.PASS, Outcome.FAIL, Outcome.PASS]
    assert repr(verdicts[1]) == (
        "steady IOPS of drive S1 (drivex3) randread_4k_qd8: 600 IOPS (95 % CI 599…601 IOPS), limit 900 IOPS: "
        "FAIL by 33.3 %"
    )
    assert verdicts[1].subject.drive == "S1"


def test_an_array_has_one_verdict_and_a_single_drive_its_name() -> None:
    limit = Limit(Direction.AT_LEAST, 900, Unit.IOPS, "test")
    (array,) = judge_all("steady_iops", Measured((run([1_000] * 5, geometry="raid5x4"),)), limit)
    assert str(array.subject) == "raid5x4 randread_4k_qd8"
    assert array.subject.drive == ""
    (single,) = judge_all("steady_iops", Measured((run([1_000] * 5),)), limit)
    assert str(single.subject) == "drive S0 (drivex1) randread_4k_qd8"


def test_saturations_of_drives_side_by_side_are_judged_one_by_one() -> None:
    write = Workload("randwrite", "4k", 8)
    together = side_by_side([[2_700] * 20 + [170] * 60, [1_000] * 80], workload=write, rounds=80)
    limit = Limit(Direction.AT_LEAST, 500, Unit.IOPS, "test")
    bad, good = judge_all("settled_iops", Saturation(together, 2 * 10**8), limit)
    assert not bad
    assert good
    assert bad.subject.drive == "S0"
    with pytest.raises(TooFew):
        judge_all("settled_iops", Saturation(together, 2 * 10**10), limit)


def test_the_likeness_of_drives_is_one_verdict_about_all() -> None:
    (found,) = of_members_alike(1_000, 600, 1_010)
    assert (found.outcome, found.subject.drive) == (Outcome.FAIL, "")
    assert repr(found).startswith(
        "slowest drive over the median of the others of drivex3 randread_4k_qd8: 0.60 × (95 % CI "
    )


def of_members_alike(*iops: int) -> tuple[Verdict, ...]:
    measured = Measured((side_by_side([[rate - 1, rate + 1, rate, rate + 1, rate - 1] for rate in iops]),))
    return judge_all("member_spread", measured, Limit(Direction.AT_LEAST, 0.8, Unit.RATIO, "test"))


def test_a_protocols_confidence_reaches_every_interval() -> None:
    measured = Measured((side_by_side([[998, 1_002, 1_000, 1_002, 998], [1_000] * 5]),))
    limit = Limit(Direction.AT_LEAST, 900, Unit.IOPS, "test")
    plain, surer = (judge_all("steady_iops", measured, limit, confidence, 2.0)[0] for confidence in (0.95, 0.99))
    assert surer.estimate.low < plain.estimate.low
    assert "(99 % CI " in repr(surer)
    assert surer.indifference_percent == 2.0


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


@given(st.lists(st.tuples(estimates(), st.floats(1e-3, 1e12)), min_size=1, max_size=8))
def test_all_is_well_exactly_if_the_worst_is(held: list[tuple[Estimate, float]]) -> None:
    verdicts = [iops(each.value, each.low, each.high, bound) for each, bound in held]
    assert bool(worst(verdicts)) is all(verdicts)
    assert (worst(verdicts).outcome is Outcome.FAIL) is any(each.outcome is Outcome.FAIL for each in verdicts)


# What a maximum proves


def slowest(limit_ms: float, *latency_ms: int, of_visits: Visited | None = None) -> Verdict:
    """Of a measurement with these slowest I/Os, one in each minute."""
    measured = watched([each * 10**6 for each in latency_ms], of_visits=of_visits)
    (found,) = judge_all("max_latency", measured, Limit(Direction.AT_MOST, limit_ms * 1e6, Unit.NANOSECONDS, "test"))
    return found


def test_a_maximum_that_is_kept_says_how_often_it_may_be_broken() -> None:
    kept = slowest(50, 38, *[20] * 19)
    assert repr(kept) == (
        "max latency of drive S0 (drivex1) randread_4k_qd8: 20.1 ms (95 % CI 19.9…38.3 ms, exceeded 10 times an hour), "
        "limit 50 ms: PASS by 59.9 %; none slower in 20 min, so fewer than 8.99 times an hour (95 %)"
    )
    assert kept.slower
    assert (kept.slower.ios, kept.slower.spells, kept.slower.seconds, kept.slower.low_per_hour) == (0, 20, 1_200.0, 0)
    assert kept.slower.high_per_hour == pytest.approx(8.99, abs=0.01)


def test_how_often_is_what_decides_and_not_how_long_was_watched() -> None:
    """Slower than 30 ms: six times an hour is within the promise, forty times is not, in half an hour and in five."""
    for minutes in (40, 300):
        seldom = [38 if at % 10 == 5 else 20 for at in range(minutes)]
        often = [38 if at % 3 else 20 for at in range(minutes)]
        assert slowest(30, *often).outcome is Outcome.FAIL
        assert slowest(30, *seldom).outcome is (Outcome.INCONCLUSIVE if minutes == 40 else Outcome.PASS)


def test_a_maximum_that_is_broken_says_how_often() -> None:
    broken = slowest(30, *[38, 20] * 10)
    assert broken.outcome is Outcome.FAIL
    assert repr(broken).endswith("10 slower in 20 min, in 10 of 20 spells: 19…78.1 times an hour (95 %)")
    assert repr(slowest(10, *[38] * 20)).endswith("in 20 of 20 spells: more than 118 times an hour (95 %)")


def test_what_was_not_watched_for_long_enough_says_for_how_long_it_takes() -> None:
    short = slowest(50, *[20] * 10)
    assert short.outcome is Outcome.INCONCLUSIVE
    assert "INCONCLUSIVE, what happens 10 times an hour takes 18 min of observation, 10 min were observed" in repr(
        short
    )
    # But what certainly happens more often does, however short it was.
    assert slowest(10, *[20] * 10).outcome is Outcome.FAIL


def test_a_maximum_is_as_sure_as_all_looks_together_need() -> None:
    look = slowest(50, *[20] * 40, of_visits=visited(level=0.995))
    assert "none slower in 40 min, so fewer than 7.95 times an hour (95 %)" in repr(look)


# Sweeps


def of_widths(shares: dict[int, float], bound: float, claim: str = "scaling_deviation") -> Verdict:
    """RAID 0 arrays of drives of 10,000 IOPS that do less than they could."""
    direction, unit = (
        (Direction.AT_MOST, Unit.PERCENT) if claim == "scaling_deviation" else (Direction.AT_LEAST, Unit.RATIO)
    )
    sweep = [
        Measured(
            (
                run(
                    [round(10_000 * width * share * each) for each in (0.99, 1.0, 1.01, 1.0, 1.0)],
                    geometry=f"raid0x{width}",
                ),
            )
        )
        for width, share in shares.items()
    ]
    (verdict,) = judge_all(claim, Sweep(tuple(sweep)), Limit(direction, bound, unit, "test"))
    return verdict


def test_a_sweep_that_bends_says_where_and_what_was_new_there() -> None:
    bent = of_widths({8: 0.8, 2: 1.0, 6: 1.0, 7: 0.8}, 10)
    assert bent.outcome is Outcome.FAIL
    assert repr(bent).startswith("scaling deviation of raid0x2…raid0x8 randread_4k_qd8: 14.3 % (95 % CI ")
    assert repr(bent).endswith("; the bend begins at raid0x7, the first with drive S6")
    assert bent.because == "the bend begins at raid0x7, the first with drive S6"
    slope = of_widths({8: 0.8, 2: 1.0, 6: 1.0, 7: 0.8}, 0.9, "scaling_slope")
    assert (slope.outcome, slope.because) == (Outcome.FAIL, bent.because)


def test_a_sweep_that_keeps_up_says_nothing_of_the_kind() -> None:
    good = of_widths({2: 1.0, 6: 1.0, 7: 0.98}, 10)
    assert (bool(good), good.because) == (True, "")


def test_a_sweep_whose_narrowest_width_is_too_fast_names_that_one() -> None:
    """Of three, it makes the others seem short."""
    fast = of_widths({2: 1.4, 6: 1.0, 7: 1.0}, 10)
    assert fast.outcome is Outcome.FAIL
    assert fast.because.startswith("raid0x2 is out of line: it does 1.4 times ")


def test_of_other_claims_about_widths_nothing_bends() -> None:
    sweep = [Measured((run([1_000 * width] * 5, geometry=f"raid0x{width}"),)) for width in (2, 4)]
    limit = Limit(Direction.AT_MOST, 0.5, Unit.RATIO, "test")
    (found,) = judge_all("latency_growth_between_widths", Sweep(tuple(sweep)), limit)
    assert (found.outcome, found.because) == (Outcome.FAIL, "")


# Relations


def relation(percent: float, limit: float, direction: Direction = Direction.AT_LEAST) -> Verdict:
    writes = Subject((Geometry.parse("raid5x4"),), (Workload("randwrite", "4k", 8),))
    estimate = ratio(Estimate(percent, percent - 1, percent + 1, 5, Unit.IOPS), Estimate(100, 100, 100, 5, Unit.IOPS))
    bound = Limit(direction, limit, Unit.PERCENT, "test")
    return judge_relation("steady_iops", writes, Workload("randread", "4k", 8), estimate, bound)


def test_the_sentence_of_a_relation() -> None:
    verdict = relation(38, 40)
    assert verdict.outcome is Outcome.FAIL
    assert repr(verdict) == (
        "steady IOPS of raid5x4 randwrite_4k_qd8: 38.0 % (95 % CI 37.0…39.0 %) of randread_4k_qd8, limit 40.0 %: "
        "FAIL by 2.0 percentage points"
    )


def test_a_relation_has_its_own_direction() -> None:
    assert relation(42, 40)
    assert not relation(42, 40, Direction.AT_MOST)
    assert relation(38, 40, Direction.AT_MOST)
    assert relation(40.5, 40).outcome is Outcome.INCONCLUSIVE


def test_relations_are_in_per_cent_and_nothing_else_is() -> None:
    percent, plain = Estimate(38, 37, 39, 5, Unit.PERCENT), Estimate(38, 37, 39, 5, Unit.IOPS)
    limit = Limit(Direction.AT_LEAST, 40, Unit.PERCENT, "test")
    with pytest.raises(ValueError, match="a relation is in %, the estimate in IOPS"):
        judge_relation("steady_iops", SUBJECT, Workload("randread", "4k", 8), plain, limit)
    with pytest.raises(ValueError, match="a relation is in %, the estimate in %, the limit in IOPS"):
        judge_relation(
            "steady_iops", SUBJECT, SUBJECT.workloads[0], percent, Limit(Direction.AT_LEAST, 1, Unit.IOPS, "")
        )
    with pytest.raises(ValueError, match="steady_iops is in IOPS, the estimate in %"):
        judge("steady_iops", SUBJECT, percent, limit)


def test_a_cause_that_is_not_the_drives_takes_a_failure_back_and_an_unknown_one_does_not() -> None:
    failed = iops(800, 790, 810, 1_000)
    assert failed.outcome is Outcome.FAIL
    outcomes = {
        culprit: attributed(failed, Cause(culprit, 0.9, "why"), Accountable.DRIVE).outcome for culprit in Culprit
    }
    kept = {Culprit.DRIVE, Culprit.DRIVES, Culprit.PRODUCT, Culprit.UNKNOWN}
    assert {culprit for culprit, outcome in outcomes.items() if outcome is Outcome.FAIL} == kept
    assert all(
        attributed(failed, Cause(culprit, 0.9, "why"), Accountable.SYSTEM).outcome is Outcome.FAIL
        for culprit in Culprit
    )
