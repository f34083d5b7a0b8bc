"""Confidence interval of a mean or a share, from independent rounds or from batch means of one series.

Neighbouring blocks of a series are not independent. So the standard error comes from overlapping batch means (Meketon &
Schmeiser 1984), a remaining transient is extrapolated instead of averaged, and the interval is widened by what a series
of this length may not have shown yet. Each step widens the interval. The constants were chosen on simulated drives and
validated on different ones (``bench/verdict_power.py``). `Basis` selects between rounds and series.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, stdev
from typing import TYPE_CHECKING, TypeVar

from pytest_ssdqual.qual.measured.interleaved import Interleaved
from pytest_ssdqual.qual.measured.run import Look, Measured
from pytest_ssdqual.qual.stats.estimate import USUAL, ConfidenceLevel, TooFew, student_t
from pytest_ssdqual.qual.stats.shared_evidence import NOTHING_KNOWN
from pytest_ssdqual.qual.units import format_duration

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Blocks = NDArray[float64]

#: Number of blocks of a measurement, and the fewest that give an interval.
COUNT, FEWEST = 80, 16
#: Batches per series: a batch is this part of the series.
MEANS = 10
#: Slowest transient that is fitted, in multiples of the series' length (slower ones look like a straight line) and of
#: the slowest expected time constant.
LONGEST, CAP = 3.0, 2.0
#: Longest warm-up, as a share of the series: beyond it the series changes its level. White (1997) calls a truncation
#: beyond half "too short to say"; a third halves the false verdicts on drives that switch between regimes.
LONGEST_WARMUP = 1 / 3
#: Allowance for the extrapolated end of a transient, in its standard errors: little, because the interval has to hold
#: as well.
TREND = 0.9
#: Skewness below which no adjustment is made.
SYMMETRICAL = 1e-3
#: Begin of the later parts of a series, as shares of it: they bound the side that a transient moves away from.
LATER = (0.3, 0.6)
#: Standard errors from which a drift counts as a trend.
CLEAR = 2.5
#: Largest correlation of neighbouring rounds by which an interval is widened; beyond it a series is a trend.
MOST_CORRELATED = 0.9
#: How far a drift of rounds leads, as a multiple of its way from their mean to the last round: a transient with the
#: slowest expected time constant, 70 min, has 2.7 times that way to go after rounds of an hour.
FURTHER = 3.0
#: Two-sided confidence from which rounds drift.
LIKELY = 0.95
#: Multiples of the slowest period after which a series has shown every phase.
PERIODS = 1.6


@dataclass(frozen=True, slots=True)
class Bounds:
    """A value and the interval that should hold its long-run mean."""

    value: float
    low: float
    high: float
    #: Standard error of the value, autocorrelation included.
    error: float
    #: Change over the stretch along the least-squares line.
    drift: float


def bounds(
    numerators: Sequence[float], denominators: Sequence[float], seconds: float, look: Look, level: float | None = None
) -> Bounds:
    """Ratio Σ ``numerators`` / Σ ``denominators`` with its interval; see the module for what the interval accounts for.

    IOPS: I/Os by seconds of each block; a share: slow I/Os by I/Os. ``seconds`` is the length of all blocks together.
    The look names the blocks that are left out and those that are warm-up; ``level`` is the two-sided confidence, the
    look's if None. ``TooFew`` below ``FEWEST`` blocks after the warm-up, if nothing was counted in them, or if the
    warm-up is longer than ``LONGEST_WARMUP``.
    """
    import numpy as np

    block_s, confidence = seconds / max(1, len(numerators)), look.level if level is None else level
    _require_settled(look, len(numerators), block_s)
    top, bottom = (np.asarray(blocks[look.left_out :], float) for blocks in (numerators, denominators))
    head = look.head
    if len(top) - head < FEWEST:
        raise TooFew(f"an interval needs at least {FEWEST} blocks, there are {max(0, len(top) - head)}")
    settled = _bounds_of_series(top[head:], bottom[head:], block_s, look, confidence)
    low, high = settled.low, settled.high
    if head:
        # A transient is clearest where it is largest; in the settled part alone the noise may hide it.
        whole = _bounds_of_series(top, bottom, block_s, look, confidence)
        low, high = (min(low, whole.low), high) if whole.drift < 0 else (low, max(high, whole.high))
    # The least-squares line over a stretch scatters by √12 times the error of its mean.
    is_trend = abs(settled.drift) > CLEAR * math.sqrt(12) * settled.error
    for part in LATER if is_trend else ():
        begin = head + round(part * (len(top) - head))
        if len(top) - begin < FEWEST or (len(top) - begin) * block_s < look.slowest_s:
            continue
        later = _bounds_of_series(top[begin:], bottom[begin:], block_s, look, confidence)
        # The later part of a falling series bounds it from above, whatever shape the trend has at the head.
        if settled.drift < 0:
            high = max(settled.value, low, min(high, later.high))
        else:
            low = min(settled.value, high, max(low, later.low))
    return Bounds(settled.value, min(low, settled.value), max(high, settled.value), settled.error, settled.drift)


def _require_settled(look: Look, count: int, block_s: float) -> None:
    warmup = look.left_out + look.head
    if warmup > LONGEST_WARMUP * count:
        head, whole = format_duration(warmup * block_s), format_duration(count * block_s)
        raise TooFew(f"the first {head} of {whole} differ from the rest: the series is not settled on one level")


def _bounds_of_series(top: Blocks, bottom: Blocks, block_s: float, look: Look, level: float) -> Bounds:
    """Bounds of one series, all of whose blocks count."""
    import numpy as np

    count, seconds = len(top), len(top) * block_s
    if not bottom.sum() > 0:
        raise TooFew("no I/O was counted")
    value = float(top.sum() / bottom.sum())
    # Ratio estimator: a block is weighted by its denominator (Cochran 1977, section 6.4).
    off = (top - value * bottom) / bottom.mean()
    size = max(1, count // MEANS)
    error, down, up = _scatter(off, size, level)
    unobserved = abs(value) * _unobserved(look, seconds)
    time = (np.arange(count) + 0.5) / count
    low, high = value - down * error - unobserved, value + up * error + unobserved
    longest = min(LONGEST, CAP * look.slowest_s / seconds)
    for tau in (longest, longest / 2, longest / 4, longest / 8):
        end, uncertain, falls = _end(value, off, np.exp(-time / tau), size)
        if falls:
            low = min(low, end - TREND * uncertain)
        else:
            high = max(high, end + TREND * uncertain)
    return Bounds(value, low, high, error, 12 * float(((time - 0.5) * off).mean()))


def standard_error(values: Blocks) -> float:
    """Return the standard error of the mean of a series, by overlapping batch means."""
    return _error(values - values.mean(), max(1, len(values) // MEANS))


def miss(values: Blocks, level: float, error: float) -> float:
    """Return by how much the interval of the mean of ``values`` fails to hold all of 1 ± ``error``.

    The interval is that of their scatter alone, at the two-sided ``level``; 0 if it holds it.
    """
    mean = float(values.mean())
    own, down, up = _scatter(values - mean, max(1, len(values) // MEANS), level)
    return max(0.0, mean - down * own - (1 - error), 1 + error - mean - up * own)


def _scatter(off: Blocks, size: int, level: float) -> tuple[float, float, float]:
    """Return the standard error of a mean, and how many of it the interval goes down and up."""
    error = _error(off, size)
    return error, *_skewed(off, error, student_t(level, round(1.5 * (len(off) / size - 1))))


def _unobserved(look: Look, seconds: float) -> float:
    """Return what a series of ``seconds`` may not have shown yet, as a share of its mean.

    What longer series of the same drives have shown replaces the assumption of one pause.
    """
    if look.shared.has_excursions:
        return look.shared.excursion(seconds)
    return look.pause_s * max(0.0, 1 / seconds - 1 / (PERIODS * look.slowest_s))


def _skewed(off: Blocks, error: float, t: float) -> tuple[float, float]:
    """Standard errors to go down and up, for ``t`` of a symmetrical distribution; never less than ``t``.

    Willink's adjustment for skewness (2005), as N-SKART uses it (Tafazzoli & Wilson 2011): a series that happens to
    lack a rare long dip makes the mean look better than it is. The number of independent blocks is the ratio of their
    variance to that of the mean.
    """
    scatter = math.sqrt(float((off**2).mean()))
    if not error or not scatter:
        return t, t
    skew = float(((off / scatter) ** 3).mean()) / (6 * max(1.0, scatter / error))
    if abs(skew) < SYMMETRICAL:
        return t, t
    down, up = ((math.cbrt(1 + 6 * skew * (side - skew)) - 1) / (2 * skew) for side in (t, -t))
    return max(t, down), max(t, -up)


def _end(value: float, off: Blocks, shape: Blocks, size: int) -> tuple[float, float, bool]:
    """Fit value + height × ``shape`` by least squares; return the end, its standard error, and whether it falls."""
    excess = shape - shape.mean()
    power = float((excess**2).mean())
    height = float((excess * off).mean()) / power
    error = _error(off - height * excess, size)
    mean = float(shape.mean())
    return value - height * mean, error * math.sqrt(1 + mean**2 / power), height > 0


def _error(off: Blocks, size: int) -> float:
    """Standard error of the mean of ``off``, by overlapping means of ``size`` blocks (Meketon & Schmeiser 1984).

    It has 1.5 (n/size - 1) degrees of freedom, and holds if ``size`` is longer than the blocks' correlation.
    """
    import numpy as np

    count = len(off)
    sums = np.concatenate(([0.0], np.cumsum(off)))
    moving = (sums[size:] - sums[:-size]) / size
    variance = count * size / ((count - size) * (count - size + 1)) * float((moving**2).sum())
    return math.sqrt(variance / count)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Basis:
    """Basis of confidence intervals: independent rounds, or batch means of one series (at a look)."""

    confidence_level: ConfidenceLevel = USUAL
    #: The look of a sequential measurement; None if the rounds are independent.
    look: Look | None = None
    #: Length of the stretch that was cut into blocks or rounds.
    seconds: float = 0.0
    #: If the rounds are cells among those of other workloads.
    interleaved: Interleaved | None = None

    @classmethod
    def of(cls, measured: Measured, confidence_level: ConfidenceLevel) -> Basis:
        """Return the basis for means, without the warm-up. The blocks of repeats follow each other as one series."""
        return cls(confidence_level, measured.look, measured.observed_s, measured.interleaved)

    @classmethod
    def whole(cls, measured: Measured, confidence_level: ConfidenceLevel) -> Basis:
        """Return the basis for quantiles: only the protocol's ramp is left out, so that no stall is cut away."""
        return cls.of(measured, confidence_level).uncut

    @classmethod
    def of_extremes(cls, measured: Measured, confidence_level: ConfidenceLevel) -> Basis:
        """Return the basis for the slowest I/Os and seconds: that of quantiles, at the looks' level for extremes."""
        whole = cls.whole(measured, confidence_level)
        if whole.interleaved and whole.interleaved.extremes_level:
            cells = whole.interleaved
            return replace(whole, interleaved=replace(cells, level=cells.extremes_level or cells.level))
        if whole.look is None or whole.look.extremes_level is None:
            return whole
        return replace(whole, look=replace(whole.look, level=whole.look.extremes_level))

    @property
    def uncut(self) -> Basis:
        """The same basis without a warm-up."""
        if self.look is None:
            return self
        # Series of IOPS have shown nothing about quantiles.
        return replace(self, look=replace(self.look, left_out=0, head=0, shared=NOTHING_KNOWN))

    @property
    def level(self) -> float:
        """Two-sided confidence at which intervals are computed; ``confidence_level.confidence`` is the stated one."""
        at = self.look or self.interleaved
        return self.confidence_level.level(at.level if at else None)

    def settled(self, rounds: Sequence[T]) -> Sequence[T]:
        """Return the rounds without the blocks that are warm-up."""
        return rounds[self.look.left_out + self.look.head :] if self.look else rounds

    def bounds(self, numerators: Sequence[float], denominators: Sequence[float], *, are_rates: bool = False) -> Bounds:
        """Ratio Σ numerators / Σ denominators with its interval; both have one value a round.

        Ratio estimator: a round is weighted by its denominator. For independent rounds the standard error is that of
        the residuals k_j - r·n_j, with Student's factor (Cochran 1977, section 6.4). ``are_rates``: a drift of the IOPS
        moves the ratio to the same side; other ratios it may move to either. ``TooFew`` below two rounds, or as
        ``bounds`` raises it.
        """
        if self.look:
            return bounds(numerators, denominators, self.seconds, self.look, self.level)
        count = len(numerators)
        require_rounds(count)
        if not sum(denominators) > 0:
            raise TooFew("no I/O was counted")
        value = math.fsum(numerators) / math.fsum(denominators)
        residuals = [(k - value * n) / fmean(denominators) for k, n in zip(numerators, denominators, strict=True)]
        scatter = stdev(residuals)
        if self.interleaved:
            scatter = max(scatter, self.interleaved.scatter * abs(value)) * widening(residuals)
        error = scatter / math.sqrt(count)
        half = student_t(self.level, count - 1) * error
        down, up = self._drifts(value, residuals, are_rates=are_rates)
        return Bounds(value, value - half - FURTHER * down, value + half + FURTHER * up, error, 2 * (up - down))

    def _drifts(self, value: float, residuals: Sequence[float], *, are_rates: bool) -> tuple[float, float]:
        """Return how far rounds among those of other workloads fell, and rose, from their mean to the last one.

        Their own drift counts, and the one that all workloads share; whichever is larger.
        """
        if not self.interleaved:
            return 0.0, 0.0
        shared = self.interleaved.drift * abs(value)
        found = (own_drift(residuals), *((shared,) if are_rates else (shared, -shared)))
        return max(0.0, -min(found)), max(0.0, *found)

    def time_each(self, times: Sequence[float], counts: Sequence[float]) -> Bounds:
        """Time per item, Σ times / Σ counts, with its interval.

        At a look and in rounds it is the reciprocal of counts per time: the allowance for what was not observed is lost
        work, which makes every item take longer, and a drift of IOPS is one of them. ``TooFew`` as ``bounds``, or if
        nothing was counted.
        """
        if not self.look and not self.interleaved:
            return self.bounds(times, counts)
        rate = self.bounds(counts, times, are_rates=True)
        if rate.value <= 0:
            raise TooFew("no I/O was counted")
        return Bounds(
            value=1 / rate.value,
            low=1 / rate.high,
            high=1 / rate.low if rate.low > 0 else math.inf,
            error=rate.error / rate.value**2,
            drift=-rate.drift / rate.value**2,
        )


