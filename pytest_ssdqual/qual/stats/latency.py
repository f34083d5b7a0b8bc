"""Latency estimates: mean, quantiles, and the rate of rare slow I/Os, each with its confidence interval.

Percentiles of rounds are never averaged: the percentile of all I/Os comes from the merged histogram, and its interval
from how the share of slower I/Os differed between rounds.

A maximum grows with the time of observation; a rate does not. So limits on the slowest I/Os are *return levels*: the
latency that is exceeded at most so many times an hour. Slow I/Os come in clusters (one stall holds up all that is
waiting), so the counted unit is the spell of ten seconds that has any. If clusters come at random with λ of them in a
spell on average, a spell has none with probability exp(-λ); the exact interval of a share (Clopper & Pearson 1934) then
gives one of λ = -ln(1 - share). With many spells and few clusters it approaches that of a count (Garwood 1936, by
quantiles of chi-square); without any cluster its upper end is 3 in the observed time, at 95 % (the "rule of three",
Hanley & Lippman-Hand 1983). If every spell has some, it has no upper end.

Rare stalls belong to drives. So the upper end of a level may come from all spells of a run's drives
(`Exposure`), unless those of the target itself exceed their common rate (`pooled_end`). The lower
end is the target's own, so what is slow elsewhere never fails it.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from statistics import stdev, variance

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.histogram import LatencyHistogram, bucket_of
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate, TooFew, format_confidence, student_t
from pytest_ssdqual.qual.stats.intervals import ROUNDS, Basis, Bounds, require_rounds
from pytest_ssdqual.qual.units import Unit, format_duration, format_value

#: Fewest I/Os beyond a quantile for which it is reported: with fewer, one event moves it.
TAIL_IOS = 10
#: Fewest rounds that these I/Os come from: a rate of three clusters shows none one time in twenty (exp(-3)), so with
#: fewer the drive may have any tail.
TAIL_ROUNDS = 3
#: Number of batches of neighbouring spells from which the dispersion of hits is computed.
BATCHES = 10
#: Probability of so many of the slowest spells in one target by chance, up to which it is its own.
OWN_RATE = 0.05


def interval(count: float, of: float, tail: float) -> tuple[float, float]:
    """Exact interval of a probability of which ``count`` of ``of`` occurred; each end is wrong with probability
    ``tail``.

    Clopper & Pearson (1934). Neither argument has to be whole: correlated events count as fewer than their number.
    ValueError unless 0 <= count <= of, and of > 0.
    """
    from scipy.special import betaincinv

    if not 0 <= count <= of or not of:
        raise ValueError(f"{count} of {of} is no share")
    low = float(betaincinv(count, of - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, of - count, 1 - tail)) if count < of else 1.0
    return low, high


def mean_latency(rounds: Sequence[LatencyHistogram], basis: Basis = ROUNDS, *, is_of_all: bool = True) -> Estimate:
    """Mean latency, nanoseconds, with an interval that covers its variation between rounds.

    Ratio estimator: time spent over I/Os done, so a round is weighted by its I/Os. The interval is never narrower than
    fio's buckets. ``n`` counts I/Os. ``is_of_all``: of reads and writes together it follows from the IOPS (Little's
    law), and has their scatter. ``TooFew`` below two rounds or without I/Os.
    """
    merged = _merged(rounds, "a mean latency")
    estimate = basis.time_each if is_of_all else basis.bounds
    found = estimate([each.sum_ns for each in rounds], [each.total for each in rounds])
    buckets = [(bucket_of(value_ns), count) for value_ns, count in merged.bins]
    fastest = sum(bucket.low_ns * count for bucket, count in buckets) / merged.total
    slowest = sum(bucket.high_ns * count for bucket, count in buckets) / merged.total
    return Estimate(
        value=found.value,
        low=max(0.0, min(found.low, fastest)),
        high=math.inf if buckets[-1][0].is_last else max(found.high, slowest),
        n=merged.total,
        unit=Unit.NANOSECONDS,
        confidence=basis.confidence_level.confidence,
    )


def quantile_of_rounds(rounds: Sequence[LatencyHistogram], q: float, basis: Basis = ROUNDS) -> Estimate:
    """Latency quantile, nanoseconds, with an interval that covers its variation between rounds.

    The quantile is at most X exactly when the share of I/Os slower than X is at most 1 - q. That share is a ratio
    estimator over rounds: r = Σk/Σn. The interval holds every bucket edge X whose share cannot be distinguished from 1
    - q, and at least the quantile's own bucket. Below ``TAIL_IOS`` I/Os beyond q, or ``TAIL_ROUNDS`` rounds that they
    come from, the interval has no upper end, and ``unbounded`` gives the reason. The low end needs neither: if enough
    I/Os are slower than X to put their share above 1 - q, the quantile is above X. ``n`` counts I/Os. ``TooFew`` below
    two rounds or without I/Os.
    """
    merged = _merged(rounds, "a quantile")
    bucket = merged.quantile(q)
    values = [value_ns for value_ns, _ in merged.bins]
    # Upwards from the quantile until the share beyond the edge is below 1 - q at this confidence, then downwards.
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
    confidence = basis.confidence_level.confidence
    return Estimate(
        bucket.value_ns, low, high, merged.total, Unit.NANOSECONDS, confidence=confidence, unbounded=unbounded
    )


def _merged(rounds: Sequence[LatencyHistogram], what: str) -> LatencyHistogram:
    require_rounds(len(rounds))
    merged = LatencyHistogram.merged(rounds)
    if not merged:
        raise TooFew(f"{what} needs I/Os, there are none in {len(rounds)} rounds")
    return merged


def _surely_slower(
    values: Sequence[int],
    slower: Sequence[Sequence[int]],
    totals: Sequence[int],
    start: int,
    share: float,
    basis: Basis,
) -> float:
    """Highest bucket edge, up to the quantile's, beyond which more than ``share`` of all I/Os lie with confidence."""
    ios = sum(totals)
    for index in range(start, -1, -1):
        # Few I/Os that happen to be spread evenly show no scatter; the binomial interval bounds the share.
        by_number, _ = interval(sum(slower[index]), ios, (1 - basis.level) / 2)
        if min(by_number, basis.bounds(slower[index], totals).low) > share:
            return float(bucket_of(values[index]).low_ns)
    return 0.0


