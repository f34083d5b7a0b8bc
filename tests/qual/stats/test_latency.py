from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders.strategies import EMPTY, histogram, histograms

from pytest_ssdqual.qual.measured.histogram import LAST_BUCKET_NS, LatencyHistogram, bucket_of
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate, TooFew
from pytest_ssdqual.qual.stats.intervals import Basis
from pytest_ssdqual.qual.stats.latency import mean_latency, quantile_of_rounds
from pytest_ssdqual.qual.units import Unit


def test_too_few_ios_leave_the_slow_end_open_and_say_so() -> None:
    few = quantile_of_rounds([histogram({1_000: 333})] * 3, 0.99)
    assert few.high == math.inf
    assert "p99 needs 1,000" in few.unbounded
    assert quantile_of_rounds([histogram({1000: 3_333})] * 3, 0.999).unbounded.startswith("p99.9 needs 10,000")
    assert not quantile_of_rounds([histogram({1_000: 334})] * 3, 0.99).unbounded


def test_certain_failure_needs_no_number_of_stalls() -> None:
    """43 % of the I/Os of every round are slower: fewer than a thousand, and in two rounds only where there are two."""
    slow = histogram({1_000_000: 57, 50_000_000: 43})
    for rounds in ([slow] * 5, [slow] * 2):
        found = quantile_of_rounds(rounds, 0.99)
        assert found.low > 49_000_000
        assert (found.high, bool(found.unbounded)) == (math.inf, True)
    # One stall in one of five rounds proves nothing in either direction.
    once = quantile_of_rounds([histogram({1_000_000: 57, 50_000_000: 43}), *[histogram({1_000_000: 1_000})] * 4], 0.99)
    assert once.low < 1_000_000
    assert once.high == math.inf


def test_what_fio_cannot_resolve_has_no_upper_bound() -> None:
    stalled = LatencyHistogram.from_bins({LAST_BUCKET_NS: 1_000})
    found = quantile_of_rounds([stalled, stalled], 0.99)
    assert found.high == math.inf


@given(histograms.filter(lambda h: h.total >= 1_000))
def test_the_interval_holds_the_quantiles_own_bucket(h: LatencyHistogram) -> None:
    found, bucket = quantile_of_rounds([h, h, h], 0.99), h.quantile(0.99)
    assert found.value == bucket.value_ns
    assert found.low <= bucket.low_ns
    assert found.high >= bucket.high_ns or bucket.is_last


def test_equal_rounds_leave_little_open() -> None:
    even = histogram({1_000_000: 985, 2_000_000: 10, 3_000_000: 5})
    found = quantile_of_rounds([even] * 5, 0.99)
    assert 1_990_000 < found.low <= found.high < 2_020_000


GOOD, BAD = histogram({1_000_000: 10_000}), histogram({1_000_000: 9_000, 50_000_000: 1_000})


def test_one_bad_round_makes_the_tail_uncertain() -> None:
    found = quantile_of_rounds([GOOD, GOOD, BAD, BAD, BAD], 0.94)
    assert found.low < 1_100_000
    assert found.high > 49_000_000


def test_a_quantile_that_one_stall_has_made_has_no_upper_end() -> None:
    # The slowest 1 % are I/Os of one event, however many they are.
    once = quantile_of_rounds([GOOD, GOOD, GOOD, GOOD, BAD], 0.99)
    assert "1 of 5" in once.unbounded
    assert (once.low < 1_000_000 < once.value, once.high) == (True, math.inf)
    assert "2 of 5" in quantile_of_rounds([GOOD, GOOD, GOOD, BAD, BAD], 0.99).unbounded
    # The p90 is not made by it: all rounds have I/Os that slow.
    assert quantile_of_rounds([GOOD, GOOD, GOOD, GOOD, BAD], 0.9).value == pytest.approx(1_000_000, rel=0.01)
    # Where there are but two rounds, both are all there can be.
    assert quantile_of_rounds([BAD, BAD], 0.99).value == pytest.approx(50_000_000, rel=0.01)


def test_percentiles_are_of_all_ios_and_not_averaged() -> None:
    # p99 of the rounds: 1, 1, 1, 1 and 50 ms, on average 11 ms; of all I/Os 0.4 % are slow, so it is 1 ms.
    fast, slow = histogram({1_000_000: 1_000_000}), histogram({1_000_000: 19_000, 50_000_000: 16_000})
    rounds = [fast, fast, fast, fast, slow]
    assert LatencyHistogram.merged(rounds).quantile(0.99).value_ns == pytest.approx(1_000_000, rel=0.01)
    assert quantile_of_rounds(rounds, 0.99).value == pytest.approx(1_000_000, rel=0.01)


def test_share_of_slow_ios_is_as_certain_as_its_stalls() -> None:
    # Three of forty rounds have stalls, 0.55 % of I/Os: by their scatter surely less than 1.3 %, by Poisson 1.65 %.
    rounds = [
        histogram({1_000_000: 10_000 - k, 9_000_000: k} if k else {1_000_000: 10_000}) for k in [0] * 37 + [733] * 3
    ]
    assert quantile_of_rounds(rounds, 1 - 0.014).high > 8_900_000
    assert quantile_of_rounds(rounds, 1 - 0.018).high < 1_300_000


