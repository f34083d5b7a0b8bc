"""Latencies with their intervals: the mean, quantiles, the maximum; all from rounds' histograms, merged.

Percentiles of rounds are never averaged: that of all I/Os is read from the sum of their histograms, and how sure it is
from how the share of slower I/Os differed between the rounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from statistics import stdev

from pytest_ssdqual.qual.basis import ROUNDS, Basis, require_rounds
from pytest_ssdqual.qual.estimate import Estimate, TooFew, student_t
from pytest_ssdqual.qual.histogram import Bucket, LatencyHistogram, bucket_of
from pytest_ssdqual.qual.units import Unit

#: I/Os that must lie beyond a quantile before we name it: fewer, and one event moves it.
TAIL_IOS = 10

#: Rounds that these I/Os must come from: of fewer clusters none is as likely as one time in twenty (exp(-3)), so the
#: drive may have any tail.
TAIL_ROUNDS = 3

#: As many independent rounds the blocks of a look are worth (``qual.blocks.MEANS``).
LOOK_ROUNDS = 10


def mean_latency(rounds: Sequence[LatencyHistogram], basis: Basis = ROUNDS) -> Estimate:
    """Mean over all I/Os, with an interval that covers how it varied from round to round.

    A ratio estimator, as for quantiles: time spent over I/Os done, so a round counts by its I/Os. The interval is
    never narrower than what fio's buckets leave open. ``n`` counts I/Os. ``TooFew`` below two rounds or without I/Os.
    """
    require_rounds(len(rounds))
    merged = LatencyHistogram.merged(basis.settled(rounds))
    if not merged:
        raise TooFew(f"a mean latency needs I/Os, there are none in {len(rounds)} rounds")
    found = basis.time_each([each.sum_ns for each in rounds], [each.total for each in rounds])
    buckets = [(bucket_of(value_ns), count) for value_ns, count in merged.bins]
    fastest = sum(bucket.low_ns * count for bucket, count in buckets) / merged.total
    slowest = sum(bucket.high_ns * count for bucket, count in buckets) / merged.total
    return Estimate(
        value=found.value,
        low=max(0.0, min(found.low, fastest)),
        high=math.inf if buckets[-1][0].is_last else max(found.high, slowest),
        n=merged.total,
        unit=Unit.NANOSECONDS,
        confidence=basis.sure.confidence,
    )


def max_latency(rounds: Sequence[LatencyHistogram], basis: Basis = ROUNDS) -> Estimate:
    """The slowest I/O of all rounds: a fact about this very run, not a guess at what another would show.

    Hence the interval is its bucket (open above for fio's last one), and a single stall beyond a limit breaks it.
    What it proves about other runs is how often I/Os are slower: ``exceedance``. ``TooFew`` without I/Os.
    """
    merged = LatencyHistogram.merged(basis.settled(rounds))
    if not merged:
        raise TooFew("a maximum latency needs I/Os, there are none")
    return _as_read(bucket_of(merged.max_ns), merged.total)


def quantile_of(histogram: LatencyHistogram, q: float) -> Estimate:
    """A latency quantile with the resolution of fio's buckets as its interval.

    That is what the *reading* may be off; how much the drive itself varies is only in
    ``quantile_of_rounds``. ``TooFew`` unless ``TAIL_IOS`` I/Os lie beyond the quantile.
    """
    return _as_read(_quantile_bucket(histogram, q), histogram.total)


def quantile_of_rounds(rounds: Sequence[LatencyHistogram], q: float, basis: Basis = ROUNDS) -> Estimate:
    """A latency quantile whose interval covers how it varied from round to round.

    The quantile is at most X exactly when the share of I/Os slower than X is at most 1 - q, and a share
    is a ratio estimator over rounds: r = Σk/Σn. The interval holds every bucket edge X for which that share cannot be
    told from 1 - q, and at least the quantile's own bucket. A share is not known any better than the number of
    events that it came in. ``n`` counts I/Os. ``TooFew`` below two rounds, ``TAIL_IOS`` I/Os beyond q, or
    ``TAIL_ROUNDS`` rounds that these come from.
    """
    require_rounds(len(rounds))
    merged = LatencyHistogram.merged(basis.settled(rounds))
    bucket = _quantile_bucket(merged, q)
    values = [value_ns for value_ns, _ in LatencyHistogram.merged(rounds).bins]
    # Upwards from the quantile until the share beyond the edge is surely small, downwards until it is surely large.
    slower = _slower_than(values, rounds)
    start = values.index(bucket.value_ns)
    _require_clusters(basis.settled(slower[start]), q)
    low_ns, high_ns = bucket.low_ns, bucket.high_ns
    totals = [each.total for each in rounds]
    for index in range(start, len(values)):
        high_ns = bucket_of(values[index]).high_ns
        if _highest_share(slower[index + 1], totals, basis) <= 1 - q:
            break
    for index in range(start, -1, -1):
        low_ns = bucket_of(values[index]).low_ns
        if basis.bounds(slower[index], totals).low > 1 - q:
            break
    last = bucket_of(values[-1])
    high = math.inf if high_ns >= last.high_ns and last.is_last else float(high_ns)
    times = _apart(rounds, q, basis)
    low, high = min(float(low_ns), bucket.value_ns / times), max(high, bucket.value_ns * times)
    return Estimate(bucket.value_ns, low, high, merged.total, Unit.NANOSECONDS, confidence=basis.sure.confidence)


def _apart(rounds: Sequence[LatencyHistogram], q: float, basis: Basis) -> float:
    """How many times the quantile may be missed by, as the rounds' own quantiles scatter (Student's, of logarithms).

    For intervals that are to hold among many others. Where rounds are farther apart than the I/Os in them, no I/O lies
    outside of all rounds, and the share beyond the slowest seems to be known for certain; but five rounds that hold
    their own median hold that of all others in 15 of 16 cases, and are no evidence for more.
    """
    if basis.sure.share >= 1:
        return 1.0
    settled = basis.settled(rounds)
    # The blocks of a look are not independent.
    size = max(1, len(settled) // LOOK_ROUNDS) if basis.look else 1
    pooled = (LatencyHistogram.merged(settled[at : at + size]) for at in range(len(settled) % size, len(settled), size))
    own = [math.log(max(1, each.quantile(q).value_ns)) for each in pooled if each]
    if len(own) < 2:
        return math.inf
    return math.exp(min(700.0, student_t(basis.level, len(own) - 1) * stdev(own) / math.sqrt(len(own))))


def _as_read(bucket: Bucket, ios: int) -> Estimate:
    high = math.inf if bucket.is_last else float(bucket.high_ns)
    return Estimate(bucket.value_ns, bucket.low_ns, high, ios, Unit.NANOSECONDS, is_reading=True)


def _quantile_bucket(histogram: LatencyHistogram, q: float) -> Bucket:
    if not 0 < q < 1:
        raise ValueError(f"a quantile is between 0 and 1, not {q}")
    # 1 - 0.99 is a little more than 0.01: a thousand I/Os are enough for p99.
    needed = math.ceil(TAIL_IOS / (1 - q) * (1 - 1e-9))
    if histogram.total < needed:
        raise TooFew(f"p{100 * q:g} needs {needed:,} I/Os, there are {histogram.total:,}")
    return histogram.quantile(q)


def _require_clusters(slowest: Sequence[int], q: float) -> None:
    """``slowest``: of each round the I/Os that are at least as slow as the quantile."""
    hit = sum(map(bool, slowest))
    if hit < min(TAIL_ROUNDS, (len(slowest) + 1) // 2):
        raise TooFew(
            f"p{100 * q:g} lies among {sum(slowest):,} I/Os that all came in {hit} of {len(slowest)} rounds; what so "
            "few stalls show is chance, measure for longer"
        )


def _highest_share(slow: Sequence[int], totals: Sequence[int], basis: Basis) -> float:
    """Upper end of the share of slow I/Os.

    Where some rounds have none, their scatter says too little; then it is at least that of a sum of events that come
    at random and are as large as those that were seen (gamma interval of weighted Poisson counts, Fay & Feuer 1997).
    """
    from scipy.special import gammaincinv

    high, settled = basis.bounds(slow, totals).high, basis.settled(slow)
    largest = max(settled)
    if not largest or all(settled):
        return high
    counted, squares = sum(settled) + largest, sum(each**2 for each in settled) + largest**2
    events = float(gammaincinv(counted**2 / squares, (1 + basis.level) / 2)) * squares / counted
    return max(high, events / sum(basis.settled(totals)))


def _slower_than(values: Sequence[int], rounds: Sequence[LatencyHistogram]) -> list[tuple[int, ...]]:
    """For each index into ``values``: I/Os of each round in that bucket or a slower one; then a row of zeros."""
    columns = []
    for each in rounds:
        counts = dict(each.bins)
        from_slowest = accumulate((counts.get(value_ns, 0) for value_ns in reversed(values)), initial=0)
        columns.append(list(from_slowest)[::-1])
    return list(zip(*columns, strict=True))
