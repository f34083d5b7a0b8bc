"""Simulated drives: IOPS of each second under a saturating load, of many kinds, with known means.

A kind draws a new drive each time: a random generator and a number of seconds → rates in units of
the drive's long-run mean. `SETTLED` kinds are stationary: their mean over time is 1 in closed form.
`LATE` ones are still changing when conditioning has ended, and 1 is what they come to. `Approach` is
the way there from the first random write after a fill, in capacities written.

`REAL` kinds have the figures of published series of enterprise drives (SSD-iq, PVLDB 18, 2025, and
others): ten seconds scatter by 0.65 % (0.36 to 5), with a correlation over 25 to 207 s; rhythms of
15 to 27 min stay below 1 %; garbage collection is in the level, not in dips. The others are the
benches' imagination of worse drives: what a rule endures there it does not need on those series.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

Series = npt.NDArray[np.float64]
Kind = Callable[[np.random.Generator, int], Series]
#: Draws the lengths in seconds of this number of gaps or dips.
Lengths = Callable[[int], Series]
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Dips:
    """Dips that come again and again, as of garbage collection; ranges of uniform distributions."""

    period_s: Range
    dip_s: Range
    #: Share of the rate that is lost in a dip.
    depth: Range
    #: How irregular, ± this share of every gap and of every dip.
    jitter: float = 0.3

    def drawn(self, rng: np.random.Generator, seconds: int) -> Series:
        """Draw a drive's dips, mean 1."""
        ranges = self.period_s, self.dip_s, self.depth
        period_s, dip_s, depth = (rng.uniform(*each) for each in ranges)
        gaps = _around(rng, period_s - dip_s, self.jitter)
        busy = events(rng, seconds, gaps, _around(rng, dip_s, self.jitter), period_s)
        return (1 - depth * busy) / (1 - depth * dip_s / period_s)


@dataclass(frozen=True, slots=True)
class Pareto:
    """A distribution with a heavy tail, cut off at the largest value."""

    shape: float
    smallest: float
    largest: float

    @property
    def mean(self) -> float:
        without_cut = self.shape / (self.shape - 1) * self.smallest
        share = self.smallest / self.largest
        return float(without_cut * (1 - share ** (self.shape - 1)) / (1 - share**self.shape))

    def draw(self, rng: np.random.Generator, count: int) -> Series:
        """Draw by inversion."""
        beyond = (self.smallest / self.largest) ** self.shape
        return np.asarray(self.smallest * (1 - rng.random(count) * (1 - beyond)) ** (-1 / self.shape))


def real(rng: np.random.Generator, seconds: int) -> Series:
    """Settled as public series of uniform random writes are."""
    fast = remembering(rng, seconds, rng.uniform(0.2, 0.6), rng.uniform(0.008, 0.015))
    slow = remembering(rng, seconds, math.exp(-1 / rng.uniform(25, 200)), rng.uniform(0.002, 0.006))
    return 1 + fast + slow


def rhythm(rng: np.random.Generator, seconds: int) -> Series:
    """As `real`, with a rhythm of 15 to 27 min below 1 %."""
    return real(rng, seconds) * _swing(rng, seconds, (0.003, 0.01), (900, 1620))


def dipping(rng: np.random.Generator, seconds: int) -> Series:
    """The noisiest settled series (skewed writes): seconds scatter by 3 to 8 %, 3 to 12 dips an hour."""
    noise = 1 + remembering(rng, seconds, rng.uniform(0.3, 0.7), rng.uniform(0.03, 0.08))
    return noise * Dips((300, 1200), (5, 15), (0.2, 0.4), 0.9).drawn(rng, seconds)


def flat(rng: np.random.Generator, seconds: int) -> Series:
    """Garbage collection for seconds, every one to two minutes: ten times as noisy as real drives."""
    return _noisy(rng, seconds) * Dips((40, 120), (3, 8), (0.2, 0.5)).drawn(rng, seconds)


def slowgc(rng: np.random.Generator, seconds: int) -> Series:
    """Garbage collection in bursts of one to two minutes, every 7…15 min."""
    return _noisy(rng, seconds) * Dips((420, 900), (60, 120), (0.1, 0.3)).drawn(rng, seconds)


def fastgc(rng: np.random.Generator, seconds: int) -> Series:
    """Garbage collection for a second or two, several times a minute."""
    return _noisy(rng, seconds) * Dips((6, 20), (0.5, 2.5), (0.3, 0.7)).drawn(rng, seconds)


def heavy(rng: np.random.Generator, seconds: int) -> Series:
    """Dips at random times with heavy-tailed lengths: most take seconds, a few take minutes."""
    lengths = Pareto(rng.uniform(1.5, 2.5), rng.uniform(1.0, 3.0), 300.0)
    gap_s, depth = rng.uniform(45, 150), rng.uniform(0.3, 0.8)
    cycle_s = gap_s + lengths.mean
    busy = events(rng, seconds, _memoryless(rng, gap_s), partial(lengths.draw, rng), cycle_s)
    mean = 1 - depth * lengths.mean / cycle_s
    return _noisy(rng, seconds) * (1 - depth * busy) / mean


