"""Multiple claims in one run: error control over them, p-values, and intervals recorded at several error rates.

A run is accepted when every claim passes. Passes need no correction: a bad product gets through only if *every* broken
claim passes its test, and the error rate of each test bounds that (intersection-union test, Berger 1982). Failures do:
one false failure among hundreds of claims rejects a good product. Levels are two-sided, but only one end of an interval
causes a given kind of error, so the probability of a false failure of one claim is at most half of 1 - its confidence.

When a run is recorded, the number of figures that it will be compared with is unknown, and an interval at one
confidence does not determine it at another: five rounds widen by Student's t with four degrees of freedom, a quantile
in steps of fio's buckets. So each interval is also computed for a few shares of its error rate, and recorded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.records import HighEnd, LowEnd
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate, TooFew, student_t

#: Shares of the error rate: ten, a hundred, … comparisons at once.
SHARES = (1e-1, 1e-2, 1e-3, 1e-4)
#: Degrees of freedom of an interval of which only the ends are known: those of five rounds, SNIA's window and the
#: fewest that a protocol measures. The recorded number of observations may count I/Os instead.
FEWEST = 4
#: Names of ``VerdictRule.family``.
NONE, BONFERRONI = "none", "bonferroni"
#: Smallest p-value that is distinguished; no model of a drive is accurate below it.
SMALLEST_P = 1e-12
#: Relative tolerance of a p-value.
P_TOLERANCE = 0.01


@frozen
class Widening:
    """Ends of an interval at a share of its error rate."""

    share: float
    low: LowEnd
    high: HighEnd

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ValueError(f"{self.share} is not a share of the error rate")


def of(again: Callable[[float], Estimate]) -> tuple[Widening, ...]:
    """Compute the widenings at ``SHARES``; ``again`` computes the estimate for a share. Empty for a reading.

    At a share with too little evidence (``TooFew``) the interval has no ends.
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
    """Return the estimate with the interval for a share of its error rate, interpolated from its recorded widenings.

    Between recorded shares, the distance of an end (of logarithms) is linear in the logarithm of the share: 1.3 % too
    narrow at worst for a normal figure, too wide for Student's with 4 degrees. Beyond them it grows as a power of the
    share, as Student's t does. Without ``wider``: Student's t of ``FEWEST`` degrees of freedom. A reading is unchanged.
    """
    if share >= 1 or estimate.is_reading or not 0 < estimate.value < math.inf:
        return estimate
    if not wider:
        degrees = max(1, min(FEWEST, estimate.n - 1))
        level = ConfidenceLevel(estimate.confidence, share).level()
        known = student_t(level, degrees) / student_t(estimate.confidence, degrees)
        # An end at the figure itself was cut off or rounded; its distance at another share is unknown.
        down, up = (known * each if each else math.inf for each in distances(estimate))
    else:
        ends = [(1.0, estimate.low, estimate.high), *((each.share, each.low, each.high) for each in wider)]
        rungs = [(of_share, *_distances(estimate.value, low, high)) for of_share, low, high in _widest(ends)]
        down = _between([(of_share, each) for of_share, each, _ in rungs], share)
        up = _between([(of_share, each) for of_share, _, each in rungs], share)
    return with_distances(estimate, down, up)


def rescaled(of: Estimate, wider: Sequence[Widening], to: Estimate) -> tuple[Widening, ...]:
    """Return the widenings of ``to``, whose interval grows in proportion to that of ``of``, of logarithms.

    Empty where the proportion is unknown: without ``wider``, or if an end of ``of`` is at its figure or unbounded.
    """
    base, own = distances(of), distances(to)
    if not wider or not all(0 < each < math.inf for each in base):
        return ()
    found = []
    for each in wider:
        grown = zip(own, _distances(of.value, each.low, each.high), base, strict=True)
        down, up = (distance * far / near if distance else 0.0 for distance, far, near in grown)
        wide = with_distances(to, down, up)
        found.append(Widening(each.share, wide.low, wide.high))
    return tuple(found)


def distances(estimate: Estimate) -> tuple[float, float]:
    """Distances of both ends from the figure, of logarithms; infinite if an end is not above zero, or unbounded."""
    return _distances(estimate.value, estimate.low, estimate.high)


def with_distances(estimate: Estimate, down: float, up: float) -> Estimate:
    """Return the estimate with ends at these distances from the figure, of logarithms."""
    return replace(estimate, low=estimate.value * math.exp(-down), high=estimate.value * exp(up))


