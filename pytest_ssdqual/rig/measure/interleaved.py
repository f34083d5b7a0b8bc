"""Measurement in rounds: workloads of one array take turns, a fio process each, until every one is decided.

The order is drawn anew for each round. A workload that is decided leaves the rounds and is recorded at once. One whose
cells depend on the cells before them, or whose own numbers are doubtful, leaves without a result: it has to be measured
without a pause. A cell that the rig disturbed is left out, and the next round has another one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.spec.protocol_rules import InterleaveRule
from pytest_ssdqual.qual.stats import interleaving
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel
from pytest_ssdqual.qual.stats.group_sequential import Decision
from pytest_ssdqual.qual.stats.interleaving import Cell
from pytest_ssdqual.qual.stats.shared_evidence import PAUSE_S
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.failed import DriveFailed
from pytest_ssdqual.rig.machine.machine import Disturbed, InvalidMeasurement, RigError
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.sequential_verdict import Enough
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import live_stats
from pytest_ssdqual.rig.observe.live_stats import Course

#: The result of a workload, or what failed; None: it has to be measured without a pause.
Ending = Measured | Exception | None
#: Is called with each ending when it is known.
Ended = Callable[[Workload, Ending], None]


def ends_all(error: Exception) -> bool:
    """Return whether an error is not only about the workload that ran."""
    return isinstance(error, DriveFailed) or (isinstance(error, RigError) and error.ends_run)


#: Cells that a workload may lack because the rig disturbed them; one more ends it.
MOST_LEFT_OUT = 3


@dataclass(slots=True)
class InterleavedRounds:
    """The rounds of some workloads on one array."""

    setup: Setup
    array: Array
    rule: InterleaveRule
    enough: Enough
    ended: Ended
    #: Time under load of the same class before the first round, seconds.
    loaded_s: float = 0.0
    #: One of the workloads as it was measured without a pause; its cells have to agree.
    control: Measured | None = None
    #: True once they agreed.
    is_confirmed: bool = False
    #: The order of workloads in a round.
    order: random.Random = field(default_factory=random.Random)
    _open: list[Workload] = field(default_factory=list)
    _cells: dict[Workload, list[Cell]] = field(default_factory=dict)
    _left_out: dict[Workload, int] = field(default_factory=dict)
    _before: Run | None = None
    _began_s: float = 0.0
    _last_s: float = 0.0

    def measure(self, workloads: Sequence[Workload]) -> None:
        """Measure until every workload has an ending; raises what ends all of them (`ends_all`)."""
        self._open, looks = list(workloads), interleaving.looks(self.rule)
        self._cells = {each: [] for each in workloads}
        self._began_s = self._last_s = time.monotonic()
        for number in range(1, self.rule.rounds + 1):
            self._round(number)
            span_s, is_last = self._last_s - self._began_s, number == self.rule.rounds
            if is_last or (number in looks and span_s >= self.rule.span_s):
                self._look(span_s, is_last=is_last)
            if not self._open:
                break

    def _round(self, number: int) -> None:
        what = f"{self.array.geometry}: {len(self._open)} workloads in rounds"
        self.setup.progress(what, len(self._open) * (self.rule.ramp_s + self.rule.cell_s))
        for workload in self.order.sample(self._open, len(self._open)):
            if workload not in self._open:
                continue  # the control ended the rounds of all
            live_stats.expect(self.setup.live, Course(number - 1, self.rule.rounds))
            generation, before = self.setup.machine.generation, self._before
            self._before = run = None
            try:
                run = self._run(workload, number)
            except Exception as error:
                if ends_all(error):
                    raise
                self._end(workload, error)
            if self._paused(is_other=self.setup.machine.generation != generation) or run is None:
                continue
            self._before = run
            self._cells[workload].append(interleaving.cell(run, before))

    def _run(self, workload: Workload, number: int) -> Run | None:
        """Return a valid cell; None if it is left out, or if the workload has to be measured without a pause."""
        window = fixed_time.ProcessWindow(self.rule.ramp_s, self.rule.cell_s, 1)
        try:
            run = fixed_time.run(self.setup, self.array, workload, "run", window)
        except Disturbed as error:
            self._leave_out(workload, number, (str(error),))
            return None
        disturbed = checks.objections_in(checks.of_rig(run))
        if objections := [each for each in checks.objections(run) if each not in disturbed]:
            # A cell with a stall, or in which a drive throttled, must not make room for one without.
            self._bar(workload, f"round {number}: {'; '.join(objections)}")
            return None
        if disturbed:
            self._leave_out(workload, number, disturbed)
        return None if disturbed else run

    def _leave_out(self, workload: Workload, number: int, objections: Sequence[str]) -> None:
        """Leave a cell out that the rig disturbed; ``InvalidMeasurement`` if too many are."""
        about = {"geometry": str(self.array.geometry), "workload": str(workload)}
        self.setup.logbook.note("cell_left_out", **about, round=number, objections=list(objections))
        self._left_out[workload] = self._left_out.get(workload, 0) + 1
        if self._left_out[workload] > MOST_LEFT_OUT:
            disturbed = f"{self._left_out[workload]} cells were disturbed"
            raise InvalidMeasurement(
                f"{workload} on {self.array.geometry} is not valid: {'; '.join(objections)} ({disturbed})"
            )

    def _paused(self, *, is_other: bool) -> bool:
        """Return whether there was a pause, in which the drives may have recovered; then all begins anew."""
        now_s, last_s = time.monotonic(), self._last_s
        self._last_s = now_s
        if not is_other and now_s - last_s <= self.rule.ramp_s + self.rule.cell_s + PAUSE_S:
            return False
        self._began_s, self.loaded_s = now_s, 0.0
        for workload in self._open:
            self._cells[workload].clear()
        return True

    def _bar(self, workload: Workload, why: str) -> None:
        """End a workload that has to be measured without a pause, also by a session that resumes this one."""
        about = {"geometry": str(self.array.geometry), "workload": str(workload)}
        self.setup.logbook.note("takes_no_turns", **about, why=why)
        self._end(workload, None)

    def _end(self, workload: Workload, ending: Ending) -> None:
        self._open = [each for each in self._open if each != workload]
        self.ended(workload, ending)
        is_control = self.control is not None and workload == self.control.workload and not self.is_confirmed
        if is_control and not isinstance(ending, Measured):
            for each in self._open:
                self._bar(each, f"the control, {workload}, has no figure in rounds")

    def _look(self, span_s: float, *, is_last: bool) -> None:
        """Decide which workloads leave the rounds, and record those that have a result."""
        if is_last and span_s < self.rule.span_s:
            # After a pause all begins anew, and what so few rounds show may be a plateau.
            for workload in list(self._open):
                if workload in self._open:
                    self._bar(workload, f"rounds for {format_duration(span_s)} without a pause")
            return
        if self._awaits_control and not is_last:
            return
        of_all = [cells for cells in self._cells.values() if cells]
        dependence = self._disagreement(of_all, span_s) or interleaving.carried_over(of_all)
        for workload in list(self._open):
            cells = self._cells[workload]
            if workload not in self._open:
                continue
            if len(cells) < self.rule.first:
                if is_last:
                    self._bar(workload, f"{len(cells)} valid cells")
                continue
            found = interleaving.among(cells, of_all, self.setup.protocol, span_s, self.loaded_s, is_last=is_last)
            why = dependence or interleaving.head_effect(cells)
            decision = self.enough(found)
            self._note(found, decision, why)
            if why:
                self._bar(workload, why)
            elif decision.done or is_last:
                if self.control is None or self.control.workload != workload:
                    fixed_time.record_measured(self.setup, found)
                self._end(workload, found)

    @property
    def _awaits_control(self) -> bool:
        """Return whether the control lacks cells that a later round makes up for, before which nothing is compared."""
        if self.control is None or self.is_confirmed:
            return False
        workload = self.control.workload
        return workload in self._open and len(self._cells[workload]) < self.rule.first

    def _disagreement(self, of_all: Sequence[Sequence[Cell]], span_s: float) -> str:
        control, protocol = self.control, self.setup.protocol
        if control is None or self.is_confirmed:
            return ""
        cells = self._cells[control.workload]
        if len(cells) < self.rule.first:
            return f"{control.workload} has too few cells to be compared"
        found = interleaving.among(cells, of_all, protocol, span_s, self.loaded_s)
        different = interleaving.disagreement(control, found, ConfidenceLevel(protocol.verdict.confidence))
        self.is_confirmed = not different
        return different

    def _note(self, found: Measured, decision: Decision, why: str) -> None:
        """Record a look; ``why`` it is the last one of a workload that takes no turns, else empty."""
        geometry, workload, number = str(found.geometry), str(found.workload), len(found.runs)
        self.setup.logbook.note(
            "looked_at_rounds",
            geometry=geometry,
            workload=workload,
            rounds=number,
            of=self.rule.rounds,
            iops=found.iops,
            decided=decision.done,
            sentence=decision.sentence,
        )
        if self.setup.looked:
            end = "measured without a pause" if why else "decided" if decision.done else "goes on"
            description = f"round {number} of {self.rule.rounds}: {why or decision.sentence}: {end}"
            self.setup.looked(f"{geometry} {workload}: {description}", 0.0)
