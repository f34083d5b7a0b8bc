"""An interval at several shares of its error rate, so that a figure can be judged later among many others.

Nobody knows when a run is recorded how many figures it will be compared with. An interval at one confidence does not
say what it is at another one: that of five rounds grows by Student's t with four degrees of freedom, whatever the
number of I/Os in them, and that of a quantile in steps of fio's buckets. So the ends are reckoned by the same code for
a few shares when the figure is, and recorded with it.

Many claims judged in one run: what that does to the error rates of their verdicts, and what can be done.

A run is accepted when every claim is kept. That needs no correction on the side of the passes: whoever wants to let a
bad product through must get *every* broken claim past its test, and each of those tests has its own error rate as an
upper bound (intersection-union test, Berger 1982). On the side of the failures it is the other way round: one false
failure among hundreds of claims rejects a good product, and with each claim more that becomes more likely.

Levels are two-sided, as the confidence of the interval that a claim is judged by; of the two ends only one is an error
of a given kind, so the probability of a false failure of one claim is half of one minus its confidence, at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate, TooFew, student_t

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
        level = ConfidenceLevel(estimate.confidence, share).level()
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


#: Names of ``VerdictRule.family``.
NONE, BONFERRONI = "none", "bonferroni"
#: Smaller p-values are not told apart: no model of a drive is good for them.
SMALLEST_P = 1e-12
#: Relative, of a p-value.
P_TOLERANCE = 0.01


@dataclass(frozen=True, slots=True)
class ErrorControl:
    """The claims that are judged together."""

    #: Planned when the run began, and not changed afterwards: whoever counts later counts what suits him.
    claims: int = 1
    control: str = NONE

    def __post_init__(self) -> None:
        if self.claims < 1:
            raise ValueError(f"a family has at least one claim, not {self.claims}")
        if self.control not in (NONE, BONFERRONI):
            raise ValueError(f"{self.control} is no control of a family; there are {NONE} and {BONFERRONI}")

    @property
    def is_corrected(self) -> bool:
        return self.control == BONFERRONI and self.claims > 1

    @property
    def share(self) -> float:
        """Of the error rate, what may be spent on the interval that has to be on the bad side for a failure.

        The interval is then at 1 - (1 - confidence)/m (Bonferroni), at a look of a sequential measurement at
        1 - (1 - its level)/m, and a false failure among all claims no more likely than of a single one.
        """
        return 1 / self.claims if self.is_corrected else 1.0

    def false_failures(self, judged: int, confidence: float) -> float:
        """How many are to be expected if every product were exactly on its limit, of so many judged; at most."""
        return judged * (1 - confidence) * self.share / 2

    def false_passes(self, judged: int, confidence: float) -> float:
        """The same of passes, which no family control touches."""
        return judged * (1 - confidence) / 2


#: A claim by itself.
ALONE = ErrorControl()


def p_value(is_broken: Callable[[float], bool], confidence: float) -> float:
    """Of a failed verdict: the least one-minus-confidence at which the interval is still on the bad side; two-sided.

    ``is_broken`` says whether it is when only a share of 1 - ``confidence`` may be spent on it; with all of it, it is.
    Found by halving, to one per cent, and never too small; ``SMALLEST_P`` stands for everything below it.
    """
    high, low = 0.0, math.log(SMALLEST_P / (1 - confidence))
    if is_broken(math.exp(low)):
        return SMALLEST_P
    while high - low > P_TOLERANCE:
        middle = (high + low) / 2
        high, low = (middle, low) if is_broken(math.exp(middle)) else (high, middle)
    return math.exp(high) * (1 - confidence)


def benjamini_hochberg(p_values: Sequence[float], level: float, claims: int | None = None) -> tuple[bool, ...]:
    """Which of them are upheld if the share of false ones among the upheld is to stay below ``level``, on average.

    Benjamini & Hochberg 1995, step-up: the k smallest, for the largest k with p_(k) ≤ level·k/m. ``claims`` is m where
    more were judged than have a p-value here; what is left out counts as if it had p = 1. Holds for independent
    claims and for those that go wrong together in the same direction (Benjamini & Yekutieli 2001).

    With the p-values of ``p_value`` only failures count, so the share of false ones is even below half the level.
    """
    count = max(len(p_values), claims or 0)
    ordered = sorted(p_values)
    upheld = max((k for k, p in enumerate(ordered, start=1) if p <= level * k / count), default=0)
    return tuple(p <= ordered[upheld - 1] if upheld else False for p in p_values)


def benjamini_yekutieli(p_values: Sequence[float], level: float, claims: int | None = None) -> tuple[bool, ...]:
    """The same for claims that depend on each other in whatever way, as several about one measurement do.

    Benjamini & Yekutieli 2001: the level divided by 1 + 1/2 + … + 1/m.
    """
    count = max(len(p_values), claims or 0)
    return benjamini_hochberg(p_values, level / math.fsum(1 / k for k in range(1, count + 1)), count) if count else ()
