from __future__ import annotations

import math
import pickle
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import EMPTY, fio_bucket, histogram, histograms, latencies_ns

from pytest_ssdqual.qual.measured.histogram import (
    LAST_BUCKET_NS,
    LatencyHistogram,
    bucket_of,
    packed_buckets,
)


@given(latencies_ns)
def test_every_latency_lies_in_the_bucket_that_fio_prints(latency_ns: int) -> None:
    bucket = bucket_of(fio_bucket(latency_ns))
    assert bucket.low_ns <= latency_ns
    assert latency_ns < bucket.high_ns or bucket.is_last
    assert abs(bucket.value_ns - latency_ns) <= latency_ns / 128 or bucket.is_last


def test_the_ends_of_the_range() -> None:
    assert bucket_of(0) == (0, 0, 1)
    assert bucket_of(127) == (127, 127, 128)
    assert bucket_of(129) == (128, 129, 130)
    assert fio_bucket(2**40) == LAST_BUCKET_NS
    assert bucket_of(LAST_BUCKET_NS).high_ns == 2**34


@given(histograms, histograms)
def test_a_difference_gives_back_what_was_added(earlier: LatencyHistogram, added: LatencyHistogram) -> None:
    assert (earlier + added) - earlier == added


def test_a_histogram_that_shrank_is_refused() -> None:
    with pytest.raises(ValueError, match="not a later"):
        histogram({1000: 1}) - histogram({1000: 2})
    with pytest.raises(ValueError, match="not a later"):
        EMPTY - histogram({1000: 2})
    with pytest.raises(ValueError, match="same histogram: -3"):
        histogram({100: 1, 127: 4, 3000: 1}) - histogram({127: 7})


@pytest.mark.parametrize("gone", [500, 1500, 2500])
def test_a_bucket_that_is_gone_is_no_growth(gone: int) -> None:
    with pytest.raises(ValueError, match="not a later"):
        histogram({1000: 9, 2000: 9}) - histogram({gone: 1})


def test_negative_counts_are_refused_and_empty_bins_dropped() -> None:
    assert LatencyHistogram.from_bins({100: 0}) == EMPTY
    with pytest.raises(ValueError, match="-1 I/Os"):
        LatencyHistogram.from_bins({100: -1})
    with pytest.raises(ValueError, match="must rise"):
        LatencyHistogram(((100, 1), (100, 1)))


@given(histograms.filter(bool), st.floats(0.001, 1))
def test_quantile_is_the_least_bucket_with_its_share(h: LatencyHistogram, q: float) -> None:
    bucket = h.quantile(q)
    below = sum(count for value_ns, count in h.bins if value_ns < bucket.value_ns)
    at = dict(h.bins)[bucket.value_ns]
    assert below / h.total < q
    assert (below + at) / h.total >= q * (1 - 1e-9)


def test_decimal_quantiles_do_not_ask_for_one_more() -> None:
    h = LatencyHistogram.from_bins({100: 7, 120: 93})
    assert 0.07 * 100 > 7  # in floats
    assert h.quantile(0.07).value_ns == 100
    assert h.quantile(0.0701).value_ns == 120


def test_counts_above_take_the_strict_side_of_a_bucket() -> None:
    h = LatencyHistogram.from_bins({129: 10, 1_004: 5})
    assert (bucket_of(1_004).low_ns, bucket_of(1_004).high_ns) == (1_000, 1_008)
    assert h.count_above(1_007) == 0
    assert h.count_above(1_006) == 5
    assert h.count_above(500) == 5
    assert h.count_above(10) == 15


@given(histograms.filter(bool))
def test_the_mean_lies_between_the_ends(h: LatencyHistogram) -> None:
    assert h.min_ns <= h.mean_ns <= h.max_ns
    assert h.min_ns == h.quantile(1e-9).value_ns
    assert h.max_ns == h.quantile(1.0).value_ns


