"""Reads all data of filled drives side by side, and compares them with what the fill wrote.

A wrong transfer is a finding about its drive. A transfer that cannot be read is a failed drive, as under any load.
"""

from __future__ import annotations

import gzip
import re
import secrets
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.integrity import stamp
from pytest_ssdqual.qual.integrity.read_back import (
    LEAST_SHARE,
    PARTS,
    DriveReadBack,
    ReadBack,
    SlowZone,
    WrongBlock,
    WrongKind,
    examine,
    median_part,
    rates,
    slow_parts,
)
from pytest_ssdqual.qual.integrity.stamp import GENERATIONS, HISTORIES, Stamp
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.records import shallow
from pytest_ssdqual.qual.spec.protocol_rules import Fill
from pytest_ssdqual.qual.units import parse_size
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.fio import jobs, output, process
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.fio.output import MOST_DOCUMENTS, FioResult
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.guard import label
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, RigError
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle, fixed_time
from pytest_ssdqual.rig.measure.session import LatestReadings, Setup
from pytest_ssdqual.rig.observe import environment
from pytest_ssdqual.rig.observe.device_counters import Counted, changed_bytes
from pytest_ssdqual.rig.observe.environment import EnvironmentReading

#: fio's message about the first wrong transfer of a target (verify.c).
WRONG = re.compile(r"verify failed at file (/\S+) offset \d+, length \d+ \(requested block: offset=(\d+), length=(\d+)")
#: Most parts of a drive that are read again, the slowest first.
MOST_AGAIN = 8
#: Assumed maximum rate of a drive's sequential reads: PCIe 5.0 with four lanes, less its overhead.
FASTEST_BYTES_PER_S = 14_000_000_000


@dataclass(slots=True)
class StampedFill:
    """The data of one fill. A wrong transfer stays found when the comparison is repeated."""

    stamp: Stamp
    #: The kernel's counters of each drive directly after the fill, by serial number.
    counted: dict[str, Counted] = field(default_factory=dict)
    #: Drives with a wrong transfer, by serial number.
    wrong: dict[str, DriveReadBack] = field(default_factory=dict)

    @classmethod
    def new(cls) -> StampedFill:
        """Return a fill to come: the 48 random bits of its stamp distinguish its data from those of any earlier one."""
        return cls(Stamp(secrets.randbelow(HISTORIES), secrets.randbelow(GENERATIONS), 0))

    @property
    def pattern(self) -> str:
        """Pattern of the data, as fio takes it."""
        return stamp.fio_pattern(self.stamp.history, self.stamp.generation)

    def written(self, readings: LatestReadings) -> None:
        """Keep the counters of the drives; ``readings`` are those around the fill."""
        if readings.array and readings.after:
            drives = zip(readings.array.members, readings.after.drives, strict=True)
            self.counted = {drive.name: reading.counted for drive, reading in drives}

    def foreign_bytes(self, drive: Drive, now: Counted) -> int:
        """Return the bytes that another program wrote or discarded since; this one only reads. 0 if it is unknown."""
        return changed_bytes(self.counted.get(drive.name, Counted()), now)

    def keep(self, comparison: DriveReadBack) -> None:
        """Keep a wrong transfer, unless one is known that is wrong whenever it is read."""
        earlier = self.wrong.get(comparison.serial)
        if earlier is None or not earlier.findings:
            self.wrong[comparison.serial] = comparison


def compare(setup: Setup, array: Array, fill: Fill, filled: StampedFill) -> ReadBack:
    """Read all data of the drives side by side, and compare them with those of their fill.

    Only reads. ``DriveFailed`` if a drive failed meanwhile, ``RigError`` or another child of it if the rig is at fault.
    """
    read_back = fixed_time.prepared(setup, array, partial(_compared, setup, array, fill, filled))
    setup.logbook.note("read_back", **shallow(read_back))
    return read_back


def report_s(size_bytes: int) -> int:
    """Return the seconds between fio's reports on a drive of this size: each part of a fast drive has one."""
    return max(1, int(size_bytes / FASTEST_BYTES_PER_S / PARTS))


def _compared(setup: Setup, array: Array, fill: Fill, filled: StampedFill) -> ReadBack:
    fixed_time.require(setup, array, writes=False)
    targets = array.targets
    sizes = [target.size_bytes for target in targets]
    job = jobs.compare(targets, fill.bs, filled.pattern, status_interval_s=report_s(min(sizes)))
    setup.progress(f"{array.geometry}: read back", 0)
    limit_s = max(sizes) / array_lifecycle.SLOWEST_FILL_BYTES_PER_S
    with fixed_time.passing(setup, array, "read back", fill.bs, job, limit_s) as done:
        comparison = _Comparison(setup, array, fill.bs, filled, done.before)
        wrong = comparison.wrong_transfers(done.finished)
        result = accepted(done.finished, job, targets, wrong)
        drives = [
            comparison.of_drive(drive, target, course)
            for drive, target, course in zip(array.members, targets, _courses(done.finished), strict=True)
        ]
    members = setup.held.drives[: array.geometry.width]
    left_out = [
        filled.wrong[drive.name] for drive in members if drive not in array.members and drive.name in filled.wrong
    ]
    return ReadBack(array.geometry, result.seconds, (*drives, *left_out), done.raw)


