"""Measuring until the verdict is certain: when to look, what counts at each look, and when a look may decide.

Looks that are planned beforehand share the error rate among them (``boundary``): whichever decides, the stated
confidence holds, however often one looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_ssdqual.qual import blocks, boundary
from pytest_ssdqual.qual.blocks import Bounds
from pytest_ssdqual.qual.estimate import TooFew
from pytest_ssdqual.qual.look import Look
from pytest_ssdqual.qual.measurement import Run
from pytest_ssdqual.qual.protocol import SequentialRule, VerdictRule

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

#: Of the stimulus, what has to be left when warm-up is cut off; never less than the first look.
KEPT = 0.3
#: Of the warm-up, what is left out altogether; the rest of it shows where the trend goes.
LEFT_OUT = 0.7
#: Early figures that are so much better or worse than their limit may be those of a plateau; beyond the second figure
#: no plateau explains them, if the drive was written to as the protocol demands.
PLATEAU = (1.12, 2.0)


def look_times(rule: SequentialRule) -> tuple[float, ...]:
    """Seconds of stimulus after the ramp, the last of them the limit."""
    times = [rule.first_s]
    while times[-1] < rule.limit_s:
        times.append(min(rule.limit_s, times[-1] * rule.growth))
    return tuple(times)


def level(rule: SequentialRule, confidence: float) -> float:
    """Two-sided confidence of the interval of each look, so that those of all looks hold together at ``confidence``."""
    return boundary.level(look_times(rule), confidence)


def is_too_early(seconds: float, value: float, limit: float, rule: SequentialRule) -> bool:
    """Whether a figure after ``seconds`` of stimulus is too far from its limit to be believed yet.

    A plateau (of a cache, of spare blocks) is as steady as a settled drive, and its end cannot be foreseen.
    """
    if seconds >= rule.plateau_s or value <= 0 or limit <= 0:
        return False
    return PLATEAU[0] < max(value / limit, limit / value) < PLATEAU[1]


def at_look(run: Run, number: int, rule: SequentialRule, confidence: float) -> Run:
    """The run as it was known at look ``number``: without its warm-up, and without what came after the look.

    Of drives side by side the latest warm-up counts for all. What has a look already is given back as it is.
    """
    times = look_times(rule)
    if run.look is not None:
        return run
    until = replace(run, window_s=times[number - 1])
    warmup_s = max(_warmup_s(each, rule) for each in until.of_members())
    left_out_s = LEFT_OUT * warmup_s
    kept = replace(until, ramp_s=run.ramp_s + left_out_s, window_s=times[number - 1] - left_out_s)
    count = max(1, min(blocks.COUNT, len(kept.counted)))
    head = round(count * (warmup_s - left_out_s) / kept.window_s)
    found = Look(number, len(times), level(rule, confidence), left_out_s, head, rule.slowest_s, rule.pause_s)
    return replace(kept, rounds=count, look=found)


def _warmup_s(run: Run, rule: SequentialRule) -> float:
    counted = run.counted
    if len(counted) < blocks.FEWEST:
        return 0.0
    begin = warmup([each.ios / each.seconds for each in counted], _least(len(counted), run.window_s, rule))
    return max(0.0, counted[begin].start_s - run.ramp_s) if begin else 0.0


def _least(count: int, seconds: float, rule: SequentialRule) -> int:
    """How many of ``count`` cells, which took ``seconds``, are to be kept."""
    return min(count, max(blocks.FEWEST, round(count * max(KEPT, rule.first_s / seconds))))


def warmup(rates: Sequence[float], least: int) -> int:
    """How many values at the head are warm-up: those without which the mean of the rest has the least variance.

    MSER (White 1997; White, Cobb & Spratt 2000); at least ``least`` values are kept.
    """
    import numpy as np

    backwards = np.asarray(rates, float)[::-1]
    counts = np.arange(1, len(backwards) + 1)
    sums, squares = np.cumsum(backwards), np.cumsum(backwards**2)
    merit = ((squares - sums**2 / counts) / counts**2)[::-1]
    return int(np.argmin(merit[: max(0, len(backwards) - least) + 1]))


@dataclass(frozen=True, slots=True)
class Decision:
    """What a series of rates is found to be at the look that decides, or at the last one."""

    #: ``pass``, ``fail`` or ``inconclusive``.
    outcome: str
    #: Of stimulus, from its begin.
    seconds: float
    #: None if no look had enough to say anything.
    bounds: Bounds | None


def decide(rates: Sequence[float], step_s: float, limit: float, rule: SequentialRule, verdict: VerdictRule) -> Decision:
    """Whether the long-run mean of ``rates``, one value each ``step_s``, is at least ``limit``: looked at as ``rule``
    says, as a promise of IOPS is judged at each look, with nothing but the series to go by.

    Inconclusive at once when the interval lies within the indifference margin.
    """
    import numpy as np

    values = np.asarray(rates, float)
    margin, found = verdict.indifference_percent / 100, None
    for number, seconds in enumerate(look_times(rule), 1):
        count = min(len(values), round(seconds / step_s))
        found = of_rates(values[:count], step_s, number, rule, verdict.confidence)
        if found is None or is_too_early(seconds, found.value, limit, rule):
            continue
        if found.low >= limit:
            return Decision("pass", seconds, found)
        if found.high < limit:
            return Decision("fail", seconds, found)
        if found.low > limit * (1 - margin) and found.high < limit * (1 + margin):
            return Decision("inconclusive", seconds, found)
    return Decision("inconclusive", rule.limit_s, found)


def of_rates(
    rates: NDArray[float64], step_s: float, number: int, rule: SequentialRule, confidence: float
) -> Bounds | None:
    """Bounds of the long-run mean at look ``number``, of all rates up to it; None of too few."""
    import numpy as np

    if len(rates) < blocks.FEWEST:
        return None
    begin = warmup(rates.tolist(), _least(len(rates), len(rates) * step_s, rule))
    left_out = int(LEFT_OUT * begin)
    kept = rates[left_out:]
    count = min(blocks.COUNT, len(kept))
    edges = np.linspace(0, len(kept), count + 1)
    sums = np.interp(edges, np.arange(len(kept) + 1), np.concatenate(([0.0], np.cumsum(kept))))
    head = round(count * (begin - left_out) / len(kept))
    look = Look(number, len(look_times(rule)), level(rule, confidence), 0.0, head, rule.slowest_s, rule.pause_s)
    try:
        return blocks.bounds(np.diff(sums).tolist(), np.diff(edges).tolist(), len(kept) * step_s, look)
    except TooFew:
        return None
