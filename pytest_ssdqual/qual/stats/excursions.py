"""Slow rhythms and pauses of drives, from series of their IOPS that are longer than a measurement.

A short series cannot show what is slower than itself. A long one of the same drives can: every window of it is judged
as a measurement of that length would be, and the distance by which the worst of their intervals misses the mean of the
long series is what an interval of that length lacks. For drives whose rhythms are shorter than the window it is nearly
0.

The mean of the long series is itself uncertain, by the part of a cycle that it has too much. So the miss is measured to
the further end of that mean ± one standard error. Without that, drives with a cycle of 25 to 40 min exactly on their
limit were accepted in 20 % of runs after a series of two hours, with it in none (40 runs each).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule
from pytest_ssdqual.qual.stats import batch_means, group_sequential
from pytest_ssdqual.qual.stats.shared_evidence import Excursion

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Values = NDArray[float64]

#: Longest window, as a share of the series: of longer ones there are fewer than four.
LONGEST = 0.25
#: Each length is so many times the one before.
GROWTH = 1.25
#: Windows begin at steps of this share of their length.
STRIDE = 0.125


def of_drives(
    series: Sequence[Sequence[float]], step_s: float, rule: SequentialRule, confidence: float
) -> tuple[Excursion, ...]:
    """Return the excursions of an array of these drives, from IOPS of each that were recorded at the same time.

    ``series`` has one value for every ``step_s`` seconds of each drive. A pause of one drive stalls the whole array,
    and pauses of several add up. So the array is taken to lose what each of its drives loses: the product of their
    rates, each relative to its mean. The excursions are empty if the series, without its warm-up, is shorter than
    ``PERIODS`` × ``slowest_s``, has gaps (a value of 0 throughout), or has no settled level.
    """
    import numpy as np

    if not series:
        return ()
    rates = np.asarray(series, float)
    means = rates.mean(axis=1, keepdims=True)
    if not rates.size or not (means > 0).all():
        return ()
    return of_series(np.prod(rates / means, axis=0).tolist(), step_s, rule, confidence)


def of_series(rates: Sequence[float], step_s: float, rule: SequentialRule, confidence: float) -> tuple[Excursion, ...]:
    """Return the excursions of one series of a rate, a value for every ``step_s`` seconds; see ``of_drives``."""
    import numpy as np

    count = len(rates)
    least = math.ceil(batch_means.PERIODS * rule.slowest_s / step_s)
    if count < least:
        return ()
    begin = group_sequential.warmup(rates, max(least, round(count * (1 - batch_means.LONGEST_WARMUP))))
    values = np.asarray(rates[begin:], float)
    if not values.mean() > 0:
        return ()
    level = group_sequential.level(rule, confidence)
    relative = values / values.mean()
    error = batch_means.standard_error(relative)
    work = np.concatenate(([0.0], np.cumsum(relative))) * step_s
    return tuple(
        Excursion(seconds, _furthest(work, step_s, seconds, level, error))
        for seconds in _lengths((1 - batch_means.LONGEST_WARMUP) * rule.first_s, LONGEST * len(values) * step_s)
    )


def _lengths(shortest_s: float, longest_s: float) -> list[float]:
    steps = max(1, math.ceil(math.log(max(1.0, longest_s / shortest_s), GROWTH)))
    return [shortest_s * (longest_s / shortest_s) ** (index / steps) for index in range(steps + 1)]


def _furthest(work: Values, step_s: float, seconds: float, level: float, error: float) -> float:
    """Return the largest miss of windows of ``seconds``.

    ``work`` is the sum of the relative rate up to each step, ``error`` the standard error of the mean of all.
    """
    import numpy as np

    times = np.arange(len(work)) * step_s
    starts = np.arange(0.0, times[-1] - seconds + 1e-6, STRIDE * seconds)
    edges = starts[:, None] + np.linspace(0.0, seconds, batch_means.COUNT + 1)
    blocks = np.diff(np.interp(edges, times, work), axis=1) * (batch_means.COUNT / seconds)
    return batch_means.miss(blocks, level, error)
