"""When a series of rounds has settled: the steady-state rule of the SNIA performance test specification.

It is a stopping rule on a few noisy numbers and says nothing about how likely it is to be wrong, and a
fresh drive before its write cliff passes it. Conditioning has to be done first; this only confirms it.

How a measurement settled, for people: what was left out as warm-up, what trend is left, whether it repeats itself.

Nothing here decides anything: verdicts account for trends and rhythms in their intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import correlation, fmean, linear_regression, median

from pytest_ssdqual.qual.detect import periodicity as rhythm
from pytest_ssdqual.qual.detect.periodicity import Rhythm
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.spec.protocol import SteadyRule
from pytest_ssdqual.qual.units import Unit, format_value

#: "At most 20 %" must not fail for the last bit of a float.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class SteadyState:
    """What the rule found in one window; all in the unit of the values, per round."""

    reached: bool
    values: tuple[float, ...]
    average: float
    #: max - min, and how much of it the rule allows.
    range_measured: float
    range_allowed: float
    slope_per_round: float
    #: Rise or fall of the least-squares line from the first round of the window to the last.
    slope_excursion: float
    slope_allowed: float
    #: Of the values with time, -1…1; 0 for equal values.
    correlation: float

    @property
    def unsteadiness(self) -> float:
        """How far from the rule: range or drift over what is allowed of it, whichever is larger; at most 1 is steady.

        Infinite without any I/O.
        """
        return max(_share(self.range_measured, self.range_allowed), _share(self.slope_excursion, self.slope_allowed))

    def nearest(self) -> str:
        """What of the rule is nearest to being broken, or is broken most: ``range 34.0 % (20 % allowed)``."""
        if self.average <= 0:
            return "no I/O"
        ranged, drifted = (self.range_measured, self.range_allowed), (self.slope_excursion, self.slope_allowed)
        name, (measured, allowed) = max(("range", ranged), ("drift", drifted), key=lambda each: _share(*each[1]))
        return f"{name} {100 * measured / self.average:.1f} % ({100 * allowed / self.average:g} % allowed)"

    def describe(self, unit: Unit = Unit.IOPS) -> str:
        """One sentence with the rule's four figures."""
        if self.average <= 0:
            return f"not steady: no I/O in {len(self.values)} rounds"
        spread, drift = 100 * self.range_measured / self.average, 100 * self.slope_excursion / self.average
        return (
            f"{'steady' if self.reached else 'not steady'} at {format_value(self.average, unit)} over "
            f"{len(self.values)} rounds: range {spread:.1f} % ({100 * self.range_allowed / self.average:g} % allowed), "
            f"drift {drift:.1f} % ({100 * self.slope_allowed / self.average:g} % allowed)"
        )


def judge(values: Sequence[float], rule: SteadyRule) -> SteadyState:
    """Apply the rule to the last ``rule.window`` of ``values``; ValueError if there are fewer.

    Steady when max - min is within ``range_percent`` of the average *and* the least-squares line moves by
    no more than ``slope_percent`` of it from the first round to the last: |slope| × (window - 1), the
    distance between five points being four rounds. (SNIA SSS PTS 2.0.2; the whole range, not ± the range.)
    A series without any I/O is never steady.
    """
    if len(values) < rule.window or rule.window < 2:
        raise ValueError(f"the steady-state rule needs {max(rule.window, 2)} rounds, there are {len(values)}")
    window = tuple(values[len(values) - rule.window :])
    rounds = range(rule.window)
    average = fmean(window)
    range_measured, range_allowed = max(window) - min(window), average * rule.range_percent / 100
    slope = linear_regression(rounds, window).slope
    slope_excursion, slope_allowed = abs(slope) * (rule.window - 1), average * rule.slope_percent / 100
    slack = _ROUNDING * average
    return SteadyState(
        reached=average > 0 and range_measured <= range_allowed + slack and slope_excursion <= slope_allowed + slack,
        values=window,
        average=average,
        range_measured=range_measured,
        range_allowed=range_allowed,
        slope_per_round=slope,
        slope_excursion=slope_excursion,
        slope_allowed=slope_allowed,
        correlation=correlation(rounds, window) if range_measured > slack else 0.0,
    )


def _share(measured: float, allowed: float) -> float:
    return measured / allowed if allowed > 0 else math.inf


def first_steady(values: Sequence[float], rule: SteadyRule) -> int | None:
    """After how many rounds the series was steady for the first time; None if it never was."""
    for end in range(rule.window, len(values) + 1):
        if judge(values[:end], rule).reached:
            return end
    return None


@dataclass(frozen=True, slots=True)
class SettledSeries:
    """Of one target, an array or a drive, over the time that was counted."""

    #: Left out at the head, seconds after the ramp; 0 of a measurement of fixed length.
    warmup_s: float
    #: Change of IOPS from one end to the other along the least-squares line, per cent of the mean.
    drift_percent: float
    #: Of the IOPS of each round with those of the next, -1…1: near 0 rounds are independent.
    correlation: float
    rhythm: Rhythm | None


def of(run: Run) -> SettledSeries:
    """How ``run``, of one target, settled; a series without I/O has no drift and no rhythm."""
    rates = run.round_iops()
    mean = fmean(rates)
    slope = linear_regression(range(len(rates)), rates).slope if len(rates) > 1 else 0.0
    return SettledSeries(
        warmup_s=run.look.warmup_s if run.look else 0.0,
        drift_percent=100 * slope * len(rates) / mean if mean else 0.0,
        correlation=_lag_one_autocorrelation(rates),
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


def _lag_one_autocorrelation(rates: Sequence[float]) -> float:
    mean = fmean(rates)
    off = [rate - mean for rate in rates]
    whole = sum(each * each for each in off)
    return sum(each * after for each, after in pairwise(off)) / whole if whole else 0.0
