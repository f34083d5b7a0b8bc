"""Re-adopts the array of an earlier session: checks that it is unchanged, and puts it together again.

Filling and conditioning take hours; repeating them after a crash would cost more than the crash. But a wrongly
re-adopted array falsifies measurements, so three things must hold. Nothing but the array's own superblocks was written
to the members since that session read the counters (``write_counters``). They hold data (a format is in no counter).
Before workloads of a pattern are measured, its conditioning writes run until they reach the rate at which they had
settled: a drive that was idle has collected its garbage and is faster for a while (SNIA PTS, host idle recovery).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace

from pytest_ssdqual.qual.stats import steady_state
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.health import write_counters
from pytest_ssdqual.rig.health.write_counters import Written
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, Machine, MachineLost, RigError
from pytest_ssdqual.rig.machine.side_by_side import each
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle, fixed_time, refresh
from pytest_ssdqual.rig.measure.fixed_time import ProcessWindow
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.purge import zero
from pytest_ssdqual.rig.resume.checkpoint import Checkpoint, Conditioned

#: Positions on a member that are sampled, as shares of its size: all of them within the array's data.
SPOTS = (1 / 16, 5 / 16, 1 / 2, 11 / 16, 15 / 16)


def count(setup: Setup, array: Array, moment: str) -> None:
    """Record the write counters of the members, for a session that resumes this run.

    An array without recorded counters is not re-adopted, so errors are ignored here, except ``MachineLost``.
    """
    # SMART queries take time, and help only in another boot, where an array that no session closed is out anyway.
    smart = moment == "closed" or array.geometry.is_side_by_side
    try:
        written = write_counters.read(setup.machine, array.members, smart=smart)
        setup.held.require_lease()
    except MachineLost:
        raise
    except RigError:
        return
    setup.note(
        "counters",
        array.geometry,
        moment=moment,
        uuid=array.uuid,
        written=written,
    )


def take_over(setup: Setup, left: Checkpoint) -> Array | None:
    """Return ``left``, assembled again; None if it has changed, with the reasons in the journal.

    ``MachineLost``, and the refusals of guard and lease, are raised.
    """
    members = setup.failures.usable(left.geometry, setup.held.drives)
    setup.progress(f"{left.geometry}: take over", 5)
    setup.held.require(members)
    try:
        now = write_counters.read(setup.machine, members)
        doubts = [*_doubts(left, members, now), *_empty(setup, members)]
        if not doubts:
            return _reassembled(setup, left, members, now)
    except MachineLost:
        raise
    except RigError as error:
        doubts = [str(error)]
    setup.note("conditioning_not_kept", left.geometry, uuid=left.uuid, reasons=doubts)
    return None


def confirm(setup: Setup, array: Array, conditioned: Conditioned) -> Conditioned | None:
    """Write as when it was conditioned; return the state now if it is still conditioned, else None.

    Drives side by side are refreshed by a protocol with visits; a drive must not settle anew, because a plateau after
    days of idling is as long as that test. Anything else gets one window, which must be steady.
    Raises ``RigError`` or a child of it, as any measurement.
    """
    if setup.protocol.visits is None or not array.geometry.is_side_by_side:
        return _in_one_window(setup, array, conditioned)
    with suppress(InvalidMeasurement):
        return refresh.refresh(setup, array, conditioned, may_resettle=False)
    return None


def _in_one_window(setup: Setup, array: Array, conditioned: Conditioned) -> Conditioned | None:
    """Confirm by the steady-state rule of the protocol, and the rate within its range."""
    protocol, rule, writes = setup.protocol, setup.protocol.steady, conditioned.writes
    window = ProcessWindow(protocol.measure.ramp_s, protocol.measure.window_s, rule.window)
    setup.progress(f"{array.geometry}: confirm with {writes}", protocol.measure.ramp_s + protocol.measure.window_s)
    run = fixed_time.prepared(setup, array, lambda: fixed_time.run(setup, array, writes, "refresh", window))
    states = [steady_state.judge(member.round_iops(), rule) for member in run.of_members()]
    now = steady_state.least(states)
    reason = _objection(array, conditioned, states, rule.range_percent) if now.reached else now.describe()
    setup.note(
        "conditioning_confirmed",
        array.geometry,
        workload=str(writes),
        confirmed=not reason,
        reason=reason,
        steady=asdict(now),
        raw=run.raw,
    )
    return None if reason else replace(conditioned, state=now)


def _objection(array: Array, conditioned: Conditioned, states: Sequence[SteadyState], range_percent: float) -> str:
    """Return the objection to rates that differ from those at which the array, or its drives, had settled."""
    settled: Sequence[float | None] = [conditioned.state.average]
    if array.geometry.is_side_by_side:
        settled = [conditioned.rates.get(drive.name) for drive in array.members]
    for state, before in zip(states, settled, strict=True):
        if before is None:
            return f"{state.average:.4g} IOPS, settled at an unknown rate"
        if abs(state.average - before) > range_percent / 100 * before:
            return f"{state.average:.4g} IOPS, settled at {before:.4g}"
    return ""


def _doubts(left: Checkpoint, members: Sequence[Drive], now: dict[str, Written]) -> list[str]:
    """Return the reasons why the members may have changed."""
    if tuple(drive.identity for drive in members) != left.members:
        return ["its members are not the first drives of this session"]
    if set(left.counters) != set(left.members):
        return ["no write counters of its members were recorded"]
    if left.abandoned and any(_appeared_anew(left.counters[name], now[name]) for name in left.members):
        return ["the machine was rebooted, or a drive replugged, while the array was running"]
    return write_counters.unchanged(left.counters, now, allowance_bytes(left))


def allowance_bytes(left: Checkpoint) -> int:
    """Bytes that md itself may have written to a member since the counters were read: none after the array's end."""
    return write_counters.STOPPING_BYTES if left.abandoned else 0


def _appeared_anew(before: Written, now: Written) -> bool:
    return (before.boot_id, before.appearance) != (now.boot_id, now.appearance)


def _empty(setup: Setup, members: Sequence[Drive]) -> list[str]:
    """Return a reason for each member without what a fill leaves: random bytes, hence a few zeroes everywhere."""
    reasons = []
    for drive, zeroes in zip(members, each(setup.machine, members, _zeroes), strict=True):
        if len(zeroes) != len(SPOTS) or not all(0 < count < zero.SPOT_BYTES // 2 for count in zeroes):
            reasons.append(f"{drive.identity} does not hold the data of the fill")
    return reasons


def _zeroes(machine: Machine, drive: Drive) -> list[int]:
    return zero.zeroes_at(machine, drive, [int(part * drive.size_bytes) // zero.SPOT_BYTES for part in SPOTS])


def _reassembled(setup: Setup, left: Checkpoint, members: Sequence[Drive], now: dict[str, Written]) -> Array:
    array = array_lifecycle.readopt(setup, left, members)
    with array_lifecycle.undone(lambda: array_lifecycle.stop(setup, array)):
        _note_kept(setup, array, left, now)
    return array


def _note_kept(setup: Setup, array: Array, left: Checkpoint, now: dict[str, Written]) -> None:
    conditioned = left.conditioned
    setup.note(
        "conditioning_kept",
        array.geometry,
        uuid=array.uuid,
        kept_of=left.uuid,
        conditioned=conditioned
        and {
            "workload": str(conditioned.writes),
            "steady": asdict(conditioned.state),
            "rates": dict(conditioned.rates),
        },
        before=left.counters,
        now=now,
        sent_bytes={name: write_counters.written_since(left.counters[name], now[name]) for name in left.members},
        allowance_bytes=allowance_bytes(left),
    )
