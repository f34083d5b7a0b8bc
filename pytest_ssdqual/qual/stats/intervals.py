"""Confidence interval of a mean or a share: from rounds, from repeats, or from visits.

`Basis` selects. Rounds of one measurement are independent. Repeats that differ are the independent
observations instead of their rounds. Cells of visits need what `visits` found in all points of the
experiment: `Visited`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from statistics import fmean, stdev, variance

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.run import Measured, Visited
from pytest_ssdqual.qual.stats.estimate import USUAL, ConfidenceLevel, TooFew, student_t

#: Probability of a difference between repeats by chance up to which it counts. Of two repeats that
#: scatter by 1.5 %, and their rounds by 0.4 %, 6 % pass exactly on their limit, and 25 % if it
#: never counts. It is not larger because two repeats have Student's factor 12.7: of drives 2 % above
#: their limit, with rounds of 1 %, 80 % pass instead of 97 %.
DIFFERENT = 0.2
#: Probability of so much more scatter than that of the mix by chance, up to which a point's own
#: scatter counts instead.
SPEAKS_FOR_ITSELF = 0.01


@frozen
class Bounds:
    """A value and the interval that should hold it."""

    value: float
    low: float
    high: float


@frozen
class Scatter:
    """A standard deviation and its degrees of freedom; none if there are 0."""

    deviation: float
    degrees: float

    def exceeds(self, pooled: Scatter, chance: float = SPEAKS_FOR_ITSELF) -> bool:
        """Return whether it is significantly more than the rest of a pool that it is a part of.

        F test. Squares of the rest are those of the pool without the own ones.
        """
        from scipy.special import fdtrc

        rest = pooled.degrees - self.degrees
        if rest <= 0 or self.degrees <= 0 or self.deviation <= pooled.deviation:
            return False
        squares = pooled.degrees * pooled.deviation**2 - self.degrees * self.deviation**2
        if squares <= 0:
            return True
        quotient = self.deviation**2 * rest / squares
        return bool(fdtrc(self.degrees, rest, quotient) < chance)

    def half_width(self, level: float, observations: float) -> float:
        """Return Student's half width of the mean of so many observations; 0 without degrees."""
        if not self.degrees:
            return 0.0
        degrees = max(1, int(self.degrees))
        return student_t(level, degrees) * self.deviation / math.sqrt(observations)


@frozen
class Basis:
    """Basis of confidence intervals: rounds, repeats, or visits."""

    confidence_level: ConfidenceLevel = USUAL
    #: Number of measurements of fixed length that the rounds belong to, one after the other, each
    #: with as many.
    repeats: int = 1
    #: If the rounds are the cells of visits.
    visited: Visited | None = None

    @classmethod
    def of(cls, measured: Measured, confidence_level: ConfidenceLevel) -> Basis:
        repeats = 1 if measured.visited else len(measured.runs)
        return cls(confidence_level, repeats, measured.visited)

    @property
    def level(self) -> float:
        """Two-sided confidence of intervals; ``confidence_level.confidence`` is the stated one."""
        return self.confidence_level.level(self.visited.level if self.visited else None)

    def bounds(
        self,
        numerators: Sequence[float],
        denominators: Sequence[float],
        *,
        are_rates: bool = False,
    ) -> Bounds:
        """Ratio Σ numerators / Σ denominators with its interval; both have one value a round.

        Ratio estimator: a round is weighted by its denominator. The standard error is that of the
        residuals k_j - r·n_j, with Student's factor (Cochran 1977, section 6.4). ``are_rates``: the
        scatter of visits is known from the rates of other points, and what the mean hides moves the
        ratio to the same side; other ratios it may move to either. ``TooFew`` below two rounds.
        """
        count = len(numerators)
        require_rounds(count)
        if not sum(denominators) > 0:
            raise TooFew("no I/O was counted")
        value, usual = math.fsum(numerators) / math.fsum(denominators), fmean(denominators)
        residuals = [(k - value * n) / usual for k, n in zip(numerators, denominators, strict=True)]
        if self.visited:
            return self._of_visits(self.visited, value, residuals, are_rates=are_rates)
        found = of_repeats(residuals, self.repeats) or Scatter(stdev(residuals), count - 1)
        half = found.half_width(self.level, count)
        return Bounds(value, value - half, value + half)

    def _of_visits(
        self,
        visited: Visited,
        value: float,
        residuals: Sequence[float],
        *,
        are_rates: bool,
    ) -> Bounds:
        scale = abs(value)
        half = half_of_rates(visited, scale, residuals if are_rates else (), self.level)
        below, above = visited.below * scale, visited.above * scale
        if not are_rates:
            own = _of_differing_visits(residuals, visited.cells)
            own = own or Scatter(stdev(residuals), len(residuals) - 1)
            half = max(half, own.half_width(self.level, len(residuals)))
            below = above = max(below, above)
        return Bounds(value, value - half - below, value + half + above)

    def time_each(self, times: Sequence[float], counts: Sequence[float]) -> Bounds:
        """Time per item, Σ times / Σ counts, with its interval.

        Of visits it is the reciprocal of counts per time, which is a rate. ``TooFew`` as
        ``bounds``, or if nothing was counted.
        """
        if not self.visited:
            return self.bounds(times, counts)
        rate = self.bounds(counts, times, are_rates=True)
        if rate.value <= 0:
            raise TooFew("no I/O was counted")
        high = 1 / rate.low if rate.low > 0 else math.inf
        return Bounds(1 / rate.value, 1 / rate.high, high)