def drift(rng: np.random.Generator, seconds: int) -> Series:
    """Settles in a straight line, by 1…4 % within 30…90 min, from above or from below."""
    left = np.maximum(1 - np.arange(seconds) / rng.uniform(1800, 5400), 0)
    size = float(rng.choice((-1, 1)) * rng.uniform(0.01, 0.04))
    return flat(rng, seconds) * (1 + size * left)


def wander(rng: np.random.Generator, seconds: int) -> Series:
    """Never fully steady: its level wanders by 0.3…1 % (one sigma), with a correlation of 5…20 min."""
    slow = remembering(rng, seconds, math.exp(-1 / rng.uniform(300, 1200)), rng.uniform(0.003, 0.01))
    return flat(rng, seconds) * (1 + slow)


def hourly(rng: np.random.Generator, seconds: int) -> Series:
    """Its level wanders by 1.5 % with a correlation of three hours."""
    return real(rng, seconds) * (1 + remembering(rng, seconds, math.exp(-1 / 10_800), 0.015))


def regimes(rng: np.random.Generator, seconds: int) -> Series:
    """Two levels 3…12 % apart with exponential dwell times of minutes, as of a background task.

    Slow phases of drives in the field: Hao et al., FAST 2016.
    """
    high_s, low_s = rng.uniform(120, 900, 2)
    depth = rng.uniform(0.03, 0.12)
    low = events(rng, seconds, _memoryless(rng, high_s), _memoryless(rng, low_s), high_s + low_s)
    mean = 1 - depth * low_s / (high_s + low_s)
    return np.asarray(real(rng, seconds) * (1 - depth * low) / mean)


def long_memory(rng: np.random.Generator, seconds: int) -> Series:
    """Lognormal, with correlations that fall as a power of the lag (Hurst 0.7…0.9).

    I/O is self-similar over time: Gribble et al., SIGMETRICS 1998.
    """
    sigma = rng.uniform(0.03, 0.08)
    normal = _fractional(rng, seconds, rng.uniform(0.7, 0.9))
    return np.asarray(np.exp(sigma * normal - sigma**2 / 2))


def folding(rng: np.random.Generator, seconds: int) -> Series:
    """A small SLC buffer fills, then is folded into TLC; cycles of 3…12 min that never end."""
    return real(rng, seconds) * Dips((180, 720), (60, 160), (0.15, 0.45), 0.1).drawn(rng, seconds)


def scanned(rng: np.random.Generator, seconds: int) -> Series:
    """The medium is scanned, and refreshed where cells have drifted: 1…3 min every 20…40 min.

    Cai et al., Proc. IEEE 2017.
    """
    return real(rng, seconds) * Dips((1200, 2400), (60, 180), (0.15, 0.45), 0.2).drawn(rng, seconds)


def too_fast(rng: np.random.Generator, seconds: int) -> Series:
    """Still 5 to 12 % too fast, with a time constant of 2 to 6 h."""
    left = np.exp(-np.arange(seconds) / rng.uniform(7_200, 21_600))
    return real(rng, seconds) * (1 + rng.uniform(0.05, 0.12) * left)


def late_step(rng: np.random.Generator, seconds: int) -> Series:
    """Settled for 2 to 4 h, then 2…6 % slower for good; nothing before tells of it."""
    is_before = np.arange(seconds) < rng.uniform(7_200, 14_400)
    return real(rng, seconds) * (1 + rng.uniform(0.02, 0.06) * is_before)