@frozen
class _Comparison:
    """What follows the pass over all drives: wrong transfers and slow parts are read again."""

    setup: Setup
    array: Array
    bs: str
    filled: StampedFill
    before: EnvironmentReading

    def wrong_transfers(self, finished: FinishedProcess) -> Collection[str]:
        """Keep the wrong transfers that fio reports, read each again, and return the paths of their drives."""
        transfers = first_wrong(finished.messages)
        if not transfers:
            return ()
        reading = environment.take_reading(self.setup.machine, self.array, self.before)
        drives = zip(self.array.members, self.array.targets, reading.drives, strict=True)
        wrong = [
            (drive, target, self.filled.foreign_bytes(drive, seen.counted), transfers[target.path])
            for drive, target, seen in drives
            if target.path in transfers
        ]
        # All are kept before the first is read again, which may end in an error.
        for drive, target, foreign_bytes, (offset_bytes, size_bytes) in wrong:
            self.setup.note(
                "wrong_data",
                self.array.geometry,
                serial=drive.name,
                offset_bytes=offset_bytes,
                size_bytes=size_bytes,
                foreign_bytes=foreign_bytes,
            )
            right_bytes = offset_bytes - target.begin_bytes
            block = WrongBlock(WrongKind.UNSTABLE, offset_bytes)
            self.filled.keep(
                DriveReadBack(drive.name, target.size_bytes, right_bytes, block, foreign_bytes=foreign_bytes)
            )
        for drive, target, _, transfer in wrong:
            kept = self.filled.wrong[drive.name]
            self.filled.keep(replace(kept, wrong=self._examined(target.path, *transfer)))
        return [target.path for _, target, _, _ in wrong]

    def _examined(self, path: str, offset_bytes: int, size_bytes: int) -> WrongBlock:
        """Read a wrong transfer again, and return what is wrong with it."""
        self.setup.held.require_lease()
        data = gzip.decompress(label.packed(self.setup.machine, path, offset_bytes, size_bytes))
        if len(data) != size_bytes:
            raise RigError(f"{path} returned {len(data)} of {size_bytes} bytes at byte {offset_bytes} when asked again")
        return examine(data, self.filled.stamp.at(offset_bytes))

    def of_drive(self, drive: Drive, target: JobTarget, course: Sequence[Interval]) -> DriveReadBack:
        """Return the result of a drive; ``course`` are its intervals over time."""
        of_parts = () if drive.name in self.filled.wrong else rates(course, target.size_bytes)
        slow = tuple(self._slow_zones(target, of_parts))
        if drive.name in self.filled.wrong:
            return replace(self.filled.wrong[drive.name], slow=slow)
        usual = median(of_parts) if of_parts else None
        return DriveReadBack(drive.name, target.size_bytes, target.size_bytes, slow=slow, usual_bytes_per_s=usual)

    def _slow_zones(self, target: JobTarget, of_parts: Sequence[float]) -> Iterator[SlowZone]:
        """Yield the parts that were slow, and are again when they are read by themselves.

        What slows the whole drive by then, such as heat, slows a part of median rate as well.
        """
        for number in slow_parts(of_parts)[:MOST_AGAIN]:
            part = self._part(target, number)
            bytes_per_s = self._rate_alone(part)
            usual = self._rate_alone(self._part(target, median_part(of_parts)))
            if 0 < bytes_per_s < LEAST_SHARE * usual:
                yield SlowZone(part.begin_bytes, part.size_bytes, bytes_per_s, usual)

    def _part(self, target: JobTarget, number: int) -> JobTarget:
        block_bytes = parse_size(self.bs)
        size_bytes = target.size_bytes // PARTS // block_bytes * block_bytes
        return replace(
            target, begin_bytes=target.begin_bytes + number * size_bytes, size_bytes=size_bytes, is_part=True
        )

    def _rate_alone(self, part: JobTarget) -> float:
        """Return the bytes per second of a part of one drive that is read while the others are idle.

        0 if it is read wrong now.
        """
        self.setup.held.require_lease()
        job = jobs.compare([part], self.bs, self.filled.pattern)
        limit_s = part.size_bytes / array_lifecycle.SLOWEST_FILL_BYTES_PER_S
        finished = process.run(self.setup.machine, job, limit_s, is_watched=True)
        self.setup.logbook.keep(f"{Path(part.path).name}-part.json.gz", finished.packed)
        if self.wrong_transfers(finished):
            return 0.0
        result = finished.totals(job.expectation)
        return result.read.bytes / result.seconds


def _courses(finished: FinishedProcess) -> Sequence[Sequence[Interval]]:
    """Return the intervals of each drive over time; none of a course that a changed clock makes unusable."""
    reader = output.read(finished.pieces(), MOST_DOCUMENTS)
    try:
        return reader.so_far().of_targets
    except InvalidMeasurement:
        return [() for _ in reader.totals().of_targets]


def first_wrong(messages: Iterable[str]) -> Mapping[str, tuple[int, int]]:
    """Return offset and size in bytes of the first transfer of each path that fio's messages name.

    Transfers that are under way when one is found wrong are compared, too, and end in any order.
    """
    wrong: dict[str, tuple[int, int]] = {}
    for line in messages:
        if match := WRONG.search(line):
            transfer = int(match[2]), int(match[3])
            wrong[match[1]] = min(transfer, wrong.get(match[1], transfer))
    return wrong


def accepted(
    finished: FinishedProcess, job: jobs.Job, targets: Sequence[JobTarget], wrong: Container[str]
) -> FioResult:
    """Return fio's counts; those of the paths with a ``wrong`` transfer end there, all others are whole.

    ``RigError`` or a child of it if one of these is not.
    """
    if wrong:
        totals = output.read(finished.pieces(), MOST_DOCUMENTS).totals()
        read = [sum(interval.read_bytes for interval in part) for part in totals.of_targets]
        whole = zip(targets, read, strict=True)
        if all(size == target.size_bytes for target, size in whole if target.path not in wrong):
            return totals
    return finished.totals(job.expectation)
