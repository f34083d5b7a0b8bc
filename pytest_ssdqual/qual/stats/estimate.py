"""A number with its interval: means from rounds, ratios from numbers.

Single I/Os and single seconds are not independent: a million I/Os share a dozen garbage-collection
events, and an interval computed from their number is far too narrow. The unit of evidence is the round.

What an interval is made of: rounds that are independent, or consecutive blocks of one settled stretch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean, stdev

from pytest_ssdqual.qual.units import Unit, format_range, format_value

CONFIDENCE = 0.95


class CannotJudge(ValueError):
    """The evidence gives no figure for the claim; the sentence says why. Any other exception is a mistake of ours."""


class TooFew(CannotJudge):
    """Not yet: there is not enough data for the figure; the sentence says how much it takes."""


class NotApplicable(CannotJudge):
    """Never: the figure does not exist for what was measured, and more data would not change that."""


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
    #: Of the interval, two-sided; of a sequential measurement that of all looks together.
    confidence: float = CONFIDENCE
    #: What the number depends on and does not say by itself, in words: ``rounds of 2 min``.
    basis: str = ""
    #: Why the interval has no upper end, where more evidence would give it one.
    unbounded: str = ""

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"{self.value} is not between {self.low} and {self.high}")

    def __str__(self) -> str:
        return f"{format_value(self.value, self.unit)} ({self.interval})"

    @property
    def interval(self) -> str:
        """``95 % CI 9,350…9,470 IOPS``, or of a reading ``37…39 ms as read``."""
        return format_interval(
            self.low, self.high, self.unit, is_reading=self.is_reading, confidence=self.confidence, basis=self.basis
        )

    def to_record(self) -> dict[str, object]:
        """Plain data in base units; an unbounded end is None, because JSON has no infinity."""
        low, high = (end if math.isfinite(end) else None for end in (self.low, self.high))
        return {
            "value": self.value,
            "low": low,
            "high": high,
            "n": self.n,
            "unit": self.unit.value,
            "is_reading": self.is_reading,
            "confidence": self.confidence,
            "basis": self.basis,
        }


def format_interval(
    low: float, high: float, unit: Unit, *, is_reading: bool, confidence: float, basis: str = ""
) -> str:
    """An interval and what it is, as sentences have it: ``95 % CI 9,350…9,470 IOPS``, ``37…39 ms as read``."""
    ends = format_range(low, high, unit)
    said = f"{ends} as read" if is_reading else f"{format_confidence(confidence)} CI {ends}"
    return f"{said}, {basis}" if basis else said


def format_confidence(confidence: float) -> str:
    """``95 %``, ``99.9 %``."""
    return f"{100 * confidence:.6g} %"


@dataclass(frozen=True, slots=True)
class Sureness:
    """How sure an interval has to be."""

    #: Two-sided; what is stated.
    confidence: float = CONFIDENCE
    #: Of the error rate, what may be spent on this interval, because several have to hold at once (Bonferroni).
    share: float = 1.0

    def level(self, confidence: float | None = None) -> float:
        """Confidence of an interval that spends no more than its share; of that of a look, if one is given."""
        return 1 - self.share * (1 - (self.confidence if confidence is None else confidence))

    def among(self, several: int) -> Sureness:
        """For one of several intervals that are to hold all together."""
        return replace(self, share=self.share / several)


USUAL = Sureness()


@lru_cache(maxsize=256)
def student_t(confidence: float, degrees: int) -> float:
    """How many standard errors to either side hold ``confidence`` of Student's t distribution."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + confidence) / 2))


def mean_of_rounds(values: Sequence[float], unit: Unit, sure: Sureness = USUAL, least: float = 0.0) -> Estimate:
    """Mean of round means with Student's interval (non-overlapping batch means).

    Rounds have to be long against the drive's own rhythm for this to hold; ``TooFew`` below two. ``least`` is the
    standard deviation that rounds have by the way in which they are counted, if they show less.
    """
    if len(values) < 2:
        raise TooFew(f"an interval needs at least 2 rounds, there are {len(values)}")
    mean = fmean(values)
    half = student_t(sure.level(), len(values) - 1) * max(stdev(values), least) / math.sqrt(len(values))
    return Estimate(mean, mean - half, mean + half, len(values), unit, confidence=sure.confidence)


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
        confidence=min(estimate.confidence, reference.confidence),
    )