def own_drift(residuals: Sequence[float]) -> float:
    """Return the way from the mean of rounds to the last one along their least-squares line; 0 unless it is likely."""
    count = len(residuals)
    if count < 3 or not any(residuals):
        return 0.0
    times = [index - (count - 1) / 2 for index in range(count)]
    power = math.fsum(each * each for each in times)
    slope = math.fsum(time * each for time, each in zip(times, residuals, strict=True)) / power
    rest = math.fsum((each - slope * time) ** 2 for time, each in zip(times, residuals, strict=True))
    is_likely = abs(slope) > student_t(LIKELY, count - 2) * math.sqrt(rest / (count - 2) / power)
    return slope * (count - 1) / 2 if is_likely else 0.0


def widening(residuals: Sequence[float]) -> float:
    """Return the factor by which the correlation of neighbouring rounds widens an interval, at least 1.

    √((1 + r)/(1 - r)), the factor of a first-order autoregressive series with the correlation r.
    """
    squares = math.fsum(each * each for each in residuals)
    if not squares:
        return 1.0
    found = math.fsum(one * following for one, following in pairwise(residuals)) / squares
    correlation = min(MOST_CORRELATED, max(0.0, found))
    return math.sqrt((1 + correlation) / (1 - correlation))


#: Independent rounds at the default confidence.
ROUNDS = Basis()


def require_rounds(count: int) -> None:
    """Raise ``TooFew`` below the two rounds that an interval needs."""
    if count < 2:
        raise TooFew(f"an interval needs at least 2 rounds, there are {count}")
