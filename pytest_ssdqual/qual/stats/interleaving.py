"""Measurement in rounds: workloads of one array take turns, in random order, a cell each.

The cells of one workload lie minutes apart and are spread over hours, so that they show what a drive does in hours for
the price of minutes. Their number follows from planned looks, as in ``group_sequential``. The interval of a mean rate
is Student's with a moderated variance (Smyth 2004): that of its own cells, weighted by their degrees of freedom, and
that of the cells of all workloads, weighted by how much the workloads resemble each other; but never less than the
latter. Eight cells may all miss what happens in one cell of ten; a hundred do not. Cells of neighbouring rounds may
resemble each other, and their correlation widens the interval. A drift that all workloads share extends it to where the
drift leads.

A cell may depend on the cell before it. `head_effect` looks for that in the first seconds of cells, `carried_over` in
cells after those that write much or little. What lasts longer than a cell is found by `disagreement` with a measurement
without a pause.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev, variance

from pytest_ssdqual.qual.measured.interleaved import Interleaved
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.measured.run import SPELL_S, Measured, Run
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import InterleaveRule
from pytest_ssdqual.qual.stats import group_sequential
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, TooFew, student_t
from pytest_ssdqual.qual.stats.throughput import iops

#: Two-sided confidence from which cells depend on their neighbours: a hundred points are looked at several times each.
SURE = 0.999
#: Least effect on the mean of a cell that counts, as a share of it.
LEAST_EFFECT = 0.01
#: The part of a cell that is compared with its rest, seconds.
HEAD_S = 10.0
#: Share of the other workloads' degrees of freedom that count: cells of one round show the same minutes of the drives.
SHARED = 0.5
#: Scatter below which variances are alike, as a share of the mean: counting of I/Os, and limits of rates.
LEAST_SCATTER = 1e-4
#: Difference from a measurement without a pause that counts, as a share of it, if the intervals are disjoint.
LEAST_DIFFERENCE = 0.03


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a workload."""

    run: Run
    #: Logarithm of the IOPS of its first seconds over those of its rest; None if it has no rest.
    head: float | None
    #: Bytes per second that were written in the cell before it; None if there was none, or not without a pause.
    written_before: float | None


def cell(run: Run, before: Run | None) -> Cell:
    """Return the cell of a run with all its reports, after the run of another workload."""
    first = [each for each in run.counted if each.end_s <= run.ramp_s + HEAD_S]
    rest = run.counted[len(first) :]
    of_first, of_rest = _rate(first), _rate(rest)
    head = math.log(of_first / of_rest) if of_first and of_rest else None
    # Spells are those of measurements without a pause, so that claims about extremes mean the same.
    run = replace(run, spell_length_s=SPELL_S)
    written = before.bytes_written / (before.ramp_s + before.window_s) if before else None
    return Cell(run.condensed(), head, written)


def _rate(part: Sequence[Interval]) -> float:
    seconds = math.fsum(each.seconds for each in part)
    return sum(each.ios for each in part) / seconds if seconds else 0.0


def looks(rule: InterleaveRule) -> tuple[int, ...]:
    """Return the numbers of rounds after which there is a look; the last is the limit."""
    found = [rule.first]
    while found[-1] < rule.rounds:
        found.append(min(rule.rounds, max(found[-1] + 1, round(found[-1] * rule.growth))))
    return tuple(found)


def level(rule: InterleaveRule, confidence: float, observe_s: float = 0.0) -> float:
    """Return the two-sided confidence of the interval at each look, so that all looks hold together.

    Of claims that no look decides before ``observe_s`` of cells, only the later looks share the error.
    """
    times = tuple(float(each) for each in looks(rule) if each * rule.cell_s >= observe_s)
    return group_sequential.nominal_level(times or (float(rule.rounds),), confidence)


def pooled(cells: Sequence[Sequence[Cell]]) -> tuple[float, float]:
    """Return the standard deviation of a cell's IOPS over its workload's mean, pooled over workloads, and how many
    degrees of freedom it is worth beside those of one workload.

    These are the prior of a moderated variance (Smyth 2004): logarithms of the variances of workloads that are alike
    vary as chi-squares of their degrees of freedom do, and what they vary more takes from the prior. It is worth at
    most half of the other workloads' degrees of freedom, because they share the drives. 0 and 0 unless a workload with
    I/O has two cells.
    """
    rates = [[each.run.iops for each in of_workload] for of_workload in cells]
    found = [(variance(each) / fmean(each) ** 2, len(each) - 1) for each in rates if len(each) > 1 and fmean(each) > 0]
    degrees = sum(own for _, own in found)
    if not degrees:
        return 0.0, 0.0
    scatter = math.sqrt(math.fsum(each * own for each, own in found) / degrees)
    others = degrees * (1 - 1 / len(found))
    return scatter, min(_prior_degrees(found), SHARED * others)