def known_scatters(visited: Visited, scale: float = 1.0) -> tuple[Scatter, Scatter]:
    """Return the scatter of visits' means, and that of cells within their visits, as the mix has them."""
    between = Scatter(visited.between * scale, visited.between_degrees)
    return between, Scatter(visited.within * scale, visited.within_degrees)


def half_of_rates(
    visited: Visited,
    scale: float,
    residuals: Sequence[float],
    level: float,
) -> float:
    """Return the half width of the mean of cells: the larger of those by visits and by cells.

    Scatters are those of the mix, times ``scale``, unless ``residuals``, one for each cell, show
    significantly more. Visits with more cells weigh more: their effective number is 1/Σ of the
    squared weights. ``TooFew`` without two visits and without two cells in one.
    """
    between, within = known_scatters(visited, scale)
    if residuals:
        own_between, own_within = scatters(residuals, visited.cells)
        between = own_between if own_between.exceeds(between) else between
        within = own_within if own_within.exceeds(within) else within
    if not between.degrees and not within.degrees:
        raise TooFew("an interval needs a second visit, or a second cell in a visit")
    cells = sum(visited.cells)
    visits = cells**2 / sum(count**2 for count in visited.cells)
    return max(between.half_width(level, visits), within.half_width(level, cells))


def scatters(values: Sequence[float], cells: Sequence[int]) -> tuple[Scatter, Scatter]:
    """Return the scatter of visits' means, and that of cells within their visits.

    ``values`` are cells in order, ``cells`` their numbers in each visit. One-way analysis of
    variance with unequal numbers: a mean square between visits, over `usual_cells`, is the variance
    of the mean of a visit.
    """
    total = fmean(values)
    visits = list(in_visits(values, cells))
    within = math.fsum((each - fmean(visit)) ** 2 for visit in visits for each in visit)
    between = math.fsum(len(visit) * (fmean(visit) - total) ** 2 for visit in visits)
    return (
        _scatter(between / usual_cells(cells) if len(visits) > 1 else 0.0, len(visits) - 1),
        _scatter(within, len(values) - len(visits)),
    )


def _scatter(squares: float, degrees: int) -> Scatter:
    return Scatter(math.sqrt(squares / degrees) if degrees else 0.0, degrees)


def _of_differing_visits(values: Sequence[float], cells: Sequence[int]) -> Scatter | None:
    """Return the scatter between visits as that of a cell; None unless visits differ (`DIFFERENT`)."""
    from scipy.special import fdtrc

    between, within = scatters(values, cells)
    if not between.degrees or not within.degrees or not between.deviation:
        return None
    as_cell = between.deviation * math.sqrt(usual_cells(tuple(cells)))
    if within.deviation:
        quotient = (as_cell / within.deviation) ** 2
        if fdtrc(between.degrees, within.degrees, quotient) > DIFFERENT:
            return None
    return Scatter(as_cell, between.degrees)


def in_visits(values: Sequence[float], cells: Sequence[int]) -> Iterator[Sequence[float]]:
    """Yield the values of each visit."""
    begin = 0
    for count in cells:
        yield values[begin : begin + count]
        begin += count


@lru_cache(maxsize=256)
def usual_cells(cells: tuple[int, ...]) -> float:
    """Return the number of cells by which a mean square between visits contains their variance.

    (N - Σn²/N)/(V - 1): Searle, Casella & McCulloch 1992, Variance Components, section 3.6.
    """
    total = sum(cells)
    return (total - sum(count**2 for count in cells) / total) / (len(cells) - 1)


def of_repeats(values: Sequence[float], repeats: int) -> Scatter | None:
    """Return the scatter between repeats as that of a round.

    None unless repeats differ by more than the rounds within them, at ``DIFFERENT``: then rounds of
    one repeat are no independent evidence. One-way analysis of variance: the mean square between
    repeats over that within them has the F distribution with r - 1 and r·(m - 1) degrees if rounds
    are independent.
    """
    from scipy.special import fdtrc

    size = len(values) // repeats
    if repeats < 2 or size < 2 or size * repeats != len(values):
        return None
    groups = [values[at : at + size] for at in range(0, len(values), size)]
    within = fmean(variance(each) for each in groups)
    between = size * variance(fmean(each) for each in groups)
    is_chance = within and fdtrc(repeats - 1, repeats * (size - 1), between / within) > DIFFERENT
    if not between or is_chance:
        return None
    return Scatter(math.sqrt(between), repeats - 1)


#: Independent rounds at the default confidence.
ROUNDS = Basis()


def require_rounds(count: int) -> None:
    """Raise ``TooFew`` below the two rounds that an interval needs."""
    if count < 2:
        raise TooFew(f"an interval needs at least 2 rounds, there are {count}")
