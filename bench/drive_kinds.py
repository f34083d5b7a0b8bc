"""Simulated drives: IOPS per second under a saturating load, of several kinds, each with a known long-run mean.

Each draw gives a new drive: mean × approach to steady state × slow oscillation × garbage collection × noise. The last
three have a mean of exactly 1 over time (in closed form, with dips weighted by their share of the cycle), so the true
mean of a drive is known without a long simulation. These are models for the calibration of rules, not drives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

Series = npt.NDArray[np.float64]
#: Draws one drive: random generator, true long-run mean, number of seconds → IOPS of each second.
Kind = Callable[[np.random.Generator, float, int], Series]
#: Draws the lengths in seconds of this number of gaps or dips.
Lengths = Callable[[int], Series]


@dataclass(frozen=True, slots=True)
class Noise:
    """Parameters of a drive in steady state; ranges of uniform distributions."""

    #: AR(1): correlation from second to second, and standard deviation ÷ mean.
    phi: tuple[float, float] = (0.7, 0.95)
    variation: tuple[float, float] = (0.02, 0.06)
    #: Of a slow oscillation.
    amplitude: tuple[float, float] = (0.0, 0.03)
    period_s: tuple[float, float] = (300.0, 1500.0)


@dataclass(frozen=True, slots=True)
class Collection:
    """Parameters of garbage collection, which causes periodic dips; ranges of uniform distributions."""

    period_s: tuple[float, float]
    dip_s: tuple[float, float]
    depth: tuple[float, float]
    #: How irregular, ± this share of every gap and of every dip.
    jitter: float = 0.3


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


NOISE = Noise()
USUAL = Collection(period_s=(40.0, 120.0), dip_s=(3.0, 8.0), depth=(0.2, 0.5))


def flat(rng: np.random.Generator, mean: float, seconds: int) -> Series:
    """Well conditioned: only the drive's own oscillation."""
    return mean * settled(rng, seconds)


def residual(rng: np.random.Generator, mean: float, seconds: int) -> Series:
    """Conditioned too shortly: 20…80 % too fast, and falling with one time constant."""
    return mean * settled(rng, seconds) * (1 + rng.uniform(0.2, 0.8) * _decay(rng, seconds, 300, 1500))


def undershoot(rng: np.random.Generator, mean: float, seconds: int) -> Series:
    """After a heavier load: 15…40 % too slow, and recovering."""
    return mean * settled(rng, seconds) * (1 - rng.uniform(0.15, 0.4) * _decay(rng, seconds, 300, 1500))


def hump(rng: np.random.Generator, mean: float, seconds: int) -> Series:
    """A plateau 20…50 % above for 5…15 min, as long as a cache or spare blocks last, then a cliff."""
    return mean * settled(rng, seconds) * (1 + rng.uniform(0.2, 0.5) * _cliff(rng, seconds, rng.uniform(300, 900)))


def slowgc(rng: np.random.Generator, mean: float, seconds: int) -> Series:
    """Garbage collection in bursts of one to two minutes, every 7…15 min."""
    bursts = Collection(period_s=(420.0, 900.0), dip_s=(60.0, 120.0), depth=(0.1, 0.3))
    return mean * settled(rng, seconds, bursts)


def fastgc(rng: np.random.Generator, mean: float, seconds: int) -> Series:
    """Garbage collection for a second or two, several times a minute."""
    return mean * settled(rng, seconds, Collection(period_s=(6.0, 20.0), dip_s=(0.5, 2.5), depth=(0.3, 0.7)))


def heavy(rng: np.random.Generator, mean: float, seconds: int) -> Series:
    """Dips at random times with heavy-tailed lengths: most take seconds, a few take minutes."""
    dips = Pareto(rng.uniform(1.5, 2.5), rng.uniform(1.0, 3.0), 300.0)
    gap_s, depth = rng.uniform(45, 150), rng.uniform(0.3, 0.8)
    cycle_s = gap_s + dips.mean
    busy = events(rng, seconds, lambda count: rng.exponential(gap_s, count), partial(dips.draw, rng), cycle_s)
    return mean * _rhythm(rng, seconds, NOISE) * (1 - depth * busy) / (1 - depth * dips.mean / cycle_s)


def drift(rng: np.random.Generator, mean: float, seconds: int) -> Series:
    """Settles in a straight line, by 1…4 % within 30…90 min, from above or from below."""
    left = np.maximum(1 - np.arange(seconds) / rng.uniform(1800, 5400), 0)
    offset = float(rng.choice((-1, 1)) * rng.uniform(0.01, 0.04))
    return mean * settled(rng, seconds) * (1 + offset * left)


def wander(rng: np.random.Generator, mean: float, seconds: int) -> Series:
    """Never fully steady: its level wanders by 0.3…1 % (one sigma) around the mean, with a correlation time of 5…20
    min.
    """
    slow = _ar1(rng, seconds, math.exp(-1 / rng.uniform(300, 1200)), rng.uniform(0.003, 0.01))
    return mean * settled(rng, seconds) * (1 + slow)


