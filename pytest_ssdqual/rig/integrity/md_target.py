"""What a history does to a real array: md and its members on the machine under test.

Everything here destroys data. Before each step that does, the lease is required, and drives that get or lose a place in
the array are identified.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pytest_ssdqual.qual.integrity import reference_model
from pytest_ssdqual.qual.integrity.array_state import Abilities
from pytest_ssdqual.qual.integrity.steps import StepSequence
from pytest_ssdqual.qual.raid.geometry import FACTS, Geometry, RaidLevel
from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.fio import acceptance, process, stamped_io
from pytest_ssdqual.rig.fio.jobs import Job, JobTarget
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.fio.stamped_io import Stretch
from pytest_ssdqual.rig.guard import label
from pytest_ssdqual.rig.guard.leftover_members import RAW
from pytest_ssdqual.rig.integrity import overwriting, power_cut
from pytest_ssdqual.rig.integrity.power_cut import Switch
from pytest_ssdqual.rig.integrity.target import Aftermath, Ground
from pytest_ssdqual.rig.machine.machine import CommandFailed, RigError
from pytest_ssdqual.rig.md import mdadm, reserve, resync
from pytest_ssdqual.rig.md import members as membership
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.purge import purge, zero

#: Below this rate a few MiB are not waited for.
SLOWEST_BYTES_PER_S = 100_000
#: Between looks at md, and how long it may be idle with members missing that were given back.
PAUSE_S, START_S = 0.3, 30.0
SWORN = "/sys/module/raid456/parameters/devices_handle_discard_safely"
#: md marks an array clean when nothing was written for a moment (safe_mode_delay, 0.2 s); assembled, it is not written
#: to before that is needed.
CLEAN, CLEAN_S = ("clean", "read-auto", "readonly"), 30.0


@dataclass(slots=True)
class LiveBody:
    """A ``living.Body`` of md. ``close`` it, or its last array stays."""

    setup: Setup
    switch: Switch | None = None
    _array: Array | None = None
    #: Drives with our superblock, by number.
    _bearing: set[int] = field(default_factory=set)
    _purged: bool = False

    def build(self, history: StepSequence) -> Ground:
        """Purge the drives once, build the array of the first of them. ``RigError`` or a child of it."""
        self.close()
        geometry, rule = history.geometry, self.setup.protocol.integrity
        drives = self.setup.held.drives
        if len(drives) < geometry.width:
            raise RigError(f"{geometry} needs {geometry.width} drives, this run has {len(drives)}")
        self.setup.held.require(drives)
        if not self._purged:
            self._purge()
        members = drives[: geometry.width]
        zeroed = geometry.level in mdadm.REDUNDANT and zero.zero(self.setup.machine, members)
        # All of them: a drive that is no member yet may become one.
        label.write_drives(self.setup.machine, drives)
        array = self._created(geometry, history.bitmap, zeroed=zeroed)
        atom = drives[0].physical_block_bytes if rule.atomic == "physical" else drives[0].logical_block_bytes
        stripe = reference_model.stripe_bytes(geometry, self.setup.protocol.array) if geometry.has_parity else 0
        each = reference_model.region_bytes(geometry, self.setup.protocol.array)
        return Ground(
            array.size_bytes, each, rule.regions, min(atom or 512, 4096), stripe, len(drives), array.begin_bytes
        )

    def abilities(self, level: RaidLevel) -> Abilities:
        """See ``Body``."""
        limits = [f"/sys/block/{drive.kname}/queue/discard_max_bytes" for drive in self.setup.held.drives]
        trim = all(map(int, self._run("cat", *limits).split()))
        if FACTS[level].parity:
            # raid5.c takes discards only when somebody has sworn that all drives read as zeroes afterwards.
            trim = trim and self.setup.machine.run(["cat", SWORN], check=False).text.strip() == "Y"
        return Abilities(trim, self.switch is not None, self.setup.protocol.integrity.write_hole)

    @property
    def array(self) -> Array:
        """What was built last."""
        if self._array is None:
            raise RigError("no array was built for this history")
        return self._array

    def write(self, history: int, stretches: Sequence[Stretch], *, flush: bool) -> None:
        """See ``Body``."""
        self.setup.held.require_lease()
        job = stamped_io.write(self._target, history, stretches, flush=flush)
        finished = self._fio(job, stretches)
        done = finished.completed
        acceptance.accept(finished.pieces(), done.status, done.errors, job.expectation)

    def differs(self, history: int, stretches: Sequence[Stretch]) -> bool:
        """See ``Body``; read from the members, not from md's memory."""
        self._forget_stripes()
        job = stamped_io.read(self._target, history, stretches)
        return stamped_io.differs(self._fio(job, stretches), job.expectation)

    def read(self, offset_bytes: int, size_bytes: int) -> bytes:
        """See ``Body``."""
        argv = ["sh", "-c", RAW, "raw", self.array.path, str(offset_bytes), str(size_bytes)]
        return gzip.decompress(self.setup.machine.run(argv, deadline_s=300, repeatable=True).stdout)

    def trim(self, offset_bytes: int, size_bytes: int) -> None:
        """See ``Body``."""
        self.setup.held.require_lease()
        place = [f"--offset={offset_bytes}", f"--length={size_bytes}", self.array.path]
        argv = fencing.bound(["blkdiscard", *place], [self.array.checked], alone=False)
        self.setup.machine.run(argv, deadline_s=300)

    def fail(self, drive: int) -> None:
        """See ``Body``."""
        membership.require(self.setup.held, self.setup.machine, self._known, [self._drive(drive)])
        membership.fail(self.setup.machine, self.array, self._drive(drive))

    def remove(self, drive: int) -> None:
        """See ``Body``."""
        self.setup.held.require_lease()
        membership.remove(self.setup.machine, self.array, self._drive(drive))
        self._settle_udev()

    def re_add(self, drive: int) -> None:
        """See ``Body``; where md refuses, the drive is given back as a new one."""
        self.setup.held.require([self._drive(drive)])
        argv = ["mdadm", "--re-add", self.array.path, self._drive(drive).path]
        try:
            fencing.run(self.setup.machine, argv, [self._drive(drive)], alone=False, deadline_s=120)
        except CommandFailed as error:
            self.setup.logbook.note("re_add_refused", uuid=self.array.uuid, said=str(error))
            self.add(drive)

    def add(self, drive: int) -> None:
        """See ``Body``."""
        self.setup.held.require([self._drive(drive)])
        if drive in self._bearing:
            membership.forget(self.setup.machine, self.array, [self._drive(drive)])
        self._bearing.add(drive)
        membership.give_back(self.setup.machine, self.array, [self._drive(drive)])

    def settle(self, missing: int) -> None:
        """See ``Body``. ``RigError`` if it takes too long, or if other members are missing."""
        machine, kname = self.setup.machine, self.array.kname
        end = time.monotonic() + self.setup.protocol.rebuild.limit_s
        idle_since: float | None = None
        while True:
            now = mdadm.state(machine, kname)
            at = time.monotonic()
            idle = now.sync_action in ("", "idle")
            if idle and now.degraded == missing and (missing or self._agrees()):
                if objections := now.objections(missing):
                    raise RigError(f"{self.array.path} is not as it should be: {'; '.join(objections)}")
                return
            idle_since = (idle_since or at) if idle else None
            if at > end or (idle_since and at - idle_since > START_S):
                raise RigError(f"{self.array.path} does not settle: {'; '.join(now.objections(missing))}")
            time.sleep(PAUSE_S)

    def compare(self, *, repair: bool) -> int:
        """See ``Body``."""
        self.setup.held.require_lease()
        kname = self.array.kname
        size_bytes = resync.component_bytes(self.setup.machine, kname)
        return (resync.repair if repair else resync.check)(self.setup.machine, kname, size_bytes)

    def restart(self, members: Sequence[int], missing: int) -> None:
        """See ``Body``."""
        self.setup.held.require_lease()
        mdadm.halt(self.setup.machine, self.array.path)
        power_cut.assemble(self.setup, self.array, self._drives(members), dirty=False)

    def grow(self, drive: int) -> int:
        """See ``Body``; returns when all data are in their new places."""
        array, geometry = self.array, self.array.geometry
        self.add(drive)
        argv = ["mdadm", "--grow", array.path, f"--raid-devices={geometry.width + 1}"]
        self.setup.machine.run(argv, deadline_s=300)
        if geometry.has_parity:
            self.settle(0)
        self._settle_udev()
        size = int(self._run("blockdev", "--getsize64", array.path))
        wider = Geometry(geometry.level, geometry.width + 1)
        self._array = replace(array, geometry=wider, members=self._drives(sorted(self._bearing)), size_bytes=size)
        return size

    def cut(self, members: Sequence[int], missing: int, history: int, over: Stretch | None) -> Aftermath:
        """See ``Body``; returns when md has brought the members into agreement."""
        if self.switch is None:
            raise RigError(f"nobody can cut the power of {self.setup.machine.name}")
        self.setup.held.require_lease()
        acknowledged = None
        if over is None:
            zero.until(self._is_clean, CLEAN_S)
        else:
            acknowledged = overwriting.begin(self.setup.machine, self._target, history, over)
        doubtful = self.array.geometry.has_parity and mdadm.state(self.setup.machine, self.array.kname).degraded > 0
        power_cut.cut(self.setup, self.switch, self.array)
        forced = power_cut.assemble(self.setup, self.array, self._drives(members), dirty=doubtful)
        self.settle(missing)
        return Aftermath(acknowledged, forced)

    def close(self) -> None:
        """Stop what stands, and erase our superblocks."""
        if self._array:
            array, self._array = self._array, None
            array_lifecycle.take_down(self.setup, array.path, self._drives(sorted(self._bearing)), array.uuid)
            self._bearing.clear()

    def _purge(self) -> None:
        drives = self.setup.held.drives
        self.setup.logbook.note("purging", geometry="integrity", members=[drive.identity for drive in drives])
        purge.purge(self.setup.machine, drives, best=self.setup.protocol.purge == "format")
        self._purged = True

    def _created(self, geometry: Geometry, bitmap: str, *, zeroed: bool) -> Array:
        setup, members = self.setup, self.setup.held.drives[: geometry.width]
        self._bearing = set(range(1, geometry.width + 1))
        settings = replace(setup.protocol.array, bitmap=bitmap)
        array = self._array = array_lifecycle.create(
            setup, geometry, members, settings, zeroed=zeroed, used_bytes=self._used_bytes(members),
            later=setup.held.drives[geometry.width :],
        )  # fmt: skip
        setup.logbook.note("array_created", uuid=array.uuid, geometry=str(geometry), size_bytes=array.size_bytes)
        return array

    def _used_bytes(self, members: Sequence[Drive]) -> int | None:
        """Of each member; None: all of it."""
        wanted = self.setup.protocol.integrity.member_bytes
        # mdadm keeps room for its superblock, a bitmap and a later reshape.
        return wanted if wanted < 0.75 * min(drive.size_bytes for drive in members) else None

    @property
    def _target(self) -> JobTarget:
        return JobTarget(self.array.path, self.array.size_bytes, checked=self.array.checked)

    @property
    def _known(self) -> Array:
        """The array as one of all drives that bear its superblock."""
        return replace(self.array, members=self._drives(sorted(self._bearing)))

    def _drive(self, number: int) -> Drive:
        return self.setup.held.drives[number - 1]

    def _drives(self, numbers: Sequence[int]) -> tuple[Drive, ...]:
        return tuple(map(self._drive, numbers))

    def _run(self, *argv: str) -> str:
        return self.setup.machine.run(argv).text

    def _settle_udev(self) -> None:
        self.setup.machine.run(["udevadm", "settle", "--timeout=30"], check=False, deadline_s=60, repeatable=True)

    def _fio(self, job: Job, stretches: Sequence[Stretch]) -> FinishedProcess:
        seconds = sum(each.size_bytes for each in stretches) / SLOWEST_BYTES_PER_S
        return process.run(self.setup.machine, job, seconds)

    def _forget_stripes(self) -> None:
        if self.array.geometry.has_parity:
            reserve.empty_stripe_cache(self.setup.machine, self.array.kname)

    def _agrees(self) -> bool:
        """Whether no resync is pending: after an unclean stop, md is idle for a moment before it begins one."""
        start = f"/sys/block/{self.array.kname}/md/resync_start"
        return self.setup.machine.run(["cat", start], check=False).text.strip() in ("", "none")

    def _is_clean(self) -> bool:
        if FACTS[self.array.geometry.level].may_lose(self.array.geometry.width) == 0:
            return True
        return mdadm.state(self.setup.machine, self.array.kname).array_state in CLEAN