def _apart(rounds: Sequence[LatencyHistogram], q: float, basis: Basis) -> float:
    """Factor by which the quantile may be wrong, from the scatter of the rounds' own quantiles (Student's t of
    logarithms).

    The share of I/Os beyond a limit is skewed over rounds whose levels differ: from five rounds
    that differ by 20 %, 16 % of the p99 exactly on their limit passed without this, and 9 % with
    it. If rounds differ by more than the I/Os within them, no I/O lies outside all rounds, and the
    share beyond the slowest seems certain. But the medians of five rounds enclose the true median
    in only 15 of 16 cases, so they are no evidence for more.
    """
    own = [math.log(max(1, each.quantile(q).value_ns)) for each in rounds if each]
    if len(own) < 2:
        return math.inf
    return math.exp(min(700.0, student_t(basis.level, len(own) - 1) * stdev(own) / math.sqrt(len(own))))


def _objection(histogram: LatencyHistogram, q: float) -> str:
    """Reason why a histogram cannot bound the slow end of a quantile; "" if it can."""
    # In floats 1 - 0.99 is a little more than 0.01; a thousand I/Os are enough for p99.
    needed = math.ceil(TAIL_IOS / (1 - q) * (1 - 1e-9))
    return f"p{100 * q:g} needs {needed:,} I/Os, there are {histogram.total:,}" if histogram.total < needed else ""


