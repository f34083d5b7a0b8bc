"""Latencies with their intervals: the mean and quantiles; all from rounds' histograms, merged.

Percentiles of rounds are never averaged: that of all I/Os is read from the sum of their histograms, and how sure it is
from how the share of slower I/Os differed between the rounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from statistics import stdev

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram, bucket_of
from pytest_ssdqual.qual.stats import proportion
from pytest_ssdqual.qual.stats.basis import ROUNDS, Basis, require_rounds
from pytest_ssdqual.qual.stats.estimate import Estimate, TooFew, student_t
from pytest_ssdqual.qual.units import Unit

#: I/Os that must lie beyond a quantile before we name it: fewer, and one event moves it.
TAIL_IOS = 10

#: Rounds that these I/Os must come from: of fewer clusters none is as likely as one time in twenty (exp(-3)), so the
#: drive may have any tail.
TAIL_ROUNDS = 3

#: As many independent rounds the blocks of a look are worth (``qual.stats.batch_means.MEANS``).
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


def quantile_of_rounds(rounds: Sequence[LatencyHistogram], q: float, basis: Basis = ROUNDS) -> Estimate:
    """A latency quantile whose interval covers how it varied from round to round.

    The quantile is at most X exactly when the share of I/Os slower than X is at most 1 - q, and a share
    is a ratio estimator over rounds: r = Σk/Σn. The interval holds every bucket edge X for which that share cannot be
    told from 1 - q, and at least the quantile's own bucket. A share is not known any better than the number of
    events that it came in: below ``TAIL_IOS`` I/Os beyond q, or ``TAIL_ROUNDS`` rounds that these come from, the
    interval has no upper end, and ``unbounded`` says why. A lower end needs neither: where so many I/Os are slower than
    X that their share is surely above 1 - q, the quantile is. ``n`` counts I/Os. ``TooFew`` below two rounds or without
    I/Os.
    """
    require_rounds(len(rounds))
    merged = LatencyHistogram.merged(rounds)
    if not merged:
        raise TooFew(f"a quantile needs I/Os, there are none in {len(rounds)} rounds")
    bucket = merged.quantile(q)
    values = [value_ns for value_ns, _ in merged.bins]
    # Upwards from the quantile until the share beyond the edge is surely small, downwards until it is surely large.
    slower = _slower_than(values, rounds)
    start = values.index(bucket.value_ns)
    unbounded = _objection(merged, q) or _few_clusters(slower[start], q)
    totals = [each.total for each in rounds]
    high_ns = bucket.high_ns
    for index in range(start, len(values)):
        high_ns = bucket_of(values[index]).high_ns
        if not unbounded and _highest_share(slower[index + 1], totals, basis) <= 1 - q:
            break
    low_ns = _surely_slower(values, slower, totals, start, 1 - q, basis)
    last = bucket_of(values[-1])
    high = math.inf if unbounded or (high_ns >= last.high_ns and last.is_last) else float(high_ns)
    times = _apart(rounds, q, basis)
    low, high = min(float(low_ns), bucket.value_ns / times), max(high, bucket.value_ns * times)
    confidence = basis.sure.confidence
    return Estimate(
        bucket.value_ns, low, high, merged.total, Unit.NANOSECONDS, confidence=confidence, unbounded=unbounded
    )


def _surely_slower(
    values: Sequence[int],
    slower: Sequence[Sequence[int]],
    totals: Sequence[int],
    start: int,
    share: float,
    basis: Basis,
) -> float:
    """The highest bucket edge up to that of the quantile beyond which surely more than ``share`` of all I/Os lie."""
    ios = sum(totals)
    for index in range(start, -1, -1):
        # Few I/Os that happen to be shared out evenly have no scatter; no share is known better than by their number.
        by_number, _ = proportion.interval(sum(slower[index]), ios, (1 - basis.level) / 2)
        if min(by_number, basis.bounds(slower[index], totals).low) > share:
            return float(bucket_of(values[index]).low_ns)
    return 0.0


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


def _objection(histogram: LatencyHistogram, q: float) -> str:
    """Why a histogram says nothing about the slow end of a quantile; empty if it does."""
    # 1 - 0.99 is a little more than 0.01: a thousand I/Os are enough for p99.
    needed = math.ceil(TAIL_IOS / (1 - q) * (1 - 1e-9))
    return f"p{100 * q:g} needs {needed:,} I/Os, there are {histogram.total:,}" if histogram.total < needed else ""


def _few_clusters(slowest: Sequence[int], q: float) -> str:
    """The same of rounds; ``slowest``: of each the I/Os that are at least as slow as the quantile."""
    hit = sum(map(bool, slowest))
    if hit >= min(TAIL_ROUNDS, (len(slowest) + 1) // 2):
        return ""
    return (
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
