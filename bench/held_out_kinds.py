"""Kinds of drives that no stopping rule was tuned on: for checks, never for tuning.

As those of ``drive_kinds.py``: random generator, long-run mean, number of seconds → IOPS of each second.
Every kind is a shape of mean 1 times the noise of its seconds, and the mean of the shape is known in closed form:
over time for what goes on for ever; for what ends (marked *transient*) of what is left when it has ended. Transients
begin behind the gates of physical preconditioning: no more than 80 % too fast or 40 % too slow at second 0.
Amplitudes and times are estimates within the range of the sources; without a source, the mechanism is known and the
numbers are assumptions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

Series = npt.NDArray[np.float64]
Kind = Callable[[np.random.Generator, float, int], Series]
Shape = Callable[[np.random.Generator, Series], Series]
Lengths = Callable[[int], Series]

KINDS: dict[str, Kind] = {}


def kind(shape: Shape, *, is_noisy: bool = True) -> Shape:
    """Of a shape (chance, the seconds 0, 1, … → share of the mean), under its own name."""

    def draw(rng: np.random.Generator, mean: float, seconds: int) -> Series:
        share = shape(rng, np.arange(seconds, dtype=np.float64))
        return np.asarray(mean * share * (noise(rng, seconds) if is_noisy else 1.0))

    KINDS[shape.__name__] = draw
    return shape


@kind
def two_scales(rng: np.random.Generator, t: Series) -> Series:
    """Transient. Free blocks run out within minutes, the distribution of valid pages over the blocks takes an hour:
    the residual of a rate equation has several eigenvalues (Van Houdt 2013). A fit of one of them ends too early."""
    fast, slow = rng.uniform(0.1, 0.5), rng.uniform(0.03, 0.12)
    sign = rng.choice((1.0, -0.6))
    return np.asarray(
        1 + sign * (fast * np.exp(-t / rng.uniform(40, 240)) + slow * np.exp(-t / rng.uniform(1500, 4000)))
    )


@kind
def power_law(rng: np.random.Generator, t: Series) -> Series:
    """Transient. Blocks that hold cold data are cleaned ever more rarely: many time scales at once, together near
    t^-½. After an hour a few per cent are still to come."""
    return 1 + rng.uniform(0.05, 0.3) / np.sqrt(1 + t / rng.uniform(20, 120))


@kind
def plateaus(rng: np.random.Generator, t: Series) -> Series:
    """Transient. Pools are used up one after the other (SLC buffer, spare blocks of each die group): levels of
    minutes, each of which looks settled. Staircases of two to four levels are in most reviews of TLC drives."""
    count = int(rng.integers(2, 6))
    ends = np.cumsum(rng.uniform(180, 1100, count))
    drops = rng.dirichlet(np.ones(count)) * rng.uniform(0.15, 0.6)
    return sum((drop * (t < end) for drop, end in zip(drops, ends, strict=True)), np.ones(t.size))


@kind
def slc_cycles(rng: np.random.Generator, t: Series) -> Series:
    """A small SLC buffer fills at full speed, then is folded into TLC while the host waits; it never ends.
    Write cache folding of consumer and read-intensive drives; cycles of 3…12 min."""
    cycle_s, fast_share = rng.uniform(180, 720), rng.uniform(0.25, 0.6)
    folding = _share(
        rng, t.size, _around(rng, fast_share * cycle_s, 0.1), _around(rng, (1 - fast_share) * cycle_s, 0.1), cycle_s
    )
    depth = rng.uniform(0.15, 0.45)
    return (1 - depth * folding) / (1 - depth * (1 - fast_share))


@kind
def thermal(rng: np.random.Generator, t: Series) -> Series:
    """Throttled at one temperature, released at a lower one (NVMe host controlled thermal management: TMT1, TMT2):
    the drive heats and cools exponentially between them. Transient as well: a cool drive starts unthrottled."""
    tau_s, throttle_at, release_at = rng.uniform(60, 240), rng.uniform(0.75, 0.9), rng.uniform(0.55, 0.7)
    # Temperatures are shares of the rise that full speed would end at; throttled, it would end at ``cooled``.
    cooled = rng.uniform(0.3, 0.5)
    full_s = tau_s * math.log((1 - release_at) / (1 - throttle_at))
    slow_s = tau_s * math.log((throttle_at - cooled) / (release_at - cooled))
    depth = rng.uniform(0.2, 0.45)
    first_s = tau_s * math.log(1 / (1 - throttle_at)) * rng.uniform(0.5, 2)
    since = (t - first_s) % (full_s + slow_s)
    # Counted by the part of each second, as an on-off pattern of whole seconds would be biased.
    slow = np.where(t < first_s, 0.0, np.clip(slow_s - since, 0, 1) + np.clip(since + 1 - full_s - slow_s, 0, 1))
    return np.asarray((1 - depth * slow) / (1 - depth * slow_s / (full_s + slow_s)))


@kind
def telegraph(rng: np.random.Generator, t: Series) -> Series:
    """Two regimes with exponential dwell times of minutes: a background task that the firmware starts and stops,
    or another tenant of the same enclosure. Hao et al., FAST 2016, found slow phases of drives to last for hours."""
    high_s, low_s = rng.uniform(120, 900, 2)
    low = _share(
        rng,
        t.size,
        lambda count: rng.exponential(high_s, count),
        lambda count: rng.exponential(low_s, count),
        high_s + low_s,
    )
    depth = rng.uniform(0.03, 0.12)
    return np.asarray((1 - depth * low) / (1 - depth * low_s / (high_s + low_s)))


@kind
def pink(rng: np.random.Generator, t: Series) -> Series:
    """1/f noise between seconds and an hour: many independent caches and queues, each with its own memory, sum up
    to it (relaxation times spread evenly over a logarithmic scale)."""
    times = np.geomspace(2, 3600, 9)
    sigma = rng.uniform(0.01, 0.03) / math.sqrt(times.size)
    return sum((_remembering(rng, t.size, math.exp(-1 / tau), sigma) for tau in times), np.ones(t.size))


@kind
def pareto_stalls(rng: np.random.Generator, t: Series) -> Series:
    """Near standstills whose length has infinite variance but for a cut at 10 min: error recovery, a full journal
    of the mapping table. Slowdowns of the field have such tails (Hao et al., FAST 2016)."""
    shape, shortest_s, longest_s = rng.uniform(1.2, 1.8), rng.uniform(0.5, 3), 600.0
    ratio = shortest_s / longest_s
    mean_s = shape / (shape - 1) * shortest_s * (1 - ratio ** (shape - 1)) / (1 - ratio**shape)
    gap_s, depth = rng.uniform(200, 900), rng.uniform(0.9, 1.0)

    def stalls(count: int) -> Series:
        return np.asarray(shortest_s * (1 - rng.random(count) * (1 - ratio**shape)) ** (-1 / shape))

    busy = _share(rng, t.size, lambda count: rng.exponential(gap_s, count), stalls, gap_s + mean_s)
    return np.asarray((1 - depth * busy) / (1 - depth * mean_s / (gap_s + mean_s)))


@kind
def wear_levelling(rng: np.random.Generator, t: Series) -> Series:
    """A sweep over the coldest blocks every 25…40 min, swelling and fading (static wear levelling: Chang, Hsieh &
    Kuo, DAC 2007). A run of 20 min may see all of it or nothing."""
    period_s, share, depth = rng.uniform(1500, 2400), rng.uniform(0.2, 0.6), rng.uniform(0.04, 0.15)
    phase = (t / period_s + rng.random()) % 1 / share
    sweep = np.where(phase < 1, np.sin(np.pi * np.minimum(phase, 1)) ** 2, 0.0)
    return np.asarray((1 - depth * sweep) / (1 - depth * share / 2))


@kind
def media_scan(rng: np.random.Generator, t: Series) -> Series:
    """The whole medium is read for cells that have drifted and what is found is moved: 1…3 min every 20…40 min
    (SCSI's background medium scan; refresh against retention loss and read disturb: Cai et al., Proc. IEEE 2017)."""
    every_s, scan_s, depth = rng.uniform(1200, 2400), rng.uniform(60, 180), rng.uniform(0.15, 0.45)
    busy = _share(rng, t.size, _around(rng, every_s - scan_s, 0.2), _around(rng, scan_s, 0.2), every_s)
    return (1 - depth * busy) / (1 - depth * scan_s / every_s)


@kind
def bimodal(rng: np.random.Generator, t: Series) -> Series:
    """Seconds are fast or slow and nothing between: garbage collection per die, on for one or several whole seconds.
    The sequence of both is a Markov chain."""
    slow_share, stay = rng.uniform(0.1, 0.5), rng.uniform(0.0, 0.8)
    # The state is drawn anew with probability 1 - stay; else it is that of the second before.
    drawn = rng.random(t.size) < slow_share
    anew = rng.random(t.size) >= stay
    anew[:1] = True
    slow = drawn[np.maximum.accumulate(np.where(anew, np.arange(t.size), 0))]
    depth = rng.uniform(0.2, 0.6)
    return np.where(slow, 1 - depth, 1.0) / (1 - depth * slow_share)


@partial(kind, is_noisy=False)
def throttled(rng: np.random.Generator, t: Series) -> Series:
    """A rate limit with credits, in the drive or of a cloud volume: what a dip leaves is caught up afterwards, and
    the count of a second is a multiple of the credits handed out at once. No variance at all in the long run."""
    grain, burst = rng.uniform(0.01, 0.06), rng.uniform(0.05, 0.5)
    wanted = rng.random(t.size) >= rng.uniform(0.005, 0.03)
    done, credit = np.empty(t.size), 0.0
    start, backlog = rng.random() * grain, 0.0
    for second, is_served in enumerate(wanted):
        backlog += 1
        given = min(backlog, 1 + burst) if is_served else rng.random() * 0.7
        given = min(given, backlog)
        backlog -= given
        credit += given
        done[second] = credit
    whole = np.floor((done + start) / grain) * grain
    return np.asarray(np.diff(whole, prepend=math.floor(start / grain) * grain), dtype=np.float64)


@kind
def recovery(rng: np.random.Generator, t: Series) -> Series:
    """Transient. A backlog of invalid blocks from conditioning is worked off at a constant pace, 15…75 min long,
    and then it is over: a straight line with a corner."""
    left = np.maximum(1 - t / rng.uniform(900, 4500), 0)
    return 1 - rng.uniform(0.05, 0.3) * left


@kind
def late_step(rng: np.random.Generator, t: Series) -> Series:
    """Transient. Settled for 30…60 min, then 2…6 % slower for good: the first pass of the mapping table's own
    collection, or a first wear-levelling threshold. Nothing before tells of it."""
    return np.asarray(1 + rng.uniform(0.02, 0.06) * (t < rng.uniform(1800, 3600)))


@kind
def sawtooth(rng: np.random.Generator, t: Series) -> Series:
    """Falls steadily while free blocks are used up and jumps back when a batch of them was erased at once."""
    period_s, height = rng.uniform(30, 240), rng.uniform(0.15, 0.5)
    phase = (t + 0.5) / period_s + rng.random()
    return 1 + height * (0.5 - phase % 1)


@kind
def ringing(rng: np.random.Generator, t: Series) -> Series:
    """Transient. Collection is paced by the number of free blocks with a delay, so it swings before it settles (a
    second-order control loop): 4…15 min to a swing, three or so to be seen."""
    turns = t / rng.uniform(240, 900) + rng.choice((0.0, 0.5))
    size = rng.uniform(0.1, 0.4)
    return np.asarray(1 + size * np.exp(-t / rng.uniform(500, 1800)) * np.cos(2 * np.pi * turns))


@kind
def long_memory(rng: np.random.Generator, t: Series) -> Series:
    """Lognormal, with correlations that fall as a power of the lag (fractional Gaussian noise, Hurst 0.7…0.9): I/O
    is self-similar over time (Gribble et al., SIGMETRICS 1998), and so is what it leaves a drive to clean up."""
    sigma = rng.uniform(0.03, 0.08)
    return np.exp(sigma * _fractional(rng, t.size, rng.uniform(0.7, 0.9)) - sigma**2 / 2)


@kind
def beats(rng: np.random.Generator, t: Series) -> Series:
    """2, 4 or 8 drives of an array collect with nearly the same period, and the stripe waits for whichever does
    (Kim et al., MSST 2011, Harmonia): their dips drift apart and together again over tens of minutes. The share of
    time with no member busy is the product of the members' shares, since their periods are incommensurable."""
    members = int(rng.choice((2, 4, 8)))
    dip_share, depth = rng.uniform(0.03, 0.12), rng.uniform(0.2, 0.6)
    periods = rng.uniform(40, 150) * (1 + rng.uniform(-0.03, 0.03, members))
    fine = (np.arange(10 * t.size) + rng.random()) / 10
    busy = np.zeros(fine.size, dtype=bool)
    for period_s, phase in zip(periods, rng.random(members), strict=True):
        busy |= (fine / period_s + phase) % 1 < dip_share
    return np.asarray((1 - depth * busy.reshape(-1, 10).mean(axis=1)) / (1 - depth * (1 - (1 - dip_share) ** members)))


@kind
def gusts(rng: np.random.Generator, t: Series) -> Series:
    """The level holds, the scatter does not: minutes of calm and minutes of ±10 %, with a heavy-tailed scatter (four
    degrees of freedom). Host interrupts, or a mapping table that does or does not fit the drive's memory."""
    wild = _share(rng, t.size, _around(rng, 400, 0.8), _around(rng, 200, 0.8), 600)
    scatter = rng.standard_t(4, t.size) / math.sqrt(2)
    return np.asarray(1 + (0.01 + rng.uniform(0.05, 0.12) * wild) * np.clip(scatter, -6, 6))


@kind
def onset(rng: np.random.Generator, t: Series) -> Series:
    """Transient. Dips of garbage collection that are there from the start but deepen for 10…40 min, as the blocks
    that are collected hold ever more valid pages. The mean of the deepest counts."""
    period_s, dip_share, depth = rng.uniform(40, 200), rng.uniform(0.1, 0.3), rng.uniform(0.3, 0.8)
    busy = _share(
        rng,
        t.size,
        _around(rng, (1 - dip_share) * period_s, 0.3),
        _around(rng, dip_share * period_s, 0.3),
        period_s,
    )
    grown = 1 - np.exp(-((t / rng.uniform(600, 2400)) ** 1.5))
    return (1 - depth * grown * busy) / (1 - depth * dip_share)


def noise(rng: np.random.Generator, seconds: int) -> Series:
    """Of single seconds, mean 1: what remains of a drive when everything else is known."""
    return 1 + _remembering(rng, seconds, rng.uniform(0.2, 0.9), rng.uniform(0.008, 0.03))


def _remembering(rng: np.random.Generator, seconds: int, phi: float, sigma: float) -> Series:
    """AR(1) of mean 0 and standard deviation ``sigma``, as if it had always been going on."""
    steps = sigma * math.sqrt(1 - phi**2) * rng.standard_normal(seconds)
    values, _ = lfilter([1.0], [1.0, -phi], steps, zi=[phi * sigma * rng.standard_normal()])
    return np.asarray(values)


def _fractional(rng: np.random.Generator, seconds: int, hurst: float) -> Series:
    """Fractional Gaussian noise of variance 1, by circulant embedding (Davies & Harte 1987)."""
    lag = np.arange(seconds + 1, dtype=np.float64)
    covariance = 0.5 * ((lag + 1) ** (2 * hurst) - 2 * lag ** (2 * hurst) + np.abs(lag - 1) ** (2 * hurst))
    spectrum = np.fft.rfft(np.concatenate([covariance, covariance[-2:0:-1]])).real
    size = 2 * seconds
    return np.fft.irfft(np.fft.rfft(rng.standard_normal(size)) * np.sqrt(np.maximum(spectrum, 0)), size)[:seconds]


def _around(rng: np.random.Generator, length_s: float, spread: float) -> Lengths:
    return lambda count: length_s * rng.uniform(1 - spread, 1 + spread, count)


def _share(rng: np.random.Generator, seconds: int, gaps: Lengths, dips: Lengths, cycle_s: float) -> Series:
    """How much of each second belongs to the dips of gap, dip, gap, …; begun so long before that no phase is known."""
    lead_s = cycle_s * (30 + rng.random())
    edges, low = [0.0], [0.0]
    while edges[-1] < lead_s + seconds:
        count = 50 + int((lead_s + seconds) / cycle_s)
        for gap, dip in zip(gaps(count), dips(count), strict=True):
            edges += [edges[-1] + gap, edges[-1] + gap + dip]
            low += [low[-1], low[-1] + dip]
    return np.diff(np.interp(lead_s + np.arange(seconds + 1), edges, low))
