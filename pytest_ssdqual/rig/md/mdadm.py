"""md arrays by mdadm: build its argv; create an array and wait for the resync, inspect it, stop it.

Options answer every question that mdadm would ask on a terminal (``--run``, ``--bitmap=``): a hidden prompt hangs an
unattended run for ever (TKperf#18).
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.integrity.reference_model import stripe_bytes
from pytest_ssdqual.qual.numbers import decimal
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.protocol_rules import ArraySettings
from pytest_ssdqual.qual.units import parse_size
from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.drives.fencing import Checked
from pytest_ssdqual.rig.drives.topology import Drive, plain_uuid
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.guard import label
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import CheckRan, InvalidMeasurement, Machine, RigError, ask, count

#: Levels whose members must agree with each other from the start.
REDUNDANT = (RaidLevel.RAID1, RaidLevel.RAID5, RaidLevel.RAID6, RaidLevel.RAID10)
#: Assumed minimum rate of a resync: a slower drive is not an SSD in working order.
SLOWEST_RESYNC_BYTES_PER_S = 10_000_000
#: md's word for a check of the redundancy, which only reads; and seconds within which one ends.
CHECK, CHECK_END_S = "check", 60.0
#: $1 the array's kernel name; prints the data offset of each member, in sectors.
OFFSETS = 'cat /sys/block/"$1"/md/dev-*/offset'
ERASE, USED_NUMBERS, REMOVE_EMPTY = map(
    scripts.text, ("erase_superblock.sh", "md_numbers.sh", "remove_empty_arrays.sh")
)
#: Numbers of this program's arrays, in the order in which they are tried. mdadm 4.3 refuses those above 126
#: (mdadm#172); md gives 127 and the numbers below it to arrays that are assembled by name, and low ones are common in
#: configuration files. A bay has two arrays at most at a time: its own, and one of memory devices.
NUMBERS = (*range(100, 127), *range(99, 19, -1))
#: ``Array.consistency`` of an array that was assembled of conditioned drives: its parity or copies are not right.
ASSUMED = "assumed"
#: A path as ``free_path`` gives it.
OWN_PATH = re.compile(r"/dev/md\d{1,3}", re.ASCII)


@frozen
class Array:
    """A built array, or bare drives side by side; ``uuid`` is md's, which this program chooses before creation."""

    geometry: Geometry
    #: Path of the array, or of the first drive.
    path: str
    members: tuple[Drive, ...]
    uuid: str
    #: User capacity; of drives side by side their sum.
    size_bytes: int
    #: How its members came to agree: ``zeroed``, ``resync``, ``none needed``, or ``ASSUMED`` if they do not.
    consistency: str
    #: Bytes at the end of the array that no workload touches: a pattern there must survive a rebuild.
    reserved_bytes: int = 0
    #: Bytes at the beginning of every target that no workload touches: they hold the label (``rig.guard.label``).
    begin_bytes: int = label.HEAD_BYTES

    @property
    def targets(self) -> tuple[JobTarget, ...]:
        """Targets of fio, with the part of each that it may use."""
        if self.geometry.is_side_by_side:
            return tuple(
                JobTarget(
                    member.path, member.size_bytes - self.begin_bytes, self.begin_bytes, checked=Checked.of(member)
                )
                for member in self.members
            )
        size_bytes, is_part = self.size_bytes - self.begin_bytes - self.reserved_bytes, self.reserved_bytes > 0
        return (JobTarget(self.path, size_bytes, self.begin_bytes, is_part, self.checked),)

    @property
    def whole(self) -> JobTarget:
        """The whole device, also what no workload may use of it."""
        return JobTarget(self.path, self.size_bytes, checked=self.checked)

    @property
    def drives_per_target(self) -> int:
        """Number of drives that are loaded through one target."""
        return 1 if self.geometry.is_side_by_side else self.geometry.width

    def without(self, serials: Collection[str]) -> Array:
        """Return the drives side by side but those with these serial numbers; the geometry keeps its name."""
        members = tuple(drive for drive in self.members if drive.name not in serials)
        if not members or len(members) == len(self.members):
            return self
        size_bytes = sum(drive.size_bytes for drive in members)
        return replace(self, path=members[0].path, members=members, size_bytes=size_bytes)

    @property
    def checked(self) -> Checked:
        """Properties that the device at ``path`` must have to be written to."""
        return Checked(self.path, self.size_bytes, uuid=self.uuid)

    @property
    def kname(self) -> str:
        return self.path.removeprefix("/dev/")


