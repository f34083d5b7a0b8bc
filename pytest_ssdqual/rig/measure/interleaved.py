"""Measurement in rounds: workloads of one array take turns, a fio process each, until every one is decided.

The order is drawn anew for each round. A workload that is decided leaves the rounds and is recorded at once. One whose
cells depend on the cells before them leaves without a result: it has to be measured without a pause.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.spec.protocol import InterleaveRule
from pytest_ssdqual.qual.stats import interleaving
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel
from pytest_ssdqual.qual.stats.interleaving import Cell
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.machine.machine import ClockSet, InvalidMeasurement
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.sequential_verdict import Enough
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import live_stats
from pytest_ssdqual.rig.observe.live_stats import Course

#: The result of a workload; the objections to two cells in a row; None: it has to be measured without a pause.
Ending = Measured | InvalidMeasurement | None


@dataclass(slots=True)
class InterleavedRounds:
    """The rounds of some workloads on one array."""

    setup: Setup
    array: Array
    rule: InterleaveRule
    enough: Enough
    #: Time under load of the same class before the first round, seconds.
    loaded_s: float = 0.0
    #: One of the workloads as it was measured without a pause; its cells have to agree.
    control: Measured | None = None
    #: The order of workloads in a round.
    order: random.Random = field(default_factory=random.Random)
    endings: dict[Workload, Ending] = field(default_factory=dict)
    _cells: dict[Workload, list[Cell]] = field(default_factory=dict)
    _before: Run | None = None

    def measure(self, workloads: Sequence[Workload]) -> dict[Workload, Ending]:
        """Measure until every workload has an ending; return it for each."""
        began_s, left, looks = time.monotonic(), list(workloads), interleaving.looks(self.rule)
        self._cells = {each: [] for each in workloads}
        for number in range(1, self.rule.rounds + 1):
            self._round(left, number)
            span_s, is_last = time.monotonic() - began_s, number == self.rule.rounds
            if is_last or (number in looks and span_s >= self.rule.span_s):
                self._look(left, span_s, is_last=is_last)
            left = [each for each in left if each not in self.endings]
            if not left:
                break
        return self.endings

    def _round(self, workloads: Sequence[Workload], number: int) -> None:
        what = f"{self.array.geometry}: {len(workloads)} workloads in rounds"
        self.setup.progress(what, len(workloads) * (self.rule.ramp_s + self.rule.cell_s))
        for workload in self.order.sample(workloads, len(workloads)):
            live_stats.expect(self.setup.live, Course(number - 1, self.rule.rounds))
            try:
                run = self._run(workload, number)
            except InvalidMeasurement as error:
                self._before, self.endings[workload] = None, error
                continue
            self._cells[workload].append(interleaving.cell(run, self._before))
            self._before = run

    def _run(self, workload: Workload, number: int) -> Run:
        """Return a valid cell; ``InvalidMeasurement`` with the objections to the last attempt."""
        window = fixed_time.ProcessWindow(self.rule.ramp_s, self.rule.cell_s, 1)
        attempts, fault = self.setup.protocol.attempts, ""
        for _ in range(attempts):
            try:
                run = fixed_time.run(self.setup, self.array, workload, "run", window)
            except ClockSet as clock_set:
                fault = str(clock_set)
                continue
            if not (objections := checks.objections(run)):
                return run
            fault = "; ".join(objections)
        where = f"{workload} on {self.array.geometry} in round {number}"
        raise InvalidMeasurement(f"{where} is not valid: {fault} (after {attempts} attempts)")

    def _look(self, workloads: Sequence[Workload], span_s: float, *, is_last: bool) -> None:
        """Decide which workloads leave the rounds, and record those that have a result."""
        of_all = [cells for cells in self._cells.values() if cells]
        # The workloads that are in a round at once have as many cells; those that left had fewer, and count as well.
        dependence = self._disagreement(of_all, span_s) or interleaving.carried_over(of_all)
        for workload in workloads:
            if workload in self.endings:
                continue
            cells = self._cells[workload]
            found = interleaving.among(cells, of_all, self.setup.protocol, span_s, self.loaded_s)
            why = dependence or interleaving.head_effect(cells)
            decision = self.enough(found)
            self._note(found, why, decision.sentence, is_decided=decision.done)
            if why:
                self.endings[workload] = None
            elif decision.done or is_last:
                if self.control is None or self.control.workload != workload:
                    fixed_time.record_measured(self.setup, found)
                self.endings[workload] = found

    def _disagreement(self, of_all: Sequence[Sequence[Cell]], span_s: float) -> str:
        control, protocol = self.control, self.setup.protocol
        if control is None or control.workload in self.endings:
            return ""
        cells = self._cells[control.workload]
        found = interleaving.among(cells, of_all, protocol, span_s, self.loaded_s)
        return interleaving.disagreement(control, found, ConfidenceLevel(protocol.verdict.confidence))

    def _note(self, found: Measured, dependence: str, sentence: str, *, is_decided: bool) -> None:
        geometry, workload, number = str(found.geometry), str(found.workload), len(found.runs)
        self.setup.logbook.note(
            "looked_at_rounds",
            geometry=geometry,
            workload=workload,
            rounds=number,
            of=self.rule.rounds,
            iops=found.iops,
            decided=is_decided,
            sentence=sentence,
            dependence=dependence,
        )
        if self.setup.looked:
            end = "measured without a pause" if dependence else "decided" if is_decided else "goes on"
            said = f"round {number} of {self.rule.rounds}: {dependence or sentence}: {end}"
            self.setup.looked(f"{geometry} {workload}: {said}", 0.0)
