"""Stopping rules as functions of a drive's IOPS per second: published ones, and the product's."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from drive_kinds import Series

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule, SteadyRule, VerdictRule
from pytest_ssdqual.qual.stats import batch_means, group_sequential, steady_state
from pytest_ssdqual.qual.stats.estimate import CannotJudge
from pytest_ssdqual.qual.stats.group_sequential import Question
from pytest_ssdqual.qual.stats.shared_evidence import NOTHING_KNOWN, SharedEvidence
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.multiplicity import ALONE, ErrorControl
from pytest_ssdqual.qual.verdict.verdict import Outcome, judge_all
from pytest_ssdqual.qual.workload.workload import Workload

BLOCK_BYTES = 4096
READS, ONE_DRIVE = Workload("randread", "4k", 1), Geometry.parse("raid0x2")
NOTHING = LatencyHistogram.from_bins({})


@dataclass(frozen=True, slots=True)
class Ending:
    """The outcome of a rule, and the time of load on the drive."""

    outcome: Outcome
    seconds: float


#: IOPS of every second from the start of the load, and the least mean that was promised.
Rule = Callable[[Series, float], Ending]


def fixed(series: Series, limit: float) -> Ending:
    """Measure 12 minutes, of which the last 10 count, and compare the mean with the limit."""
    return _compared(series[120:720], limit, 720)


def intel(series: Series, limit: float) -> Ending:
    """Intel white paper 329903-001US: 120 minutes of writes, then 12 minutes of which the last 10 count."""
    return _compared(series[7320:7920], limit, 7920)


def snia(series: Series, limit: float) -> Ending:
    """SNIA SSS PTS 2.0.2: rounds of one minute until five are steady, their mean; undecided after 25 rounds."""
    rule, rounds = SteadyRule(), 25
    means = cells(series[: rounds * 60], 60).tolist()
    last = first_steady(means, rule)
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
    """Return the group-sequential rule: the product's code on simulated fio reports."""
    step_s = sequential_rule.report_s

    def rule(series: Series, limit: float) -> Ending:
        # Counts are whole: IOPS in units of a ten-thousandth of the mean.
        scale = 10_000 / limit
        intervals = reported(cells(series * scale, step_s), step_s)
        question = Question({Claim.STEADY_IOPS: Limit(Direction.AT_LEAST, limit * scale, Unit.IOPS, "bench")})
        return judged(intervals, question, sequential_rule, verdict_rule)

    return rule


def reported(rates: Series, step_s: float) -> tuple[Interval, ...]:
    """Return fio's reports of these I/Os per second, in steps of this length, without latencies."""
    counts = np.round(rates * step_s).astype(int).tolist()
    return tuple(
        Interval(index * step_s, step_s, count, 0, count * BLOCK_BYTES, 0, NOTHING, NOTHING)
        for index, count in enumerate(counts)
    )


def run_of(intervals: Sequence[Interval], seconds: float) -> Run:
    """Return the run of these reports so far."""
    return Run(READS, ONE_DRIVE, ("S0",), tuple(intervals), 0.0, seconds, batch_means.COUNT, "")


def judged(
    intervals: Sequence[Interval],
    question: Question,
    looks: SequentialRule,
    rule: VerdictRule,
    family: ErrorControl = ALONE,
    shared: SharedEvidence = NOTHING_KNOWN,
) -> Ending:
    """Return the outcome of the product's rule, and its look; each look has fio's reports up to its time."""
    is_of_rates = question.limits.keys() <= {Claim.STEADY_IOPS} and not question.is_observed
    for number, seconds in enumerate(group_sequential.look_times(looks), 1):
        seen = intervals[: bisect.bisect_right(intervals, seconds + 0.5, key=operator.attrgetter("end_s"))]
        found = group_sequential.at_look(run_of(seen, seconds), number, looks, rule.confidence, shared)
        # Extremes, which take two thirds of the time of ``condensed``, say nothing about rates.
        shorter = replace(found, intervals=found.in_rounds()) if is_of_rates else found.condensed()
        measured = Measured((shorter,))
        decided = group_sequential.decide(measured, question, looks, rule, family)
        if decided or seconds >= looks.limit_s:
            return Ending(outcome(measured, question, rule, family), seconds)
    return Ending(Outcome.INCONCLUSIVE, looks.limit_s)


def outcome(measured: Measured, question: Question, rule: VerdictRule, family: ErrorControl) -> Outcome:
    """Judge as tests do: a promise that cannot be judged is inconclusive."""
    outcomes = []
    for claim, limit in question.limits.items():
        try:
            (verdict,) = judge_all(claim, measured, limit, rule.confidence, rule.indifference_percent, family)
        except CannotJudge:
            return Outcome.INCONCLUSIVE
        outcomes.append(verdict.outcome)
    order = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)
    return min(outcomes, key=order.index)


#: The rules in use today.
CLASSICAL: Mapping[str, Rule] = {
    "fixed": fixed,
    "snia": snia,
    "fio-300s": fio(300, 0.1),
    # What SNIA allows, 10 % from the first sample of the window to the last, for a window of half an hour.
    "fio-1800s": fio(1800, 10 / 1799),
    "intel": intel,
}
#: Title of each rule in tables and plots.
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
    """Return a series length in seconds that suffices for every rule."""
    settings = (protocol and protocol.sequential) or SequentialRule()
    return max(7920, int(settings.limit_s) + settings.report_s)


def cells(series: Series, length: int) -> Series:
    """Return means of ``length`` seconds each, without the remainder at the end."""
    whole = len(series) // length
    return np.asarray(series[: whole * length].reshape(whole, length).mean(axis=1))


def first_steady(values: Sequence[float], rule: SteadyRule) -> int | None:
    """Return the number of rounds after which the series was first steady; None if it never was."""
    ends = range(rule.window, len(values) + 1)
    return next((end for end in ends if steady_state.judge(values[:end], rule).reached), None)


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