@frozen
class ArrayState:
    """State of an array in sysfs; all fields are empty for a bare drive."""

    array_state: str = ""
    sync_action: str = ""
    degraded: int = 0
    mismatches: int = 0

    def objections(self, missing: int = 0) -> tuple[str, ...]:
        """Return the reasons why nothing may be measured now; ``missing`` members are expected to be missing."""
        reasons = []
        if self.degraded != missing:
            expected = f" instead of {missing}" if missing else ""
            reasons.append(f"degraded by {self.degraded} member{'' if self.degraded == 1 else 's'}{expected}")
        if self.sync_action not in ("", "idle"):
            reasons.append(f"{self.sync_action} is running")
        # "broken": a RAID 0 that lost a member (since kernel 5.4); "inactive" and "clear": it was stopped.
        if self.array_state in ("broken", "inactive", "clear", "readonly", "suspended"):
            reasons.append(f"its state is {self.array_state}")
        return tuple(reasons)


def create_argv(
    geometry: Geometry,
    path: str,
    members: Sequence[str],
    settings: ArraySettings,
    uuid: str,
    *,
    assume_clean: bool,
    data_offset_bytes: int | None = None,
    used_bytes: int | None = None,
) -> list[str]:
    """Return the argv of mdadm that builds ``geometry`` of ``members`` (device paths) at ``path``.

    By default mdadm chooses the data offset and uses the whole member (RAID 0 always does).
    """
    if len(members) != geometry.width or len(set(members)) != len(members):
        raise ValueError(f"{geometry} needs {geometry.width} different drives, got {', '.join(members)}")
    argv = ["mdadm", "--create", path, "--run", "--metadata=1.2", "--homehost=any", f"--uuid={uuid}"]
    argv += [f"--level={geometry.level.removeprefix('raid')}", f"--raid-devices={geometry.width}"]
    if geometry.level is not RaidLevel.RAID1:
        argv.append(f"--chunk={parse_size(settings.chunk) // 1024}")
    if geometry.level is RaidLevel.RAID10:
        argv.append(f"--layout={settings.raid10_layout}")
    if geometry.has_parity:
        argv.append(f"--layout={settings.raid5_layout}")
    if geometry.level in REDUNDANT:
        argv.append(f"--bitmap={settings.bitmap}")
        if assume_clean:
            argv.append("--assume-clean")
    if data_offset_bytes is not None:
        argv.append(f"--data-offset={data_offset_bytes // 1024}K")
    if used_bytes is not None and geometry.level in REDUNDANT:
        argv.append(f"--size={used_bytes // 1024}K")
    return [*argv, *members]


def create(
    machine: Machine,
    geometry: Geometry,
    members: Sequence[Drive],
    settings: ArraySettings,
    *,
    path: str,
    uuid: str,
    zeroed: bool,
    data_offset_bytes: int | None = None,
    used_bytes: int | None = None,
) -> Array:
    """Build the array and wait until its members agree.

    ``zeroed``: every member reads as zeroes, or all were members of the same array already. Then all parity is right
    and no resync is needed (md(4), --assume-clean). Otherwise md's own resync runs to its end; before that, RAID 5 and
    6 write by another algorithm (drivers/md/raid5.c, forced reconstruct-write) and nothing may be measured.
    """
    paths = [drive.path for drive in members]
    placement = {"data_offset_bytes": data_offset_bytes, "used_bytes": used_bytes}
    argv = create_argv(geometry, path, paths, settings, uuid, assume_clean=zeroed, **placement)
    fencing.run(machine, argv, members, alone=False, deadline_s=120)
    settle_udev(machine)
    kname = path.removeprefix("/dev/")
    tune(machine, geometry, kname, settings)
    consistency = "zeroed" if zeroed else "resync"
    if geometry.level not in REDUNDANT:
        consistency = "none needed"
    require_uuid(machine, path, uuid)
    size = count(machine.run(["blockdev", "--getsize64", path], repeatable=True))
    array = Array(geometry, path, tuple(members), uuid, size, consistency, begin_bytes=spared(geometry, settings))
    # Members' data must begin behind the label's MiB, as by default since mdadm 4.2 (super1.c, ROUND_UP).
    offset = data_offset(machine, array)
    if offset is not None and offset < label.HEAD_BYTES:
        raise RigError(f"the data of {array.path} begin at byte {offset} of its members, within the label's MiB")
    # Before the members agree: if the run is killed during the resync, the label proves whose array it is.
    label.write_array(machine, array.checked, uuid)
    if consistency == "resync":
        settle(machine, kname, deadline_s=600 + members[0].size_bytes / SLOWEST_RESYNC_BYTES_PER_S)
    require_healthy(machine, array)
    return array


