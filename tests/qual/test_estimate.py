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
    mean_of_rounds,
    quantile_of,
    quantile_of_rounds,
    student_t,
)
from pytest_ssdqual.qual.histogram import LAST_BUCKET_NS, LatencyHistogram
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
