"""When to stop measuring and what to say then: the rules in use today, and ours, as functions of a drive's seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from drive_kinds import Series

from pytest_ssdqual.qual import steady
from pytest_ssdqual.qual.protocol import Protocol, SequentialRule, SteadyRule, VerdictRule
from pytest_ssdqual.qual.verdict import Outcome


@dataclass(frozen=True, slots=True)
class Ending:
    """What a rule said, and after how much load on the drive."""

    outcome: Outcome
    seconds: float


#: IOPS of every second from the start of the load, and the least mean that was promised.
Rule = Callable[[Series, float], Ending]


def fixed(series: Series, limit: float) -> Ending:
    """12 minutes, the last 10 of them counted; the mean is held against the limit."""
    return _compared(series[120:720], limit, 720)


def intel(series: Series, limit: float) -> Ending:
    """Intel white paper 329903-001US: 120 minutes of writes, then 12 minutes of which the last 10 count."""
    return _compared(series[7320:7920], limit, 7920)


def snia(series: Series, limit: float) -> Ending:
    """SNIA SSS PTS 2.0.2: rounds of one minute until five are steady, their mean; undecided after 25 rounds."""
    rule, rounds = SteadyRule(), 25
    means = cells(series[: rounds * 60], 60).tolist()
    last = steady.first_steady(means, rule)
    if last is None:
        return Ending(Outcome.INCONCLUSIVE, 60.0 * len(means))
    return _compared(series[(last - rule.window) * 60 : last * 60], limit, 60.0 * last)


def fio(window_s: int, slope_percent: float) -> Rule:
    """fio ``ss=iops_slope:slope_percent%`` with ``ss_dur=window_s``, as fio's code does it.

    The slope is that of the least-squares line per sample of one second, in per cent of the window's mean, tested
    every second from the first full window on; the first success ends the job. Its window's mean is compared.
    """

    def rule(series: Series, limit: float) -> Ending:
        means, slopes = _lines(series, window_s)
        attained = np.flatnonzero(np.abs(slopes) < slope_percent / 100 * means)
        if not len(attained):
            return Ending(Outcome.INCONCLUSIVE, len(series))
        first = int(attained[0])
        return _compared(series[first : first + window_s], limit, first + window_s)

    return rule


def ours(sequential_rule: SequentialRule, verdict_rule: VerdictRule) -> Rule:
    """The sequential rule, by the code that judges drives, on what fio would report."""
    from pytest_ssdqual.qual import sequential

    step_s = sequential_rule.report_s

    def rule(series: Series, limit: float) -> Ending:
        rates = cells(series, step_s).tolist()
        decision = sequential.decide(rates, float(step_s), limit, sequential_rule, verdict_rule)
        return Ending(decision.outcome, decision.seconds)

    return rule


#: The rules in use today.
CLASSICAL: Mapping[str, Rule] = {
    "fixed": fixed,
    "snia": snia,
    "fio-300s": fio(300, 0.1),
    # What SNIA allows, 10 % from the first sample of the window to the last, for a window of half an hour.
    "fio-1800s": fio(1800, 10 / 1799),
    "intel": intel,
}
#: Every rule's name and how it is called in tables and plots.
TITLES: Mapping[str, str] = {
    "ours": "sequential (ours)",
    "fixed": "fixed 12 min",
    "snia": "SNIA 5 × 1 min",
    "fio-300s": "fio slope 0.1 %, 300 s",
    "fio-1800s": "fio slope 0.0056 %, 1800 s",
    "intel": "Intel 120 + 12 min",
}


def rules(names: tuple[str, ...], protocol: Protocol | None = None) -> dict[str, Rule]:
    """The rules of those names; ours with the settings of a protocol, or with the defaults. ValueError if unknown."""
    if unknown := [name for name in names if name not in TITLES]:
        raise ValueError(f"no rule {', '.join(unknown)}; there are {', '.join(TITLES)}")
    found = dict(CLASSICAL)
    if "ours" in names:
        settings = (protocol and protocol.sequential) or SequentialRule()
        found["ours"] = ours(settings, protocol.verdict if protocol else VerdictRule())
    return {name: found[name] for name in names}


def longest_s(protocol: Protocol | None = None) -> int:
    """Seconds of a series that are enough for every rule."""
    settings = (protocol and protocol.sequential) or SequentialRule()
    return max(7920, int(settings.limit_s) + settings.report_s)


def cells(series: Series, length: int) -> Series:
    """Means of so many seconds each; what is left at the end is not used."""
    whole = len(series) // length
    return np.asarray(series[: whole * length].reshape(whole, length).mean(axis=1))


def _compared(window: Series, limit: float, seconds: float) -> Ending:
    return Ending(Outcome.PASS if window.mean() >= limit else Outcome.FAIL, seconds)


def _lines(series: Series, window: int) -> tuple[Series, Series]:
    """Mean and slope per sample of the least-squares line, of every window of the series."""
    # Around zero, so that differences of long sums keep their digits.
    level = series.mean()
    values = series - level
    sums = np.concatenate(([0.0], np.cumsum(values)))
    moments = np.concatenate(([0.0], np.cumsum(values * np.arange(len(values)))))
    starts = np.arange(len(values) - window + 1)
    total = sums[window:] - sums[:-window]
    # Σ (x - mean x)·y, x counted from the window's first sample.
    moment = moments[window:] - moments[:-window] - (starts + (window - 1) / 2) * total
    return total / window + level, moment / (window * (window * window - 1) / 12)
