"""Trend or single change of one figure over many runs, against scatter.

Ranks are used, so that a single bad run decides nothing and no distribution is assumed:

- a trend by the test of Mann (1945) and Kendall, its slope and the interval of that by Sen (1968),
- a single change by the statistic of Pettitt (1979), its p-value by permutation: his formula is for long series.

Both are tested, so each has half of the error rate. A series with a trend also looks like one with a single change, and
the reverse: the one that leaves less scatter is reported first.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations
from statistics import fmean, median, stdev

from pytest_ssdqual.qual.stats.estimate import CONFIDENCE

#: Fewest runs: with fewer no order is rarer than half of 5 %, two-sided (2 of 120 orders of five).
FEWEST = 5
#: Up to ``EVERY_ORDER`` runs every order is tried, beyond that ``ORDERS`` drawn with a fixed seed.
EVERY_ORDER, ORDERS, SEED = 7, 5_000, 1979
#: Most runs for the exact distribution of Kendall's statistic; beyond, the normal one agrees to four digits.
EXACT = 60


@dataclass(frozen=True, slots=True)
class Trend:
    """A steady rise or fall of a figure."""

    p_value: float
    #: Change from one run to the next.
    percent: float
    low_percent: float
    high_percent: float


@dataclass(frozen=True, slots=True)
class LevelStep:
    """A single change of a figure."""

    p_value: float
    #: Index of the first run after the change.
    at: int
    #: Geometric mean of the runs after over that of those before.
    ratio: float


@dataclass(frozen=True, slots=True)
class Drift:
    """Result of the analysis of a series of figures."""

    runs: int
    #: Standard deviation of the figures around their geometric mean, per cent; None below two runs.
    scatter_percent: float | None
    #: None if not significant.
    trend: Trend | None = None
    step: LevelStep | None = None
    #: True if the step leaves less scatter than the trend, for when both are significant.
    is_rather_step: bool = False

    @property
    def is_enough(self) -> bool:
        """Return whether there were enough runs to detect a change."""
        return self.runs >= FEWEST


def drift(figures: Sequence[float], confidence: float = CONFIDENCE) -> Drift:
    """Analyse figures in the order of their runs; ValueError unless all are above zero."""
    if not all(0 < each < math.inf for each in figures):
        raise ValueError("a drift needs figures above zero")
    logs = [math.log(each) for each in figures]
    scatter = 100 * math.expm1(stdev(logs)) if len(logs) > 1 else None
    if len(logs) < FEWEST:
        return Drift(len(logs), scatter)
    level = (1 - confidence) / 2
    trend, step = _trend(logs, confidence), _step(logs)
    of_trend = math.log1p(trend.percent / 100)
    left = fmean(each - of_trend * index for index, each in enumerate(logs))
    around_trend = math.fsum((each - of_trend * index - left) ** 2 for index, each in enumerate(logs))
    around_step = _around(logs, step.at)
    return Drift(
        runs=len(logs),
        scatter_percent=scatter,
        trend=trend if trend.p_value <= level else None,
        step=step if step.p_value <= level else None,
        is_rather_step=around_step < around_trend,
    )


def _trend(logs: Sequence[float], confidence: float) -> Trend:
    count = len(logs)
    slopes = sorted((b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(logs), 2))
    concordance = sum(_sign(each) for each in slopes)
    spread = _normal((1 + confidence) / 2) * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = max(0, math.floor((len(slopes) - spread) / 2) - 1)
    ends = slopes[low], slopes[len(slopes) - 1 - low]
    return Trend(_kendall_p(count, abs(concordance)), *(100 * math.expm1(each) for each in (median(slopes), *ends)))


def _kendall_p(count: int, concordance: int) -> float:
    """Two-sided p-value of Kendall's concordance. Ties would make it smaller, so this one is too large then."""
    if count > EXACT:
        variance = count * (count - 1) * (2 * count + 5) / 18
        return min(1.0, 2 * (1 - _normal_cdf((concordance - 1) / math.sqrt(variance))))
    ways = _inversions(count)
    pairs = count * (count - 1) // 2
    at_most = (pairs - concordance) // 2  # pairs in the rarer order
    return min(1.0, 2 * sum(ways[: at_most + 1]) / math.factorial(count))


@cache
def _inversions(count: int) -> tuple[int, ...]:
    """Number of orders of ``count`` items with 0, 1, 2, … inversions."""
    ways = [1]
    for size in range(2, count + 1):
        longer = [0] * (len(ways) + size - 1)
        for index, each in enumerate(ways):
            for more in range(size):
                longer[index + more] += each
        ways = longer
    return tuple(ways)


def _step(logs: Sequence[float]) -> LevelStep:
    count = len(logs)
    # Twice the centred rank, ties averaged: their partial sums are Pettitt's U.
    centred = [2 * sum(other < each for other in logs) + sum(other == each for other in logs) - count for each in logs]
    largest = _largest(centred)
    orders = permutations(centred) if count <= EVERY_ORDER else _drawn(centred)
    found = tried = 0
    for order in orders:
        tried += 1
        found += _largest(order) >= largest
    # The measured order is one of all orders; it is added to those drawn.
    p_value = found / tried if count <= EVERY_ORDER else (found + 1) / (tried + 1)
    # The place of the largest sum is biased to the middle of the series; least squares is not.
    at = min(range(1, count), key=lambda index: _around(logs, index))
    return LevelStep(p_value, at, math.exp(fmean(logs[at:]) - fmean(logs[:at])))


def _drawn(values: list[int]) -> list[list[int]]:
    draw = random.Random(SEED)  # noqa: S311 (the same p-value each time)
    return [draw.sample(values, len(values)) for _ in range(ORDERS)]


def _largest(centred: Sequence[int]) -> int:
    """Largest absolute partial sum, without that of all: Pettitt's K."""
    total = best = 0
    for each in centred[:-1]:
        total += each
        best = max(best, abs(total))
    return best


def _around(logs: Sequence[float], at: int) -> float:
    """Sum of squares around the means before and after."""
    parts = [(part, fmean(part)) for part in (logs[:at], logs[at:])]
    return math.fsum((each - mean) ** 2 for part, mean in parts for each in part)


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _normal(share: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(share)


def _normal_cdf(value: float) -> float:
    from statistics import NormalDist

    return NormalDist().cdf(value)
