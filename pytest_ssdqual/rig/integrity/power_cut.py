"""Power cut of the machine under test: recorded before it; afterwards machine, drives and array are taken back.

A region can be overwritten repeatedly meanwhile, so that the power fails during a write.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual.integrity.reference_model import PASSES
from pytest_ssdqual.qual.numbers import decimal
from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.drives.survey import Drive, survey
from pytest_ssdqual.rig.drives.topology import plain_uuid
from pytest_ssdqual.rig.fio import jobs, stamped_io
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.fio.stamped_io import Stretch
from pytest_ssdqual.rig.machine import run_files
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.machine import (
    CommandFailed,
    DriveRefused,
    InvalidMeasurement,
    Machine,
    RigError,
    Tethered,
)
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.session import Setup

#: Cuts and restores the power; raises ``RigError`` if it cannot.
PowerSwitch = Callable[[], None]
#: Seconds until a server has booted; it may test its memory and look for disks for long.
BOOT_S = 900.0
#: Seconds that the first passes may take, and between two polls of them.
PASSES_S, PAUSE_S = 120.0, 0.05
#: Share of a batch's time after which the power is cut.
SHARE = 0.6


def cut(setup: Setup, switch: PowerSwitch, array: Array) -> None:
    """Cut the power, wait for the machine, lease the drives again, and stop the array if the boot assembled it.

    Write caches that lost their setting are switched again.

    ``MachineLost`` if the machine does not come back, ``DriveRefused`` if its drives are no longer the same.
    """
    machine = setup.machine
    if not isinstance(machine, Channel):
        raise RigError(f"{machine.name} cannot be reached again after a power cut")
    setup.logbook.note("power_cut", uuid=array.uuid)
    setup.failures.power_cuts += 1
    switch()
    machine.restarted(BOOT_S)
    mdadm.settle_udev(machine, 120)
    # Under the lease: until it is taken, another run may get the drives, and give the array's name to its own.
    setup.held.hold_again(lambda: stop_array(setup, array))
    if setup.caches:
        setup.caches.set()
    setup.logbook.note("power_returned", uuid=array.uuid)


def stop_array(setup: Setup, array: Array) -> None:
    """Stop the array under whatever name it has: many systems assemble every array that they find at boot."""
    topology = survey(setup.machine, [drive.kname for drive in setup.held.drives])
    for existing in topology.arrays:
        if existing.uuid == plain_uuid(array.uuid):
            mdadm.halt(setup.machine, f"/dev/{existing.kname}")


def assemble(setup: Setup, array: Array, members: Sequence[Drive], *, dirty: bool) -> bool:
    """Assemble the array from ``members``; return True if md needed ``--force``.

    md refuses to start a degraded RAID 5 or 6 that was not shut down cleanly, as parity may be wrong (md(4), "unclean
    shutdown"); it is forced only if such a state is possible (``dirty``). ``DriveRefused`` if a member is in use,
    ``RigError`` if the array does not start.
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
        stop_array(setup, array)
        setup.held.require(members)
        _assemble(setup, array, members, "--force")
        forced = True
    mdadm.tune(setup.machine, array.geometry, array.kname, setup.protocol.array.of(array.geometry))
    mdadm.require_uuid(setup.machine, array.path, array.uuid)
    # md may postpone a due resync until the first write (array_state read-auto).
    setup.machine.run(["mdadm", "--readwrite", array.path], check=False)
    return forced


def _assemble(setup: Setup, array: Array, members: Sequence[Drive], *more: str) -> None:
    argv = ["mdadm", "--assemble", array.path, f"--uuid={array.uuid}", "--run", *more]
    argv += [drive.path for drive in members]
    fencing.run(setup.machine, argv, members, alone=False, deadline_s=120)
    mdadm.settle_udev(setup.machine)


def begin(machine: Machine, target: JobTarget, history: int, overwritten: Stretch) -> int:
    """Start overwriting, and return in the middle of a batch of passes the last generation that is known to be flushed.

    The writes go on until the machine ends. ``InvalidMeasurement`` if they do not start.
    """
    started = time.monotonic()
    overwriting = Overwriting.start(machine, target, history, overwritten)
    time.sleep(SHARE * (time.monotonic() - started))
    return overwriting.acknowledged()


@dataclass(slots=True)
class Overwriting:
    """A stretch that is overwritten pass after pass, until the machine or the drive ends it."""

    machine: Machine
    running: Tethered
    #: File with the last generation that is complete.
    note: str
    #: The generation before the first, and the last one that is known to be complete.
    initial: int
    last: int

    @classmethod
    def start(
        cls,
        machine: Machine,
        target: JobTarget,
        history: int,
        overwritten: Stretch,
        sync: Sequence[str] = stamped_io.FLUSHED,
    ) -> Overwriting:
        """Start, and wait for the first passes; for ``sync`` see ``stamped_io.overwrite``.

        ``InvalidMeasurement`` if the writes do not start.
        """
        note = run_files.path(machine, "passes")
        argv = stamped_io.overwrite(target, history, overwritten, PASSES, note, sync)
        running = machine.tether(fencing.bound(argv, jobs.checks([target]), alone=True), first_signal="TERM")
        initial, started = overwritten.generation - 1, time.monotonic()
        overwriting = cls(machine, running, note, initial, initial)
        while overwriting.acknowledged() == initial:
            if not running.alive() or time.monotonic() - started > PASSES_S:
                done = running.cut()
                raise InvalidMeasurement(f"{target.path} could not be overwritten: {done.errors.strip()}")
            time.sleep(PAUSE_S)
        return overwriting

    def acknowledged(self) -> int:
        """Return the last generation that is known to be complete; ``initial`` if none is."""
        generation = decimal(self.machine.run(["cat", self.note], check=False).text.strip())
        self.last = self.last if generation is None else generation
        return self.last
