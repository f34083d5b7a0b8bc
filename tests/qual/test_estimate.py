from __future__ import annotations

import json
import math
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import EMPTY, estimates, histogram, histograms

from pytest_ssdqual.qual.estimate import (
    Estimate,
    TooFew,
    max_latency,
    mean_latency,
    mean_of_rounds,
    quantile_of,
    quantile_of_rounds,
    ratio,
    student_t,
)
from pytest_ssdqual.qual.histogram import LAST_BUCKET_NS, LatencyHistogram, bucket_of
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
    with pytest.raises(TooFew, match="at least 2 rounds, there are 1"):
        mean_of_rounds([1.0], Unit.IOPS)
    with pytest.raises(TooFew, match="at least 2 rounds, there are 1"):
        quantile_of_rounds([histogram({1000: 10_000})], 0.99)


def test_the_interval_of_the_mean_holds_the_truth_as_often_as_it_says() -> None:
    source = random.Random(1)  # noqa: S311
    rounds = ([source.gauss(100, 5) for _ in range(5)] for _ in range(2_000))
    hits = sum(found.low <= 100 <= found.high for found in (mean_of_rounds(each, Unit.IOPS) for each in rounds))
    assert 0.935 < hits / 2_000 < 0.965


def test_p99_is_read_to_its_bucket() -> None:
    found = quantile_of(histogram({1_000_000: 990, 5_000_000: 10}), 0.99)
    assert found.low <= 1_000_000 < found.high
    assert found.high / found.low < 1 + 1 / 63
    assert (found.n, found.unit) == (1_000, Unit.NANOSECONDS)


def test_p99_of_too_few_is_refused_with_the_number_needed() -> None:
    with pytest.raises(TooFew, match="p99 needs 1,000 I/Os, there are 999"):
        quantile_of(histogram({1_000: 999}), 0.99)
    with pytest.raises(TooFew, match=r"p99\.9 needs 10,000 I/Os"):
        quantile_of(histogram({1_000: 9_999}), 0.999)
    with pytest.raises(TooFew, match="there are 0"):
        quantile_of(EMPTY, 0.99)


def test_what_fio_cannot_resolve_has_no_upper_bound() -> None:
    stalled = LatencyHistogram.from_bins({LAST_BUCKET_NS: 1_000})
    assert quantile_of(stalled, 0.99).high == math.inf
    assert quantile_of_rounds([stalled, stalled], 0.99).high == math.inf
    assert json.dumps(quantile_of(stalled, 0.99).to_record(), allow_nan=False)


@given(histograms.filter(lambda h: h.total >= 1_000))
def test_rounds_can_only_widen_the_interval(h: LatencyHistogram) -> None:
    plain, rounds = quantile_of(h, 0.99), quantile_of_rounds([h, h, h], 0.99)
    assert rounds.value == plain.value
    assert rounds.low <= plain.low
    assert rounds.high >= plain.high


def test_equal_rounds_leave_little_open() -> None:
    even = histogram({1_000_000: 985, 2_000_000: 10, 3_000_000: 5})
    found = quantile_of_rounds([even] * 5, 0.99)
    assert 1_990_000 < found.low <= found.high < 2_020_000


def test_one_bad_round_makes_the_tail_uncertain() -> None:
    good, bad = histogram({1_000_000: 10_000}), histogram({1_000_000: 9_000, 50_000_000: 1_000})
    found = quantile_of_rounds([good, good, good, good, bad], 0.99)
    assert found.low < 1_100_000
    assert found.high > 49_000_000


def test_what_makes_the_tail_uncertain_is_the_scatter_of_the_share_and_not_the_share() -> None:
    def five(*slow: int) -> list[LatencyHistogram]:
        return [histogram({1_000_000: 10_000 - k, 50_000_000: k} if k else {1_000_000: 10_000}) for k in slow]

    # 0.4 % are slow, all in one round: 0.4 + 2.78 × 0.4 is more than 1 %.
    assert quantile_of_rounds(five(0, 0, 0, 0, 200), 0.99).high > 49_000_000
    # 0.52 % are slow: 0.52 + 2.78 × 0.12 is less.
    assert quantile_of_rounds(five(40, 40, 40, 40, 100), 0.99).high < 1_100_000


