"""Discards ranges, or purges whole drives, after stamps were written, and reads what is left of them.

Destroys data; the array, or the drives side by side, was built for this alone, and ``held`` is asked before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pytest_ssdqual.qual.integrity.erasure import DiscardedTarget, DiscardPromise, ErasedDrive, ScannedRange
from pytest_ssdqual.qual.integrity.stamp import Stamp
from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.fio import process, stamped_io
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.fio.stamped_io import Stretch
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine, RigError
from pytest_ssdqual.rig.machine.side_by_side import each
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle, fixed_time
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.purge.scan import scan

#: Ranges of a target that are discarded. Each is aligned to its size, which is at most 16 MiB: a drive may ignore what
#: is smaller than its granularity.
RANGES, RANGE_BYTES, BLOCK_BYTES = 16, 16 << 20, 1 << 20
#: Part of a drive that one command reads.
PART_BYTES = 64 << 30
#: Deadlines of a command, and of a fio process that writes or compares all ranges.
COMMAND_S, FIO_S = 300.0, 600.0
PROMISE = scripts.text("discard_promise.sh")


def discard(setup: Setup, array: Array, stamp: Stamp) -> tuple[DiscardedTarget, ...]:
    """Discard ranges of an array, or of each drive side by side, and return what was read from them.

    An array promises what all its members do.
    """
    names = [drive.name for drive in array.members]
    promised = [promise(setup.machine, drive) for drive in array.members]
    if not array.geometry.is_side_by_side:
        names = [str(array.geometry)]
        promised = [promised[0] if len(set(promised)) == 1 else DiscardPromise.NOTHING]
    targets = tuple(map(partial(_discarded, setup, array, stamp), array.targets, names, promised))
    setup.logbook.note("discarded", targets=targets)
    return targets


def purge(setup: Setup, array: Array, stamp: Stamp) -> tuple[ErasedDrive, ...]:
    """Purge drives that are full of this stamp, and return what a read of all their blocks found.

    ``RigError`` if blocks cannot be read.
    """
    setup.note("purging", array.geometry, members=[drive.identity for drive in array.members])
    sampled = array_lifecycle.purge_all(setup, array.members)
    setup.progress(f"{array.geometry}: read after the purge", 0)

    def of_drive(machine: Machine, drive: Drive) -> ErasedDrive:
        erased = sampled[drive.identity]
        # In parts, so that a lost connection repeats minutes and not hours.
        parts = [(at, min(PART_BYTES, drive.size_bytes - at)) for at in range(0, drive.size_bytes, PART_BYTES)]
        scanned = [whole(machine, drive.path, stamp, [part])[0] for part in parts]
        left = tuple(part.old_at for part in scanned if part.old_at is not None)[:1] or erased.left
        read_bytes = sum(part.size_bytes for part in scanned)
        return replace(erased, left=left, read_bytes=read_bytes, promise=promise(machine, drive))

    drives = each(setup.held.leased, array.members, of_drive)
    setup.logbook.note("erased", drives=drives)
    return tuple(drives)


def promise(machine: Machine, drive: Drive) -> DiscardPromise:
    """Return what a drive promises about discarded blocks."""
    done = scripts.answer(machine, PROMISE, "promise", drive.sysfs_name, drive.path, deadline_s=COMMAND_S)
    return DiscardPromise(done.text.strip() or DiscardPromise.NOTHING)


def stretches(target: JobTarget, generation: int) -> list[Stretch]:
    """Return the parts of a target that are written; the middle third of each is discarded."""
    spacing = target.size_bytes // RANGES
    # Of an array it begins at whole stripes: md discards only these.
    unit = max(BLOCK_BYTES, target.begin_bytes)
    size = max(unit, min(RANGE_BYTES, spacing // 4) // unit * unit)
    begins = (target.begin_bytes + number * spacing for number in range(RANGES))
    return [Stretch(-(-begin // size) * size, 3 * size, generation, BLOCK_BYTES) for begin in begins]


def _discarded(
    setup: Setup, array: Array, stamp: Stamp, target: JobTarget, name: str, promised: DiscardPromise
) -> DiscardedTarget:
    written = stretches(target, stamp.generation)
    size = written[0].size_bytes // 3
    setup.progress(f"{array.geometry}: discard ranges of {name}", 0)
    fixed_time.require(setup, array, writes=True)
    job = stamped_io.write(target, stamp.history, written, flush=True)
    process.run(setup.machine, job, FIO_S).accepted(job.expectation)
    ranges = [(part.offset_bytes + size, size) for part in written]
    for offset_bytes, _ in ranges:
        argv = ["blkdiscard", f"--offset={offset_bytes}", f"--length={size}", target.path]
        bound = fencing.bound(argv, [target.checked] if target.checked else [], alone=False)
        setup.held.leased.run(bound, deadline_s=COMMAND_S)
    first, again = (whole(setup.machine, target.path, stamp, ranges) for _ in range(2))
    sides = [
        Stretch(part.offset_bytes + skip, size, stamp.generation, BLOCK_BYTES)
        for part in written
        for skip in (0, 2 * size)
    ]
    job = stamped_io.read(target, stamp.history, sides)
    is_kept = not stamped_io.differs(process.run(setup.machine, job, FIO_S), job.expectation)
    return DiscardedTarget(name, promised, first, again, is_kept)


def whole(machine: Machine, path: str, stamp: Stamp, ranges: Sequence[tuple[int, int]]) -> tuple[ScannedRange, ...]:
    """Scan ranges; ``RigError`` if one cannot be read to its end."""
    scanned = scan(machine, path, stamp, ranges)
    if [each.size_bytes for each in scanned] != [size for _, size in ranges]:
        raise RigError(f"{path} could not be read to the end after its data were erased; see the kernel's log")
    return scanned
