from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.lots import lot
from pytest_ssdqual.qual.lots.lot import LotTable, TooFewDrives, measurement_share, ruled_out
from pytest_ssdqual.qual.lots.sampling_plan import ByAttributes, ByVariables, as_variables, indexed_by_aql
from pytest_ssdqual.qual.measured.judgeable import LeftOutDrive, Subject
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.stats.estimate import Estimate, NotApplicable
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.verdict import Outcome, Verdict, judge
from pytest_ssdqual.qual.workload.workload import Workload

LIMIT = Limit(Direction.AT_LEAST, 9_000, Unit.IOPS, "acme.toml promise[0]")
READS = Workload("randread", "4k", 32)
#: Figures of drives that keep the promise, break it, and of one that is on the limit.
GOOD, BAD, OPEN = 9_500.0, 8_000.0, 9_000.0


def verdicts(iops: Sequence[float], half_width: float = 50) -> list[Verdict]:
    """Of drives S0, S1, … on which this was measured."""
    geometry = Geometry.parse(f"drivex{len(iops)}")
    return [
        judge(
            Claim.STEADY_IOPS,
            Subject((geometry,), (READS,), f"S{number}"),
            Estimate(each, each - half_width, each + half_width, 5, Unit.IOPS),
            LIMIT,
        )
        for number, each in enumerate(iops)
    ]


def judged(plan: ByAttributes | ByVariables, iops: Sequence[float]) -> lot.LotVerdict:
    return lot.judge(Claim.STEADY_IOPS, plan, verdicts(iops))


# ---- By attributes --------------------------------------------------------------------------------------------------

PLAN = indexed_by_aql(500, "II", 1.0)


@pytest.mark.parametrize(
    ("bad", "undecided", "outcome"),
    [
        (0, 0, Outcome.PASS),
        (1, 0, Outcome.PASS),
        (0, 1, Outcome.PASS),
        (2, 0, Outcome.FAIL),
        (2, 9, Outcome.FAIL),
        (1, 1, Outcome.INCONCLUSIVE),
        (0, 2, Outcome.INCONCLUSIVE),
    ],
)
def test_bad_drives_reject_and_undecided_ones_never_accept(bad: int, undecided: int, outcome: Outcome) -> None:
    good = PLAN.sample - bad - undecided
    found = judged(PLAN, [GOOD] * good + [BAD] * bad + [OPEN] * undecided)
    assert found.outcome is outcome
    assert bool(found) is (outcome is Outcome.PASS)
    assert (len(found.nonconforming), len(found.undecided)) == (bad, undecided)
    assert (found.estimate.low, found.estimate.high, found.limit.bound) == (good, good + undecided, 49)
    assert found.estimate.is_reading  # its risks are the plan's


def without(iops: Sequence[float], failed: Sequence[int] = (), unknown: Sequence[int] = ()) -> lot.LotVerdict:
    """By ``PLAN``, without the figures at these places."""
    lost = [LeftOutDrive(f"S{place}", place, "failed", place in failed) for place in (*failed, *unknown)]
    left = [each for place, each in enumerate(verdicts(iops)) if place not in (*failed, *unknown)]
    return lot.judge(Claim.STEADY_IOPS, PLAN, left, lost)


@pytest.mark.parametrize(
    ("failed", "unknown", "outcome"),
    [
        ((3,), (), Outcome.PASS),
        ((3, 49), (), Outcome.FAIL),
        ((3,), (7,), Outcome.INCONCLUSIVE),
        ((), (7,), Outcome.PASS),
        ((50, 51), (), Outcome.PASS),
    ],
)
def test_failed_drives_do_not_conform_and_unknown_are_undecided(
    failed: tuple[int, ...], unknown: tuple[int, ...], outcome: Outcome
) -> None:
    """The last two places are beyond the sample."""
    found = without([GOOD] * 52, failed, unknown)
    assert found.outcome is outcome
    assert found.nonconforming == tuple(f"S{place}" for place in failed if place < PLAN.sample)
    assert found.undecided == tuple(f"S{place}" for place in unknown)
    assert len(found.drives) + len(found.left_out) == PLAN.sample
    assert all(f"S{place}" in repr(found) for place in failed)


def test_unmeasured_drive_keeps_its_place_in_the_sample() -> None:
    """A drive beyond the sample does not move up in the place of a failed one."""
    assert without([GOOD] * 50 + [BAD], failed=(0,)).outcome is Outcome.PASS