def spared(geometry: Geometry, settings: ArraySettings) -> int:
    """Bytes at the beginning of an array that no workload touches: the label's MiB, in whole stripes.

    A sequential write of a stripe's size then begins on a stripe, as it would at byte 0.
    """
    stripe = stripe_bytes(geometry, settings)
    return -(-label.HEAD_BYTES // stripe) * stripe


def tune(machine: Machine, geometry: Geometry, kname: str, settings: ArraySettings) -> None:
    """Set md's parameters that have no command-line option; RAID 5 and 6 only.

    The defaults (256 stripes, one thread) suit hard disks and throttle random writes of SSDs
    (method notes: md's stripe cache and group threads).
    """
    if geometry.level not in (RaidLevel.RAID5, RaidLevel.RAID6):
        return
    threads = settings.group_threads or count(machine.run(["nproc"], repeatable=True))
    for name, value in (("stripe_cache_size", settings.stripe_cache_pages), ("group_thread_cnt", threads)):
        machine.run(["tee", f"/sys/block/{kname}/md/{name}"], stdin=str(value).encode(), repeatable=True)


def settle(machine: Machine, kname: str, deadline_s: float) -> None:
    """Wait until no resync, recovery or check runs; ``RigError`` if that takes too long."""
    end = time.monotonic() + deadline_s
    pause = 0.5
    while (now := state(machine, kname)).sync_action not in ("", "idle"):
        if time.monotonic() > end:
            raise RigError(f"{kname} is still in {now.sync_action} after {deadline_s:.0f} s")
        time.sleep(pause)
        pause = min(pause * 1.5, 10.0)


def state(machine: Machine, kname: str) -> ArrayState:
    """Read the state from sysfs; levels without redundancy lack some of the files."""
    names = ("array_state", "sync_action", "degraded", "mismatch_cnt")
    done = ask(machine, ["grep", "-s", "", *(f"/sys/block/{kname}/md/{name}" for name in names)])
    return parse_state(done.text)


def parse_state(text: str) -> ArrayState:
    """Parse ``grep``'s lines ``…/md/<name>:<value>``."""
    values = dict(re.findall(r"/md/(\w+):(.*)$", text, flags=re.MULTILINE))
    return ArrayState(
        values.get("array_state", ""),
        values.get("sync_action", ""),
        _number(values.get("degraded")),
        _number(values.get("mismatch_cnt")),
    )


def _number(text: str | None) -> int:
    """Parse a number; 0 where the level has no such file; ``RigError`` for any other text."""
    if (found := decimal((text or "0").strip())) is None:
        raise RigError(f"the kernel reports {text!r:.40} instead of a number")
    return found


def final_objections(machine: Machine, path: str, missing: int = 0) -> tuple[str, ...]:
    """Faults of an array that is about to be stopped; never raises, because the array must be stopped anyway.

    ``missing`` members were failed on purpose, and some of them may have been rebuilt since.
    """
    try:
        now = state(machine, path.removeprefix("/dev/"))
    except RigError as error:
        return (f"its state could not be read: {error}",)
    return now.objections(min(missing, now.degraded)) if now.array_state else ("it is gone",)


def require_healthy(machine: Machine, array: Array) -> None:
    """Raise ``InvalidMeasurement`` if anything about the array forbids a measurement now.

    A degraded geometry must lack exactly the members that it names, and none may be rebuilding.
    """
    if array.geometry.level is RaidLevel.DRIVE:
        return
    now = state(machine, array.kname)
    objections = now.objections(array.geometry.missing) if now.array_state else ("it is gone",)
    if objections:
        is_check = now.sync_action == CHECK and len(objections) == 1
        kind = CheckRan if is_check else InvalidMeasurement
        raise kind(f"{array.geometry} cannot be measured: {'; '.join(objections)}")


def end_check(machine: Machine, array: Array) -> bool:
    """End a check of the redundancy of this run's array, which this run did not request; return True if one ran.

    Debian's checkarray and mdcheck and RHEL's raid-check check every array of a machine, which takes ten hours for
    7.68 TB. A repair or a resync is no check and is left alone. ``RigError`` if it does not end.
    """
    if array.geometry.level is RaidLevel.DRIVE or state(machine, array.kname).sync_action != CHECK:
        return False
    if is_anothers(machine, array.path, array.uuid, [drive.path for drive in array.members]):
        raise RigError(f"{array.path} is no longer this run's array, so the check that runs on it was not ended")
    machine.run(["tee", f"/sys/block/{array.kname}/md/sync_action"], stdin=b"idle", repeatable=True)
    settle(machine, array.kname, deadline_s=CHECK_END_S)
    return True


def data_offset(machine: Machine, array: Array) -> int | None:
    """Bytes from the start of each member to the array's data; None if they differ, or are not reported."""
    if array.geometry.level is RaidLevel.DRIVE:
        return 0
    offsets = set(scripts.answer(machine, OFFSETS, "offsets", array.kname).text.split())
    if len(offsets) != 1 or not (sectors := offsets.pop()).isdecimal() or int(sectors) % 2:  # mdadm's unit is KiB
        return None
    return int(sectors) * 512


def free_path(machine: Machine) -> str:
    """Return a /dev/mdN that no array of the machine has or is meant to have; ``RigError`` if there is none."""
    used = set(machine.run(["sh", "-c", USED_NUMBERS, "md_numbers"], repeatable=True).text.split())
    free = next((number for number in NUMBERS if f"md{number}" not in used), None)
    if free is None:
        raise RigError(
            f"every number of an md array from {min(NUMBERS)} to {max(NUMBERS)} is in use on {machine.name}, or in "
            "its mdadm.conf: stop arrays that are not needed (see /proc/mdstat there)"
        )
    return f"/dev/md{free}"


def is_anothers(machine: Machine, path: str, uuid: str, members: Sequence[str]) -> bool:
    """Return True if the array at ``path`` is not, or may not be, the one with ``uuid`` on ``members`` (device paths).

    md may be unable to tell the UUID of a failed array, since mdadm reads it from a member. Then it is ours if it has
    no member but ours: this run holds those. An array without any member has nothing that could be lost.
    """
    detail = ask(machine, ["mdadm", "--detail", "--export", path])
    kname, exported = path.removeprefix("/dev/"), re.search(r"^MD_UUID=(\S+)$", detail.text, re.MULTILINE)
    # The kernel reports it in any case, but not before it is known, and old kernels do not have this file.
    shown = exported[1] if exported else ask(machine, ["cat", f"/sys/block/{kname}/md/uuid"]).text.strip()
    if plain_uuid(shown):
        return plain_uuid(shown) != plain_uuid(uuid)
    holding = ask(machine, ["ls", f"/sys/block/{kname}/slaves"]).text.split()
    return not {f"/dev/{name.replace('!', '/')}" for name in holding} <= set(members)


def stop(machine: Machine, path: str, members: Sequence[str], uuid: str) -> tuple[str, ...]:
    """Stop the array and erase its superblock from its members (device paths).

    Only devices with ``uuid`` are touched (``is_anothers``): a kernel name may have passed to another array, or to
    another drive if a member was pulled. Returns the members that could not be erased, because they are gone or are no
    longer members. ``RigError`` if the array still exists afterwards (another process has it open) or has another UUID.
    """
    kname = path.removeprefix("/dev/")
    if ask(machine, ["test", "-e", f"/sys/block/{kname}/md"]).status == 0:
        if is_anothers(machine, path, uuid, members):
            raise RigError(f"{path} is no longer this run's array, so it was not stopped")
        halt(machine, path)
    not_erased = machine.run(["sh", "-c", ERASE, "erase", uuid, *members], deadline_s=120).text
    return tuple(not_erased.split())


def settle_udev(machine: Machine, timeout_s: int = 30) -> None:
    """Wait until udev has handled all events so far, and its helpers have closed the devices."""
    argv = ["udevadm", "settle", f"--timeout={timeout_s}"]
    ask(machine, argv, timeout_s + 30)


def halt(machine: Machine, path: str) -> None:
    """Stop an array, its members untouched; ``RigError`` if another process has it open."""
    # udev and its helpers may still have the device open (blivet PR#684); a few tries suffice.
    for attempt in range(5):
        done = machine.run(["mdadm", "--stop", path], check=False, deadline_s=120)
        if done.status == 0:
            settle_udev(machine)
            remove_empty(machine, [path])
            return
        time.sleep(0.5 * (attempt + 1))
    raise RigError(f"cannot stop {path}: {done.errors.strip()}")


def remove_empty(machine: Machine, paths: Collection[str]) -> tuple[str, ...]:
    """Remove those of these arrays that have no members, and only a name; return their paths."""
    knames = [path.removeprefix("/dev/") for path in paths if OWN_PATH.fullmatch(path)]
    if not knames:
        return ()
    removed = scripts.answer(machine, REMOVE_EMPTY, "remove_empty", *knames).text
    return tuple(f"/dev/{name}" for name in removed.split())


def require_uuid(machine: Machine, path: str, uuid: str) -> None:
    """``RigError`` unless the array at ``path`` has this UUID."""
    if uuid not in machine.run(["mdadm", "--detail", path], repeatable=True).text:
        raise RigError(f"{path} is not the array that was created: mdadm --detail does not report {uuid}")
