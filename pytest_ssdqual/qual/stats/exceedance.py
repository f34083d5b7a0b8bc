"""How often something rare happens: events slower than a limit an hour, and the level that is exceeded so often.

A maximum grows with the time for which one watches; a rate does not. So what is promised of the slowest I/Os is a
*return level*: what is exceeded at most so many times an hour. Slow I/Os come in clusters (one stall holds up all that
is waiting), so what is counted are the spells, of ten seconds each, that have any. A spell has none with probability
exp(-λ), if clusters come at random and λ of them in a spell on average; so the exact interval of a share (Clopper &
Pearson 1934) is one of λ = -ln(1 - share). Of many spells and few clusters it is that of a count (Garwood 1936, by
quantiles of chi-square), and where none was seen its end is 3 in the time that was watched, at 95 % (the "rule of
three", Hanley & Lippman-Hand 1983). Where every spell has some it has no upper end.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from statistics import variance

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram, bucket_of
from pytest_ssdqual.qual.measured.interval import Spell
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.stats import proportion
from pytest_ssdqual.qual.stats.basis import Basis
from pytest_ssdqual.qual.stats.estimate import Sureness, TooFew, format_confidence
from pytest_ssdqual.qual.units import Unit, format_duration, format_value

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
    low, high = proportion.interval(hit / fewer, spells / fewer, tail)
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
class Level:
    """A value and the interval that should hold it."""

    value: float
    low: float
    high: float


def return_level(lows: Sequence[float], highs: Sequence[float], seconds: float, per_hour: float, level: float) -> Level:
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
    return Level(min(max(value, low), high), low, high)


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


def slowest(measured: Measured, sure: Sureness, per_hour: float) -> Level:
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
