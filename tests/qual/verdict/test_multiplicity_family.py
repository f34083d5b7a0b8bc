from __future__ import annotations

import math
from itertools import combinations
from statistics import stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import strategies

from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict import estimators
from pytest_ssdqual.qual.verdict.multiplicity import (
    ALONE,
    BONFERRONI,
    SMALLEST_P,
    ErrorControl,
    benjamini_hochberg,
    benjamini_yekutieli,
    p_value,
)
from pytest_ssdqual.qual.verdict.verdict import Outcome, Verdict, judge_all

p_values = st.lists(st.floats(SMALLEST_P, 1.0), max_size=8)


def test_264_claims_at_95_per_cent() -> None:
    """The arithmetic of the summary."""
    family = ErrorControl(264)
    assert math.isclose(family.false_failures(264, 0.95), 6.6)
    assert math.isclose(family.false_passes(264, 0.95), 6.6)
    corrected = ErrorControl(264, BONFERRONI)
    assert math.isclose(corrected.share, 1 / 264)
    assert math.isclose(corrected.false_failures(264, 0.95), 0.025)
    assert corrected.false_passes(264, 0.95) == family.false_passes(264, 0.95)


@given(st.integers(1, 10_000), st.floats(0.5, 0.999))
def test_a_family_never_fails_more_often_than_one_claim(claims: int, confidence: float) -> None:
    corrected = ErrorControl(claims, BONFERRONI)
    assert 0 < corrected.share <= ErrorControl(claims).share == 1
    assert math.isclose(corrected.false_failures(claims, confidence), (1 - confidence) / 2, rel_tol=1e-6)


def test_one_claim_is_no_family() -> None:
    assert not ALONE.is_corrected
    assert not ErrorControl(1, BONFERRONI).is_corrected
    assert ErrorControl(2, BONFERRONI).is_corrected
    with pytest.raises(ValueError, match="least one claim"):
        ErrorControl(0)
    with pytest.raises(ValueError, match="is no control"):
        ErrorControl(2, "holm")


@given(st.floats(SMALLEST_P * 2, 0.0499))
def test_the_p_value_is_where_the_interval_reaches_the_limit(true: float) -> None:
    asked: list[float] = []

    def is_broken(share: float) -> bool:
        asked.append(share)
        return share * 0.05 >= true

    found = p_value(is_broken, 0.95)
    assert true * (1 - 1e-9) <= found <= true * 1.0101
    assert len(asked) < 20


def test_certain_failure_has_the_smallest_p_value() -> None:
    assert p_value(lambda share: True, 0.95) == SMALLEST_P
    assert math.isclose(p_value(lambda share: share >= 1, 0.95), 0.05)


def upheld_by_definition(p_values: list[float], level: float, claims: int) -> set[int]:
    """The largest set of hypotheses R with p ≤ level·|R|/m for all of R: tried one by one."""
    for size in range(len(p_values), 0, -1):
        for chosen in combinations(range(len(p_values)), size):
            if all(p_values[index] <= level * size / claims for index in chosen):
                return set(chosen)
    return set()


@given(p_values, st.sampled_from([0.01, 0.05, 0.2]), st.integers(0, 5))
def test_benjamini_hochberg_by_its_definition(found: list[float], level: float, more: int) -> None:
    claims = len(found) + more
    upheld = {index for index, each in enumerate(benjamini_hochberg(found, level, claims)) if each}
    assert upheld == upheld_by_definition(found, level, max(1, claims))


@given(p_values, st.integers(0, 50))
def test_control_under_dependence_is_stricter(found: list[float], more: int) -> None:
    claims = len(found) + more
    plain, dependent = (each(found, 0.05, claims) for each in (benjamini_hochberg, benjamini_yekutieli))
    assert all(either or not strict for either, strict in zip(plain, dependent, strict=True))
    alone = [p <= 0.05 / max(1, claims) for p in found]
    assert all(either or not bonferroni for either, bonferroni in zip(plain, alone, strict=True))


