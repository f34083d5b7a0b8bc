"""Confidence interval of a mean or a share, from independent rounds or from batch means of one series.

Neighbouring blocks of a series are not independent. So the standard error comes from overlapping batch means (Meketon &
Schmeiser 1984), a remaining transient is extrapolated instead of averaged, and the interval is widened by what a series
of this length may not have shown yet. Each step widens the interval. The constants were chosen on simulated drives and
validated on different ones (``bench/verdict_power.py``). `Basis` selects between rounds and series.

A plan simulates ten thousand looks and more. For 80 blocks the time of numpy's functions is that of calling them, so
several series, or several fits of one, are rows of one array, and a mean is `_mean`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from statistics import fmean, stdev, variance
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
#: What is left of a transient that is over.
GONE = 1e-100
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
#: Probability of a difference between repeats by chance up to which it counts. Of two repeats that scatter by 1.5 %,
#: and their rounds by 0.4 %, 6 % pass exactly on their limit, and 25 % if it never counts. It is not larger because two
#: repeats have Student's factor 12.7: of drives 2 % above their limit, with rounds of 1 %, 80 % pass instead of 97 %.
DIFFERENT = 0.2
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
    count, seconds = len(top), len(top) * block_s
    if not bottom.sum() > 0:
        raise TooFew("no I/O was counted")
    value = float(top.sum() / bottom.sum())
    # Ratio estimator: a block is weighted by its denominator (Cochran 1977, section 6.4).
    off = (top - value * bottom) / float(_mean(bottom))
    size = max(1, count // MEANS)
    ((error, down, up),) = _scatter(off[None, :], size, level)
    unobserved = abs(value) * _unobserved(look, seconds)
    low, high = value - down * error - unobserved, value + up * error + unobserved
    for end, uncertain, falls in _ends(value, off, min(LONGEST, CAP * look.slowest_s / seconds), size):
        if falls:
            low = min(low, end - TREND * uncertain)
        else:
            high = max(high, end + TREND * uncertain)
    return Bounds(value, low, high, error, 12 * float(_mean((_time(count) - 0.5) * off)))


def standard_error(values: Blocks) -> float:
    """Return the standard error of the mean of a series, by overlapping batch means."""
    return float(_errors(values - _mean(values), max(1, len(values) // MEANS)))


def miss(series: Blocks, level: float, error: float) -> float:
    """Return by how much, at most, the interval of the mean of a row of ``series`` fails to hold all of 1 ± ``error``.

    An interval is that of the scatter of its row alone, at the two-sided ``level``; 0 if all hold it.
    """
    means = _mean(series)
    scatter = _scatter(series - means[:, None], max(1, series.shape[1] // MEANS), level)
    ends: list[tuple[float, float]] = [
        (mean - down * own, mean + up * own) for mean, (own, down, up) in zip(means.tolist(), scatter, strict=True)
    ]
    return max(0.0, *(max(low - (1 - error), 1 + error - high) for low, high in ends))


def _mean(values: Blocks) -> Blocks:
    """Mean of each row, as of ``values.mean(axis=-1)``."""
    import numpy as np

    return np.asarray(np.add.reduce(values, axis=-1) / values.shape[-1])


def _scatter(off: Blocks, size: int, level: float) -> list[tuple[float, float, float]]:
    """Return the standard error of the mean of each row, and how many of it the interval goes down and up."""
    import numpy as np

    t = student_t(level, round(1.5 * (off.shape[1] / size - 1)))
    scatter = np.sqrt(_mean(off * off))
    # The skewness of a row without scatter is not looked at.
    scaled = off / np.where(scatter, scatter, 1.0)[:, None]
    skews = _mean(scaled * scaled * scaled)
    columns = (each.tolist() for each in (_errors(off, size), scatter, skews))
    return [(error, *_skewed(spread, skew, error, t)) for error, spread, skew in zip(*columns, strict=True)]


def _unobserved(look: Look, seconds: float) -> float:
    """Return what a series of ``seconds`` may not have shown yet, as a share of its mean.

    What longer series of the same drives have shown replaces the assumption of one pause.
    """
    if look.shared.has_excursions:
        return look.shared.excursion(seconds)
    return look.pause_s * max(0.0, 1 / seconds - 1 / (PERIODS * look.slowest_s))


def _skewed(scatter: float, skewness: float, error: float, t: float) -> tuple[float, float]:
    """Standard errors to go down and up, for ``t`` of a symmetrical distribution; never less than ``t``.

    ``scatter`` is the standard deviation of the blocks, ``skewness`` that of their distribution.

    Willink's adjustment for skewness (2005), as N-SKART uses it (Tafazzoli & Wilson 2011): a series that happens to
    lack a rare long dip makes the mean look better than it is. The number of independent blocks is the ratio of their
    variance to that of the mean.
    """
    if not error or not scatter:
        return t, t
    skew = skewness / (6 * max(1.0, scatter / error))
    if abs(skew) < SYMMETRICAL:
        return t, t
    down, up = ((math.cbrt(1 + 6 * skew * (side - skew)) - 1) / (2 * skew) for side in (t, -t))
    return max(t, down), max(t, -up)


def _time(count: int) -> Blocks:
    """Return the middles of blocks, as shares of the series."""
    import numpy as np

    return (np.arange(count) + 0.5) / count


@dataclass(frozen=True, slots=True)
class _Transients:
    """Exponential transients of several time constants, a row each."""

    #: Distance from their means.
    excess: Blocks
    means: Blocks
    #: Mean of the squared distance.
    power: Blocks
    #: Standard errors of a fitted end, in those of what the fit leaves.
    uncertain: Blocks


@lru_cache(maxsize=1024)
def _transients(count: int, longest: float) -> _Transients:
    """Return transients of the time constant ``longest``, and of a half, a quarter and an eighth of it.

    They depend on the number of blocks and the length of a series only, so all measurements have the same at a look.
    """
    import numpy as np

    shapes = np.exp(-_time(count) / (longest / np.array([1.0, 2.0, 4.0, 8.0]))[:, None])
    # What is over before the middle of the first block cannot be fitted.
    shapes = shapes[shapes[:, 0] > GONE]
    means = _mean(shapes)
    excess = shapes - means[:, None]
    power = _mean(excess * excess)
    return _Transients(excess, means, power, np.sqrt(1 + means * means / power))


def _ends(value: float, off: Blocks, longest: float, size: int) -> list[tuple[float, float, bool]]:
    """Fit value + height × transient by least squares, for each of ``_transients``.

    Return the end of each fit, its standard error, and whether it falls.
    """
    shapes = _transients(len(off), longest)
    heights = _mean(shapes.excess * off) / shapes.power
    errors = _errors(off - heights[:, None] * shapes.excess, size) * shapes.uncertain
    ends = (value - heights * shapes.means).tolist()
    return list(zip(ends, errors.tolist(), (heights > 0).tolist(), strict=True))


def _errors(off: Blocks, size: int) -> Blocks:
    """Standard error of the mean of each row, by overlapping means of ``size`` blocks (Meketon & Schmeiser 1984).

    It has 1.5 (n/size - 1) degrees of freedom, and holds if ``size`` is longer than the blocks' correlation.
    """
    import numpy as np

    count = off.shape[-1]
    sums = np.zeros((*off.shape[:-1], count + 1))
    np.add.accumulate(off, axis=-1, out=sums[..., 1:])
    moving = (sums[..., size:] - sums[..., :-size]) / size
    variance = count * size / ((count - size) * (count - size + 1)) * np.add.reduce(moving * moving, axis=-1)
    return np.asarray(np.sqrt(variance / count))


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
    #: Number of measurements of fixed length that the rounds belong to, one after the other, each with as many.
    repeats: int = 1

    @classmethod
    def of(cls, measured: Measured, confidence_level: ConfidenceLevel) -> Basis:
        """Return the basis for means, without the warm-up. The blocks of repeats follow each other as one series."""
        is_fixed = not measured.look and not measured.interleaved
        repeats = len(measured.runs) if is_fixed else 1
        return cls(confidence_level, measured.look, measured.observed_s, measured.interleaved, repeats)

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
        scatter, degrees = self._scatter(value, residuals, are_rates=are_rates)
        error = scatter / math.sqrt(count)
        half = student_t(self.level, degrees) * error
        down, up = self._drifts(value, residuals, are_rates=are_rates)
        return Bounds(value, value - half - FURTHER * down, value + half + FURTHER * up, error, 2 * (up - down))

    def _scatter(self, value: float, residuals: Sequence[float], *, are_rates: bool) -> tuple[float, int]:
        """Return the standard deviation of a round, and its degrees of freedom; of repeats that differ, ``of_repeats``.

        Rounds among those of other workloads: of rates the moderated one (see ``interleaving``), and never less than
        what all workloads show; of other ratios, which may vary much more or less than rates, the larger of the own
        and the shared one.
        """
        own, degrees, cells = stdev(residuals), len(residuals) - 1, self.interleaved
        if not cells:
            return of_repeats(residuals, self.repeats) or (own, degrees)
        shared, whole = cells.scatter * abs(value), float(degrees)
        if are_rates:
            whole += cells.scatter_degrees
            own = math.sqrt((degrees * own**2 + cells.scatter_degrees * shared**2) / whole)
        return max(own, shared) * widening(residuals), int(whole)

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


def of_repeats(values: Sequence[float], repeats: int) -> tuple[float, int] | None:
    """Return the scatter between repeats as the standard deviation of a round, and its degrees of freedom.

    None unless repeats differ by more than the rounds within them, at ``DIFFERENT``: then rounds of one repeat are no
    independent evidence. One-way analysis of variance: the mean square between repeats over that within them has the F
    distribution with r - 1 and r·(m - 1) degrees if rounds are independent.
    """
    from scipy.special import fdtrc

    size = len(values) // repeats
    if repeats < 2 or size < 2 or size * repeats != len(values):
        return None
    groups = [values[at : at + size] for at in range(0, len(values), size)]
    within = fmean(variance(each) for each in groups)
    between = size * variance(fmean(each) for each in groups)
    if not between or (within and fdtrc(repeats - 1, repeats * (size - 1), between / within) > DIFFERENT):
        return None
    return math.sqrt(between), repeats - 1


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
