"""Rounds of a workload set on one array, until the tracked figures are steady (SNIA test specification)."""

from __future__ import annotations

from dataclasses import asdict

from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload.rounds import Round, Rounds, RoundsResult, settled, states
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.failed import DrivesUndecided
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import live_stats
from pytest_ssdqual.rig.observe.live_stats import Course


def run(setup: Setup, array: Array, loop: Rounds) -> RoundsResult:
    """Run rounds of all workloads in order, one process each without pauses, until steady.

    At most as many rounds as the protocol allows; the result says whether the last of them were steady. ``RigError`` or
    a child of it: ``InvalidMeasurement`` if a cell is not valid, because then the rounds before and after it are not
    one experiment.
    """
    rule = setup.protocol.steady
    # Fewer rounds than one window cannot be steady.
    most = max(setup.protocol.loop.max_rounds, rule.window)
    rounds: list[Round] = []
    while len(rounds) < most:
        rounds.append(_round(setup, array, loop, len(rounds) + 1, most))
        found_states = states(loop, rounds, rule)
        setup.logbook.note(
            "loop_round",
            geometry=str(array.geometry),
            loop=loop.name,
            round=len(rounds),
            states=[asdict(state) for state in found_states],
        )
        if found_states:
            steady = sum(state.reached for state in found_states)
            sentence = f"{steady} of {len(found_states)} figures of {loop} are steady after {len(rounds)} rounds"
            verdict = "steady" if steady == len(found_states) else "not steady yet"
            brief = f"{verdict}: {steady} of {len(found_states)} figures"
            live_stats.send_steadiness(setup.live, steady == len(found_states), sentence, brief)
        if settled(loop, rounds, rule):
            break
    result = RoundsResult(array.geometry, loop, tuple(rounds), rule)
    _require_no_odd_drive(result, array)
    setup.logbook.note(
        "loop",
        geometry=str(array.geometry),
        loop=loop.name,
        asked=loop,
        protocol=setup.protocol.name,
        acceptance=setup.protocol.acceptance,
        rule=asdict(rule),
        reached=result.reached,
        rounds=[[state.record() for state in runs] for runs in rounds],
    )
    return result


def _round(setup: Setup, array: Array, loop: Rounds, number: int, most: int) -> Round:
    # The course of each cell contains the round; a step of another name would count as another measurement.
    setup.progress(f"{array.geometry}: {loop}", loop.cells * setup.protocol.loop.cell_s)
    runs = [_process(setup, array, loop, workload, cells, number, most) for workload, cells in loop.processes]
    return tuple(runs[-len(loop.workloads) :])


def _process(setup: Setup, array: Array, loop: Rounds, workload: Workload, cells: int, number: int, most: int) -> Run:
    """Run one workload of one round, from its first I/O on: whole minutes count in the specification."""
    window = fixed_time.ProcessWindow(0.0, cells * setup.protocol.loop.cell_s, 1)
    live_stats.expect(setup.live, Course(number - 1, most))
    measured = fixed_time.run(setup, array, workload, f"{loop}-{number:02}", window)
    if objections := checks.objections(measured):
        where = f"{workload} on {array.geometry} in round {number} of {loop}"
        sentence = f"{where} is not valid: {'; '.join(objections)}"
        raise fixed_time.of_some_drives(sentence, fixed_time.faults_of_drives(measured), array)
    return measured.condensed()


def _require_no_odd_drive(result: RoundsResult, array: Array) -> None:
    """Raise ``DrivesUndecided`` if some of several drives side by side did not become steady, and the others did."""
    unsteady: dict[str, str] = {}
    if array.geometry.is_side_by_side and not result.reached:
        for each in result.determination():
            if not each["reached"]:
                unsteady[str(each["member"])] = f"{each['claim']} of {each['workload']} did not become steady"
    error = fixed_time.of_some_drives(repr(result).strip("<>"), unsteady, array)
    if isinstance(error, DrivesUndecided):
        raise error
