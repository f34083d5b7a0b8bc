from __future__ import annotations

import math
import random
from dataclasses import replace
from statistics import NormalDist

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.builders.strategies import estimates

from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.stats import group_sequential, visits
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate, TooFew, mean_of_rounds, ratio, student_t
from pytest_ssdqual.qual.units import Unit


def test_students_t_as_tabulated() -> None:
    assert student_t(0.95, 4) == pytest.approx(2.776, abs=1e-3)
    assert student_t(0.90, 9) == pytest.approx(1.833, abs=1e-3)


def test_the_mean_of_rounds_by_hand() -> None:
    found = mean_of_rounds([98.0, 99.0, 100.0, 101.0, 102.0], Unit.IOPS)
    half = 2.776 * math.sqrt(2.5) / math.sqrt(5)
    assert (found.value, found.n) == (100, 5)
    assert found.high - found.value == pytest.approx(half, abs=1e-3)
    assert found.value - found.low == pytest.approx(half, abs=1e-3)


def test_one_round_has_no_interval() -> None:
    with pytest.raises(TooFew, match="least 2 rounds,"):
        mean_of_rounds([1.0], Unit.IOPS)


def test_share_of_the_error_rate_holds_among_several() -> None:
    values = [98.0, 99.0, 100.0, 101.0, 102.0]
    alone, among = mean_of_rounds(values, Unit.IOPS), mean_of_rounds(values, Unit.IOPS, ConfidenceLevel(0.95).among(5))
    assert among.high == mean_of_rounds(values, Unit.IOPS, ConfidenceLevel(0.99)).high
    assert among.high > alone.high
    assert (among.confidence, alone.confidence) == (0.95, 0.95)  # of all five together
    assert ConfidenceLevel(0.95, 0.5).level() == pytest.approx(0.975)


def test_an_interval_says_what_it_is() -> None:
    assert str(Estimate(9_412, 9_350, 9_470, 5, Unit.IOPS)) == "9,412 IOPS (95 % CI 9,350…9,470 IOPS)"
    assert str(Estimate(38e6, 37e6, 39e6, 5, Unit.NANOSECONDS, is_reading=True)) == "38 ms (37…39 ms as read)"
    surer = Estimate(1.5, 1.2, math.inf, 5, Unit.RATIO, confidence=0.999, basis="rounds of 2 min")
    assert str(surer) == "1.50 × (99.9 % CI 1.20 ×…∞, rounds of 2 min)"


def test_interval_of_the_mean_covers_as_stated() -> None:
    source = random.Random(1)  # noqa: S311
    rounds = ([source.gauss(100, 5) for _ in range(5)] for _ in range(2_000))
    hits = sum(found.low <= 100 <= found.high for found in (mean_of_rounds(each, Unit.IOPS) for each in rounds))
    assert 0.935 < hits / 2_000 < 0.965


@given(st.floats(0, 10), st.floats(0, 10), st.floats(0, 10))
def test_an_estimate_lies_in_its_interval(value: float, low: float, high: float) -> None:
    assume(not low <= value <= high)
    with pytest.raises(ValueError, match="is not between"):
        Estimate(value, low, high, 5, Unit.IOPS)


def test_a_ratio_is_propagated_by_its_ends() -> None:
    writes, reads = Estimate(38, 36, 40, 5, Unit.IOPS), Estimate(100, 90, 110, 10, Unit.IOPS)
    found = ratio(writes, reads)
    assert (found.value, found.n, found.unit) == (38, 5, Unit.PERCENT)
    assert found.low == pytest.approx(100 * 36 / 110)
    assert found.high == pytest.approx(100 * 40 / 90)
    assert found.confidence == 0.95
    assert ratio(replace(writes, confidence=0.9), reads).confidence == 0.9
    assert ratio(writes, reads, Unit.RATIO).value == 0.38


@given(estimates(), estimates(), st.floats(0, 1), st.floats(0, 1))
def test_the_ratio_of_any_two_truths_is_inside(one: Estimate, other: Estimate, first: float, second: float) -> None:
    found = ratio(one, other, Unit.RATIO)
    truth = one.low + (one.high - one.low) * first
    reference = other.low + (other.high - other.low) * second
    assert found.low * (1 - 1e-9) <= truth / reference <= found.high * (1 + 1e-9)


def test_reference_near_zero_bounds_nothing_and_zero_is_refused() -> None:
    shaky = Estimate(10, -5, 25, 5, Unit.IOPS)
    assert ratio(Estimate(10, 9, 11, 5, Unit.IOPS), shaky).high == math.inf
    # Neither can be negative, whatever Student says.
    assert ratio(shaky, Estimate(10, 9, 11, 5, Unit.IOPS)).low == 0
    with pytest.raises(TooFew, match="zero, not 0"):
        ratio(shaky, Estimate(0, 0, 0, 5, Unit.IOPS))


def test_ratios_are_of_like_things() -> None:
    with pytest.raises(ValueError, match="IOPS to one"):
        ratio(Estimate(1, 1, 1, 1, Unit.IOPS), Estimate(1, 1, 1, 1, Unit.NANOSECONDS))
    with pytest.raises(ValueError, match="no ratio in"):
        ratio(Estimate(1, 1, 1, 1, Unit.IOPS), Estimate(1, 1, 1, 1, Unit.IOPS), Unit.SECONDS)


def test_only_a_ratio_of_two_readings_is_a_reading() -> None:
    reading, mean = Estimate(2, 1, 3, 1, Unit.IOPS, is_reading=True), Estimate(2, 1, 3, 5, Unit.IOPS)
    assert ratio(reading, reading).is_reading
    assert not ratio(reading, mean).is_reading
    assert not ratio(mean, reading).is_reading


@pytest.mark.parametrize("claims", [2, 12, 180, 264])
def test_looks_of_one_claim_keep_its_share_of_the_errors(claims: int) -> None:
    rule = protocol.load("acceptance").visits
    assert rule
    times = tuple(map(float, visits.looks(rule)))
    level = ConfidenceLevel().among(claims).level(group_sequential.nominal_level(times, 0.95))
    boundary = NormalDist().inv_cdf((1 + level) / 2)
    inside = group_sequential.staying_inside(times, boundary)
    assert 0.6 * 0.05 / claims < 1 - inside < 1.01 * 0.05 / claims


def test_the_whole_error_rate_at_looks_is_that_of_the_looks() -> None:
    assert ConfidenceLevel().level(0.99) == pytest.approx(0.99)
    assert ConfidenceLevel().level() == pytest.approx(0.95)
