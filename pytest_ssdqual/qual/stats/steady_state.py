"""Steady state: the rule of the SNIA performance test specification, and the period of a series that is not steady.

The rule is a stopping rule on a few noisy rounds without an error rate, and a fresh drive passes it before its write
cliff: conditioning has to come first, and this only confirms it. The period is for people and decides nothing; verdicts
account for trends and periods in their intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import correlation, fmean, linear_regression, median
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.detect import periodicity as rhythm
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.units import Unit, format_value

if TYPE_CHECKING:  # it loads pydantic, which `ssdqual --help` does without
    from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule

#: Relative tolerance: "at most 20 %" must not fail in the last bit of a float.
_ROUNDING = 1e-9


@frozen
class SteadyState:
    """Result of the rule for one window; values in the unit of the series, slopes per round."""

    reached: bool
    values: tuple[float, ...]
    average: float
    #: max - min, and the range that the rule allows.
    range_measured: float
    range_allowed: float
    slope_per_round: float
    #: Rise or fall of the least-squares line from the first round of the window to the last.
    slope_excursion: float
    slope_allowed: float
    #: Correlation of values and time, -1…1; 0 for equal values.
    correlation: float

    @property
    def unsteadiness(self) -> float:
        """Distance from the rule: the larger of range and drift, each over what is allowed of it; at most 1 is steady.

        Infinite without any I/O.
        """
        return max(_share(self.range_measured, self.range_allowed), _share(self.slope_excursion, self.slope_allowed))

    def intercept(self, first: int) -> float:
        """Value of the best fit at round 0, if the window begins with round ``first``."""
        return self.average - self.slope_per_round * (first + (len(self.values) - 1) / 2)

    def nearest(self) -> str:
        """The criterion that is nearest to being broken, or is broken most: ``range 34.0 % (20 % allowed)``."""
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


def least(states: Sequence[SteadyState]) -> SteadyState:
    """Return the state that is furthest from steady."""
    return max(states, key=lambda state: (not state.reached, state.unsteadiness))


def series(run: Run) -> tuple[tuple[float, ...], float]:
    """IOPS in steps of equal length, one of fio's reports each, and that length in seconds."""
    counted = run.counted
    if not counted:
        return (), 1.0
    step_s = median(interval.seconds for interval in counted)
    count = max(1, round(run.window_s / step_s))
    return replace(run, rounds=count).round_iops(), run.window_s / count


def repeats(values: Sequence[float], step_s: float) -> str:
    """End of a sentence about a series that is not steady: its period, if it has one, else ""."""
    found = rhythm.period(values, step_s)
    return f"; it {found.describe()}" if found else ""
