"""Confirms a steady state: one window of a class's conditioning writes, judged by the protocol's own rule.

The rule alone cannot tell a steady state from a plateau, so the rate is compared as well: with the rate at which the
same array had settled, or, for an array that was assembled of conditioned drives, with the most that its members allow
at the rates at which they settled. A drive that was idle has collected its garbage, or emptied its cache, and is faster
for a while (SNIA PTS, host idle recovery).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

from pytest_ssdqual.qual.raid.geometry import costs
from pytest_ssdqual.qual.spec.protocol_rules import ArraySettings
from pytest_ssdqual.qual.stats import steady_state
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.units import parse_size
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.failed import serial_of
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.resume.checkpoint import Conditioned

#: Returns the objection to the rate of a confirmation, whose states are those of each drive side by side; "" if none.
Objection = Callable[[Sequence[SteadyState]], str]


def confirm(setup: Setup, array: Array, writes: Workload, objection: Objection) -> SteadyState | None:
    """Run one window of ``writes``; return the state if it is confirmed, else None.

    Raises ``RigError`` or a child of it, as any measurement.
    """
    protocol, rule = setup.protocol, setup.protocol.steady
    window = fixed_time.ProcessWindow(protocol.ramp_s, protocol.window_s, rule.window)
    setup.progress(f"{array.geometry}: confirm with {writes}", protocol.ramp_s + protocol.window_s)
    run = fixed_time.prepared(setup, array, lambda: fixed_time.run(setup, array, writes, "confirm", window))
    states = [steady_state.judge(member.round_iops(), rule) for member in run.of_members()]
    now = steady_state.least(states)
    reason = objection(states) if now.reached else now.describe()
    setup.logbook.note(
        "conditioning_confirmed",
        geometry=str(array.geometry),
        workload=str(writes),
        confirmed=not reason,
        reason=reason,
        steady=asdict(now),
        raw=run.raw,
    )
    return None if reason else now


def unchecked(states: Sequence[SteadyState]) -> str:
    """Raise no objection: no rate is known that it could be compared with."""
    return ""


def as_settled(array: Array, conditioned: Conditioned, range_percent: float) -> Objection:
    """Return the objection to rates that differ from those at which the same array or drives had settled."""
    if array.geometry.is_side_by_side:
        expected = [conditioned.rates.get(serial_of(drive)) for drive in array.members]
    else:
        expected = [conditioned.state.average]

    def objection(states: Sequence[SteadyState]) -> str:
        for state, settled in zip(states, expected, strict=True):
            if settled is None or abs(state.average - settled) > range_percent / 100 * settled:
                return (
                    f"{state.average:.4g} IOPS, settled at {'an unknown rate' if settled is None else f'{settled:.4g}'}"
                )
        return ""

    return objection


def as_members_allow(
    array: Array, conditioned: Conditioned, settings: ArraySettings, range_percent: float
) -> Objection:
    """Return the objection to a rate that is higher than members allow that write as they settled.

    It is an upper bound: members that also read, md and the host only make an array slower. A member whose rate is not
    known is an objection, too.
    """
    rates = [conditioned.rates.get(serial_of(drive)) for drive in array.members]
    most = sum(rate or 0.0 for rate in rates) / member_writes(array, conditioned.writes, settings)

    def objection(states: Sequence[SteadyState]) -> str:
        (state,) = states
        if None in rates:
            return "the rate at which one of its members settled is not known"
        if state.average <= (1 + range_percent / 100) * most:
            return ""
        return f"{state.average:.4g} IOPS, its members settled at rates that allow {most:.4g}"

    return objection


def member_writes(array: Array, writes: Workload, settings: ArraySettings) -> float:
    """Return the fewest writes to members for one write of ``writes`` to the array.

    A random write within a chunk writes its block and the parity; of longer ones, and of sequential ones, md may write
    whole stripes.
    """
    geometry = array.geometry
    if writes.is_random and writes.largest_bytes <= parse_size(settings.chunk):
        return costs(geometry).writes
    return geometry.width / geometry.data_drives
