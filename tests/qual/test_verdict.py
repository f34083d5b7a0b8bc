from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import estimates, geometries, workloads

from pytest_ssdqual.qual.claim import Claim, Direction, Limit
from pytest_ssdqual.qual.estimate import Estimate
from pytest_ssdqual.qual.geometry import Geometry
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict import Outcome, Subject, Verdict, judge
from pytest_ssdqual.qual.workload import Workload

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
        "p99 latency of raid5x4 randread_4k_qd8: 812 µs (810…818 µs), limit 500 µs: FAIL by 62.4 %"
    )


def test_the_sentence_of_a_pass() -> None:
    verdict = iops(9_412, 9_390, 9_440, 9_000)
    assert verdict
    assert repr(verdict) == (
        "steady IOPS of raid5x4 randread_4k_qd8: 9,412 IOPS (9,390…9,440 IOPS), limit 9,000 IOPS: PASS by 4.6 %"
    )


def test_what_cannot_be_told_is_neither() -> None:
    verdict = iops(100, 90, 110, 95)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert not verdict
    assert verdict.times_longer == pytest.approx(4)
    assert repr(verdict).endswith("INCONCLUSIVE, about 4 times the measuring time would decide")
    assert repr(iops(100, 90, 110, 100)).endswith("INCONCLUSIVE, on the limit itself")


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
    assert len(repr(verdict)) < 230
    assert "\n" not in repr(verdict)
    assert json.loads(json.dumps(verdict.to_record(), allow_nan=False))["outcome"] == verdict.outcome


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
