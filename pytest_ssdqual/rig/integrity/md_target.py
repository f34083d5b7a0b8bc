"""An md array on the machine under test as the target of an integrity test.

Everything here destroys data. Each step that does requires the lease first, and identifies the drives that enter or
leave the array.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from pytest_ssdqual.qual.integrity import reference_model
from pytest_ssdqual.qual.integrity.array_state import Abilities
from pytest_ssdqual.qual.integrity.steps import StepSequence
from pytest_ssdqual.qual.raid.geometry import FACTS, Geometry, RaidLevel
from pytest_ssdqual.qual.spec.protocol_rules import Bitmap
from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.fio import process, stamped_io
from pytest_ssdqual.rig.fio.jobs import Job
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.fio.stamped_io import Stretch
from pytest_ssdqual.rig.guard import label
from pytest_ssdqual.rig.integrity import power_cut
from pytest_ssdqual.rig.integrity.power_cut import PowerSwitch
from pytest_ssdqual.rig.integrity.target import PowerCutOutcome, TargetLayout
from pytest_ssdqual.rig.machine.machine import CommandFailed, RigError
from pytest_ssdqual.rig.md import mdadm, resync, survival_pattern
from pytest_ssdqual.rig.md import members as membership
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.purge import zero

#: Assumed minimum rate: a transfer of a few MiB that takes longer is given up.
SLOWEST_BYTES_PER_S = 100_000
#: Seconds between two polls of md, and the longest that md may stay idle while members that were added are missing.
PAUSE_S, START_S = 0.3, 30.0
SWORN = "/sys/module/raid456/parameters/devices_handle_discard_safely"
#: md marks an array clean when nothing was written for a moment (safe_mode_delay, 0.2 s); an assembled array is clean
#: until its first write.
CLEAN, CLEAN_S = ("clean", "read-auto", "readonly"), 30.0


@dataclass(slots=True)
class MdTarget:
    """An ``IntegrityTarget`` that is an md array. ``close`` it, or its last array stays."""

    setup: Setup
    switch: PowerSwitch | None = None
    _array: Array | None = None
    #: Numbers of the drives that have this run's superblock.
    _bearing: set[int] = field(default_factory=set)
    _purged: bool = False
    #: The most members that may be missing now: those failed on purpose, and not yet known to be rebuilt.
    _missing: int = 0

    def build(self, history: StepSequence) -> TargetLayout:
        """Purge the drives once, and build the array of the first of them. ``RigError`` or a child of it."""
        self.close()
        geometry, settings = history.geometry, self.setup.protocol.integrity
        drives = self.setup.held.drives
        if len(drives) < geometry.width:
            raise RigError(f"{geometry} needs {geometry.width} drives, this run has {len(drives)}")
        self.setup.held.require(drives)
        if not self._purged:
            self._purge()
        members = drives[: geometry.width]
        zeroed = geometry.level in mdadm.REDUNDANT and zero.zero(self.setup.held.leased, members)
        # All drives get it: one that is not yet a member may become one.
        label.write_drives(self.setup.held.leased, drives)
        array = self._created(geometry, history.bitmap, zeroed=zeroed)
        atom = drives[0].physical_block_bytes if settings.atomic == "physical" else drives[0].logical_block_bytes
        tuned = self.setup.protocol.array.of(geometry)
        stripe = reference_model.stripe_bytes(geometry, tuned) if geometry.has_parity else 0
        region_bytes = reference_model.region_bytes(geometry, tuned)
        return TargetLayout(
            array.size_bytes,
            region_bytes,
            settings.regions,
            min(atom or 512, 4096),
            stripe,
            len(drives),
            array.begin_bytes,
        )

    def abilities(self, level: RaidLevel) -> Abilities:
        """See ``IntegrityTarget``."""
        limits = [f"/sys/block/{drive.sysfs_name}/queue/discard_max_bytes" for drive in self.setup.held.drives]
        trim = all(map(int, self._run("cat", *limits).split()))
        if FACTS[level].parity:
            # raid5.c accepts discards only if root declared that all drives return zeroes after a discard.
            trim = trim and self.setup.machine.run(["cat", SWORN], check=False).text.strip() == "Y"
        return Abilities(trim, self.switch is not None, self.setup.protocol.integrity.write_hole)

    @property
    def array(self) -> Array:
        """The array that was built last."""
        if self._array is None:
            raise RigError("no array was built for this history")
        return self._array

    def write(self, history: int, stretches: Sequence[Stretch], *, flush: bool) -> None:
        """See ``IntegrityTarget``."""
        self.setup.held.require_lease()
        job = stamped_io.write(self.array.whole, history, stretches, flush=flush)
        self._fio(job, stretches).accepted(job.expectation)

    def differs(self, history: int, stretches: Sequence[Stretch]) -> bool:
        """See ``IntegrityTarget``; reads from the members, not from md's stripe cache."""
        if self.array.geometry.has_parity:
            survival_pattern.empty_stripe_cache(self.setup.machine, self.array.kname)
        job = stamped_io.read(self.array.whole, history, stretches)
        return stamped_io.differs(self._fio(job, stretches), job.expectation)

    def read(self, offset_bytes: int, size_bytes: int) -> bytes:
        """See ``IntegrityTarget``."""
        return gzip.decompress(label.packed(self.setup.machine, self.array.path, offset_bytes, size_bytes))

    def trim(self, offset_bytes: int, size_bytes: int) -> None:
        """See ``IntegrityTarget``."""
        self.setup.held.require_lease()
        range_options = [f"--offset={offset_bytes}", f"--length={size_bytes}", self.array.path]
        argv = fencing.bound(["blkdiscard", *range_options], [self.array.checked], alone=False)
        self.setup.machine.run(argv, deadline_s=300)

    def fail(self, drive: int) -> None:
        """See ``IntegrityTarget``."""
        membership.require(self.setup.held, self.setup.machine, self._known, [self._drive(drive)])
        membership.fail(self.setup.machine, self.array, self._drive(drive))
        self._missing += 1

    def remove(self, drive: int) -> None:
        """See ``IntegrityTarget``."""
        self.setup.held.require_lease()
        membership.remove(self.setup.machine, self.array, self._drive(drive))
        mdadm.settle_udev(self.setup.machine)

    def re_add(self, drive: int) -> None:
        """See ``IntegrityTarget``; where md refuses, the drive is added as a new one."""
        self.setup.held.require([self._drive(drive)])
        argv = ["mdadm", "--re-add", self.array.path, self._drive(drive).path]
        try:
            fencing.run(self.setup.machine, argv, [self._drive(drive)], alone=False, deadline_s=120)
        except CommandFailed as error:
            self.setup.logbook.note("re_add_refused", uuid=self.array.uuid, said=str(error))
            self.add(drive)

    def add(self, drive: int) -> None:
        """See ``IntegrityTarget``."""
        self.setup.held.require([self._drive(drive)])
        if drive in self._bearing:
            membership.forget(self.setup.machine, self.array, [self._drive(drive)])
        self._bearing.add(drive)
        membership.give_back(self.setup.machine, self.array, [self._drive(drive)])

    def settle(self, missing: int) -> None:
        """See ``IntegrityTarget``. ``RigError`` if it takes too long, or if other members are missing."""
        machine, kname = self.setup.machine, self.array.kname
        end = time.monotonic() + self.setup.protocol.rebuild.allowed_s()
        idle_since: float | None = None
        while True:
            state = mdadm.state(machine, kname)
            now_s = time.monotonic()
            idle = state.sync_action in ("", "idle")
            if idle and state.degraded == missing and (missing or self._agrees()):
                if objections := state.objections(missing):
                    raise RigError(f"{self.array.path} is not healthy: {'; '.join(objections)}")
                self._missing = missing
                return
            idle_since = (idle_since or now_s) if idle else None
            if now_s > end or (idle_since and now_s - idle_since > START_S):
                raise RigError(f"{self.array.path} does not settle: {'; '.join(state.objections(missing))}")
            time.sleep(PAUSE_S)

    def compare(self, *, repair: bool) -> int:
        """See ``IntegrityTarget``."""
        self.setup.held.require_lease()
        kname = self.array.kname
        size_bytes = resync.component_bytes(self.setup.machine, kname)
        return resync.compare(self.setup.machine, kname, size_bytes, repair=repair)

    def restart(self, members: Sequence[int]) -> None:
        """See ``IntegrityTarget``."""
        self.setup.held.require_lease()
        mdadm.halt(self.setup.machine, self.array.path)
        power_cut.assemble(self.setup, self.array, self._drives(members), dirty=False)

    def grow(self, drive: int) -> int:
        """See ``IntegrityTarget``; returns when md has moved all data."""
        array, geometry = self.array, self.array.geometry
        self.add(drive)
        argv = ["mdadm", "--grow", array.path, f"--raid-devices={geometry.width + 1}"]
        self.setup.machine.run(argv, deadline_s=300)
        if geometry.has_parity:
            self.settle(0)
        mdadm.settle_udev(self.setup.machine)
        size = int(self._run("blockdev", "--getsize64", array.path))
        wider = Geometry(geometry.level, geometry.width + 1)
        self._array = replace(array, geometry=wider, members=self._drives(sorted(self._bearing)), size_bytes=size)
        return size

    def cut(self, members: Sequence[int], missing: int, history: int, over: Stretch | None) -> PowerCutOutcome:
        """See ``IntegrityTarget``; returns when md has brought the members into agreement."""
        if self.switch is None:
            raise RigError(f"this run cannot cut the power of {self.setup.machine.name}: no power switch is configured")
        self.setup.held.require_lease()
        acknowledged = None
        if over is None:
            end = time.monotonic() + CLEAN_S
            while not self._is_clean() and time.monotonic() < end:
                time.sleep(PAUSE_S)
        else:
            acknowledged = power_cut.begin(self.setup.machine, self.array.whole, history, over)
        doubtful = self.array.geometry.has_parity and mdadm.state(self.setup.machine, self.array.kname).degraded > 0
        power_cut.cut(self.setup, self.switch, self.array)
        forced = power_cut.assemble(self.setup, self.array, self._drives(members), dirty=doubtful)
        self.settle(missing)
        return PowerCutOutcome(acknowledged, forced)

    def close(self) -> None:
        """Stop the array, and erase this run's superblocks."""
        if self._array:
            array, self._array = self._array, None
            members, missing = self._drives(sorted(self._bearing)), self._missing
            array_lifecycle.take_down(self.setup, array.path, members, array.uuid, missing)
            self._bearing.clear()

    def _purge(self) -> None:
        drives = self.setup.held.drives
        self.setup.logbook.note("purging", geometry="integrity", members=[drive.identity for drive in drives])
        array_lifecycle.purge_all(self.setup, drives)
        self._purged = True

    def _created(self, geometry: Geometry, bitmap: str, *, zeroed: bool) -> Array:
        setup, members = self.setup, self.setup.held.drives[: geometry.width]
        self._bearing, self._missing = set(range(1, geometry.width + 1)), 0
        settings = replace(setup.protocol.array.of(geometry), bitmap=cast("Bitmap", bitmap))
        array = self._array = array_lifecycle.create(
            setup, geometry, members, settings, zeroed=zeroed, used_bytes=self._used_bytes(members),
            later=setup.held.drives[geometry.width :],
        )  # fmt: skip
        setup.note("array_created", geometry, uuid=array.uuid, size_bytes=array.size_bytes)
        return array

    def _used_bytes(self, members: Sequence[Drive]) -> int | None:
        """Bytes used of each member; None: all of it."""
        wanted = self.setup.protocol.integrity.member_bytes
        # mdadm keeps room for its superblock, a bitmap and a later reshape.
        return wanted if wanted < 0.75 * min(drive.size_bytes for drive in members) else None

    @property
    def _known(self) -> Array:
        """The array with all drives that have its superblock as members."""
        return replace(self.array, members=self._drives(sorted(self._bearing)))

    def _drive(self, number: int) -> Drive:
        return self.setup.held.drives[number - 1]

    def _drives(self, numbers: Sequence[int]) -> tuple[Drive, ...]:
        return tuple(map(self._drive, numbers))

    def _run(self, *argv: str) -> str:
        return self.setup.machine.run(argv).text

    def _fio(self, job: Job, stretches: Sequence[Stretch]) -> FinishedProcess:
        seconds = sum(stretch.size_bytes for stretch in stretches) / SLOWEST_BYTES_PER_S
        return process.run(self.setup.machine, job, seconds)

    def _agrees(self) -> bool:
        """Return True if no resync is pending: after an unclean stop, md is idle for a moment before it begins one."""
        start = f"/sys/block/{self.array.kname}/md/resync_start"
        return self.setup.machine.run(["cat", start], check=False).text.strip() in ("", "none")

    def _is_clean(self) -> bool:
        if FACTS[self.array.geometry.level].may_lose(self.array.geometry.width) == 0:
            return True
        return mdadm.state(self.setup.machine, self.array.kname).array_state in CLEAN