def fresh(rng: np.random.Generator, mean: float, seconds: int) -> Series:
    """A purged drive behind a gate: the series begins when 2…3 user capacities have been written to it.

    2.5…4 × its mean for 15…40 min, then the write cliff, at 1…1.3 capacities written; after it the level falls or
    rises towards the mean within 0.2…0.5 capacities. The series has what remains of that behind the gate.
    """
    drive = _Fresh.drawn(rng)
    return mean * settled(rng, seconds) * (1 + drive.approach(drive.cliff_s + drive.behind_cliff_s, seconds))


def ungated(rng: np.random.Generator, mean: float, seconds: int) -> Series:
    """The same drive from its purge on: no rule can predict the cliff from the series alone."""
    drive = _Fresh.drawn(rng)
    head = (drive.level - 1) * _cliff(rng, seconds, drive.cliff_s)
    return mean * settled(rng, seconds) * (1 + head + drive.approach(0.0, seconds))


@dataclass(frozen=True, slots=True)
class _Fresh:
    #: Before the cliff, in units of the mean.
    level: float
    cliff_s: float
    #: From the cliff to the gate.
    behind_cliff_s: float
    #: How far off the level is right behind the cliff, and its time constant.
    offset: float
    tau_s: float

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> _Fresh:
        level, cliff_s = rng.uniform(2.5, 4), rng.uniform(900, 2400)
        cliff_capacities, gate_capacities = rng.uniform(1, 1.3), rng.uniform(2, 3)
        # Seconds that one capacity takes at the mean.
        capacity_s = level * cliff_s / cliff_capacities
        offset, tau_s = rng.uniform(-0.15, 0.15), rng.uniform(0.2, 0.5) * capacity_s
        return cls(level, cliff_s, (gate_capacities - cliff_capacities) * capacity_s, offset, tau_s)

    def approach(self, start_s: float, seconds: int) -> Series:
        """Of the level to the mean, from ``start_s`` after the purge; nothing before the cliff."""
        since_cliff_s = start_s + np.arange(seconds) - self.cliff_s
        return np.where(since_cliff_s >= 0, self.offset * np.exp(-np.maximum(since_cliff_s, 0) / self.tau_s), 0.0)


def settled(rng: np.random.Generator, seconds: int, collection: Collection = USUAL, noise: Noise = NOISE) -> Series:
    """A drive in steady state, mean 1: slow oscillation × garbage collection × noise."""
    period_s, dip_s, depth = (
        rng.uniform(*range_) for range_ in (collection.period_s, collection.dip_s, collection.depth)
    )

    def around(length_s: float) -> Lengths:
        return lambda count: length_s * rng.uniform(1 - collection.jitter, 1 + collection.jitter, count)

    busy = events(rng, seconds, around(period_s - dip_s), around(dip_s), period_s)
    return _rhythm(rng, seconds, noise) * (1 - depth * busy) / (1 - depth * dip_s / period_s)


def _rhythm(rng: np.random.Generator, seconds: int, noise: Noise) -> Series:
    turns = np.arange(seconds) / rng.uniform(*noise.period_s) + rng.random()
    slow = 1 + rng.uniform(*noise.amplitude) * np.sin(2 * np.pi * turns)
    return slow * (1 + _ar1(rng, seconds, rng.uniform(*noise.phi), rng.uniform(*noise.variation)))


def _ar1(rng: np.random.Generator, seconds: int, phi: float, sigma: float) -> Series:
    """Return an AR(1) series, stationary from the first second; ``sigma`` is that of the values, not of the
    innovations.
    """
    from scipy.signal import lfilter

    steps = sigma * math.sqrt(1 - phi * phi) * rng.standard_normal(seconds)
    values, _ = lfilter([1.0], [1.0, -phi], steps, zi=[phi * sigma * rng.standard_normal()])
    return np.asarray(values)


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


def _decay(rng: np.random.Generator, seconds: int, shortest_s: float, longest_s: float) -> Series:
    return np.exp(-np.arange(seconds) / rng.uniform(shortest_s, longest_s))


def _cliff(rng: np.random.Generator, seconds: int, at_s: float) -> Series:
    """Return a fall from 1 to 0 around ``at_s``, within seconds or a minute."""
    return np.asarray(0.5 - 0.5 * np.tanh((np.arange(seconds) - at_s) / rng.uniform(2, 30)))


KINDS: Mapping[str, Kind] = {
    kind.__name__: kind for kind in (flat, residual, undershoot, hump, slowgc, fastgc, heavy, drift, wander, fresh)
}
#: Kinds that only ``--only`` selects; they show the purpose of the gate.
WITHOUT_GATE: Mapping[str, Kind] = {"ungated": ungated}
