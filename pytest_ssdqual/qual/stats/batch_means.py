"""The interval of a mean, or of a share, from consecutive blocks of one stretch of time.

Neighbouring blocks are not independent, so their scatter is taken from overlapping means of several blocks; what is
left of a transient is extrapolated instead of being averaged away; and what a stretch of this length cannot have shown
yet is allowed for. Each makes the interval wider, never narrower. The rule's figures were chosen on simulated drives
(``bench/verdict_power.py``), and judged on others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import TYPE_CHECKING, TypeVar

from pytest_ssdqual.qual.measured.run import Look, Measured
from pytest_ssdqual.qual.stats.estimate import USUAL, Sureness, TooFew, student_t
from pytest_ssdqual.qual.units import format_duration

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Blocks = NDArray[float64]

#: Into how many blocks a measurement is cut, and the fewest that have an interval.
COUNT, FEWEST = 80, 16
#: A stretch is as long as this many of the means that its scatter is taken from.
MEANS = 10
#: The slowest transient that is looked for, in multiples of the stretch (slower ones are a straight line in it) and of
#: the slowest time constant that is expected.
LONGEST, CAP = 3.0, 2.0
#: A warm-up that is longer than this share of the series is no warm-up: the series changes its level (White 1997 calls
#: a truncation beyond half "too short to say"; a third halves the false verdicts on drives that switch between
#: regimes).
LONGEST_WARMUP = 1 / 3
#: How sure the end of a transient has to be, in standard errors: little, because the interval has to hold as well.
TREND = 0.9
#: A skewness that makes no difference.
SYMMETRICAL = 1e-3
#: Where later parts of a stretch begin, by which the side is judged that a transient moves away from.
LATER = (0.3, 0.6)
#: In standard errors, when a trend is one.
CLEAR = 2.5
#: After so many times the slowest rhythm nothing new is expected.
SEEN = 1.6


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
    """Bounds of Σ ``numerators`` / Σ ``denominators``; see the module for what they account for.

    IOPS: I/Os by seconds of each block; a share: slow I/Os by I/Os. ``seconds`` is the length of all blocks, of which
    the look leaves out some and takes some more for warm-up; ``level`` is the two-sided confidence, that of the look if
    it is not given. ``TooFew`` below ``FEWEST`` blocks after the warm-up, if nothing was counted in them, or if the
    warm-up is too long to be one.
    """
    import numpy as np

    block_s, sure = seconds / max(1, len(numerators)), look.level if level is None else level
    _require_settled(look, len(numerators), block_s)
    top, bottom = (np.asarray(each[look.left_out :], float) for each in (numerators, denominators))
    head = look.head
    if len(top) - head < FEWEST:
        raise TooFew(f"an interval needs at least {FEWEST} blocks, there are {max(0, len(top) - head)}")
    found = _of(top[head:], bottom[head:], block_s, look, sure)
    low, high = found.low, found.high
    if head:
        # A transient shows best where it is largest; on the settled part alone it may hide in the noise.
        whole = _of(top, bottom, block_s, look, sure)
        low, high = (min(low, whole.low), high) if whole.drift < 0 else (low, max(high, whole.high))
    # The least-squares line over a stretch scatters by √12 times the error of its mean.
    is_trend = abs(found.drift) > CLEAR * math.sqrt(12) * found.error
    for part in LATER if is_trend else ():
        begin = head + round(part * (len(top) - head))
        if len(top) - begin < FEWEST or (len(top) - begin) * block_s < look.slowest_s:
            continue
        later = _of(top[begin:], bottom[begin:], block_s, look, sure)
        # Of what falls, its later part is an upper bound that is not spoilt by its head, whatever the trend.
        if found.drift < 0:
            high = max(found.value, low, min(high, later.high))
        else:
            low = min(found.value, high, max(low, later.low))
    return Bounds(found.value, min(low, found.value), max(high, found.value), found.error, found.drift)


def _require_settled(look: Look, count: int, block_s: float) -> None:
    warmup = look.left_out + look.head
    if warmup > LONGEST_WARMUP * count:
        head, whole = format_duration(warmup * block_s), format_duration(count * block_s)
        raise TooFew(f"the first {head} of {whole} differ from the rest: the series is not settled on one level")


def _of(top: Blocks, bottom: Blocks, block_s: float, look: Look, level: float) -> Bounds:
    """Of one stretch, all of whose blocks count."""
    import numpy as np

    count, seconds = len(top), len(top) * block_s
    if not bottom.sum() > 0:
        raise TooFew("nothing was counted")
    value = float(top.sum() / bottom.sum())
    # A ratio estimator: a block counts by its denominator (Cochran 1977, section 6.4).
    off = (top - value * bottom) / bottom.mean()
    size = max(1, count // MEANS)
    error = _error(off, size)
    t = student_t(level, round(1.5 * (count / size - 1)))
    down, up = _skewed(off, error, t)
    unseen = abs(value) * look.pause_s * max(0.0, 1 / seconds - 1 / (SEEN * look.slowest_s))
    at = (np.arange(count) + 0.5) / count
    low, high = value - down * error - unseen, value + up * error + unseen
    longest = min(LONGEST, CAP * look.slowest_s / seconds)
    for tau in (longest, longest / 2, longest / 4, longest / 8):
        end, uncertain, falls = _end(value, off, np.exp(-at / tau), size)
        if falls:
            low = min(low, end - TREND * uncertain)
        else:
            high = max(high, end + TREND * uncertain)
    return Bounds(value, low, high, error, 12 * float(((at - 0.5) * off).mean()))


def _skewed(off: Blocks, error: float, t: float) -> tuple[float, float]:
    """How many standard errors to go down and up for ``t`` of a symmetrical distribution.

    Willink's adjustment for skewness (2005), as N-SKART uses it (Tafazzoli & Wilson 2011): rare long dips make a mean
    look better than it is as often as they do not happen. Blocks count as so many independent ones as their variance
    has of that of the mean. Never less than ``t``.
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
    """Where value + height × ``shape`` ends, by least squares; its standard error; and whether it falls."""
    excess = shape - shape.mean()
    power = float((excess**2).mean())
    height = float((excess * off).mean()) / power
    error = _error(off - height * excess, size)
    mean = float(shape.mean())
    return value - height * mean, error * math.sqrt(1 + mean**2 / power), height > 0


