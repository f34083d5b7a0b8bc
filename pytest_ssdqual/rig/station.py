"""A test station: a machine, the drives it may destroy, and the one array that is built of them now.

What is measured is measured once: every (geometry, workload) is kept, and so is every failure, so that a
hundred tests that need the same broken thing tell one cause instead of trying a hundred times.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol as Interface
from typing import TypeVar

from pytest_ssdqual.qual import steady, validity
from pytest_ssdqual.qual.geometry import Geometry, Level
from pytest_ssdqual.qual.measurement import Measured, Run
from pytest_ssdqual.qual.protocol import Protocol
from pytest_ssdqual.qual.steady import SteadyState
from pytest_ssdqual.qual.workload import Workload
from pytest_ssdqual.rig import condition, md
from pytest_ssdqual.rig.blockdev import Drive
from pytest_ssdqual.rig.fio import jobfile, process, verify
from pytest_ssdqual.rig.hold import HeldDrives
from pytest_ssdqual.rig.machine import InvalidMeasurement, Machine, MachineLost, RigError
from pytest_ssdqual.rig.md import Array

T = TypeVar("T")

#: Depth of the writes that condition an array; the deepest of the Intel S3500 RAID paper (seeds A-P5).
CONDITIONING_DEPTH = 8
#: Sequential writes of a fill, bytes per second and drive, below which we stop waiting for it.
SLOWEST_FILL_BYTES_PER_S = 5_000_000


class Logbook(Interface):
    """Where a station writes down what it does; the journal is one."""

    def note(self, kind: str, **facts: object) -> None:
        """One event, on disk before this returns."""
        ...

    def keep(self, name: str, data: bytes) -> str:
        """Raw evidence under ``name``; returns the name it can be found by in the run folder."""
        ...


#: Told what is being done now, and for about how many seconds.
Progress = Callable[[str, float], None]


@dataclass(slots=True)
class Station:
    """See the module; ``close`` it, or the array stays."""

    machine: Machine
    held: HeldDrives
    protocol: Protocol
    logbook: Logbook
    machine_id: str
    progress: Progress
    _array: Array | None = None
    _conditioned: dict[bool, SteadyState | None] = field(default_factory=dict)
    _kept: dict[object, object] = field(default_factory=dict)

    def array(self, geometry: Geometry) -> Array:
        """The array of this geometry, built and filled now if it does not stand already."""
        if self._array and self._array.geometry == geometry:
            return self._array
        return self._once_unless_built(geometry)

    def steady(self, geometry: Geometry, workload: Workload) -> SteadyState | None:
        """Condition the array for this class of workload (random or sequential), once per array.

        None if the protocol has no such step. ``InvalidMeasurement`` if it does not settle in time; that is not
        tried again for the next workload, or hours would be spent on each.
        """
        array = self.array(geometry)
        if workload.is_random not in self._conditioned:
            self._conditioned[workload.is_random] = self._unless_failed(
                (geometry, workload.is_random), lambda: self._precondition(array, workload)
            )
        return self._conditioned[workload.is_random]

    def measure(self, geometry: Geometry, workload: Workload) -> Measured:
        """All repeats of one workload on one array, measured now or before.

        Raises ``RigError`` or a child of it, the same again each time it is asked for.
        """
        return self._once((geometry, workload), lambda: self._measure(geometry, workload))

    def close(self) -> None:
        """Stop the array; the drives stay held."""
        if self._array:
            array, self._array = self._array, None
            self._stop(array)

    def _once(self, key: object, work: Callable[[], T]) -> T:
        if key not in self._kept:
            self._kept[key] = self._unless_failed(key, work)
        found = self._kept[key]
        if isinstance(found, RigError):
            raise found.with_traceback(None)
        return found  # type: ignore[return-value]

    def _unless_failed(self, key: object, work: Callable[[], T]) -> T:
        """The outcome of ``work``; a failure is kept under ``key`` and told again instead of working again."""
        failure = self._kept.get(key)
        if isinstance(failure, RigError):
            raise failure.with_traceback(None)
        try:
            return work()
        except MachineLost:
            raise
        except RigError as error:
            self._kept[key] = error
            raise

    def _once_unless_built(self, geometry: Geometry) -> Array:
        """Building is repeated when another array stood in between; failing to build is not."""
        failure = self._kept.get(geometry)
        if isinstance(failure, RigError):
            raise RigError(f"{geometry} was not built: {failure}")
        try:
            return self._build(geometry)
        except MachineLost:
            raise
        except RigError as error:
            self._kept[geometry] = error
            with contextlib.suppress(RigError):
                self.close()
            raise

    def _build(self, geometry: Geometry) -> Array:
        self.close()
        members = self.held.drives[: geometry.width]
        settings = self.protocol.array
        self.progress(f"{geometry}: purge", 5)
        self.held.require(members)
        purged = condition.purge(self.machine, members, best=self.protocol.purge == "format")
        zeroed = geometry.level in md.REDUNDANT and condition.zero(self.machine, members)
        uuid = ":".join(secrets.token_hex(4) for _ in range(4))
        path = members[0].path if geometry.level is Level.DRIVE else md.free_path(self.machine)
        facts: dict[str, object] = {
            "uuid": uuid,
            "device": path,
            "geometry": str(geometry),
            "machine_id": self.machine_id,
            "members": [drive.identity for drive in members],
        }
        if geometry.level is Level.DRIVE:
            array = Array(geometry, path, tuple(members), "", members[0].size_bytes, "none needed")
        else:
            # Written down first: if we die inside mdadm, the next start knows the array for ours.
            self.logbook.note("array_planned", **facts)
            array = self._create(geometry, members, path, uuid, zeroed=zeroed)
        self._array, self._conditioned = array, {}
        self.logbook.note(
            "array_created",
            **facts,
            purge=purged,
            consistency=array.consistency,
            size_bytes=array.size_bytes,
            settings=asdict(settings),
        )
        self._fill(array)
        return array

    def _create(self, geometry: Geometry, members: Sequence[Drive], path: str, uuid: str, *, zeroed: bool) -> Array:
        self.progress(f"{geometry}: create", 5)
        try:
            return md.create(self.machine, geometry, members, self.protocol.array, path=path, uuid=uuid, zeroed=zeroed)
        except BaseException:
            with contextlib.suppress(RigError):
                self._take_down(path, members, uuid)
            raise

    def _stop(self, array: Array) -> None:
        if array.geometry.level is not Level.DRIVE:
            self._take_down(array.path, array.members, array.uuid)

    def _take_down(self, path: str, members: Sequence[Drive], uuid: str) -> None:
        left = md.stop(self.machine, path, [drive.path for drive in members], uuid)
        # A member that keeps our superblock keeps the array on our books, so that its remains need no consent.
        self.logbook.note("array_left" if left else "array_stopped", uuid=uuid, not_erased=left)

    def _fill(self, array: Array) -> None:
        passes = self.protocol.fill_passes
        if not passes:
            return
        self.held.require_lease()
        target = jobfile.Target(array.path, array.size_bytes)
        job = jobfile.fill(target, passes, self.protocol.fill_bs, jobs=array.geometry.width)
        seconds = passes * array.size_bytes / SLOWEST_FILL_BYTES_PER_S
        self.progress(f"{array.geometry}: fill", 0)
        finished = process.run(self.machine, job, seconds)
        raw = self.logbook.keep(f"{array.geometry}-fill.json.gz", finished.packed)
        verify.accept(finished.output, finished.completed.status, finished.completed.errors, job.expectation)
        self.logbook.note("filled", geometry=str(array.geometry), passes=passes, raw=raw)

    def _precondition(self, array: Array, workload: Workload) -> SteadyState | None:
        rule, step_s, spent_s = self.protocol.steady, self.protocol.precondition_s, 0.0
        if not step_s:
            return None
        writes = Workload("randwrite" if workload.is_random else "write", workload.bs, CONDITIONING_DEPTH)
        rates: list[float] = []
        raws: list[str] = []
        while True:
            self.progress(f"{array.geometry}: precondition with {writes}", step_s)
            run = self._run(array, writes, "precondition", ramp_s=0.0, window_s=step_s)
            rates += run.round_iops()
            raws.append(run.raw)
            spent_s += step_s
            if len(rates) < rule.window:
                continue  # steps shorter than the window: the rule needs one whole window, whatever the limit
            reached = steady.judge(rates[-rule.window :], rule)
            if reached.reached or spent_s >= self.protocol.precondition_limit_s:
                break
        self.logbook.note(
            "conditioned",
            geometry=str(array.geometry),
            workload=str(writes),
            seconds=spent_s,
            round_iops=rates,
            steady=asdict(reached),
            raw=raws,
        )
        if not reached.reached:
            raise InvalidMeasurement(
                f"{array.geometry} did not settle within {spent_s:g} s of {writes}: {reached.describe()}"
            )
        return reached

    def _measure(self, geometry: Geometry, workload: Workload) -> Measured:
        self.steady(geometry, workload)
        array = self.array(geometry)
        measured = Measured(tuple(self._settled_run(array, workload) for _ in range(self.protocol.repeats)))
        self.logbook.note(
            "measured",
            geometry=str(geometry),
            workload=str(workload),
            protocol=self.protocol.name,
            acceptance=self.protocol.acceptance,
            **measured.summary(),
        )
        return measured

    def _settled_run(self, array: Array, workload: Workload) -> Run:
        """One valid run with a steady window; what was wrong with the last attempt otherwise."""
        protocol, trouble = self.protocol, ""
        for _ in range(protocol.attempts):
            self.progress(f"{array.geometry}: {workload}", protocol.ramp_s + protocol.window_s)
            run = self._run(array, workload, "run", ramp_s=protocol.ramp_s, window_s=protocol.window_s)
            objections = validity.objections(run)
            now = steady.judge(run.round_iops(), protocol.steady)
            self.logbook.note(
                "steady",
                geometry=str(array.geometry),
                workload=str(workload),
                raw=run.raw,
                objections=objections,
                **asdict(now),
            )
            if now.reached and not objections:
                return run.condensed()
            trouble = f"is not valid: {'; '.join(objections)}" if objections else f"is {now.describe()}"
        times = f"{protocol.attempts} attempts" if protocol.attempts > 1 else "one attempt"
        raise InvalidMeasurement(f"{workload} on {array.geometry} {trouble} (after {times})")

    def _run(self, array: Array, workload: Workload, kind: str, *, ramp_s: float, window_s: float) -> Run:
        """One fio process between two looks at the array's health."""
        self.held.require_lease()
        md.require_healthy(self.machine, array)
        target = jobfile.Target(array.path, array.size_bytes)
        # Two hours of conditioning need no histogram of every second; some points a round do.
        every_s = 1 if kind == "run" else max(1, int(self.protocol.round_s / 12))
        job = jobfile.measurement(workload, array.geometry, target, ramp_s + window_s, every_s)
        finished = process.run(self.machine, job, ramp_s + window_s)
        raw = self.logbook.keep(f"{array.geometry}-{workload}-{kind}.json.gz", finished.packed)
        md.require_healthy(self.machine, array)
        result = verify.accept(finished.output, finished.completed.status, finished.completed.errors, job.expectation)
        return Run(
            workload=workload,
            geometry=array.geometry,
            members=tuple(drive.identity for drive in array.members),
            intervals=result.intervals,
            ramp_s=ramp_s,
            window_s=window_s,
            rounds=self.protocol.steady.window if kind == "run" else max(1, round(window_s / self.protocol.round_s)),
            raw=raw,
        )