def _prior_degrees(variances: Sequence[tuple[float, int]]) -> float:
    """Return the degrees of freedom of the prior of variances with these degrees of freedom; infinite if they vary no
    more than chance has it.

    trigamma(d/2) is what the logarithms vary more than chi-squares (Smyth 2004, section 6.2); Newton's method as in its
    appendix.
    """
    from scipy.special import digamma, polygamma

    if len(variances) < 2:
        return 0.0
    logs = [
        math.log(max(each, LEAST_SCATTER**2)) - float(digamma(own / 2)) + math.log(own / 2) for each, own in variances
    ]
    more = variance(logs) - fmean(float(polygamma(1, own / 2)) for _, own in variances)
    if more <= 0:
        return math.inf
    half = 0.5 + 1 / more
    for _ in range(20):
        now = float(polygamma(1, half))
        half += now * (1 - now / more) / float(polygamma(2, half))
    return 2 * half


def among(
    cells: Sequence[Cell], of_all: Sequence[Sequence[Cell]], protocol: Protocol, span_s: float, loaded_s: float = 0.0,
    *, is_last: bool = False,
) -> Measured:  # fmt: skip
    """Return what the cells of one workload, among those of all workloads, have shown until now.

    ``span_s``: from the beginning of the first round until now; ``loaded_s``: under load of the class before that.
    ``is_last``: there is no further round, although cells may have been left out.
    ValueError if nothing takes turns by the protocol.
    """
    rule, confidence = protocol.interleave, protocol.verdict.confidence
    if rule is None or protocol.sequential is None:
        raise ValueError(f"by the protocol {protocol.name} workloads do not take turns")
    scatter, degrees = pooled(of_all)
    found = Interleaved(
        rounds=len(cells),
        of=len(cells) if is_last else rule.rounds,
        workloads=len(of_all),
        level=level(rule, confidence),
        scatter=scatter,
        scatter_degrees=degrees,
        drift=drift(of_all),
        span_s=span_s,
        loaded_s=loaded_s,
        extremes_level=level(rule, confidence, protocol.sequential.observe_s),
    )
    return Measured(tuple(each.run for each in cells), found)


def head_effect(cells: Sequence[Cell]) -> str:
    """Return a sentence if the first seconds of the cells of one workload differ from the rest; empty if not."""
    heads = [each.head for each in cells if each.head is not None]
    mean, sure = _mean(heads)
    effect = math.expm1(mean) * HEAD_S / max(HEAD_S, cells[0].run.window_s)
    if not sure or abs(effect) < LEAST_EFFECT:
        return ""
    return f"its first {HEAD_S:g} s are {math.exp(mean):.3g} times as fast as the rest, in {len(heads)} cells"


def carried_over(of_all: Sequence[Sequence[Cell]]) -> str:
    """Return a sentence if cells depend on how much the cell before them wrote; empty if not."""
    after = [[each for each in cells if each.written_before is not None] for cells in of_all]
    before = [[each.written_before or 0.0 for each in cells] for cells in after]
    slope = _sure_slope(before, [[each.run.iops for each in cells] for cells in after])
    shares = [each for cells in before for each in cells]
    effect = slope * (max(shares) - min(shares)) if shares else 0.0
    if abs(effect) < LEAST_EFFECT:
        return ""
    return f"cells after more writes are {100 * abs(effect):.2g} % {'slower' if effect < 0 else 'faster'}"


def drift(of_all: Sequence[Sequence[Cell]]) -> float:
    """Return the change of the IOPS from the mean of the rounds to the last one, as a share; 0 unless it is sure."""
    most = max(map(len, of_all), default=0)
    numbers = [list(map(float, range(len(cells)))) for cells in of_all]
    return _sure_slope(numbers, [[each.run.iops for each in cells] for cells in of_all]) * (most - 1) / 2


def _sure_slope(causes: Sequence[Sequence[float]], rates: Sequence[Sequence[float]]) -> float:
    """Return the least-squares slope of relative IOPS over a cause, pooled over workloads; 0 unless it is sure.

    Both are without their workload's mean; Student's test.
    """
    pairs = [
        (one - fmean(cause), rate / fmean(rate_of) - 1)
        for cause, rate_of in zip(causes, rates, strict=True)
        if rate_of and fmean(rate_of) > 0
        for one, rate in zip(cause, rate_of, strict=True)
    ]
    power, degrees = math.fsum(one * one for one, _ in pairs), len(pairs) - len(rates) - 1
    if not power or degrees < 1:
        return 0.0
    slope = math.fsum(one * rate for one, rate in pairs) / power
    rest = math.fsum((rate - slope * one) ** 2 for one, rate in pairs)
    return slope if abs(slope) > student_t(SURE, degrees) * math.sqrt(rest / degrees / power) else 0.0


def disagreement(control: Measured, in_rounds: Measured, confidence_level: ConfidenceLevel) -> str:
    """Return a sentence if a workload has other IOPS in rounds than without a pause, or no figure; empty if not."""
    try:
        alone, among = iops(control, confidence_level), iops(in_rounds, confidence_level)
    except TooFew as error:
        return f"{control.workload} cannot be compared with itself in rounds: {error}"
    is_disjoint = alone.high < among.low or among.high < alone.low
    if not is_disjoint or abs(among.value - alone.value) <= LEAST_DIFFERENCE * alone.value:
        return ""
    return f"{control.workload} has {among} in rounds and {alone} without a pause"


def _mean(values: Sequence[float]) -> tuple[float, bool]:
    """Return the mean, and whether it surely differs from 0."""
    if len(values) < 2:
        return 0.0, False
    mean = fmean(values)
    return mean, abs(mean) > student_t(SURE, len(values) - 1) * stdev(values) / math.sqrt(len(values))