@dataclass(frozen=True, slots=True)
class Approach:
    """The way to the settled rate from the first random write after a fill, in capacities written.

    A plateau of 2.2 to 5.6 times the settled rate, a cliff, an undershoot to 0.70…0.85, a straight ramp
    back and a last few per cent; within 2 % after 0.42 to 1.27 capacities, as on real drives.
    """

    plateau: float
    cliff: float
    undershoot: float
    ramp: float
    #: Share that is left after the ramp, and over how many capacities it fades.
    left: float
    fading: float

    @classmethod
    def drawn(cls, rng: np.random.Generator, *, slow: bool = False) -> Approach:
        """Of uniform writes; ``slow``: of skewed ones, which take 2 to 5 capacities."""
        ramp, left, fading = (0.2, 0.6), (-0.02, 0.02), (0.1, 0.3)
        if slow:
            ramp, left, fading = (0.5, 1.5), (-0.1, 0.15), (0.7, 1.5)
        shape = (2.2, 5.6), (0.15, 0.4), (0.70, 0.85), ramp, left, fading
        return cls(*(rng.uniform(*each) for each in shape))

    def rate(self, capacities: Series) -> Series:
        """Return the rate in units of the settled one, after so many capacities written."""
        behind = np.maximum(capacities - self.cliff, 0)
        ramp = np.maximum(1 - behind / self.ramp, 0) * (self.undershoot - 1)
        settling = 1 + ramp + self.left * np.exp(-behind / self.fading)
        share = 0.5 - 0.5 * np.tanh((capacities - self.cliff) / 0.01)
        return np.asarray(share * self.plateau + (1 - share) * settling)

    def by_time(self, seconds: int, capacity_s: float) -> Series:
        """Return it by seconds of writing; a capacity takes ``capacity_s`` at the settled rate."""
        written = np.linspace(0, 1 + self.plateau * seconds / capacity_s, 20_000)
        rates = self.rate(written)
        steps_s = np.diff(written) * capacity_s * 2 / (rates[1:] + rates[:-1])
        times_s = np.concatenate(([0.0], np.cumsum(steps_s)))
        return np.asarray(np.interp(np.arange(seconds), times_s, rates))


def events(rng: np.random.Generator, seconds: int, gaps: Lengths, dips: Lengths, cycle_s: float) -> Series:
    """Return the share of every second inside a dip; gap, dip, gap, … from a random phase on."""
    # Begin twenty cycles early at a random phase, so that second 0 does not depend on the start.
    start_s = -cycle_s * (20 + rng.random())
    count = int(1.5 * (seconds - start_s) / cycle_s) + 20
    lengths, busy = np.empty(2 * count), np.zeros(2 * count + 1)
    lengths[0::2], lengths[1::2] = gaps(count), dips(count)
    edges = start_s + np.concatenate(([0.0], np.cumsum(lengths)))
    if edges[-1] < seconds:
        return events(rng, seconds, gaps, dips, cycle_s)
    busy[2::2] = np.cumsum(lengths[1::2])
    busy[1::2] = busy[0:-1:2]
    return np.diff(np.interp(np.arange(seconds + 1), edges, busy))


def remembering(rng: np.random.Generator, seconds: int, phi: float, sigma: float) -> Series:
    """AR(1) of mean 0 and standard deviation ``sigma``, as if it had always been going on."""
    steps = sigma * math.sqrt(1 - phi * phi) * rng.standard_normal(seconds)
    values, _ = lfilter([1.0], [1.0, -phi], steps, zi=[phi * sigma * rng.standard_normal()])
    return np.asarray(values)


def _noisy(rng: np.random.Generator, seconds: int) -> Series:
    """Return noise of seconds, and a slow swing of up to 3 % over 5 to 25 min."""
    noise = remembering(rng, seconds, rng.uniform(0.7, 0.95), rng.uniform(0.02, 0.06))
    return (1 + noise) * _swing(rng, seconds, (0.0, 0.03), (300, 1500))


def _swing(rng: np.random.Generator, seconds: int, amplitude: Range, period_s: Range) -> Series:
    turns = np.arange(seconds) / rng.uniform(*period_s) + rng.random()
    return np.asarray(1 + rng.uniform(*amplitude) * np.sin(2 * np.pi * turns))


def _memoryless(rng: np.random.Generator, mean_s: float) -> Lengths:
    return lambda count: rng.exponential(mean_s, count)


def _around(rng: np.random.Generator, length_s: float, spread: float) -> Lengths:
    return lambda count: length_s * rng.uniform(1 - spread, 1 + spread, count)


def _fractional(rng: np.random.Generator, seconds: int, hurst: float) -> Series:
    """Fractional Gaussian noise of variance 1, by circulant embedding (Davies & Harte 1987)."""
    lag = np.arange(seconds + 1, dtype=np.float64)
    covariance = 0.5 * ((lag + 1) ** (2 * hurst) - 2 * lag ** (2 * hurst) + np.abs(lag - 1) ** (2 * hurst))
    spectrum = np.fft.rfft(np.concatenate([covariance, covariance[-2:0:-1]])).real
    size = 2 * seconds
    white = np.fft.rfft(rng.standard_normal(size))
    return np.fft.irfft(white * np.sqrt(np.maximum(spectrum, 0)), size)[:seconds]


def _named(*kinds: Kind) -> Mapping[str, Kind]:
    return {kind.__name__: kind for kind in kinds}


REAL = _named(real, rhythm, dipping)
#: The six that the goals of drive hours were set for; the first minutes of `drift` are not settled.
USUAL = _named(flat, slowgc, fastgc, heavy, drift, wander)
HARD = _named(hourly, regimes, long_memory, folding, scanned)
LATE = _named(too_fast, late_step)
SETTLED: Mapping[str, Kind] = {**REAL, **USUAL, **HARD}
KINDS: Mapping[str, Kind] = {**SETTLED, **LATE}