def _few_clusters(slowest: Sequence[int], q: float) -> str:
    """Reason why too few rounds hold the I/Os at or beyond the quantile; ``slowest`` counts them in each round."""
    hit = sum(map(bool, slowest))
    if hit >= min(TAIL_ROUNDS, (len(slowest) + 1) // 2):
        return ""
    return (
        f"p{100 * q:g} lies among {sum(slowest):,} I/Os that all came in {hit} of {len(slowest)} rounds; that "
        "may be chance, measure for longer"
    )


def _highest_share(slow: Sequence[int], totals: Sequence[int], basis: Basis) -> float:
    """Upper end of the share of slow I/Os.

    If some rounds have none, their scatter is too small an estimate. The end is then at least that of a sum of random
    events as large as those observed (gamma interval of weighted Poisson counts, Fay & Feuer 1997).
    """
    from scipy.special import gammaincinv

    high, largest = basis.bounds(slow, totals).high, max(slow)
    if not largest or all(slow):
        return high
    counted, squares = sum(slow) + largest, sum(each**2 for each in slow) + largest**2
    events = float(gammaincinv(counted**2 / squares, (1 + basis.level) / 2)) * squares / counted
    return max(high, events / sum(totals))


def _slower_than(values: Sequence[int], rounds: Sequence[LatencyHistogram]) -> list[tuple[int, ...]]:
    """For each index into ``values``: I/Os of each round in that bucket or a slower one; then a row of zeros."""
    columns = []
    for each in rounds:
        counts = dict(each.bins)
        from_slowest = accumulate((counts.get(value_ns, 0) for value_ns in reversed(values)), initial=0)
        columns.append(list(from_slowest)[::-1])
    return list(zip(*columns, strict=True))


@lru_cache(maxsize=4096)
def clusters(hit: int, spells: int, level: float, dispersion: float = 1.0) -> tuple[float, float]:
    """Interval of the number of clusters in all ``spells`` spells together if ``hit`` of them had any; see the module.

    Two-sided at ``level``; one-sided if there can be only one end: none hit, or all of them. If hits come in bursts,
    the number of independent spells is divided by their ``dispersion``. Without a hit bursts do not show, and one end
    is wrong with all of 1 - ``level``. ValueError unless 0 <= hit <= spells, and spells > 0.
    """
    is_one_sided = hit in (0, spells)
    tail, fewer = (1 - level, 1.0) if is_one_sided else ((1 - level) / 2, dispersion)
    low, high = interval(hit / fewer, spells / fewer, tail)
    return -spells * math.log1p(-low), -spells * math.log1p(-high) if high < 1 else math.inf


def dispersion_of(hits: Sequence[bool]) -> float:
    """Variance of the number of hits in batches of neighbouring spells over that of independent ones; at least 1."""
    size = max(2, len(hits) // BATCHES)
    batches = [sum(hits[at : at + size]) for at in range(len(hits) % size, len(hits), size)]
    share = sum(hits) / len(hits) if hits else 0.0
    if len(batches) < 2 or not 0 < share < 1:
        return 1.0
    return max(1.0, variance(batches) / (size * share * (1 - share)))


def return_level(
    lows: Sequence[float], highs: Sequence[float], seconds: float, per_hour: float, level: float
) -> Bounds:
    """Value that is exceeded ``per_hour`` times an hour, from the maxima of spells of ``seconds`` together.

    ``lows`` and ``highs`` bound each maximum at the resolution of its reading. The interval at ``level`` holds every
    value whose rate cannot be distinguished from ``per_hour``. An end is infinite if no count could decide: the
    observed time without any event would not prove so low a rate, or events in every spell would not disprove it.
    ``TooFew`` without spells.
    """
    count = len(highs)
    if not count or seconds <= 0:
        raise TooFew("the rate of rare events needs a time of observation, there is none")
    allowed = per_hour * seconds / 3600
    down, up = sorted(lows, reverse=True), sorted(highs, reverse=True)
    middle = [(bottom + top) / 2 if math.isfinite(top) else bottom for bottom, top in zip(lows, highs, strict=True)]
    # The expected number of spells that exceed the level gives its rank.
    value = sorted(middle, reverse=True)[min(count - 1, int(count * -math.expm1(-allowed / count)))]
    dispersion = dispersion_of([each >= value for each in middle])
    # Both ends of the rate grow with the number of spells that exceed a value.
    surely, maybe = (
        bisect_left(range(count + 1), True, key=lambda hit: clusters(hit, count, level, dispersion)[end] > allowed)
        for end in (0, 1)
    )
    low = down[surely - 1] if 0 < surely <= count else -math.inf
    high = up[maybe - 1] if maybe else math.inf
    return Bounds(min(max(value, low), high), low, high)


def pooled_end(
    own: Sequence[float],
    pool: Sequence[float],
    share: float,
    spells: int,
    allowed: float,
    level: float,
) -> float:
    """Return the least value that the spells of a whole run prove to be exceeded rarely enough.

    ``own`` are the maxima of the target's spells, ``pool`` the largest of the run's, falling;
    ``share`` is that of the target's drives in all exposure, ``allowed`` the number of clusters
    that the target's rate would be in it. No value counts beyond which the target has more spells
    than its share: exact conditional test of two Poisson rates (Przyborowski & Wilenski 1940,
    Biometrika 31, 313-323). Infinite if nothing is proved.
    """
    from scipy.special import betainc

    proved, mine = math.inf, sorted(own)
    for value in dict.fromkeys(pool):
        beyond = pool.index(value)
        above = len(mine) - bisect_right(mine, value)
        chance = float(betainc(above, beyond - above + 1, share)) if above else 1.0
        if chance < OWN_RATE or clusters(beyond, spells, level)[1] > allowed:
            break
        proved = value
    return proved


def shortest_s(per_hour: float, level: float) -> float:
    """Seconds of observation without any event that prove a rate below ``per_hour``."""
    return -math.log(1 - level) / per_hour * 3600


@frozen
class Exceedance:
    """I/Os slower than a limit in one measurement, and the interval of their rate."""

    #: I/Os that are slower, and those that may be, because the limit lies inside their bucket.
    ios: int
    possible_ios: int
    #: Spells with at least one I/O that is slower, or may be.
    hit: int
    possible_hit: int
    spells: int
    seconds: float
    #: Interval of the rate of clusters of slow I/Os; infinite if every spell has some.
    low_per_hour: float
    high_per_hour: float
    confidence: float

    def __str__(self) -> str:
        """End of a sentence about the maximum: ``none slower in 10 min, so fewer than 18 times an hour``."""
        within, confidence = format_duration(self.seconds), f"({format_confidence(self.confidence)})"
        low, high = (format_value(each, Unit.COUNT) for each in (self.low_per_hour, self.high_per_hour))
        if not self.possible_ios:
            return f"none slower in {within}, so fewer than {high} times an hour {confidence}"
        how_many = f"{self.ios:,} slower" if self.ios else f"{self.possible_ios:,} maybe slower"
        counted = f"{how_many} in {within}, in {self.hit or self.possible_hit} of {self.spells} spells"
        if not math.isfinite(self.high_per_hour):
            return f"{counted}: more than {low} times an hour {confidence}"
        return f"{counted}: {low}…{high} times an hour {confidence}"


def slower_than(limit_ns: float, measured: Measured, confidence_level: ConfidenceLevel) -> Exceedance:
    """Count the I/Os slower than ``limit_ns`` in everything behind the ramp. ``TooFew`` without time."""
    spells, level = measured.spells, Basis.of(measured, confidence_level).level
    seconds = measured.seconds
    if not spells or seconds <= 0:
        raise TooFew("the rate of slow I/Os needs a time of observation, there is none")
    latency = measured.latency
    lows, highs = ends_of([spell.max_ns for spell in spells])
    hits, possible = ([each > limit_ns for each in ends] for ends in (lows, highs))
    hit, possible_hit, hours = sum(hits), sum(possible), seconds / 3600
    return Exceedance(
        ios=sum(count for value_ns, count in latency.bins if bucket_of(value_ns).low_ns > limit_ns),
        possible_ios=latency.count_above(limit_ns),
        hit=hit,
        possible_hit=possible_hit,
        spells=len(spells),
        seconds=seconds,
        low_per_hour=clusters(hit, len(spells), level, dispersion_of(hits))[0] / hours,
        high_per_hour=clusters(possible_hit, len(spells), level, dispersion_of(possible))[1] / hours,
        confidence=confidence_level.confidence,
    )


def ends_of(latencies_ns: Sequence[int]) -> tuple[list[float], list[float]]:
    """Return what each I/O took at least, and at most: the ends of its bucket."""
    buckets = [bucket_of(latency_ns) for latency_ns in latencies_ns]
    lows = [float(bucket.low_ns) for bucket in buckets]
    return lows, [math.inf if bucket.is_last else bucket.high_ns - 1.0 for bucket in buckets]