def test_the_interval_of_a_quantile_holds_the_truth_although_slow_ios_come_in_clusters() -> None:
    # Each round draws its own share of slow I/Os, 0.9 % on average: the true p99 is fast.
    source = random.Random(2)  # noqa: S311
    wrong = 0
    for _ in range(300):
        slow = [min(2_000, int(source.expovariate(1 / 90))) for _ in range(10)]
        rounds = [histogram({1_000_000: 10_000 - k, 9_000_000: k}) for k in slow]
        wrong += quantile_of_rounds(rounds, 0.99).low > 1_100_000
    # A binomial interval on 100,000 I/Os calls more than a quarter of these runs slow.
    assert wrong / 300 < 0.05


@given(estimates())
def test_estimates_are_plain_data(estimate: Estimate) -> None:
    assert json.loads(json.dumps(estimate.to_record(), allow_nan=False))["value"] == estimate.value
    assert "(" in str(estimate)


@given(st.floats(0, 10), st.floats(0, 10), st.floats(0, 10))
def test_an_estimate_lies_in_its_interval(value: float, low: float, high: float) -> None:
    assume(not low <= value <= high)
    with pytest.raises(ValueError, match="is not between"):
        Estimate(value, low, high, 5, Unit.IOPS)


def test_the_mean_latency_is_over_ios_and_not_over_rounds() -> None:
    # 1 µs in a round of a thousand I/Os, 10 µs in one of a hundred: 2,000 µs over 1,100 I/Os, not 5.5 µs.
    found = mean_latency([histogram({1_000: 1_000}), histogram({10_000: 100})])
    assert found.value == pytest.approx(2e6 / 1_100, rel=0.01)
    assert (found.n, found.unit) == (1_100, Unit.NANOSECONDS)


def test_the_interval_of_a_mean_latency_by_hand() -> None:
    # Rounds of 100 I/Os at 90, 100 and 110 ns, exact in fio's buckets: 100 ± 4.303 × 10 / √3.
    found = mean_latency([histogram({ns: 100}) for ns in (90, 100, 110)])
    assert found.value == pytest.approx(100)
    assert found.high - found.value == pytest.approx(4.303 * 10 / math.sqrt(3), abs=1e-2)
    assert found.value - found.low == pytest.approx(4.303 * 10 / math.sqrt(3), abs=1e-2)


def test_equal_rounds_leave_of_a_mean_what_the_buckets_leave() -> None:
    found = mean_latency([histogram({1_000_000: 50})] * 5)
    assert (found.low, found.value, found.high) == bucket_of(int(found.value))


@given(st.lists(histograms, min_size=2, max_size=8).filter(any))
def test_the_mean_latency_lies_between_the_fastest_and_the_slowest(rounds: list[LatencyHistogram]) -> None:
    found, merged = mean_latency(rounds), LatencyHistogram.merged(rounds)
    assert found.value == pytest.approx(merged.mean_ns)
    assert merged.min_ns * (1 - 1e-9) <= found.value <= merged.max_ns * (1 + 1e-9)
    assert found.low >= 0
    assert mean_latency(rounds[::-1]).value == pytest.approx(found.value)


def test_the_interval_of_a_mean_latency_holds_the_truth_as_often_as_it_says() -> None:
    # Rounds share a condition: within one all I/Os are alike, from one to the next they differ by 10 %.
    source = random.Random(4)  # noqa: S311
    found = [
        mean_latency([histogram({int(1e6 * source.gauss(1, 0.1)): 1_000}) for _ in range(5)]) for _ in range(1_000)
    ]
    hits = sum(each.low <= 1e6 <= each.high for each in found)
    assert 0.93 < hits / 1_000 < 0.98


