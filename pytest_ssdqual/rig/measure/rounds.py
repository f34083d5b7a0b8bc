"""Rounds of many workloads on one array, until what is tracked is steady (SNIA test specification)."""

from __future__ import annotations

from dataclasses import asdict

from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload.rounds import Loop, LoopResult, Round, settled, states
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import live_stats
from pytest_ssdqual.rig.observe.live_stats import Course


def run(setup: Setup, array: Array, loop: Loop) -> LoopResult:
    """Rounds of all workloads in the loop's order, one process each and nothing between them, until steady.

    At most as many as the protocol allows; whether the last of them were steady is the result's to say. Raises
    ``RigError`` or a child of it: ``InvalidMeasurement`` if a cell cannot be believed, because the rounds before and
    after it were not one experiment then.
    """
    rule = setup.protocol.steady
    # Fewer rounds than one window could never be judged.
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
            states=[asdict(each) for each in found_states],
        )
        if found_states:
            steady = sum(each.reached for each in found_states)
            told = f"{steady} of {len(found_states)} figures of {loop} are steady after {len(rounds)} rounds"
            word = "steady" if steady == len(found_states) else "not steady yet"
            brief = f"{word}: {steady} of {len(found_states)} figures"
            live_stats.judged(setup.live, steady == len(found_states), told, brief)
        if settled(loop, rounds, rule):
            break
    found = LoopResult(array.geometry, loop, tuple(rounds), rule)
    setup.logbook.note(
        "loop",
        geometry=str(array.geometry),
        loop=loop.name,
        asked=loop.to_record(),
        protocol=setup.protocol.name,
        acceptance=setup.protocol.acceptance,
        rule=asdict(rule),
        reached=found.reached,
        rounds=[[each.summary() for each in runs] for runs in rounds],
    )
    return found


def _round(setup: Setup, array: Array, loop: Loop, number: int, most: int) -> Round:
    # Which round it is, the course of each cell tells; a step of another name would be taken for another thing.
    setup.progress(f"{array.geometry}: {loop}", len(loop.workloads) * setup.protocol.loop.cell_s)
    return tuple(_cell(setup, array, loop, each, number, most) for each in loop.workloads)


def _cell(setup: Setup, array: Array, loop: Loop, workload: Workload, number: int, most: int) -> Run:
    """One workload of one round, from its first I/O on: whole minutes count in the specification."""
    window = fixed_time.ProcessWindow(0.0, setup.protocol.loop.cell_s, 1)
    live_stats.expect(setup.live, Course(number - 1, most))
    found = fixed_time.run(setup, array, workload, f"{loop}-{number:02}", window)
    if objections := checks.objections(found):
        raise InvalidMeasurement(
            f"{workload} on {array.geometry} in round {number} of {loop} is not valid: {'; '.join(objections)}"
        )
    return found.condensed()
