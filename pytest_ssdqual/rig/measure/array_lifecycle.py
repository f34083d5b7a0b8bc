"""Life of an array: purge the drives, build it, fill it; afterwards stop it and erase its superblocks."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from typing import NoReturn

from pytest_ssdqual.qual.integrity.erasure import NONE, ErasedDrive, left
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.protocol_rules import ArraySettings, Fill, PartialFill
from pytest_ssdqual.rig.drives.failed import DriveFailed
from pytest_ssdqual.rig.drives.survey import Drive, survey
from pytest_ssdqual.rig.fio import jobs as jobfile
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.guard import label, refusals
from pytest_ssdqual.rig.guard.refusals import DrivesGone
from pytest_ssdqual.rig.machine.machine import CommandFailed, InvalidMeasurement, RigError
from pytest_ssdqual.rig.machine.side_by_side import each
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.md.mdadm import ASSUMED, Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import drive_failure
from pytest_ssdqual.rig.purge import purge, zero
from pytest_ssdqual.rig.purge.scan import sample
from pytest_ssdqual.rig.resume.checkpoint import Checkpoint

#: Assumed minimum rate of a fill's sequential writes, in bytes per second and drive.
SLOWEST_FILL_BYTES_PER_S = 5_000_000
#: A fill reports as often as its live figures need, and a large drive less often: 24 drives have 400 kB in each report,
#: all reports are kept on the machine until the fill ends, and 4 GiB of them are refused (``rig.fio.process``).
SHORTEST_REPORT_S, MOST_REPORTS, FAST_FILL_BYTES_PER_S = 10, 1000, 500_000_000
#: Names that are tried for one array; bays of one machine all choose the lowest free one.
MOST_NAMES = 8


def build(setup: Setup, geometry: Geometry, fill: Fill, pattern: str = "") -> Array:
    """Purge the first drives of the set, build ``geometry`` of them and fill it, with fio's ``pattern`` if it is given.

    Destroys their content; ``held`` is asked first. ``RigError`` or a child of it if anything fails; then no array of
    this run is left.
    """
    if len(setup.held.drives) < geometry.width:
        raise RigError(f"{geometry} needs {geometry.width} drives, this run has {len(setup.held.drives)}")
    members = setup.failures.usable(geometry, setup.held.drives)
    setup.progress(f"{geometry}: purge", 5)
    setup.note("purging", geometry, members=[drive.identity for drive in members])
    purged = purge_all(setup, members)
    full = [drive.name for drive in purged.values() if drive.method == NONE or drive.left]
    if full and isinstance(fill, PartialFill):
        raise InvalidMeasurement(
            f"drives could not be purged, so that the rest of their range is no spare: {', '.join(full)}"
        )
    array = _built(setup, geometry, members)
    with undone(partial(stop, setup, array)):
        _note_created(setup, array, fill, purge=purged)
        fill_up(setup, array, fill, pattern)
    return array


def purge_all(setup: Setup, members: Sequence[Drive]) -> dict[str, ErasedDrive]:
    """Purge the drives; return the methods by identity, and what samples of their data found afterwards.

    ``held`` is asked immediately before, and again afterwards.

    A drive that is lost meanwhile is attributed as under a load, with the kernel's messages: ``DriveFailed``, or an
    error that names it. Any other error accuses no drive: a purge sends commands that a drive may refuse.
    """
    bare = _side_by_side(Geometry(RaidLevel.DRIVE, len(members)), members)
    latest = replace(setup.readings)
    drive_failure.reading_before(setup, bare, is_measured=False)
    setup.held.require(members)  # a reading takes seconds, on a slow machine a minute
    try:
        before = each(setup.held.leased, members, sample)
        purged = purge.purge(setup.held.leased, members, best=setup.protocol.purge == "format")
        setup.held.require_purged(members)
        after = each(setup.held.leased, members, sample)
    except RigError as error:
        if not error.ends_run and (lost := _lost(setup, members)):
            _raise_lost(setup, bare, lost, error)
        raise
    finally:
        # Messages about commands of the purge say nothing about the drives under the next load.
        for name in ("array", "before", "after"):
            setattr(setup.readings, name, getattr(latest, name))
    erased = {}
    for drive, *samples in zip(members, before, after, strict=True):
        done = purged[drive.identity]
        erased[drive.identity] = ErasedDrive(drive.name, done.method, done.passed_over, *left(*samples))
    setup.logbook.note("erased", drives=list(erased.values()))
    return erased


def _lost(setup: Setup, members: Sequence[Drive]) -> list[Drive]:
    """Return the members that the machine has no more, also under no other name; none if it does not say that."""
    try:
        topology = survey(setup.machine)
    except RigError as error:
        if error.ends_run:
            raise
        return []
    # A drive may come back under another name after its controller's reset.
    present = {name for node in topology.nodes.values() if node.size_bytes > 0 for name in node.names}
    return [drive for drive in members if refusals.is_gone(topology, drive) and not drive.all_names & present]


def _raise_lost(setup: Setup, bare: Array, lost: Sequence[Drive], error: RigError) -> NoReturn:
    names = ", ".join(drive.describe() for drive in lost)
    gone = DrivesGone(f"{names}: lost during the purge ({error})", lost)
    known = dict(setup.failures.failed)
    try:
        with drive_failure.attributed(setup, bare, kind="purge"):
            raise gone from error
    except DriveFailed as failed:
        serials = {drive.name for drive in lost}
        drives = [
            replace(drive, findings=(*drive.findings, "during the purge"))
            for drive in failed.drives
            if drive.serial in serials
        ]
        setup.failures.failed = {**known, **{drive.serial: drive for drive in drives}}
        raise DriveFailed(failed.about, drives) if drives else gone from error


def assemble(setup: Setup, bare: Array, geometry: Geometry) -> Array:
    """Build ``geometry`` of the first of the drives side by side ``bare``, which keep their data.

    Parity and copies are not made right: that would write every member for hours, and speed does not depend on them
    (md(4), --assume-clean; raid5.c writes by the same algorithm). ``held`` is asked first. ``RigError`` or a child of
    it if anything fails; then no array of this run is left.
    """
    members = setup.failures.usable(geometry, setup.held.drives)
    setup.held.require(members)
    if geometry.is_side_by_side:
        return _side_by_side(geometry, members)
    of_drives = str(bare.geometry)
    array = create(setup, geometry, members, setup.protocol.array.of(geometry), zeroed=True, of_drives=of_drives)
    with undone(partial(stop, setup, array)):
        array = replace(array, consistency=ASSUMED if geometry.level in mdadm.REDUNDANT else array.consistency)
        _note_created(setup, array, setup.protocol.fill, purge={}, of_drives=of_drives)
    return array


def readopt(setup: Setup, left: Checkpoint, members: Sequence[Drive]) -> Array:
    """Assemble an array again over the data of its members; data and parity stay untouched.

    mdadm writes new superblocks in front of the data, which keep their offset, and assumes that the members agree.
    ``RigError`` or a child of it if that fails or the array differs; then no array of this run is left.
    """
    geometry = left.geometry
    if geometry.level is RaidLevel.DRIVE:
        array = _side_by_side(geometry, members)
    else:
        settings, offset = setup.protocol.array.of(geometry), left.data_offset_bytes
        array = create(setup, geometry, members, settings, zeroed=True, data_offset_bytes=offset)
        array = replace(array, consistency=left.consistency)
    with undone(partial(stop, setup, array)):
        if array.size_bytes != left.size_bytes:
            raise RigError(f"{array.geometry} now has {array.size_bytes} bytes instead of {left.size_bytes}")
        _note_created(setup, array, Fill(left.passes, left.fill_bs), purge={}, kept_of=left.uuid)
    return array


@contextmanager
def undone(undo: Callable[[], None]) -> Iterator[None]:
    """Call ``undo`` if the block fails; what ``undo`` raises has less information, so it becomes a note."""
    try:
        yield
    except BaseException as error:
        try:
            undo()
        except Exception as second:
            error.add_note(f"and what it left could not be undone: {second}")
        raise


def stop(setup: Setup, array: Array) -> None:
    """Stop the array and erase this run's superblocks; bare drives need neither."""
    if array.geometry.level is not RaidLevel.DRIVE:
        take_down(setup, array.path, array.members, array.uuid, array.geometry.missing)


