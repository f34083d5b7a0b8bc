"""A number with its confidence interval; the mean of rounds, and ratios of two estimates.

Single I/Os and single seconds are not independent: a million I/Os share a dozen garbage-collection events, so an
interval computed from the number of I/Os is far too narrow. The independent observation is the round. Intervals of
quantiles are in `latency`, those of visits in `intervals`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import fmean, stdev

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.units import Unit, format_range, format_value

CONFIDENCE = 0.95
#: By how much more often an interval for a share of the error rate fails at any of up to 41 looks than
#: that share, for each factor of e: 1.32 times for 1/12, 1.62 for 1/180, 1.65 for 1/264
#: (``group_sequential.staying_inside``). Rounded up.
SHARED_LOOKS = 0.13


class CannotJudge(ValueError):
    """The evidence gives no figure for the claim; the message says why. Any other exception is a bug."""


class TooFew(CannotJudge):
    """There is not yet enough data for the figure; the message says how much is needed."""


class NotApplicable(CannotJudge):
    """The figure does not exist for what was measured, and more data would not change that."""


@frozen
class Estimate:
    """A number, its confidence interval, and the number of observations behind it."""

    value: float
    low: float
    #: May be infinite, when a latency lies in fio's last bucket.
    high: float
    n: int
    unit: Unit
    #: The interval is the resolution of a single reading; a longer measurement would not make it narrower.
    is_reading: bool = False
    #: Two-sided confidence of the interval; after visits, of all looks together.
    confidence: float = CONFIDENCE
    #: Condition under which the number holds, in words: ``rounds of 2 min``.
    basis: str = ""
    #: Reason why the interval has no upper end, if more evidence would give it one.
    unbounded: str = ""

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"{self.value} is not between {self.low} and {self.high}")

    def __str__(self) -> str:
        return f"{format_value(self.value, self.unit)} ({self.interval})"

    def times(self, factor: float) -> Estimate:
        """Return the estimate of ``factor`` times the figure."""
        return replace(self, value=factor * self.value, low=factor * self.low, high=factor * self.high)

    @property
    def interval(self) -> str:
        """The interval as text: ``95 % CI 9,350…9,470 IOPS``, or for a reading ``37…39 ms as read``."""
        return format_interval(
            self.low, self.high, self.unit, is_reading=self.is_reading, confidence=self.confidence, basis=self.basis
        )  # fmt: skip


def format_interval(
    low: float,
    high: float,
    unit: Unit,
    *,
    is_reading: bool,
    confidence: float,
    basis: str = "",
) -> str:
    """Format an interval for a sentence: ``95 % CI 9,350…9,470 IOPS``, ``37…39 ms as read``."""
    ends = format_range(low, high, unit)
    text = f"{ends} as read" if is_reading else f"{format_confidence(confidence)} CI {ends}"
    return f"{text}, {basis}" if basis else text


def format_confidence(confidence: float) -> str:
    """Format a confidence: ``95 %``, ``99.9 %``."""
    return f"{100 * confidence:.6g} %"


@frozen
class ConfidenceLevel:
    """Two-sided confidence of an interval, and the share of the error budget that it may use (Bonferroni)."""

    #: Two-sided confidence that is stated with the interval.
    confidence: float = CONFIDENCE
    #: Share of the error rate 1 - confidence that this interval may use; below 1 if several have to hold at once.
    share: float = 1.0

    def level(self, of_look: float | None = None) -> float:
        """Confidence at which to compute the interval: 1 - share × (1 - confidence), or with that of a look.

        ``of_look`` holds at all looks together for the whole error rate. For a share of it, the looks are less
        dependent, because far ends are reached at few of them: all together would err ``SHARED_LOOKS`` more often.
        """
        if of_look is None:
            return 1 - self.share * (1 - self.confidence)
        return 1 - self.share / (1 - SHARED_LOOKS * math.log(self.share)) * (1 - of_look)

    def among(self, several: int) -> ConfidenceLevel:
        """Return the level of one of ``several`` intervals that have to hold simultaneously."""
        return replace(self, share=self.share / several)


USUAL = ConfidenceLevel()


@lru_cache(maxsize=256)
def student_t(confidence: float, degrees: int) -> float:
    """Two-sided quantile of Student's t: the standard errors to either side that hold ``confidence``."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + confidence) / 2))


def mean_of_rounds(
    values: Sequence[float], unit: Unit, confidence_level: ConfidenceLevel = USUAL, least: float = 0.0
) -> Estimate:
    """Mean of round means with Student's interval (non-overlapping batch means).

    Valid if a round is long compared with the drive's own period. ``least`` is the standard deviation that counting
    alone gives to rounds; it is used if the rounds show less. ``TooFew`` below two rounds.
    """
    if len(values) < 2:
        raise TooFew(f"an interval needs at least 2 rounds, there are {len(values)}")
    mean = fmean(values)
    half = student_t(confidence_level.level(), len(values) - 1) * max(stdev(values), least) / math.sqrt(len(values))
    return Estimate(mean, mean - half, mean + half, len(values), unit, confidence=confidence_level.confidence)


def ratio(estimate: Estimate, reference: Estimate, unit: Unit = Unit.PERCENT) -> Estimate:
    """``estimate`` in per cent of ``reference``, or with ``Unit.RATIO`` as its multiple.

    The interval combines the ends: the low end of one with the high end of the other. It is wider than a joint interval
    at the same confidence, never narrower. Both figures are non-negative, so the result is cut at 0; if the reference's
    interval reaches 0, the result has no upper end. ValueError if the units differ or ``unit`` is neither; ``TooFew``
    if the reference is zero.
    """
    if estimate.unit is not reference.unit or unit not in (Unit.PERCENT, Unit.RATIO):
        raise ValueError(f"no ratio in {unit} of an estimate in {estimate.unit} to one in {reference.unit}")
    if reference.value <= 0:
        raise TooFew(f"a ratio needs a reference above zero, not {reference}")
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
