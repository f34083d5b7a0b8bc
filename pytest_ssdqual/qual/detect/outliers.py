"""Outliers among the same figure of several drives or bays: spread, modified z-score, Grubbs' test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median, stdev

from pytest_ssdqual.qual.frozen import frozen

#: Iglewicz & Hoaglin (1993), "How to Detect and Handle Outliers", ASQC Basic References in Quality Control 16; also
#: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.17: a modified z-score above 3.5 is labelled an outlier.
OUTLYING = 3.5
#: Factors from the median, and the mean, absolute deviation to the standard deviation of a normal distribution.
OF_MEDIAN, OF_MEAN = 0.6745, 1.253314
#: Fewest values; with fewer, the median of half of them is not a reference.
FEWEST = 5
#: Replaces a figure of zero, which has no logarithm: that drive is by far the farthest out.
_NOTHING = 1e-9


@frozen
class Spread:
    """Spread of one figure over bays or drives, in its own unit."""

    n: int
    mean: float
    #: Standard deviation between them, measurement error included; None for a single one.
    deviation: float | None
    least: float
    median: float
    most: float

    @property
    def range_percent(self) -> float | None:
        """Largest minus smallest, in per cent of the median."""
        return 100 * (self.most - self.least) / abs(self.median) if self.median else None


@frozen
class Outlying:
    """The value that stands out."""

    index: int
    #: The modified z-score, with its sign.
    score: float


def spread(values: Sequence[float]) -> Spread:
    """Compute the spread; ValueError without values."""
    if not values:
        raise ValueError("a spread needs at least one figure")
    deviation = stdev(values) if len(values) > 1 else None
    return Spread(len(values), fmean(values), deviation, min(values), median(values), max(values))


def of_others(values: Sequence[float]) -> list[float]:
    """Return for each value the median of all others: what it is compared with, also where half of them are bad."""
    return [median([*values[:index], *values[index + 1 :]]) for index in range(len(values))]


def standing_out(values: Sequence[float], intervals: Sequence[tuple[float, float]] = ()) -> Outlying | None:
    """The value farthest from the median if its modified z-score is above ``OUTLYING``; None below ``FEWEST`` values.

    If more than half are equal, the mean absolute deviation replaces the median one, as the authors specify. A value
    whose own interval holds the median does not stand out: its measurement does not distinguish it.
    """
    if len(values) < FEWEST:
        return None
    middle = median(values)
    away = [abs(each - middle) for each in values]
    scale = median(away) / OF_MEDIAN or fmean(away) * OF_MEAN
    if not scale:
        return None
    index = max(range(len(values)), key=away.__getitem__)
    score = (values[index] - middle) / scale
    if abs(score) <= OUTLYING or (intervals and intervals[index][0] <= middle <= intervals[index][1]):
        return None
    return Outlying(index, score)


@frozen
class Grubbs:
    """Result of Grubbs' test: the drive that stands out most, and its p-value."""

    index: int
    #: Distance from the mean in standard deviations.
    statistic: float
    p_value: float


def of_positive(values: Sequence[float]) -> Grubbs | None:
    """Grubbs' test on the logarithms: rates and latencies vary in per cent. None as in ``grubbs``."""
    return grubbs([math.log(max(each, _NOTHING)) for each in values])


def grubbs(figures: Sequence[float]) -> Grubbs | None:
    """Grubbs' two-sided test (1969) of the figure farthest from the mean; None below three figures or if all are equal.

    The p-value is Bonferroni's bound with Student's t, n times that of one: exact where it is small, never too small.
    """
    if len(figures) < 3 or max(figures) == min(figures):
        return None
    from scipy.special import stdtr

    n, mean, deviation = len(figures), fmean(figures), stdev(figures)
    index = max(range(n), key=lambda each: abs(figures[each] - mean))
    statistic = abs(figures[index] - mean) / deviation
    left = (n - 1) ** 2 - n * statistic**2
    # ``left`` is 0 at the largest statistic of n figures, when all others are equal.
    t = math.sqrt(n * (n - 2) * statistic**2 / left) if left > 0 else math.inf
    return Grubbs(index, statistic, min(1.0, 2 * n * float(stdtr(n - 2, -t))))