def _error(off: Blocks, size: int) -> float:
    """Standard error of the mean of ``off``, by overlapping means of ``size`` blocks (Meketon & Schmeiser 1984).

    Their variance is that of the mean if ``size`` is longer than blocks depend on each other; with 1.5 (n/size - 1)
    degrees of freedom.
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
    """How rounds become an interval."""

    sure: Sureness = USUAL
    #: Of a sequential measurement; None: the rounds are independent of each other.
    look: Look | None = None
    #: Length of the stretch that was cut into blocks; only of a sequential measurement.
    seconds: float = 0.0

    @classmethod
    def of(cls, measured: Measured, sure: Sureness) -> Basis:
        """For means of a measurement: its warm-up is left out. Blocks of repeats follow each other as one stretch."""
        return cls(sure, measured.look, sum(run.window_s for run in measured.runs) if measured.look else 0.0)

    @classmethod
    def whole(cls, measured: Measured, sure: Sureness) -> Basis:
        """For extremes and quantiles: nothing behind the protocol's ramp is left out, or a stall would be cut away."""
        return cls.of(measured, sure).uncut

    @property
    def uncut(self) -> Basis:
        """The same without a warm-up."""
        return replace(self, look=replace(self.look, left_out=0, head=0)) if self.look else self

    @property
    def level(self) -> float:
        """Two-sided confidence of the interval itself; ``sure.confidence`` is what is stated."""
        return self.sure.level(self.look.level if self.look else None)

    def settled(self, rounds: Sequence[T]) -> Sequence[T]:
        """Without the blocks at the head of a look that are warm-up."""
        return rounds[self.look.left_out + self.look.head :] if self.look else rounds

    def bounds(self, numerators: Sequence[float], denominators: Sequence[float]) -> Bounds:
        """Σ numerators / Σ denominators, one of each for every round, with its interval.

        A ratio estimator: a round counts by its denominator. Of independent rounds the standard error is that of the
        residuals k_j - r·n_j, with Student's factor (Cochran 1977, section 6.4). ``TooFew`` below two rounds, or as
        ``blocks.bounds``.
        """
        if self.look:
            return bounds(numerators, denominators, self.seconds, self.look, self.level)
        count = len(numerators)
        require_rounds(count)
        if not sum(denominators) > 0:
            raise TooFew("nothing was counted")
        value = math.fsum(numerators) / math.fsum(denominators)
        residuals = [k - value * n for k, n in zip(numerators, denominators, strict=True)]
        error = stdev(residuals) / fmean(denominators) / math.sqrt(count)
        half = student_t(self.level, count - 1) * error
        return Bounds(value, value - half, value + half, error, 0.0)

    def time_each(self, times: Sequence[float], counts: Sequence[float]) -> Bounds:
        """Σ times / Σ counts: how long one of what is counted takes, with its interval.

        Of a look it is the reciprocal of counts per time: what blocks allow for as not yet seen is work lost, which
        makes everything take longer.
        """
        if not self.look:
            return self.bounds(times, counts)
        rate = self.bounds(counts, times)
        if rate.value <= 0:
            raise TooFew("nothing was counted")
        return Bounds(
            value=1 / rate.value,
            low=1 / rate.high,
            high=1 / rate.low if rate.low > 0 else math.inf,
            error=rate.error / rate.value**2,
            drift=-rate.drift / rate.value**2,
        )


#: Of independent rounds, at the usual confidence.
ROUNDS = Basis()


def require_rounds(count: int) -> None:
    """``TooFew`` if so many rounds have no interval."""
    if count < 2:
        raise TooFew(f"an interval needs at least 2 rounds, there are {count}")