def test_sentence_names_drives_and_what_the_plan_lets_pass() -> None:
    assert "conform (S0, S1):" in repr(judged(PLAN, [BAD] * 2 + [GOOD] * 48))
    assert "(S0, S1, S2" in repr(judged(PLAN, [BAD] * 5 + [GOOD] * 45))
    undecided = repr(judged(PLAN, [BAD] + [OPEN] + [GOOD] * 48))
    assert "conform (S0), 1" in undecided
    assert "3, Ac 0)" in repr(judged(ByAttributes(3, 0, "as agreed"), [GOOD] * 3))


def test_the_plan_is_the_limits_source() -> None:
    verdict = judged(PLAN, [GOOD] * 50)
    assert verdict.claim is Claim.CONFORMING_DRIVES
    source = "ISO 2859-1 level II, AQL 1 %, code letter H; n = 50, Ac 1"
    assert verdict.limit == Limit(Direction.AT_LEAST, 49, Unit.COUNT, source)
    assert verdict.sentence.endswith("every tenth time")


def test_sample_is_the_first_drives_and_not_the_best() -> None:
    found = judged(ByAttributes(3, 0, "as agreed"), [GOOD, BAD, GOOD, GOOD])
    assert found.outcome is Outcome.FAIL
    assert [each.subject.drive for each in found.drives] == ["S0", "S1", "S2"]
    more = judged(ByAttributes(3, 0, "as agreed"), [GOOD, GOOD, GOOD, BAD, BAD])
    assert more.outcome is Outcome.PASS
    assert "(S3, S4): ACCEPT" in repr(more)


def test_a_plan_needs_its_drives() -> None:
    with pytest.raises(TooFewDrives, match=r"^the plan needs 50 drives \(ISO 2859-1 .*\), there are 8$"):
        judged(PLAN, [GOOD] * 8)


# ---- By variables ---------------------------------------------------------------------------------------------------

BY_VARIABLES = ByVariables(8, 1.74, "by the s-method of ISO 3951, as agreed", lot=40)
ALIKE = [9_480.0, 9_350.0, 9_610.0, 9_550.0, 9_420.0, 9_500.0, 9_700.0, 9_440.0]


def test_the_quality_index_against_k() -> None:
    found = judged(BY_VARIABLES, ALIKE)
    margins = [math.log(each / 9_000) for each in ALIKE]
    assert found.estimate.value == pytest.approx(fmean(margins) / stdev(margins))
    assert (found.claim, found.outcome, found.limit.bound) == (Claim.QUALITY_INDEX, Outcome.PASS, 1.74)
    assert "4.67 standard deviations" in repr(found)
    slower = judged(BY_VARIABLES, [0.96 * each for each in ALIKE])
    assert slower.outcome is Outcome.FAIL
    # All but one of them keep the promise: what is rejected is how wide they vary so near to the limit.
    assert "1 of 8" in repr(slower)


def test_by_variables_all_drives_are_the_sample() -> None:
    found = judged(BY_VARIABLES, [*ALIKE, *(0.999 * each for each in ALIKE)]).plan
    assert isinstance(found, ByVariables)
    assert (found.sample, found.k) == (16, 1.74)
    good, bad = BY_VARIABLES.quality(0.95), BY_VARIABLES.quality(0.10)
    assert found.acceptance(good) > 0.95
    assert found.acceptance(bad) < 0.10


def test_of_latencies_the_good_side_is_below() -> None:
    limit = Limit(Direction.AT_MOST, 1_000_000, Unit.NANOSECONDS, "here")
    subject = Subject((Geometry.parse("drivex8"),), (READS,), "S0")

    def of(factor: float) -> lot.LotVerdict:
        latencies = [factor * 9e5 * 9_500 / each for each in ALIKE]
        found = [
            judge(Claim.P99_LATENCY, subject, Estimate(each, each, each, 5, Unit.NANOSECONDS), limit)
            for each in latencies
        ]
        return lot.judge(Claim.P99_LATENCY, BY_VARIABLES, found)

    assert (of(1).outcome, of(1.15).outcome) == (Outcome.PASS, Outcome.FAIL)
    assert of(1.15).estimate.value < 0


