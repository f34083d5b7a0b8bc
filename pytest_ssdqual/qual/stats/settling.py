"""How a measurement settled, for people: what was left out as warm-up, what trend is left, whether it repeats itself.

Nothing here decides anything: verdicts account for trends and rhythms in their intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, linear_regression, median

from pytest_ssdqual.qual.detect import periodicity as rhythm
from pytest_ssdqual.qual.detect.periodicity import Rhythm
from pytest_ssdqual.qual.measured.run import Run


@dataclass(frozen=True, slots=True)
class Settling:
    """Of one target, an array or a drive, over the time that was counted."""

    #: Left out at the head, seconds after the ramp; 0 of a measurement of fixed length.
    warmup_s: float
    #: Change of IOPS from one end to the other along the least-squares line, per cent of the mean.
    drift_percent: float
    #: Of the IOPS of each round with those of the next, -1…1: near 0 rounds are independent.
    correlation: float
    rhythm: Rhythm | None


def of(run: Run) -> Settling:
    """How ``run``, of one target, settled; a series without I/O has no drift and no rhythm."""
    rates = run.round_iops()
    mean = fmean(rates)
    slope = linear_regression(range(len(rates)), rates).slope if len(rates) > 1 else 0.0
    return Settling(
        warmup_s=run.look.warmup_s if run.look else 0.0,
        drift_percent=100 * slope * len(rates) / mean if mean else 0.0,
        correlation=_correlation(rates),
        rhythm=rhythm.period(*series(run)),
    )


def series(run: Run) -> tuple[tuple[float, ...], float]:
    """IOPS in steps of equal length, one of fio's reports each, and that length in seconds."""
    counted = run.counted
    if not counted:
        return (), 1.0
    step_s = median(interval.seconds for interval in counted)
    count = max(1, round(run.window_s / step_s))
    return replace(run, rounds=count).round_iops(), run.window_s / count


def repeats(values: Sequence[float], step_s: float) -> str:
    """The end of a sentence about a series that is not steady: that it repeats itself, if it does; else nothing."""
    found = rhythm.period(values, step_s)
    return f"; it {found.describe()}" if found else ""


def _correlation(rates: Sequence[float]) -> float:
    mean = fmean(rates)
    off = [rate - mean for rate in rates]
    whole = sum(each * each for each in off)
    return sum(each * after for each, after in pairwise(off)) / whole if whole else 0.0
