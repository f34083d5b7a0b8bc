"""A power cut: before it, what must be known of it; after it, the machine and our array on it are there again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.drives.survey import Drive, survey
from pytest_ssdqual.rig.drives.topology import plain_uuid
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.machine import CommandFailed, DriveRefused, RigError
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.session import Setup

#: Takes the power away and gives it back; raises ``RigError`` if it cannot.
Switch = Callable[[], None]
#: A server may count its memory and look for disks for this long before it boots.
BOOT_S = 900.0


def cut(setup: Setup, switch: Switch, array: Array) -> None:
    """Cut the power, wait for the machine, stop what its boot assembled of our array, and hold the drives again.

    ``MachineLost`` if it does not come back, ``DriveRefused`` if its drives are not what they were.
    """
    machine = setup.machine
    if not isinstance(machine, Channel):
        raise RigError(f"{machine.name} cannot be reached again after a power cut")
    setup.logbook.note("power_cut", uuid=array.uuid)
    switch()
    machine.restarted(BOOT_S)
    machine.run(["udevadm", "settle", "--timeout=120"], check=False, deadline_s=150, repeatable=True)
    stop_ours(setup, array)
    setup.held.hold_again()
    setup.logbook.note("power_returned", uuid=array.uuid)


def stop_ours(setup: Setup, array: Array) -> None:
    """Many systems assemble whatever they find at boot, under a name of their own."""
    topology = survey(setup.machine, [drive.kname for drive in setup.held.drives])
    for found in topology.arrays:
        if found.uuid == plain_uuid(array.uuid):
            mdadm.halt(setup.machine, f"/dev/{found.kname}")


def assemble(setup: Setup, array: Array, members: Sequence[Drive], *, dirty: bool) -> bool:
    """Put the array together again of ``members``; whether md had to be forced to.

    md refuses to start a RAID 5 or 6 that lacks members and was not shut down in order, as parity may be wrong (md(4),
    "unclean shutdown"); it is forced only if such a state is possible (``dirty``). ``DriveRefused`` if a member is used
    by something else, ``RigError`` if the array does not start.
    """
    setup.held.require(members)
    forced = False
    try:
        _assemble(setup, array, members)
    except DriveRefused:
        raise
    except CommandFailed:
        if not dirty:
            raise
        stop_ours(setup, array)
        setup.held.require(members)
        _assemble(setup, array, members, "--force")
        forced = True
    mdadm.tune(setup.machine, array.geometry, array.kname, setup.protocol.array)
    mdadm.require_ours(setup.machine, array.path, array.uuid)
    # md may wait for the first write with a resync that is due (array_state read-auto).
    setup.machine.run(["mdadm", "--readwrite", array.path], check=False)
    return forced


def _assemble(setup: Setup, array: Array, members: Sequence[Drive], *more: str) -> None:
    argv = ["mdadm", "--assemble", array.path, f"--uuid={array.uuid}", "--run", *more]
    argv += [drive.path for drive in members]
    fencing.run(setup.machine, argv, members, alone=False, deadline_s=120)
    setup.machine.run(["udevadm", "settle", "--timeout=30"], check=False, deadline_s=60, repeatable=True)