def test_the_maximum_is_a_fact_to_its_bucket() -> None:
    found = max_latency([histogram({1_000_000: 10_000}), histogram({1_000_000: 9_999, 50_000_000: 1})])
    assert found.low <= 50_000_000 < found.high
    assert found.high / found.low < 1 + 1 / 63
    assert found.is_reading
    assert found.n == 20_000
    assert max_latency([LatencyHistogram.from_bins({LAST_BUCKET_NS: 1})]).high == math.inf


@given(st.lists(histograms, min_size=1, max_size=5).filter(any))
def test_no_io_is_slower_than_the_maximum(rounds: list[LatencyHistogram]) -> None:
    found = max_latency(rounds)
    assert all(each.max_ns <= found.value for each in rounds if each)
    assert found.value in {each.max_ns for each in rounds if each}


def test_nothing_has_no_latency() -> None:
    with pytest.raises(TooFew, match="a mean latency needs I/Os, there are none in 2 rounds"):
        mean_latency([EMPTY, EMPTY])
    with pytest.raises(TooFew, match="at least 2 rounds, there are 1"):
        mean_latency([histogram({1: 1})])
    with pytest.raises(TooFew, match="a maximum latency needs I/Os"):
        max_latency([EMPTY])


def test_a_ratio_is_propagated_by_its_ends() -> None:
    writes, reads = Estimate(38, 36, 40, 5, Unit.IOPS), Estimate(100, 90, 110, 10, Unit.IOPS)
    found = ratio(writes, reads)
    assert (found.value, found.n, found.unit) == (38, 5, Unit.PERCENT)
    assert found.low == pytest.approx(100 * 36 / 110)
    assert found.high == pytest.approx(100 * 40 / 90)
    assert ratio(writes, reads, Unit.RATIO).value == 0.38


@given(estimates(), estimates(), st.floats(0, 1), st.floats(0, 1))
def test_the_ratio_of_any_two_truths_is_inside(one: Estimate, other: Estimate, first: float, second: float) -> None:
    found = ratio(one, other, Unit.RATIO)
    truth = one.low + (one.high - one.low) * first
    reference = other.low + (other.high - other.low) * second
    assert found.low * (1 - 1e-9) <= truth / reference <= found.high * (1 + 1e-9)


def test_a_reference_that_may_be_nothing_bounds_nothing_and_one_that_is_nothing_is_refused() -> None:
    shaky = Estimate(10, -5, 25, 5, Unit.IOPS)
    assert ratio(Estimate(10, 9, 11, 5, Unit.IOPS), shaky).high == math.inf
    # Neither can be negative, whatever Student says.
    assert ratio(shaky, Estimate(10, 9, 11, 5, Unit.IOPS)).low == 0
    with pytest.raises(TooFew, match="nothing can be told in terms of 0 IOPS"):
        ratio(shaky, Estimate(0, 0, 0, 5, Unit.IOPS))


def test_ratios_are_of_like_things() -> None:
    with pytest.raises(ValueError, match="in IOPS to one in ns"):
        ratio(Estimate(1, 1, 1, 1, Unit.IOPS), Estimate(1, 1, 1, 1, Unit.NANOSECONDS))
    with pytest.raises(ValueError, match="no ratio in s"):
        ratio(Estimate(1, 1, 1, 1, Unit.IOPS), Estimate(1, 1, 1, 1, Unit.IOPS), Unit.SECONDS)


def test_only_a_ratio_of_two_readings_is_a_reading() -> None:
    reading, mean = Estimate(2, 1, 3, 1, Unit.IOPS, is_reading=True), Estimate(2, 1, 3, 5, Unit.IOPS)
    assert ratio(reading, reading).is_reading
    assert not ratio(reading, mean).is_reading
    assert not ratio(mean, reading).is_reading
