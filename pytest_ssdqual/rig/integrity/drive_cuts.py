"""Power cuts of bare drives side by side, at random moments under stamped writes; everything is read back after each.

Regions from the first to the last byte of each drive hold stamps. In each cut one of them is overwritten pass after
pass, and all others were flushed long ago. A drive with a finding is not cut again, and the others are.
"""

from __future__ import annotations

import gzip
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from pytest_ssdqual.qual.integrity import power_loss, reference_model
from pytest_ssdqual.qual.integrity.power_loss import DriveLosses, WriteMode
from pytest_ssdqual.qual.integrity.reference_model import MOST_BYTES, PASSES, ReferenceModel, Region, Torn
from pytest_ssdqual.qual.integrity.stamp import HISTORIES
from pytest_ssdqual.qual.integrity.steps import UNIT_BYTES
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.validity.drive_failure import FailedDrive
from pytest_ssdqual.rig.drives import write_cache
from pytest_ssdqual.rig.drives.cache_state import CacheState
from pytest_ssdqual.rig.drives.fencing import Checked
from pytest_ssdqual.rig.drives.survey import Drive, survey
from pytest_ssdqual.rig.fio import process, stamped_io
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.fio.stamped_io import Stretch
from pytest_ssdqual.rig.guard import label, refusals
from pytest_ssdqual.rig.integrity.drive_power import PowerCommands, await_gone, await_return
from pytest_ssdqual.rig.integrity.power_cut import Overwriting
from pytest_ssdqual.rig.machine.machine import Machine, RigError
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.measure import array_lifecycle
from pytest_ssdqual.rig.measure.session import Setup

#: fio's options by mode; the modes of the cuts in turn.
SYNC = {WriteMode.FLUSHED: stamped_io.FLUSHED, WriteMode.FUA: stamped_io.FUA, WriteMode.UNFLUSHED: ()}
#: Sizes of transfers, of the cuts in turn; the longest time of the writes until a cut, in milliseconds.
SIZES, MOST_MS = (UNIT_BYTES, 4 * UNIT_BYTES), 3000
#: Seconds without power, in which capacitors discharge, and those that the first write of all regions may take.
OFF_S, WRITE_S = 5.0, 600.0


@dataclass(slots=True)
class DriveUnderCuts:
    """One drive, what must be read from it, and what it has lost so far."""

    drive: Drive
    model: ReferenceModel
    losses: DriveLosses
    #: Power-loss protection is promised, so that it has to keep writes that were not flushed.
    is_protected: bool

    def keeps_all(self, machine: Machine) -> bool:
        """Return whether it has to keep all writes now: a power cut may switch a volatile cache on again."""
        return self.is_protected or write_cache.read(machine, self.drive) in (CacheState.ABSENT, CacheState.OFF)


def run(
    setup: Setup, geometry: Geometry, commands: PowerCommands, is_protected: Callable[[str], bool]
) -> tuple[DriveLosses, ...]:
    """Purge the drives of ``geometry``, write to them, and cut their power as often as the protocol has it.

    ``is_protected`` says by serial number whether the spec promises power-loss protection. ``RigError`` or a child of
    it if the rig is at fault: a command that fails, a drive that keeps its power, or one in use when it is back.
    """
    drives = setup.failures.usable(geometry, setup.held.drives)
    setup.note("purging", geometry, members=[drive.identity for drive in drives])
    setup.held.require(drives)
    array_lifecycle.purge_all(setup, drives)
    label.write_drives(setup.held.leased, drives)
    several = [_begin(setup, drive, is_protected) for drive in drives]
    cuts = setup.protocol.integrity.power_cuts
    for number in range(cuts):
        if under := [one for one in several if not one.losses.findings]:
            setup.progress(f"power cut {number + 1} of {cuts}", 0)
            _cut(setup, commands, number, under)
    return tuple(one.losses for one in several)


def _begin(setup: Setup, drive: Drive, is_protected: Callable[[str], bool]) -> DriveUnderCuts:
    """Write all regions of a drive, flushed."""
    rule = setup.protocol.integrity
    block_bytes = drive.physical_block_bytes if rule.atomic == "physical" else drive.logical_block_bytes
    model = ReferenceModel(secrets.randbelow(HISTORIES), min(block_bytes or 512, UNIT_BYTES))
    model.add(reference_model.spread(drive.size_bytes, MOST_BYTES, rule.regions, label.HEAD_BYTES))
    generation = model.begin(UNIT_BYTES)
    stretches = [Stretch(region.offset_bytes, region.size_bytes, generation, UNIT_BYTES) for region in model.regions]
    job = stamped_io.write(_target(drive), model.history, stretches, flush=True)
    setup.held.require_lease()
    process.run(setup.machine, job, WRITE_S).accepted(job.expectation)
    for region in model.regions:
        model.wrote(region, generation, flushed=True)
    return DriveUnderCuts(drive, model, DriveLosses(drive.name), is_protected(drive.name))


