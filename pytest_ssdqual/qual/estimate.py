"""A number with its interval: means from rounds, quantiles from histograms.

Single I/Os and single seconds are not independent: a million I/Os share a dozen garbage-collection
events, and an interval computed from their number is far too narrow. The unit of evidence is the round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from statistics import fmean, stdev

from pytest_ssdqual.qual.histogram import Bucket, LatencyHistogram, bucket_of
from pytest_ssdqual.qual.units import Unit, format_range, format_value

#: I/Os that must lie beyond a quantile before we name it: fewer, and one event moves it.
TAIL_IOS = 10

CONFIDENCE = 0.95


class TooFew(ValueError):
    """There is not enough data for the number asked for; the sentence says how much it takes."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number, the interval that should hold the truth, and how many observations it rests on."""

    value: float
    low: float
    #: May be infinite, when a latency lies in fio's last bucket.
    high: float
    n: int
    unit: Unit
    #: The interval is what the reading of this very measurement leaves open; a longer one would not make it narrower.
    is_reading: bool = False

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"{self.value} is not between {self.low} and {self.high}")

    def __str__(self) -> str:
        return f"{format_value(self.value, self.unit)} ({format_range(self.low, self.high, self.unit)})"

    def to_record(self) -> dict[str, object]:
        """Plain data in base units; an unbounded end is None, because JSON has no infinity."""
        low, high = (end if math.isfinite(end) else None for end in (self.low, self.high))
        return {"value": self.value, "low": low, "high": high, "n": self.n, "unit": self.unit.value}


