"""Taking over what an earlier session left: whether it is still what it was, and putting it together again.

Filling and conditioning take hours; doing them again after a crash would cost more than the crash. But what is kept by
mistake falsifies measurements, so three things must hold: nothing but the array's own superblocks was written to the
members since that session looked (``counters``), they hold data (a format is in no counter), and before a class of
workloads is measured its conditioning writes run for one more window, at the rate at which they had settled: a drive
that was idle has collected its garbage and is faster for a while (SNIA PTS, host idle recovery).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict

from pytest_ssdqual.qual.stats import steady_state
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.rig.drives import write_counters
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.drives.write_counters import Written
from pytest_ssdqual.rig.machine.machine import MachineLost, RigError, counts
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle, fixed_time
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.purge import zero
from pytest_ssdqual.rig.resume.checkpoint import Conditioned, Inheritance

#: Parts of a member at which it is looked at: all of them inside of the array's data.
SPOTS = (1 / 16, 5 / 16, 1 / 2, 11 / 16, 15 / 16)


def count(setup: Setup, array: Array, moment: str) -> None:
    """Note what the members have been sent by now, for whoever resumes this run.

    What cannot be counted is not taken over, so it is passed over here; only ``MachineLost`` is raised.
    """
    # Asking drives takes time, and is of use only in another boot: there an array that nobody closed is out anyway.
    smart = moment == "closed" or array.geometry.is_side_by_side
    try:
        written = write_counters.read(setup.machine, array.members, smart=smart)
        setup.held.require_lease()
    except MachineLost:
        raise
    except RigError:
        return
    setup.logbook.note(
        "counters",
        moment=moment,
        geometry=str(array.geometry),
        uuid=array.uuid,
        written={name: each.to_record() for name, each in written.items()},
    )


def take_over(setup: Setup, left: Inheritance) -> Array | None:
    """``left``, standing again; None if it is not what it was, and why is in the record.

    Raises ``MachineLost``, and what the guard and the lease say against it.
    """
    members = setup.held.drives[: left.geometry.width]
    setup.progress(f"{left.geometry}: take over", 5)
    setup.held.require(members)
    try:
        now = write_counters.read(setup.machine, members)
        doubts = [*_doubts(left, members, now), *_empty(setup, members)]
        if not doubts:
            return _stand_again(setup, left, members, now)
    except MachineLost:
        raise
    except RigError as error:
        doubts = [str(error)]
    setup.logbook.note("conditioning_not_kept", geometry=str(left.geometry), uuid=left.uuid, reasons=doubts)
    return None


def confirm(setup: Setup, array: Array, kept: Conditioned) -> SteadyState | None:
    """Whether a class is still conditioned, after one window of the writes that did it: how they went, or None.

    Raises ``RigError`` or a child of it, as any measurement.
    """
    protocol, rule = setup.protocol, setup.protocol.steady
    window = fixed_time.ProcessWindow(protocol.ramp_s, protocol.window_s, rule.window)
    setup.progress(f"{array.geometry}: confirm with {kept.writes}", protocol.ramp_s + protocol.window_s)
    run = fixed_time.run(setup, array, kept.writes, "confirm", window)
    now = steady_state.judge(run.round_iops(), rule)
    apart = abs(now.average - kept.state.average)
    confirmed = now.reached and apart <= rule.range_percent / 100 * kept.state.average
    setup.logbook.note(
        "conditioning_confirmed",
        geometry=str(array.geometry),
        workload=str(kept.writes),
        confirmed=confirmed,
        settled_iops=kept.state.average,
        steady=asdict(now),
        raw=run.raw,
    )
    return now if confirmed else None


def _doubts(left: Inheritance, members: Sequence[Drive], now: dict[str, Written]) -> list[str]:
    """Why the members may not be what they were."""
    if tuple(drive.identity for drive in members) != left.members:
        return ["its members are not the first drives of this session"]
    if set(left.counters) != set(left.members):
        return ["what its members had been sent was not counted"]
    if left.abandoned and any(_appeared_anew(left.counters[name], now[name]) for name in left.members):
        return ["the machine was started anew, or a drive plugged in anew, while the array was running"]
    return write_counters.unchanged(left.counters, now, allowance_bytes(left))


def allowance_bytes(left: Inheritance) -> int:
    """What md itself may have written to a member since it was counted: nothing, if that was after the array ended."""
    return write_counters.STOPPING_BYTES if left.abandoned else 0


def _appeared_anew(before: Written, now: Written) -> bool:
    return (before.boot_id, before.appearance) != (now.boot_id, now.appearance)


def _empty(setup: Setup, members: Sequence[Drive]) -> list[str]:
    """The members that do not hold what a fill leaves, as random bytes do: a few zeroes everywhere."""
    found = []
    for drive, zeroes in zip(members, zero.each(members, lambda drive: _zeroes(setup, drive)), strict=True):
        if len(zeroes) != len(SPOTS) or not all(0 < count < zero.SPOT_BYTES // 2 for count in zeroes):
            found.append(f"{drive.identity} does not hold what it was filled with")
    return found


def _zeroes(setup: Setup, drive: Drive) -> list[int]:
    """How many zeroes there are at each spot; none at all where it cannot be read."""
    size = zero.SPOT_BYTES
    spots = [str(int(part * drive.size_bytes) // size) for part in SPOTS]
    said = setup.machine.run(["sh", "-c", zero.ZEROES, "zeroes", drive.path, str(size), *spots], repeatable=True)
    return counts(said)


def _stand_again(setup: Setup, left: Inheritance, members: Sequence[Drive], now: dict[str, Written]) -> Array:
    array = array_lifecycle.readopt(setup, left, members)
    try:
        _note_kept(setup, array, left, now)
    except BaseException:
        with suppress(RigError):
            array_lifecycle.stop(setup, array)
        raise
    return array


def _note_kept(setup: Setup, array: Array, left: Inheritance, now: dict[str, Written]) -> None:
    kept = left.conditioned
    setup.logbook.note(
        "conditioning_kept",
        geometry=str(array.geometry),
        uuid=array.uuid,
        kept_of=left.uuid,
        conditioned=kept and {"workload": str(kept.writes), "steady": asdict(kept.state)},
        before={name: each.to_record() for name, each in left.counters.items()},
        now={name: each.to_record() for name, each in now.items()},
        sent_bytes={name: write_counters.written_since(left.counters[name], now[name]) for name in left.members},
        allowance_bytes=allowance_bytes(left),
    )
