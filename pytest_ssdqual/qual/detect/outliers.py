"""One figure of several bays, taken as a sample of what was delivered: how much they differ, and which stands out.

Which of several drives stands out, and how often one would by chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

#: Iglewicz & Hoaglin (1993), "How to Detect and Handle Outliers", ASQC Basic References in Quality Control 16; also
#: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.17: a modified z-score above 3.5 is labelled an outlier.
OUTLYING = 3.5
#: What makes a median absolute deviation, and a mean one, a standard deviation of a normal distribution.
OF_MEDIAN, OF_MEAN = 0.6745, 1.253314
#: With fewer, half of them say what is usual, and any one of them may be the odd one.
FEWEST = 5


@dataclass(frozen=True, slots=True)
class Spread:
    """How much the same figure differs, in its own unit."""

    n: int
    mean: float
    #: Between them, with what a measurement is off by in it; None of one.
    deviation: float | None
    least: float
    median: float
    most: float

    @property
    def range_percent(self) -> float | None:
        """Largest less smallest, of the median."""
        return 100 * (self.most - self.least) / abs(self.median) if self.median else None


@dataclass(frozen=True, slots=True)
class Outlying:
    """The one that stands out."""

    index: int
    #: The modified z-score, with its sign.
    score: float


def spread(values: Sequence[float]) -> Spread:
    """ValueError of none."""
    if not values:
        raise ValueError("there is no figure to look for a spread in")
    deviation = stdev(values) if len(values) > 1 else None
    return Spread(len(values), fmean(values), deviation, min(values), median(values), max(values))


def standing_out(values: Sequence[float], intervals: Sequence[tuple[float, float]] = ()) -> Outlying | None:
    """The one farthest from the median, if its modified z-score is above ``OUTLYING``; None with fewer than ``FEWEST``.

    Where more than half are equal the mean absolute deviation takes the place of the median one, as the authors have
    it. One whose own interval holds the median does not stand out: its measurement cannot tell it from the others.
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


#: Stands for a figure of zero, which has no logarithm: that drive is farthest out, and by far.
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True)
class Grubbs:
    """The drive that stands out most, and how often one would by chance."""

    index: int
    #: Distance from the mean in standard deviations.
    statistic: float
    p_value: float


def of_positive(values: Sequence[float]) -> Grubbs | None:
    """Of the logarithms of what was measured: rates and latencies vary in per cent. None as ``grubbs``."""
    return grubbs([math.log(max(each, _NOTHING)) for each in values])


def grubbs(figures: Sequence[float]) -> Grubbs | None:
    """The figure farthest from the mean, two-sided (Grubbs 1969); None below three or if all are equal.

    The p-value is Bonferroni's of Student's t, n times that of one: exact where it is small, and never too small.
    """
    if len(figures) < 3 or max(figures) == min(figures):
        return None
    from scipy.special import stdtr

    n, mean, deviation = len(figures), fmean(figures), stdev(figures)
    index = max(range(n), key=lambda each: abs(figures[each] - mean))
    statistic = abs(figures[index] - mean) / deviation
    left = (n - 1) ** 2 - n * statistic**2
    # The largest that n figures can have, when all others are equal.
    t = math.sqrt(n * (n - 2) * statistic**2 / left) if left > 0 else math.inf
    return Grubbs(index, statistic, min(1.0, 2 * n * float(stdtr(n - 2, -t))))