@lru_cache(maxsize=256)
def student_t(confidence: float, degrees: int) -> float:
    """How many standard errors to either side hold ``confidence`` of Student's t distribution."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + confidence) / 2))


def mean_of_rounds(values: Sequence[float], unit: Unit, confidence: float = CONFIDENCE) -> Estimate:
    """Mean of round means with Student's interval (non-overlapping batch means).

    Rounds have to be long against the drive's own rhythm for this to hold; ``TooFew`` below two.
    """
    if len(values) < 2:
        raise TooFew(f"an interval needs at least 2 rounds, there are {len(values)}")
    mean = fmean(values)
    half = student_t(confidence, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return Estimate(mean, mean - half, mean + half, len(values), unit)


def mean_latency(rounds: Sequence[LatencyHistogram], confidence: float = CONFIDENCE) -> Estimate:
    """Mean over all I/Os, with an interval that covers how it varied from round to round.

    A ratio estimator, as for quantiles: time spent over I/Os done, so a round counts by its I/Os. The interval is
    never narrower than what fio's buckets leave open. ``n`` counts I/Os. ``TooFew`` below two rounds or without I/Os.
    """
    if len(rounds) < 2:
        raise TooFew(f"an interval needs at least 2 rounds, there are {len(rounds)}")
    merged = LatencyHistogram.merged(rounds)
    if not merged:
        raise TooFew(f"a mean latency needs I/Os, there are none in {len(rounds)} rounds")
    mean, error = _ratio([each.sum_ns for each in rounds], rounds)
    half = student_t(confidence, len(rounds) - 1) * error
    buckets = [(bucket_of(value_ns), count) for value_ns, count in merged.bins]
    fastest = sum(bucket.low_ns * count for bucket, count in buckets) / merged.total
    slowest = sum(bucket.high_ns * count for bucket, count in buckets) / merged.total
    high = math.inf if buckets[-1][0].is_last else max(mean + half, slowest)
    return Estimate(mean, max(0.0, min(mean - half, fastest)), high, merged.total, Unit.NANOSECONDS)


def max_latency(rounds: Sequence[LatencyHistogram]) -> Estimate:
    """The slowest I/O of all rounds: a fact about this very run, not a guess at what another would show.

    Hence the interval is its bucket (open above for fio's last one), and a single stall beyond a limit breaks it.
    That no I/O was slower in ``n`` of them bounds the share of slower ones only by 3/n (rule of three, 95 %).
    ``TooFew`` without I/Os.
    """
    merged = LatencyHistogram.merged(rounds)
    if not merged:
        raise TooFew("a maximum latency needs I/Os, there are none")
    bucket = bucket_of(merged.max_ns)
    high = math.inf if bucket.is_last else float(bucket.high_ns)
    return Estimate(bucket.value_ns, bucket.low_ns, high, merged.total, Unit.NANOSECONDS, is_reading=True)


def ratio(estimate: Estimate, reference: Estimate, unit: Unit = Unit.PERCENT) -> Estimate:
    """``estimate`` in per cent of ``reference``, or with ``Unit.RATIO`` as its multiple.

    Intervals are propagated by their ends (the worst of one with the best of the other): wider than a joint interval
    at the same confidence, never narrower. Both are of things that cannot be negative, and so is the result; an
    interval of the reference that reaches down to zero has no upper end. ValueError if the two differ in unit;
    ``TooFew`` if the reference is zero.
    """
    if estimate.unit is not reference.unit or unit not in (Unit.PERCENT, Unit.RATIO):
        raise ValueError(f"no ratio in {unit} of an estimate in {estimate.unit} to one in {reference.unit}")
    if reference.value <= 0:
        raise TooFew(f"nothing can be told in terms of {reference}")
    factor = 100 if unit is Unit.PERCENT else 1
    return Estimate(
        value=factor * estimate.value / reference.value,
        low=factor * max(0.0, estimate.low) / reference.high,
        high=factor * estimate.high / reference.low if reference.low > 0 else math.inf,
        n=min(estimate.n, reference.n),
        unit=unit,
        is_reading=estimate.is_reading and reference.is_reading,
    )


def quantile_of(histogram: LatencyHistogram, q: float) -> Estimate:
    """A latency quantile with the resolution of fio's buckets as its interval.

    That is what the *reading* may be off; how much the drive itself varies is only in
    ``quantile_of_rounds``. ``TooFew`` unless ``TAIL_IOS`` I/Os lie beyond the quantile.
    """
    bucket = _quantile_bucket(histogram, q)
    high = math.inf if bucket.is_last else float(bucket.high_ns)
    return Estimate(bucket.value_ns, bucket.low_ns, high, histogram.total, Unit.NANOSECONDS)


def quantile_of_rounds(rounds: Sequence[LatencyHistogram], q: float, confidence: float = CONFIDENCE) -> Estimate:
    """A latency quantile whose interval covers how it varied from round to round.

    The quantile is at most X exactly when the share of I/Os slower than X is at most 1 - q, and a share
    is a ratio estimator over rounds: r = Σk/Σn, its standard error from the residuals k_j - r·n_j. The
    interval holds every bucket edge X for which that share cannot be told from 1 - q, and at least the
    quantile's own bucket. ``n`` counts I/Os. ``TooFew`` below two rounds or ``TAIL_IOS`` I/Os beyond q.
    """
    if len(rounds) < 2:
        raise TooFew(f"an interval needs at least 2 rounds, there are {len(rounds)}")
    merged = LatencyHistogram.merged(rounds)
    bucket = _quantile_bucket(merged, q)
    factor = student_t(confidence, len(rounds) - 1)
    values = [value_ns for value_ns, _ in merged.bins]
    low_ns, high_ns = bucket.low_ns, bucket.high_ns
    # Upwards from the quantile until the share beyond the edge is surely small, downwards until it is surely large.
    slower = _slower_than(values, rounds)
    start = values.index(bucket.value_ns)
    for index in range(start, len(values)):
        high_ns = bucket_of(values[index]).high_ns
        share, error = _ratio(slower[index + 1], rounds)
        if share + factor * error <= 1 - q:
            break
    for index in range(start, -1, -1):
        low_ns = bucket_of(values[index]).low_ns
        share, error = _ratio(slower[index], rounds)
        if share - factor * error > 1 - q:
            break
    unbounded = high_ns >= bucket_of(values[-1]).high_ns and bucket_of(values[-1]).is_last
    high = math.inf if unbounded else float(high_ns)
    return Estimate(bucket.value_ns, low_ns, high, merged.total, Unit.NANOSECONDS)


def _quantile_bucket(histogram: LatencyHistogram, q: float) -> Bucket:
    if not 0 < q < 1:
        raise ValueError(f"a quantile is between 0 and 1, not {q}")
    # 1 - 0.99 is a little more than 0.01: a thousand I/Os are enough for p99.
    needed = math.ceil(TAIL_IOS / (1 - q) * (1 - 1e-9))
    if histogram.total < needed:
        raise TooFew(f"p{100 * q:g} needs {needed:,} I/Os, there are {histogram.total:,}")
    return histogram.quantile(q)


def _slower_than(values: Sequence[int], rounds: Sequence[LatencyHistogram]) -> list[tuple[int, ...]]:
    """For each index into ``values``: I/Os of each round in that bucket or a slower one; then a row of zeros."""
    columns = []
    for each in rounds:
        counts = dict(each.bins)
        from_slowest = accumulate((counts.get(value_ns, 0) for value_ns in reversed(values)), initial=0)
        columns.append(list(from_slowest)[::-1])
    return list(zip(*columns, strict=True))


def _ratio(events: Sequence[int], rounds: Sequence[LatencyHistogram]) -> tuple[float, float]:
    """Σk/Σn over rounds, and its standard error."""
    totals = [each.total for each in rounds]
    share = sum(events) / sum(totals)
    residuals = [k - share * n for k, n in zip(events, totals, strict=True)]
    return share, stdev(residuals) / fmean(totals) / math.sqrt(len(rounds))