def _target(drive: Drive) -> JobTarget:
    return JobTarget(drive.path, drive.size_bytes, checked=Checked.of(drive))


def _cut(setup: Setup, commands: PowerCommands, number: int, under: Sequence[DriveUnderCuts]) -> None:
    """Cut the power of drives under writes once, identify them again, and read back what they hold."""
    mode, size = tuple(WriteMode)[number % len(WriteMode)], SIZES[number % len(SIZES)]
    slots = {one.drive: setup.held.drives.index(one.drive) + 1 for one in under}
    kept = {one.drive.name for one in under if mode is not WriteMode.UNFLUSHED or one.keeps_all(setup.machine)}
    with ExitStack() as running:
        writes: list[tuple[DriveUnderCuts, Region, Overwriting]] = []
        for one in under:
            region = one.model.regions[number % len(one.model.regions)]
            over = Stretch(region.offset_bytes, region.size_bytes, one.model.begin(size, PASSES), size)
            setup.held.require_lease()
            target, history = _target(one.drive), one.model.history
            write = Overwriting.start(setup.machine, target, history, over, SYNC[mode])
            running.callback(write.running.cut)
            writes.append((one, region, write))
        time.sleep(secrets.randbelow(MOST_MS) / 1000)
        setup.failures.power_cuts += 1
        setup.logbook.note("drive_power_cut", number=number + 1, mode=mode, drives=[drive.identity for drive in slots])
        try:
            with commands.cut(setup.machine, slots):
                await_gone(setup.machine, [*slots], lambda: not any(write.running.alive() for *_, write in writes))
                for *_, write in writes:
                    write.acknowledged()
                time.sleep(OFF_S)
        except RigError:
            _identified_again(setup, under)  # what this run removed accuses no drive
            raise
    absent = _identified_again(setup, under)
    if all(one.drive in absent for one in under):
        raise RigError(f"no drive came back ({next(iter(absent.values()))}): --ssd-power-on may be the wrong command")
    for drive, why in absent.items():
        setup.failures.failed[drive.name] = FailedDrive(drive.name, (f"after a power cut {why}",), ())
    for one, region, write in writes:
        one.losses.first = absent.get(one.drive, "")
        is_kept = one.drive.name in kept
        one.losses.judged += is_kept
        if not one.losses.first:
            one.model.cut(region, Torn(write.initial + 1, write.last, size, is_kept))
            _read_back(setup, one, f"cut {number + 1} ({mode})")
            one.losses.unflushed += 0 if is_kept else one.model.older(region, write.last)


def _identified_again(setup: Setup, under: Sequence[DriveUnderCuts]) -> dict[Drive, str]:
    """Wait for all drives of the run that have not failed, and hold them by their present names.

    Return why the others are not back.
    """
    failures = setup.failures
    awaited = [drive for drive in setup.held.drives if drive.name not in failures.failed]
    back, absent = await_return(setup.machine, awaited)
    mdadm.settle_udev(setup.machine, 120)
    setup.held.identify_again(back)
    paths = {drive.path: now.path for drive, now in back.items()}
    failures.before = {paths[path]: known for path, known in failures.before.items() if path in paths}
    failures.latest.clear()
    # The kernel's messages about the cut say nothing about drives under a later load.
    setup.readings.array = None
    for one in under:
        one.drive = back.get(one.drive, one.drive)
    if setup.caches:
        setup.caches.set()
    return absent


def _read_back(setup: Setup, one: DriveUnderCuts, when: str) -> None:
    """Read all regions of a drive, and keep those that are wrong."""
    losses = one.losses
    for region in one.model.regions:
        packed = _content(setup.machine, one.drive, region)
        if mismatches := list(one.model.judge(region, gzip.decompress(packed))):
            first = mismatches[0]
            losses.wrong += power_loss.losses(mismatches, one.model.atom_bytes)
            losses.first = losses.first or f"the first after {when} at byte {first.offset_bytes:,}: {first.kind}"
            losses.raw.append(setup.logbook.keep(f"power-cut-{losses.serial}-{region.number}.gz", packed))


def _content(machine: Machine, drive: Drive, region: Region) -> bytes:
    """Return the packed content of a region, after a short read that of a second one.

    ``RigError`` if the drive is gone: what a link or an adapter lost is no damage of its data.
    """
    packed = label.packed(machine, drive.path, region.offset_bytes, region.size_bytes)
    if len(gzip.decompress(packed)) == region.size_bytes:
        return packed
    time.sleep(OFF_S)
    if refusals.is_gone(survey(machine), drive):
        raise RigError(f"{drive.describe()} was lost again while it was read after a power cut")
    return label.packed(machine, drive.path, region.offset_bytes, region.size_bytes)
