"""Latencies with their intervals: the mean and quantiles; all from rounds' histograms, merged.

Percentiles of rounds are never averaged: that of all I/Os is read from the sum of their histograms, and how sure it is
from how the share of slower I/Os differed between the rounds.

How often something rare happens: events slower than a limit an hour, and the level that is exceeded so often.

A maximum grows with the time for which one watches; a rate does not. So what is promised of the slowest I/Os is a
*return level*: what is exceeded at most so many times an hour. Slow I/Os come in clusters (one stall holds up all that
is waiting), so what is counted are the spells, of ten seconds each, that have any. A spell has none with probability
exp(-λ), if clusters come at random and λ of them in a spell on average; so the exact interval of a share (Clopper &
Pearson 1934) is one of λ = -ln(1 - share). Of many spells and few clusters it is that of a count (Garwood 1936, by
quantiles of chi-square), and where none was seen its end is 3 in the time that was watched, at 95 % (the "rule of
three", Hanley & Lippman-Hand 1983). Where every spell has some it has no upper end.

The exact interval of a probability, from how often something was seen (Clopper & Pearson 1934).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from operator import attrgetter
from statistics import stdev, variance

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram, bucket_of
from pytest_ssdqual.qual.measured.run import Measured, Spell
from pytest_ssdqual.qual.stats.batch_means import ROUNDS, Basis, require_rounds
from pytest_ssdqual.qual.stats.estimate import Estimate, Sureness, TooFew, format_confidence, student_t
from pytest_ssdqual.qual.units import Unit, format_duration, format_value


def interval(count: float, of: float, tail: float) -> tuple[float, float]:
    """Both ends of a probability of which ``count`` of ``of`` were seen, each wrong with a probability of ``tail``.

    Neither has to be whole: of events that depend on each other there are fewer than were counted.

    ValueError unless 0 <= count <= of, and of > 0.
    """
    from scipy.special import betaincinv

    if not 0 <= count <= of or not of:
        raise ValueError(f"{count} of {of} is no share")
    low = float(betaincinv(count, of - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, of - count, 1 - tail)) if count < of else 1.0
    return low, high


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
        by_number, _ = interval(sum(slower[index]), ios, (1 - basis.level) / 2)
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


#: Of neighbouring spells, by which bursts are seen.
BATCHES = 10


@dataclass(frozen=True, slots=True)
class Clusters:
    """The interval of the number of clusters that are to be expected in the time of all spells together."""

    low: float
    high: float


@lru_cache(maxsize=4096)
def clusters(hit: int, spells: int, level: float, dispersion: float = 1.0) -> Clusters:
    """Clusters that ``spells`` spells had if ``hit`` of them had any; see the module.

    Two-sided at ``level``, one-sided where there can be only one end: none hit, or all of them. Where hits come in
    bursts there are as many fewer independent spells as their ``dispersion`` says; none and all of them are no burst.
    ValueError unless 0 <= hit <= spells, and spells > 0.
    """
    is_one_sided = hit in (0, spells)
    tail, fewer = (1 - level, 1.0) if is_one_sided else ((1 - level) / 2, dispersion)
    low, high = interval(hit / fewer, spells / fewer, tail)
    return Clusters(-spells * math.log1p(-low), -spells * math.log1p(-high) if high < 1 else math.inf)


def dispersion_of(hits: Sequence[bool]) -> float:
    """Variance of the number of hits in batches of neighbouring spells over that of independent ones; at least 1."""
    size = max(2, len(hits) // BATCHES)
    batches = [sum(hits[at : at + size]) for at in range(len(hits) % size, len(hits), size)]
    share = sum(hits) / len(hits) if hits else 0.0
    if len(batches) < 2 or not 0 < share < 1:
        return 1.0
    return max(1.0, variance(batches) / (size * share * (1 - share)))


@dataclass(frozen=True, slots=True)
class ExceedanceLevel:
    """A value and the interval that should hold it."""

    value: float
    low: float
    high: float


def return_level(
    lows: Sequence[float], highs: Sequence[float], seconds: float, per_hour: float, level: float
) -> ExceedanceLevel:
    """What is exceeded ``per_hour`` times an hour, of the maxima of spells that took ``seconds`` together.

    ``lows`` and ``highs`` are what each maximum is at least and at most, as it was read. The interval at ``level``
    holds every value of which the rate cannot be told from ``per_hour``. An end is infinite where nothing decides: not
    even a time without any event would prove so low a rate, or events in every spell would not disprove it. ``TooFew``
    without spells.
    """
    count = len(highs)
    if not count or seconds <= 0:
        raise TooFew("rare events need time to be counted in, there is none")
    allowed = per_hour * seconds / 3600
    down, up = sorted(lows, reverse=True), sorted(highs, reverse=True)
    middle = [(bottom + top) / 2 if math.isfinite(top) else bottom for bottom, top in zip(lows, highs, strict=True)]
    # So many spells exceed the level, on average.
    value = sorted(middle, reverse=True)[min(count - 1, int(count * -math.expm1(-allowed / count)))]
    dispersion = dispersion_of([each >= value for each in middle])
    # The more spells exceed a value, the higher its rate surely is, and the higher it may be.
    surely, maybe = (
        bisect_left(range(count + 1), True, key=lambda hit: end(clusters(hit, count, level, dispersion)) > allowed)
        for end in (attrgetter("low"), attrgetter("high"))
    )
    low = down[surely - 1] if 0 < surely <= count else -math.inf
    high = up[maybe - 1] if maybe else math.inf
    return ExceedanceLevel(min(max(value, low), high), low, high)


def shortest_s(per_hour: float, level: float) -> float:
    """Seconds of observation without any event that prove a rate below ``per_hour``."""
    return -math.log(1 - level) / per_hour * 3600


@dataclass(frozen=True, slots=True)
class Exceedance:
    """I/Os slower than a limit in one measurement, and what that proves of the rate."""

    limit_ns: float
    #: I/Os that are slower, and those that may be, because the limit lies inside of their bucket.
    ios: int
    possible_ios: int
    #: Spells that have at least one of those that are, or may be, slower.
    hit: int
    possible_hit: int
    spells: int
    seconds: float
    #: Clusters of slow I/Os; infinite where they cannot be told apart.
    low_per_hour: float
    high_per_hour: float
    confidence: float

    def __str__(self) -> str:
        """What a sentence about the maximum ends with: ``none slower in 10 min, so fewer than 18 times an hour``."""
        within, sure = format_duration(self.seconds), f"({format_confidence(self.confidence)})"
        low, high = (format_value(each, Unit.COUNT) for each in (self.low_per_hour, self.high_per_hour))
        if not self.possible_ios:
            return f"none slower in {within}, so fewer than {high} times an hour {sure}"
        how_many = f"{self.ios:,} slower" if self.ios else f"{self.possible_ios:,} maybe slower"
        seen = f"{how_many} in {within}, in {self.hit or self.possible_hit} of {self.spells} spells"
        if not math.isfinite(self.high_per_hour):
            return f"{seen}: more than {low} times an hour {sure}"
        return f"{seen}: {low}…{high} times an hour {sure}"

    def to_record(self) -> dict[str, object]:
        """Plain data in base units; what has no upper end is None."""
        return {
            "limit_ns": self.limit_ns,
            "ios": self.ios,
            "possible_ios": self.possible_ios,
            "spells_hit": self.hit,
            "spells": self.spells,
            "seconds": self.seconds,
            "low_per_hour": self.low_per_hour,
            "high_per_hour": self.high_per_hour if math.isfinite(self.high_per_hour) else None,
            "confidence": self.confidence,
        }


def slower_than(limit_ns: float, measured: Measured, sure: Sureness) -> Exceedance:
    """I/Os slower than ``limit_ns``, of everything behind the ramp. ``TooFew`` without time."""
    spells, level = measured.spells, Basis.whole(measured, sure).level
    seconds = sum(run.seconds for run in measured.runs)
    if not spells or seconds <= 0:
        raise TooFew("how often an I/O is slow needs time, there is none")
    latency = measured.latency
    hits, possible = ([end(each) > limit_ns for each in spells] for end in (_at_least, _at_most))
    hit, possible_hit, hours = sum(hits), sum(possible), seconds / 3600
    return Exceedance(
        limit_ns=limit_ns,
        ios=_surely_above(latency, limit_ns),
        possible_ios=latency.count_above(limit_ns),
        hit=hit,
        possible_hit=possible_hit,
        spells=len(spells),
        seconds=seconds,
        low_per_hour=clusters(hit, len(spells), level, dispersion_of(hits)).low / hours,
        high_per_hour=clusters(possible_hit, len(spells), level, dispersion_of(possible)).high / hours,
        confidence=sure.confidence,
    )


def slowest(measured: Measured, sure: Sureness, per_hour: float) -> ExceedanceLevel:
    """The latency that is exceeded ``per_hour`` times an hour, nanoseconds."""
    spells = measured.spells
    seconds = sum(run.seconds for run in measured.runs)
    level = Basis.whole(measured, sure).level
    found = return_level([*map(_at_least, spells)], [*map(_at_most, spells)], seconds, per_hour, level)
    return replace(found, low=max(0.0, found.low))


def _surely_above(latency: LatencyHistogram, limit_ns: float) -> int:
    return sum(count for value_ns, count in latency.bins if bucket_of(value_ns).low_ns > limit_ns)


def _at_least(spell: Spell) -> float:
    return float(bucket_of(spell.max_ns).low_ns) if spell.max_ns else 0.0


def _at_most(spell: Spell) -> float:
    if not spell.max_ns:
        return 0.0
    bucket = bucket_of(spell.max_ns)
    return math.inf if bucket.is_last else float(bucket.high_ns - 1)