def test_the_example_of_benjamini_and_hochberg() -> None:
    """1995, section 3.1: 15 comparisons of a trial of thrombolysis; Bonferroni upholds three, their procedure four."""
    found = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590,
        1.0,
    ]  # fmt: skip
    assert sum(benjamini_hochberg(found, 0.05)) == 4
    assert benjamini_hochberg(found, 0.05)[:4] == (True,) * 4
    assert sum(p <= 0.05 / 15 for p in found) == 3
    assert sum(benjamini_yekutieli(found, 0.05)) == 3


def test_nothing_to_uphold() -> None:
    assert benjamini_hochberg([], 0.05) == benjamini_yekutieli([], 0.05) == ()
    assert benjamini_hochberg([0.04], 0.05, claims=264) == (False,)


# ---- In verdicts -----------------------------------------------------------------------------------------------------

RATES = (303, 297, 300, 297, 303)
MEASURED = Measured((strategies.run(RATES),))


def limit(bound: float) -> Limit:
    return Limit(Direction.AT_LEAST, bound, Unit.IOPS, "here")


def judged(bound: float, family: ErrorControl = ALONE) -> Verdict:
    (found,) = judge_all(Claim.STEADY_IOPS, MEASURED, limit(bound), family=family)
    return found


@pytest.mark.parametrize("bound", [304, 306, 310, 400])
def test_the_p_value_of_a_mean_is_students(bound: float) -> None:
    from scipy.stats import t

    error = stdev(RATES) / math.sqrt(5)
    expected = 2 * float(t.sf((bound - 300) / error, 4))
    found = judged(bound)
    assert found.outcome is Outcome.FAIL
    assert found.p_value is not None
    assert expected * (1 - 1e-9) <= found.p_value <= expected * 1.0101


def test_failure_is_held_back_by_the_number_of_claims() -> None:
    alone = judged(310).p_value
    assert alone is not None
    few, many = (ErrorControl(int(0.05 / alone * factor), BONFERRONI) for factor in (0.95, 1.05))
    assert judged(310, few).outcome is Outcome.FAIL
    held = judged(310, many)
    assert (held.outcome, held.p_value) == (Outcome.INCONCLUSIVE, alone)
    assert not held.is_settled  # so there is another visit
    assert repr(held).endswith(f"INCONCLUSIVE, fails alone, but not at the family-wise 95 % over {many.claims} claims")
    assert judged(310, ErrorControl(many.claims)).outcome is Outcome.FAIL
    # The interval that is told is that of the claim alone.
    assert held.estimate == judged(310).estimate


def test_what_passes_needs_no_correction() -> None:
    """Accepted is what keeps all claims: intersection-union."""
    kept = judged(296, ErrorControl(10**6, BONFERRONI))
    assert (kept.outcome, kept.p_value, kept.held_back) == (Outcome.PASS, None, "")
    open_ = judged(300, ErrorControl(10**6, BONFERRONI))
    assert (open_.outcome, open_.held_back) == (Outcome.INCONCLUSIVE, "")


def test_a_maximum_has_to_stand_up_to_all_claims_too() -> None:
    at_most = Limit(Direction.AT_MOST, 30e6, Unit.NANOSECONDS, "here")
    half = strategies.watched([38_000_000, 20_000_000] * 10)
    (alone,) = judge_all(Claim.MAX_LATENCY, half, at_most)
    assert alone.outcome is Outcome.FAIL
    assert alone.p_value is not None
    assert 1e-9 < alone.p_value < 0.01
    (slowest,) = judge_all(Claim.MAX_LATENCY, half, at_most, family=ErrorControl(10**9, BONFERRONI))
    assert slowest.outcome is Outcome.INCONCLUSIVE


def test_of_visits_the_level_of_all_looks_is_shared_out() -> None:
    def at(level: float) -> Measured:
        cells = tuple(strategies.run([rate], rounds=1) for rate in (300, 303, 297, 301))
        return Measured(cells, strategies.visited(level=level))

    shared = estimators.estimate(Claim.STEADY_IOPS, at(0.99), share=1 / 264)
    assert (shared.low, shared.high) == pytest.approx(
        (lambda one: (one.low, one.high))(
            estimators.estimate(Claim.STEADY_IOPS, at(ConfidenceLevel(share=1 / 264).level(0.99)))
        )
    )
    assert shared.high > estimators.estimate(Claim.STEADY_IOPS, at(0.99)).high