def test_an_empty_histogram_has_no_figures() -> None:
    for ask in (lambda: EMPTY.max_ns, lambda: EMPTY.mean_ns, lambda: EMPTY.quantile(0.5)):
        with pytest.raises(ValueError, match="empty"):
            ask()
    assert not EMPTY
    assert EMPTY.total == EMPTY.sum_ns == 0


@pytest.mark.parametrize("q", [0.0, -0.1, 1.1])
def test_impossible_quantiles_are_refused(q: float) -> None:
    with pytest.raises(ValueError, match="a quantile is"):
        histogram({1000: 10}).quantile(q)


@given(st.lists(st.lists(latencies_ns, max_size=20), max_size=6), st.floats(0.01, 1))
def test_merged_histograms_are_that_of_all_ios_together(rounds: list[list[int]], q: float) -> None:
    def counted(latencies: list[int]) -> LatencyHistogram:
        return LatencyHistogram.merged(histogram({each: 1}) for each in latencies)

    pooled = sorted(each for latencies in rounds for each in latencies)
    merged = LatencyHistogram.merged(map(counted, rounds))
    assert merged == counted(pooled)
    if pooled:
        bucket = merged.quantile(q)
        quantile = pooled[max(0, math.ceil(q * len(pooled) * (1 - 1e-12)) - 1)]
        assert bucket.low_ns <= quantile
        assert quantile < bucket.high_ns or bucket.is_last


def test_a_sum_is_exact_up_to_64_bits_and_refused_beyond() -> None:
    most = LatencyHistogram.from_bins({100: 2**64 - 1})
    assert list((most + LatencyHistogram.from_bins({101: 5})).bins) == [(100, 2**64 - 1), (101, 5)]
    with pytest.raises(ValueError, match="beyond 64 bits"):
        most + LatencyHistogram.from_bins({100: 1})


@given(histograms)
def test_buckets_may_be_packed_once_for_many_counts(h: LatencyHistogram) -> None:
    values_ns, counts = [value_ns for value_ns, _ in h.bins], [count for _, count in h.bins]
    buckets = packed_buckets(values_ns)
    assert LatencyHistogram.in_buckets(buckets, counts) == h
    assert LatencyHistogram.in_buckets(buckets, [0] * len(counts)) == EMPTY
    some = [count * (index % 2) for index, count in enumerate(counts)]
    assert LatencyHistogram.in_buckets(buckets, some) == LatencyHistogram.from_bins(
        dict(zip(values_ns, some, strict=True))
    )


def test_packed_buckets_rise_and_have_a_count_each() -> None:
    buckets = packed_buckets([100, 200])
    for counts, told in (
        ([1, -1], "-1 I/Os at 200"),
        ([1, 2**64], "beyond 64 bits"),
        ([1], "shorter"),
        ([1, 2, 3], "longer"),
    ):
        with pytest.raises(ValueError, match=told):
            LatencyHistogram.in_buckets(buckets, counts)
    for values_ns in ([200, 100], [100, 100], [2**64], [-1]):
        with pytest.raises(ValueError, match=r"rise|beyond"):
            packed_buckets(values_ns)


def test_histogram_is_packed_and_its_bins_stay_the_same() -> None:
    bins = [(128, 3), (LAST_BUCKET_NS, 2**64 - 1)]
    h = LatencyHistogram(bins)
    assert list(h.bins) == list(h.bins) == bins
    assert sys.getsizeof(h._values_ns) + sys.getsizeof(h._counts) < 2 * 16 + 100
    assert {h: "hashable"}[LatencyHistogram(bins)] == "hashable"
    assert pickle.loads(pickle.dumps(h)) == h  # noqa: S301 (our own)


@pytest.mark.parametrize("bins", [{2**64: 1}, {128: 2**64}])
def test_what_no_fio_counts_is_no_histogram(bins: dict[int, int]) -> None:
    with pytest.raises(ValueError, match="beyond 64 bits"):
        LatencyHistogram.from_bins(bins)
