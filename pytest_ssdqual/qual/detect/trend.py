"""Trend or single change of one figure over many runs, against scatter.

Ranks are used, so that a single bad run decides nothing and no distribution is assumed:

- a trend by the test of Mann (1945) and Kendall, its slope and the interval of that by Sen (1968), computed by scipy,
- a single change by the statistic of Pettitt (1979), its p-value by permutation: his formula is for long series.

Both are tested, so each has half of the error rate. A series with a trend also looks like one with a single change, and
the reverse: the one that leaves less scatter is reported first.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import permutations
from statistics import fmean, stdev

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.stats.estimate import CONFIDENCE

#: Fewest runs: with fewer no order is rarer than half of 5 %, two-sided (2 of 120 orders of five).
FEWEST = 5
#: Fewest runs for a single change of figures that all differ: the clearest one of nine runs has p = 0.03, above half of
#: 5 %; of ten 0.009. Equal figures have fewer orders: four and five equal ones have 2 of 126, p = 0.016.
FEWEST_FOR_STEP = 10
#: Up to ``EVERY_ORDER`` runs every order is tried, beyond that ``ORDERS`` drawn with a fixed seed.
EVERY_ORDER, ORDERS, SEED = 7, 5_000, 1979


@frozen
class Trend:
    """A steady rise or fall of a figure."""

    p_value: float
    #: Change from one run to the next.
    percent: float
    low_percent: float
    high_percent: float


@frozen
class LevelStep:
    """A single change of a figure."""

    p_value: float
    #: Index of the first run after the change.
    at: int
    #: Geometric mean of the runs after over that of those before.
    ratio: float


@frozen
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


def drift(figures: Sequence[float]) -> Drift:
    """Analyse figures in the order of their runs; ValueError unless all are above zero."""
    if not all(0 < each < math.inf for each in figures):
        raise ValueError("a drift needs figures above zero")
    logs = [math.log(each) for each in figures]
    scatter = 100 * math.expm1(stdev(logs)) if len(logs) > 1 else None
    if len(logs) < FEWEST:
        return Drift(len(logs), scatter)
    level = (1 - CONFIDENCE) / 2
    trend, step = _trend(logs), _step(logs)
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


def _trend(logs: Sequence[float]) -> Trend:
    from scipy.stats import kendalltau, theilslopes

    runs = range(len(logs))
    # The exact distribution holds only without ties; with them scipy corrects the variance of the normal one (D110).
    has_ties = len(set(logs)) < len(logs)
    p_value = float(kendalltau(runs, logs, method="asymptotic" if has_ties else "exact").pvalue)
    slopes = theilslopes(logs, runs, CONFIDENCE)
    ends = (float(each) for each in (slopes.slope, slopes.low_slope, slopes.high_slope))
    return Trend(1.0 if math.isnan(p_value) else p_value, *(100 * math.expm1(each) for each in ends))


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
