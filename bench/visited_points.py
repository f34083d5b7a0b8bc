"""The visits of an experiment on simulated or recorded rates, judged by the product's own rule.

What the rig does in `rig.campaign.experiment` with arrays, without them: cells in the order of its
visits, looks by ``visits.at_look``, decisions by ``group_sequential.decide`` and ``judge_all``. A
point is decided when its own claims and the sweep that it belongs to are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.interval import Interval, Spell
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.measured.sweep import Sweep
from pytest_ssdqual.qual.raid.geometry import Geometry, effective_drives
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import VerdictRule, VisitRule
from pytest_ssdqual.qual.stats import visits
from pytest_ssdqual.qual.stats.estimate import CannotJudge
from pytest_ssdqual.qual.stats.group_sequential import Question, decide
from pytest_ssdqual.qual.stats.visits import HEAD_S, Cell, Point
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.multiplicity import ErrorControl
from pytest_ssdqual.qual.verdict.verdict import Outcome, judge_all
from pytest_ssdqual.qual.workload.workload import Workload

#: Rate of one drive that a point's limit is made of.
DRIVE_IOPS = 20_000.0
#: fio's start and end beside ramp and window, and the assembly of an array: as in the plan.
OVERHEAD_S, ASSEMBLY_S = 3.5, 20.0
#: Of the default spec.
SWEEP_LIMITS = {
    Claim.SCALING_SLOPE: Limit(Direction.AT_LEAST, 0.9, Unit.RATIO, "bench"),
    Claim.SCALING_DEVIATION: Limit(Direction.AT_MOST, 10.0, Unit.PERCENT, "bench"),
}
NOTHING = LatencyHistogram.from_bins({})

#: Mean rates of the ramp, of the first ten seconds behind it, and of the rest of a cell of this point
#: that begins at this second, as shares of its limit.
Rates = Callable[[Point, float], Sequence[float]]
#: Latencies of such a cell with so many I/Os, and its spells.
Tails = Callable[[Point, float, int], tuple[LatencyHistogram, tuple[Spell, ...]]]
#: Limits of a point besides that of its IOPS.
Limits = Callable[[Point], Mapping[Claim, Limit]]


@cache
def limit_iops(point: Point) -> float:
    """Return the IOPS that a point's limit asks for: linear scaling by the level's cost model."""
    geometry, workload = point
    return DRIVE_IOPS * effective_drives(geometry, workload.read_fraction)


def no_more(point: Point) -> Mapping[Claim, Limit]:
    return {}


def run_of(
    point: Point,
    rates: Sequence[float],
    rule: VisitRule,
    latency: LatencyHistogram = NOTHING,
    spells: tuple[Spell, ...] = (),
) -> Run:
    """Return the run of one cell."""
    geometry, workload = point
    lengths_s = (rule.ramp_s, min(HEAD_S, rule.cell_s), max(0.0, rule.cell_s - HEAD_S))
    intervals, start_s = [], 0.0
    for rate, length_s in zip(rates, lengths_s, strict=True):
        if length_s:
            ios = round(rate * limit_iops(point) * length_s)
            is_rest = start_s > rule.ramp_s
            intervals.append(_interval(workload, start_s, length_s, ios, latency if is_rest else NOTHING))
            start_s += length_s
    members = tuple(f"S{number}" for number in range(geometry.width))
    return Run(workload, geometry, members, tuple(intervals), rule.ramp_s, rule.cell_s, 1, "", reports=spells)


def _interval(workload: Workload, start_s: float, seconds: float, ios: int, latency: LatencyHistogram) -> Interval:
    reads = round(ios * workload.read_fraction)
    writes = ios - reads
    of_reads, of_writes = (latency, NOTHING) if workload.read_fraction > 0.5 else (NOTHING, latency)
    return Interval(start_s, seconds, reads, writes, 4096 * reads, 4096 * writes, of_reads, of_writes)


@dataclass
class Experiment:
    """Points that are visited from ``start_s`` on, until each is decided."""

    points: Sequence[Point]
    protocol: Protocol
    rates: Rates
    rng: np.random.Generator
    start_s: float = 0.0
    has_sweeps: bool = True
    limits: Limits = no_more
    tails: Tails | None = None
    #: No cell begins later.
    end_s: float = np.inf
    visits: int = 0
    now_s: float = 0.0
    #: Time in which each drive wrote; a drive that is no member idles.
    written_s: float = 0.0
    measured: dict[Point, Measured] = field(default_factory=dict)
    _cells: dict[Point, list[Cell]] = field(default_factory=dict)
    _open: list[Point] = field(default_factory=list)

    @property
    def rule(self) -> VisitRule:
        assert self.protocol.visits
        return self.protocol.visits

    @property
    def verdict_rule(self) -> VerdictRule:
        return self.protocol.verdict

    @cached_property
    def family(self) -> ErrorControl:
        of_points = sum(len(each) for each in self._limits.values())
        of_sweeps = len(SWEEP_LIMITS) * len(self.sweeps) * self.has_sweeps
        return ErrorControl(of_points + of_sweeps, self.verdict_rule.family)

    @cached_property
    def sweeps(self) -> tuple[Workload, ...]:
        """The workloads that are measured on three widths at least."""
        widths = Counter(workload for _, workload in self.points)
        return tuple(workload for workload, count in widths.items() if count > 2)

    @cached_property
    def _limits(self) -> dict[Point, dict[Claim, Limit]]:
        of_iops = {each: Limit(Direction.AT_LEAST, limit_iops(each), Unit.IOPS, "bench") for each in self.points}
        return {each: {Claim.STEADY_IOPS: limit, **self.limits(each)} for each, limit in of_iops.items()}

    def run(self) -> dict[Point, Outcome]:
        """Visit and return what became of each point's IOPS."""
        self.now_s, self._open = self.start_s, list(self.points)
        self._cells = {point: [] for point in self.points}
        for visit in range(len(self.rule.cells)):
            self.visits = visit + 1
            for geometry in self._in_order(visit):
                self._visit(geometry, visit)
            is_late = self.now_s >= self.end_s
            if visit + 1 >= self.rule.before_first_look:
                self._look(is_last=is_late or visit + 1 == len(self.rule.cells))
            if not self._open or is_late:
                break
        return {point: self.outcome(point, Claim.STEADY_IOPS) for point in self.points}

    def outcome(self, point: Point, claim: Claim) -> Outcome:
        """Return the verdict of a claim of a point; inconclusive without a figure."""
        measured, limit = self.measured.get(point), self._limits[point].get(claim)
        if not measured or not limit:
            return Outcome.INCONCLUSIVE
        return self._judged(claim, measured, limit)

    def sweep_outcomes(self) -> dict[tuple[Workload, Claim], Outcome]:
        """Return the verdicts of the sweeps."""
        return {
            (workload, claim): self._of_sweep(workload, claim) for workload in self.sweeps for claim in SWEEP_LIMITS
        }

    def _in_order(self, visit: int) -> Sequence[Geometry]:
        geometries = tuple(dict.fromkeys(geometry for geometry, _ in self._open))
        return geometries if visit % 2 == 0 else geometries[::-1]

    def _visit(self, geometry: Geometry, visit: int) -> None:
        rule, points = self.rule, [point for point in self._open if point[0] == geometry]
        self.now_s += rule.refresh_s + ASSEMBLY_S
        self.written_s += rule.refresh_s
        before: Run | None = None
        for _ in range(rule.cells[visit]):
            for index in self.rng.permutation(len(points)):
                if self.now_s >= self.end_s:
                    return
                before = self._cell(points[index], visit, before)

    def _cell(self, point: Point, visit: int, before: Run | None) -> Run:
        rates, rule = self.rates(point, self.now_s), self.rule
        latency, spells = NOTHING, tuple[Spell, ...]()
        if self.tails:
            latency, spells = self.tails(point, self.now_s, round(rates[-1] * limit_iops(point) * rule.cell_s))
        run = run_of(point, rates, rule, latency, spells)
        self._cells[point].append(visits.cell(run, before, visit))
        geometry, workload = point
        self.now_s += rule.ramp_s + rule.cell_s + OVERHEAD_S
        self.written_s += (rule.ramp_s + rule.cell_s) * (1 - workload.read_fraction) * geometry.width / 8
        return run

    def _look(self, *, is_last: bool) -> None:
        cells = {point: each for point, each in self._cells.items() if each}
        latest = visits.at_look(cells, self.protocol, is_last=is_last)
        self.measured |= {point: latest[point] for point in self._open if point in latest}
        sweeps = {each: self._is_decided(each) for each in self.sweeps} if self.has_sweeps else {}
        self._open = [point for point in self._open if not (self._is_answered(point) and sweeps.get(point[1], True))]

    def _is_answered(self, point: Point) -> bool:
        measured = self.measured.get(point)
        question = Question(self._limits[point])
        return measured is not None and decide(measured, question, self.verdict_rule, self.family).done

    def _is_decided(self, workload: Workload) -> bool:
        return all(self._of_sweep(workload, claim) is not Outcome.INCONCLUSIVE for claim in SWEEP_LIMITS)

    def _of_sweep(self, workload: Workload, claim: Claim) -> Outcome:
        found = tuple(self.measured[point] for point in self.points if point[1] == workload and point in self.measured)
        return self._judged(claim, Sweep(found), SWEEP_LIMITS[claim]) if len(found) > 2 else Outcome.INCONCLUSIVE

    def _judged(self, claim: Claim, judged: Measured | Sweep, limit: Limit) -> Outcome:
        rule = self.verdict_rule
        try:
            verdicts = judge_all(claim, judged, limit, rule.confidence, rule.indifference_percent, self.family)
        except CannotJudge:
            return Outcome.INCONCLUSIVE
        return verdicts[0].outcome
