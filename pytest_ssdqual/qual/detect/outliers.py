"""One figure of several bays, taken as a sample of what was delivered: how much they differ, and which stands out."""

from __future__ import annotations

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