def take_down(setup: Setup, path: str, members: Sequence[Drive], uuid: str, missing: int = 0) -> None:
    """``stop`` for an array of which only path, members and UUID are known, and how many were failed on purpose."""
    objections = mdadm.final_objections(setup.machine, path, missing)
    paths = [drive.path for drive in members]
    try:
        not_erased = mdadm.stop(setup.machine, path, paths, uuid)
    except RigError as error:
        if not error.ends_run:
            setup.logbook.note(
                "array_left", uuid=uuid, not_erased=paths, objections=objections, device=path, why=str(error)
            )
        raise
    # A member that keeps the superblock keeps the array in the journal, so that its remains need no consent.
    setup.logbook.note(
        "array_left" if not_erased else "array_stopped", uuid=uuid, not_erased=not_erased, objections=objections
    )


def fill_up(setup: Setup, array: Array, fill: Fill, pattern: str = "") -> None:
    """Write the user area, except the label's MiB at its beginning, ``fill.passes`` times, sequentially."""
    if not fill.passes:
        return
    raw = fixed_time.prepared(setup, array, partial(_filled, setup, array, fill, pattern))
    setup.note("filled", array.geometry, **asdict(fill), pattern=pattern, raw=raw)


def _filled(setup: Setup, array: Array, fill: Fill, pattern: str) -> str:
    """Run one process that fills; return the name of its stored output."""
    fixed_time.require(setup, array, writes=True)
    targets = [filled_part(target, fill) for target in array.targets]
    every_s = report_s(fill.passes * max(target.size_bytes for target in targets))
    jobs = array.drives_per_target
    job = jobfile.fill(targets, fill.passes, fill.bs, jobs=jobs, status_interval_s=every_s, pattern=pattern)
    # All drives are written at the same time, none of them more often than once in each pass.
    seconds = fill.passes * max(drive.size_bytes for drive in array.members) / SLOWEST_FILL_BYTES_PER_S
    setup.progress(f"{array.geometry}: fill", 0)
    with fixed_time.passing(setup, array, "fill", fill.bs, job, seconds) as done:
        done.finished.totals(job.expectation)
    return done.raw


