"""Which of several drives stands out, and how often one would by chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

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
