"""How often I/Os are slower than a limit: counted over a time, with the interval of the rate.

Slow I/Os come in clusters (one stall holds up all that is waiting), so what is counted are the rounds that have any. A
round has none with probability exp(-λ), if clusters come at random and λ of them in a round on average; so the exact
interval of a share (Clopper & Pearson 1934) is one of λ = -ln(1 - share). Of many rounds and few clusters it is that of
a count (Garwood 1936, by quantiles of chi-square), and where none was seen its end is 3 in the time that was watched,
at 95 % (the "rule of three", Hanley & Lippman-Hand 1983). Where every round has some it has no upper end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pytest_ssdqual.qual import proportion
from pytest_ssdqual.qual.basis import ROUNDS, Basis
from pytest_ssdqual.qual.estimate import TooFew, format_confidence
from pytest_ssdqual.qual.histogram import LatencyHistogram, bucket_of
from pytest_ssdqual.qual.units import Unit, format_duration, format_value


@dataclass(frozen=True, slots=True)
class Clusters:
    """The interval of the number of clusters that are to be expected in the time of all rounds together."""

    low: float
    high: float


@lru_cache(maxsize=4096)
def clusters(hit: int, rounds: int, level: float) -> Clusters:
    """Clusters that ``rounds`` rounds had if ``hit`` of them had any; see the module.

    Two-sided at ``level``, one-sided where there can be only one end: none hit, or all of them. ValueError unless
    0 <= hit <= rounds, and rounds > 0.
    """
    low, high = proportion.interval(hit, rounds, 1 - level if hit in (0, rounds) else (1 - level) / 2)
    return Clusters(-rounds * math.log1p(-low), -rounds * math.log1p(-high) if high < 1 else math.inf)


@dataclass(frozen=True, slots=True)
class Exceedance:
    """I/Os slower than a limit in one measurement, and what that proves of the rate."""

    limit_ns: float
    #: I/Os that are slower, and those that may be, because the limit lies inside of their bucket.
    ios: int
    possible_ios: int
    #: Rounds that have at least one of those that are, or may be, slower.
    hit: int
    possible_hit: int
    rounds: int
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
        seen = f"{how_many} in {within}, in {self.hit or self.possible_hit} of {self.rounds} rounds"
        if not math.isfinite(self.high_per_hour):
            return f"{seen}: more than {low} times an hour {sure}"
        return f"{seen}: {low}…{high} times an hour {sure}"

    def to_record(self) -> dict[str, object]:
        """Plain data in base units; what has no upper end is None."""
        return {
            "limit_ns": self.limit_ns,
            "ios": self.ios,
            "possible_ios": self.possible_ios,
            "rounds_hit": self.hit,
            "rounds": self.rounds,
            "seconds": self.seconds,
            "low_per_hour": self.low_per_hour,
            "high_per_hour": self.high_per_hour if math.isfinite(self.high_per_hour) else None,
            "confidence": self.confidence,
        }


def slower_than(
    limit_ns: float, rounds: Sequence[LatencyHistogram], seconds: float, basis: Basis = ROUNDS
) -> Exceedance:
    """I/Os slower than ``limit_ns`` in ``rounds``, which were ``seconds`` long together and equally long each.

    ``TooFew`` without a round or without time.
    """
    settled = basis.settled(rounds)
    if not settled or seconds <= 0:
        raise TooFew("how often an I/O is slow needs time, there is none")
    possible = [each.count_above(limit_ns) for each in settled]
    sure = [sum(count for value_ns, count in each.bins if bucket_of(value_ns).low_ns > limit_ns) for each in settled]
    hit, possible_hit = sum(map(bool, sure)), sum(map(bool, possible))
    seconds *= len(settled) / len(rounds)
    hours = seconds / 3600
    return Exceedance(
        limit_ns=limit_ns,
        ios=sum(sure),
        possible_ios=sum(possible),
        hit=hit,
        possible_hit=possible_hit,
        rounds=len(settled),
        seconds=seconds,
        low_per_hour=clusters(hit, len(settled), basis.level).low / hours,
        high_per_hour=clusters(possible_hit, len(settled), basis.level).high / hours,
        confidence=basis.sure.confidence,
    )