def _widest(ends: Iterable[tuple[float, float, float]]) -> Iterable[tuple[float, float, float]]:
    """Make the ends monotonic: a smaller share never has a narrower interval."""
    low, high = math.inf, -math.inf
    for share, own_low, own_high in ends:
        low, high = min(low, own_low), max(high, own_high)
        yield share, low, high


def _between(rungs: Sequence[tuple[float, float]], share: float) -> float:
    """Distance at a share, interpolated or extrapolated from distances at falling shares."""
    for (more, near), (less, far) in pairwise(rungs):
        if share == more:
            return near
        if share >= less:
            part = math.log(more / share) / math.log(more / less)
            return near + part * (far - near) if math.isfinite(far) else far
    (more, near), (less, far) = rungs[-2:]
    if not (near > 0 and math.isfinite(far)):
        return far
    grown: float = (far / near) ** (math.log(less / share) / math.log(more / less))
    return far * grown


def _distances(value: float, low: float, high: float) -> tuple[float, float]:
    down = math.log(value / low) if low > 0 else math.inf
    up = math.log(high / value) if math.isfinite(high) else math.inf
    return down, up


def exp(value: float) -> float:
    """``math.exp``; infinite where that is out of range."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


@frozen
class ErrorControl:
    """Family-wise error control: the number of claims judged together, and the correction."""

    #: Planned at the start of the run and then fixed, so that the count cannot be chosen after the results.
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
        """Share of the error rate for the interval that decides a failure.

        With Bonferroni the interval is at 1 - (1 - confidence)/m, at a look after visits at 1 - (1 - its
        level)/m; a false failure among all claims is then no more likely than for a single one.
        """
        return 1 / self.claims if self.is_corrected else 1.0

    def false_failures(self, judged: int, confidence: float) -> float:
        """Upper bound of the expected false failures among ``judged`` claims if every product were exactly on its
        limit.
        """
        return judged * (1 - confidence) * self.share / 2

    def false_passes(self, judged: int, confidence: float) -> float:
        """Upper bound of the expected false passes, which no correction changes."""
        return judged * (1 - confidence) / 2


#: A single claim.
ALONE = ErrorControl()


def p_value(is_broken: Callable[[float], bool], confidence: float) -> float:
    """P-value of a failed verdict: least 1 - confidence, two-sided, at which the interval is still on the bad side.

    ``is_broken`` returns whether it is at a share of 1 - ``confidence``; it is at share 1. Found by bisection to one
    per cent, rounded up; ``SMALLEST_P`` stands for everything below it.
    """
    high, low = 0.0, math.log(SMALLEST_P / (1 - confidence))
    if is_broken(math.exp(low)):
        return SMALLEST_P
    while high - low > P_TOLERANCE:
        middle = (high + low) / 2
        high, low = (middle, low) if is_broken(math.exp(middle)) else (high, middle)
    return math.exp(high) * (1 - confidence)


def benjamini_hochberg(p_values: Sequence[float], level: float, claims: int | None = None) -> tuple[bool, ...]:
    """Select the p-values that are upheld while the expected share of false ones among them stays below ``level``.

    Benjamini & Hochberg 1995, step-up: the k smallest, for the largest k with p_(k) ≤ level·k/m. ``claims`` is m if
    more were judged than have a p-value here; the missing ones count as p = 1. Valid for independent claims and for
    positively dependent ones (Benjamini & Yekutieli 2001). With the p-values of ``p_value`` only failures count, so the
    share of false ones is below half the level.
    """
    count = max(len(p_values), claims or 0)
    ordered = sorted(p_values)
    upheld = max((k for k, p in enumerate(ordered, start=1) if p <= level * k / count), default=0)
    return tuple(p <= ordered[upheld - 1] if upheld else False for p in p_values)


def benjamini_yekutieli(p_values: Sequence[float], level: float, claims: int | None = None) -> tuple[bool, ...]:
    """Like ``benjamini_hochberg`` for claims with any dependence, such as several about one measurement.

    Benjamini & Yekutieli 2001: the level divided by 1 + 1/2 + … + 1/m.
    """
    count = max(len(p_values), claims or 0)
    return benjamini_hochberg(p_values, level / math.fsum(1 / k for k in range(1, count + 1)), count) if count else ()