def test_sample_that_is_not_normal_is_not_judged() -> None:
    with pytest.raises(ValueError, match="not normally distributed"):
        judged(BY_VARIABLES, [*ALIKE[:3], 7_000, *ALIKE[4:]])
    with pytest.raises(ValueError, match="all drives have"):
        judged(BY_VARIABLES, [GOOD] * 8)
    with pytest.raises(ValueError, match="drive S7 has"):
        judged(BY_VARIABLES, [*ALIKE[:7], 0])


@given(st.lists(st.integers(1, 10**6).map(lambda n: n / 1e6), min_size=24, max_size=24, unique=True))
def test_twice_as_good_is_never_worse(uniform: list[float]) -> None:
    """Whatever the drives are: margins twice as far inside at the same spread."""
    from statistics import NormalDist

    normal = [NormalDist(0.05, 0.02).inv_cdf(0.001 + 0.998 * each) for each in uniform]
    plan = as_variables(PLAN)
    try:
        near, far = (judged(plan, [9_000 * math.exp(each + more) for each in normal]) for more in (0.0, 0.05))
    except ValueError:
        return  # not normal enough
    assert far.estimate.value > near.estimate.value
    assert bool(far) >= bool(near)


# ---- Around it ------------------------------------------------------------------------------------------------------


def test_the_measurements_share_of_the_variance() -> None:
    alone = verdicts([9_000 * math.exp(each) for each in (0.0, 0.1, 0.2)], half_width=9_000 * 0.01 * 1.96)
    # Standard deviation 1 % of the measurement, 10 % of the drives.
    assert measurement_share(alone) == pytest.approx(0.01, rel=0.2)
    assert measurement_share(verdicts([10, 20, 30], half_width=40)) is None


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_what_a_sample_rules_out_is_a_tolerance_bound(bad: int) -> None:
    found = judged(PLAN, [BAD] * bad + [GOOD] * (50 - bad))
    # A lot as bad as that would have shown more bad ones nine times of ten.
    worst = round(ruled_out(found) * 500)
    assert ByAttributes(50, bad, "", 500).acceptance_of_lot(worst) <= 0.1
    assert ByAttributes(50, bad, "", 500).acceptance_of_lot(worst - 1) > 0.1
    assert (ruled_out(found) <= PLAN.limiting_quality()) is found.outcome.startswith("pass")


def test_tolerance_bound_accepts_what_the_plan_accepts() -> None:
    good, bad = judged(BY_VARIABLES, ALIKE), judged(BY_VARIABLES, [0.96 * each for each in ALIKE])
    limiting = BY_VARIABLES.limiting_quality()
    assert ruled_out(good) < limiting < ruled_out(bad)
    assert ruled_out(judged(ByAttributes(3, 0, ""), [BAD] * 3)) == 1.0


def test_by_variables_a_dead_drive_never_accepts() -> None:
    dead = [LeftOutDrive("S8", 8, "failed", failed=True)]
    rejected = lot.judge(Claim.STEADY_IOPS, BY_VARIABLES, verdicts([0.96 * each for each in ALIKE]), dead)
    assert rejected.outcome is Outcome.FAIL
    assert (rejected.nonconforming[-1], len(rejected.drives)) == ("S8", 8)
    assert "S8" in repr(rejected)
    with pytest.raises(NotApplicable, match="lot by attributes"):
        lot.judge(Claim.STEADY_IOPS, BY_VARIABLES, verdicts(ALIKE), dead)


def test_by_variables_an_unknown_drive_leaves_it_open() -> None:
    unknown = [LeftOutDrive("S8", 8, "did not settle", failed=False)]
    with pytest.raises(NotApplicable, match="S8 did not"):
        lot.judge(Claim.STEADY_IOPS, BY_VARIABLES, verdicts([0.96 * each for each in ALIKE]), unknown)


@pytest.mark.parametrize(("size", "ltpd"), [(None, 10), (24, 10), (48, 10), (12, 20), (30, 10)])
def test_by_variables_the_limiting_quality_is_mostly_rejected(size: int | None, ltpd: int) -> None:
    plan = LotTable.model_validate({"ltpd": f"{ltpd} %", "size": size, "by": "variables"}).plan()
    assert isinstance(plan, ByVariables)
    assert plan.acceptance(ltpd / 100) <= 0.1
    assert plan.lot == size
