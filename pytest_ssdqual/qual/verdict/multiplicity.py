"""An interval at several shares of its error rate, so that a figure can be judged later among many others.

Nobody knows when a run is recorded how many figures it will be compared with. An interval at one confidence does not
say what it is at another one: that of five rounds grows by Student's t with four degrees of freedom, whatever the
number of I/Os in them, and that of a quantile in steps of fio's buckets. So the ends are reckoned by the same code for
a few shares when the figure is, and recorded with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pytest_ssdqual.qual.stats.estimate import Estimate, Sureness, TooFew, student_t

#: Of the error rate: ten, a hundred, … comparisons at once.
SHARES = (1e-1, 1e-2, 1e-3, 1e-4)
#: Degrees of freedom of an interval of which only two ends are known: those of the five rounds of SNIA's window, which
#: is the fewest that a protocol measures. What is noted as its number of observations may be I/Os.
FEWEST = 4


@dataclass(frozen=True, slots=True)
class Widening:
    """Ends of an interval if only a share of its error rate may be spent on it."""

    share: float
    #: May be infinite, and so may ``high``.
    low: float
    high: float


def of(again: Callable[[float], Estimate]) -> tuple[Widening, ...]:
    """For each of ``SHARES``; ``again`` gives the estimate for a share. Nothing of a reading, which has no error rate.

    Where there is too little for so sure an interval (``TooFew``) it has no ends.
    """
    found = []
    for share in SHARES:
        try:
            estimate = again(share)
        except TooFew:
            found.append(Widening(share, -math.inf, math.inf))
            continue
        if estimate.is_reading:
            return ()
        found.append(Widening(share, estimate.low, estimate.high))
    return tuple(found)


def at(estimate: Estimate, wider: Sequence[Widening], share: float) -> Estimate:
    """With the interval that it has for a share of its error rate; both ends on the scale of logarithms.

    Between what is known the distance of an end grows linearly with the logarithm of the share (of a normal figure that
    is 1.3 % too narrow at worst, of Student's with 4 degrees too wide); beyond, as a power of it, as Student's t does.
    Without ``wider`` as Student's t of ``FEWEST`` degrees of freedom. A reading stays as it is.
    """
    if share >= 1 or estimate.is_reading or not 0 < estimate.value < math.inf:
        return estimate
    if not wider:
        degrees = max(1, min(FEWEST, estimate.n - 1))
        level = Sureness(estimate.confidence, share).level()
        known = student_t(level, degrees) / student_t(estimate.confidence, degrees)
        # An end at the figure itself is one that was cut off or rounded: how far it would go is not known.
        down, up = (known * each if each else math.inf for each in distances(estimate))
    else:
        ends = [(1.0, estimate.low, estimate.high), *((each.share, each.low, each.high) for each in wider)]
        rungs = [(of_share, *_distances(estimate.value, low, high)) for of_share, low, high in _widest(ends)]
        down = _between([(of_share, each) for of_share, each, _ in rungs], share)
        up = _between([(of_share, each) for of_share, _, each in rungs], share)
    return replace(estimate, low=estimate.value * math.exp(-down), high=estimate.value * _exp(up))


def distances(estimate: Estimate) -> tuple[float, float]:
    """From the figure to its ends, of logarithms; infinite if an end is not above zero, or unbounded."""
    return _distances(estimate.value, estimate.low, estimate.high)


def record(wider: Iterable[Widening]) -> list[list[float | None]]:
    """Plain JSON data: share, low, high; an unbounded end is None."""
    return [[each.share, *(end if math.isfinite(end) else None for end in (each.low, each.high))] for each in wider]


def of_record(plain: object) -> tuple[Widening, ...]:
    """The inverse of ``record``; ValueError or TypeError if it is none."""
    if not isinstance(plain, list):
        raise TypeError(f"{plain!r} is not a list")
    found = []
    for row in plain:
        share, low, high = row
        low, high = -math.inf if low is None else float(low), math.inf if high is None else float(high)
        if not 0 < share < 1 or math.isnan(low) or math.isnan(high):
            raise ValueError(f"{row!r} is no interval for a share of the error rate")
        found.append(Widening(float(share), low, high))
    return tuple(sorted(found, key=lambda each: -each.share))


def _widest(ends: Iterable[tuple[float, float, float]]) -> Iterable[tuple[float, float, float]]:
    """Surer intervals are never narrower, whatever was recorded."""
    low, high = math.inf, -math.inf
    for share, own_low, own_high in ends:
        low, high = min(low, own_low), max(high, own_high)
        yield share, low, high


def _between(rungs: Sequence[tuple[float, float]], share: float) -> float:
    """The distance at a share, from those at larger and smaller ones; they fall."""
    for (more, near), (less, far) in pairwise(rungs):
        if share >= less:
            part = math.log(more / share) / math.log(more / less)
            return near if share == more else near + part * (far - near) if math.isfinite(far) else far
    (more, near), (less, far) = rungs[-2:]
    if not (near > 0 and math.isfinite(far)):
        return far
    grown: float = (far / near) ** (math.log(less / share) / math.log(more / less))
    return far * grown


def _distances(value: float, low: float, high: float) -> tuple[float, float]:
    down = math.log(value / low) if low > 0 else math.inf
    up = math.log(high / value) if math.isfinite(high) else math.inf
    return down, up


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