@pytest.mark.parametrize(("stalls", "rounds"), [(6, 40), (40, 40), (6, 5)])
def test_tail_of_stalls_passes_as_rarely_as_stated(stalls: float, rounds: int) -> None:
    # Stalls come at random, each of some 50 slow I/Os; the limit is the true share of them, so a pass is an error.
    source = random.Random(7)  # noqa: S311
    q = 1 - stalls * 50 / (rounds * 10_000)
    passed = 0
    for _ in range(400):
        slow = [sum(source.randrange(1, 100) for _ in range(poisson(source, stalls / rounds))) for _ in range(rounds)]
        found = [histogram({1_000_000: 10_000 - k, 9_000_000: k} if k else {1_000_000: 10_000}) for k in slow]
        with contextlib.suppress(TooFew):
            passed += quantile_of_rounds(found, q).high < 1_100_000
    # 2.5 % are stated; of 400 fair draws more than 5 % would be too many.
    assert passed / 400 <= 0.05


def poisson(source: random.Random, mean: float) -> int:
    count, product = -1, 1.0
    while product > math.exp(-mean):
        product *= source.random()
        count += 1
    return count


@settings(max_examples=30)
@given(st.lists(histograms, min_size=3, max_size=8).filter(lambda each: LatencyHistogram.merged(each).total >= 1_000))
def test_a_surer_interval_is_never_narrower(rounds: list[LatencyHistogram]) -> None:
    try:
        plain = quantile_of_rounds(rounds, 0.9)
    except TooFew:
        return
    surer = quantile_of_rounds(rounds, 0.9, Basis(ConfidenceLevel(0.99)))
    assert surer.value == plain.value
    assert surer.low <= plain.low <= plain.high <= surer.high
    assert (plain.confidence, surer.confidence) == (0.95, 0.99)


def test_scatter_of_the_share_makes_a_tail_uncertain() -> None:
    def five(*slow: int) -> list[LatencyHistogram]:
        return [histogram({1_000_000: 10_000 - k, 50_000_000: k} if k else {1_000_000: 10_000}) for k in slow]

    # 0.4 % are slow, all in one round: 0.4 + 2.78 × 0.4 is more than 1 %.
    assert quantile_of_rounds(five(0, 0, 0, 0, 200), 0.99).high > 49_000_000
    # 0.52 % are slow: 0.52 + 2.78 × 0.12 is less.
    assert quantile_of_rounds(five(40, 40, 40, 40, 100), 0.99).high < 1_100_000


def test_quantile_covers_although_slow_ios_come_in_clusters() -> None:
    # Each round draws its own share of slow I/Os, 0.9 % on average: the true p99 is fast.
    source = random.Random(2)  # noqa: S311
    wrong = 0
    for _ in range(300):
        slow = [min(2_000, int(source.expovariate(1 / 90))) for _ in range(10)]
        rounds = [histogram({1_000_000: 10_000 - k, 9_000_000: k}) for k in slow]
        wrong += quantile_of_rounds(rounds, 0.99).low > 1_100_000
    # A binomial interval on 100,000 I/Os calls more than a quarter of these runs slow.
    assert wrong / 300 < 0.05


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


@settings(max_examples=30)
@given(st.lists(histograms, min_size=2, max_size=8).filter(any))
def test_mean_latency_lies_between_fastest_and_slowest(rounds: list[LatencyHistogram]) -> None:
    found, merged = mean_latency(rounds), LatencyHistogram.merged(rounds)
    assert found.value == pytest.approx(merged.mean_ns)
    assert merged.min_ns * (1 - 1e-9) <= found.value <= merged.max_ns * (1 + 1e-9)
    assert found.low >= 0
    assert mean_latency(rounds[::-1]).value == pytest.approx(found.value)


def test_interval_of_a_mean_latency_covers_as_stated() -> None:
    """Rounds share a condition: within one all I/Os are alike, from one to the next they differ by 10 %."""
    source = random.Random(4)  # noqa: S311
    means = [
        mean_latency([histogram({int(1e6 * source.gauss(1, 0.1)): 1_000}) for _ in range(5)]) for _ in range(1_000)
    ]
    hits = sum(mean.low <= 1e6 <= mean.high for mean in means)
    assert 0.93 < hits / 1_000 < 0.98


@pytest.mark.parametrize("estimate", [mean_latency, partial(quantile_of_rounds, q=0.99)], ids=["mean", "p99"])
@pytest.mark.parametrize(("rounds", "words"), [([EMPTY] * 2, "in 2 rounds"), ([GOOD], "there are 1")])
def test_too_little_has_no_latency(
    estimate: Callable[..., Estimate], rounds: list[LatencyHistogram], words: str
) -> None:
    with pytest.raises(TooFew, match=words):
        estimate(rounds)


def test_a_quantile_of_one_round_with_io_is_unknown() -> None:
    alone = quantile_of_rounds([GOOD, EMPTY], 0.5)
    assert (alone.low, alone.high) == (0, math.inf)


def test_rounds_farther_apart_than_their_ios_are_uncertain() -> None:
    """Nothing was faster than the fastest round, but five rounds do not prove that among a hundred comparisons."""
    rounds = [histogram({ns: 1000}) for ns in (1_000_000, 1_050_000, 1_100_000, 950_000, 1_020_000)]
    alone, among = (quantile_of_rounds(rounds, 0.5, Basis(ConfidenceLevel(share=share))) for share in (1.0, 0.01))
    assert alone.low > 0.98 * 950_000
    assert among.low < 0.85 * 950_000
    assert among.high > 1.1 * 1_100_000
