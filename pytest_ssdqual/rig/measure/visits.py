"""Measures in cells: one fio process each, of a workload on an array that stands.

A measurement by visits is many such cells, spread over hours. A cell that the rig disturbed is left
out and repeated. One with another objection (the drive throttled, or fio was silent) ends its
workload: it must not make room for a cell without.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from pytest_ssdqual.qual.measured.result_records import CellRecord
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.records import shallow
from pytest_ssdqual.qual.spec.protocol_rules import VisitRule
from pytest_ssdqual.qual.stats import visits
from pytest_ssdqual.qual.stats.group_sequential import Decision
from pytest_ssdqual.qual.stats.visits import Cell
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.machine.machine import Disturbed, InvalidMeasurement
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import live_stats
from pytest_ssdqual.rig.observe.live_stats import Course

#: Decides for one point whether its claims are decided; it also gets the latest results of all
#: others of the experiment.
Enough = Callable[[Measured, Sequence[Measured]], Decision]
#: Cells of one workload in one visit that the rig may disturb; one more ends it.
MOST_LEFT_OUT = 3


def at_once(measured: Measured, others: Sequence[Measured]) -> Decision:
    """Stopping rule without a claim: the first look suffices."""
    return Decision(done=True)


def rule_of(setup: Setup) -> VisitRule:
    """Return the rule of the protocol; ``ValueError`` if it does not measure in visits."""
    rule = setup.protocol.visits
    if rule is None:
        raise ValueError(f"the protocol {setup.protocol.name} does not measure in visits")
    return rule


def measure_cell(
    setup: Setup, array: Array, workload: Workload, visit: int, before: Run | None, kind: str = "measured"
) -> tuple[Cell, Run]:
    """Measure one cell, and record it; ``before`` is the run that ended just before, if one did.

    Return it with its run, which has all reports. ``InvalidMeasurement`` if it has an objection, or
    if the rig disturbed more than ``MOST_LEFT_OUT`` attempts; drives side by side that are objected
    to are named by ``DrivesUndecided``. Other errors as ``fixed_time.run``.
    """
    rule = rule_of(setup)
    # Sequential cells that all begin at the first address would show the same minute of the drives.
    begin = random.random()  # noqa: S311 (no secret)
    window = fixed_time.ProcessWindow(rule.ramp_s, rule.cell_s, 1, begin=begin)
    disturbed: tuple[str, ...] = ()
    for _ in range(MOST_LEFT_OUT + 1):
        live_stats.expect(setup.live, Course(visit, len(rule.cells)))
        try:
            run = fixed_time.run(setup, array, workload, "run", window)
        except Disturbed as error:
            disturbed = (str(error),)
        else:
            disturbed = checks.objections_in(checks.of_rig(run))
        if not disturbed:
            fixed_time.require_valid(checks.checks(run), f"{run.workload} on {run.geometry}", array)
            cell = visits.cell(run, before, visit)
            _record(setup, cell, kind)
            return cell, run
        fixed_time.note_left_out(setup, array, workload, visit + 1, disturbed)
        before = None
    raise InvalidMeasurement(
        f"{workload} on {array.geometry} is not valid: {'; '.join(disturbed)} "
        f"({MOST_LEFT_OUT + 1} cells were disturbed)"
    )


def until_decided(setup: Setup, array: Array, workload: Workload, enough: Enough, kind: str = "measured") -> Measured:
    """Measure one workload in visits of an array that stands, one after the other, until decided.

    Recorded as ``kind``. Raises as ``measure_cell``.
    """
    rule, point = rule_of(setup), (array.geometry, workload)
    cells: list[Cell] = []
    before: Run | None = None
    for visit, count in enumerate(rule.cells):
        setup.progress(f"{array.geometry}: {workload}", count * (rule.ramp_s + rule.cell_s))
        for _ in range(count):
            cell, before = measure_cell(setup, array, workload, visit, before, kind)
            cells.append(cell)
        is_last = visit + 1 == len(rule.cells)
        if visit + 1 < rule.before_first_look:
            continue
        measured = visits.at_look({point: cells}, setup.protocol, is_last=is_last)[point]
        decision = enough(measured, ())
        note_look(setup, measured, decision)
        if decision or is_last:
            return fixed_time.record_measured(setup, measured, kind)
    raise AssertionError(rule.cells)


def note_look(setup: Setup, measured: Measured, decision: Decision) -> None:
    """Record a look at a measurement in visits."""
    visited = measured.visited
    if visited is None:
        raise ValueError(f"{measured} was not measured in visits")
    geometry, workload = str(measured.geometry), str(measured.workload)
    setup.logbook.note(
        "looked",
        geometry=geometry,
        workload=workload,
        visits=visited.visits,
        cells=sum(visited.cells),
        of=visited.of,
        iops=measured.iops,
        left_out=visited.left_out,
        decided=decision.done,
        sentence=decision.sentence,
    )
    if setup.looked:
        end = "decided" if decision else "goes on"
        if not decision and visited.is_last:
            end = "its time is over"
        sentence = f"visit {visited.visits}: {decision.sentence}: {end}"
        setup.looked(f"{geometry} {workload}: {sentence}")


def _record(setup: Setup, cell: Cell, kind: str) -> None:
    run = cell.run
    record = CellRecord(
        kind, run.geometry, str(run.workload), run.workload, cell.visit, cell.head, cell.written_before, run.record()
    )
    setup.logbook.note("cell", **shallow(record))