def filled_part(target: JobTarget, fill: Fill) -> JobTarget:
    """Return the part of a target that is filled: no byte behind what a workload with this region uses."""
    if not isinstance(fill, PartialFill):
        return target
    size_bytes = target.size_bytes * fill.region_percent // 100 // jobfile.PAGE_BYTES * jobfile.PAGE_BYTES
    return replace(target, size_bytes=size_bytes, is_part=True)


def report_s(size_bytes: int) -> int:
    """Return the seconds between fio's reports while so many bytes of a drive are transferred."""
    return max(SHORTEST_REPORT_S, int(size_bytes / FAST_FILL_BYTES_PER_S / MOST_REPORTS))


def _side_by_side(geometry: Geometry, members: Sequence[Drive]) -> Array:
    size_bytes = sum(drive.size_bytes for drive in members)
    return Array(geometry, members[0].path, tuple(members), "", size_bytes, "none needed")


def _built(setup: Setup, geometry: Geometry, members: Sequence[Drive]) -> Array:
    """Build the array of purged drives, which are labelled first."""
    zeroed = geometry.level in mdadm.REDUNDANT and zero.zero(setup.held.leased, members)
    label.write_drives(setup.held.leased, members)
    if geometry.level is RaidLevel.DRIVE:
        return _side_by_side(geometry, members)
    return create(setup, geometry, members, setup.protocol.array.of(geometry), zeroed=zeroed)


def create(
    setup: Setup,
    geometry: Geometry,
    members: Sequence[Drive],
    settings: ArraySettings,
    *,
    zeroed: bool,
    later: Sequence[Drive] = (),
    data_offset_bytes: int | None = None,
    used_bytes: int | None = None,
    of_drives: str = "",
) -> Array:
    """``mdadm.create`` under an unused name; recorded first, so that the next start knows it as this program's.

    If another bay of the same machine takes that name at the same moment, the next one is tried. ``later`` are drives
    that may become members, ``of_drives`` the conditioned ones that it is assembled of. ``RigError`` or a child of it
    if it cannot be built; then nothing of it is left.
    """
    uuid = ":".join(secrets.token_hex(4) for _ in range(4))
    placement = {"data_offset_bytes": data_offset_bytes, "used_bytes": used_bytes}
    setup.held.expect(uuid)
    setup.progress(f"{geometry}: create", 5)
    for attempt in range(MOST_NAMES):
        path = mdadm.free_path(setup.machine)
        facts = _facts(setup, geometry, [*members, *later], path, uuid)
        setup.logbook.note("array_planned", **facts, **({"of_drives": of_drives} if of_drives else {}))
        with undone(partial(take_down, setup, path, members, uuid)):
            try:
                return mdadm.create(
                    setup.machine, geometry, members, settings, path=path, uuid=uuid, zeroed=zeroed, **placement
                )
            except CommandFailed:
                is_taken = mdadm.is_anothers(setup.machine, path, uuid, [drive.path for drive in members])
                if not is_taken or attempt + 1 == MOST_NAMES:
                    raise
    raise AssertionError(MOST_NAMES)


def _note_created(setup: Setup, array: Array, fill: Fill, **facts: object) -> None:
    setup.logbook.note(
        "array_created",
        **_facts(setup, array.geometry, array.members, array.path, array.uuid),
        **facts,
        consistency=array.consistency,
        size_bytes=array.size_bytes,
        data_offset_bytes=mdadm.data_offset(setup.machine, array),
        fill=asdict(fill),
        settings=asdict(setup.protocol.array.of(array.geometry)),
    )


def _facts(setup: Setup, geometry: Geometry, members: Sequence[Drive], path: str, uuid: str) -> dict[str, object]:
    return {
        "uuid": uuid,
        "device": path,
        "geometry": str(geometry),
        "machine_id": setup.machine_id,
        "members": [drive.identity for drive in members],
    }
