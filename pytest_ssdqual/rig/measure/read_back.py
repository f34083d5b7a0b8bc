"""Reads all data of filled drives side by side, and compares them with what the fill wrote.

A wrong transfer is a finding about its drive. A transfer that cannot be read is a failed drive, as under any load.
"""

from __future__ import annotations

import gzip
import re
import secrets
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

from pytest_ssdqual.qual.integrity import stamp
from pytest_ssdqual.qual.integrity.read_back import (
    LEAST_SHARE,
    PARTS,
    DriveReadBack,
    ReadBack,
    SlowZone,
    WrongBlock,
    examine,
    rates,
    slow_parts,
)
from pytest_ssdqual.qual.integrity.stamp import GENERATIONS, HISTORIES, Stamp
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.records import shallow
from pytest_ssdqual.qual.spec.protocol_rules import Fill
from pytest_ssdqual.qual.units import parse_size
from pytest_ssdqual.rig.fio import acceptance, jobs, output, process
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.fio.output import MOST_DOCUMENTS, FioResult
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.guard.label import RAW
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, RigError
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle, fixed_time
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import drive_failure, live_stats

#: fio's message about the first wrong transfer of a target (verify.c).
WRONG = re.compile(r"verify failed at file (/\S+) offset \d+, length \d+ \(requested block: offset=(\d+), length=(\d+)")
EXAMINE_S = 300.0
#: Most parts of a drive that are read again.
MOST_AGAIN = 4


def new_stamp() -> Stamp:
    """Return the stamp of a new fill: its 48 random bits tell its data from those of any earlier one."""
    return Stamp(secrets.randbelow(HISTORIES), secrets.randbelow(GENERATIONS), 0)


def pattern(written: Stamp) -> str:
    """Return fio's pattern of a stamp."""
    return stamp.fio_pattern(written.history, written.generation)


def compare(setup: Setup, array: Array, fill: Fill, written: Stamp) -> ReadBack:
    """Read all data of the drives side by side that were filled with ``written``, and compare them.

    Only reads. ``DriveFailed`` if a drive failed meanwhile, ``RigError`` or another child of it if the rig is at fault.
    """
    read_back = fixed_time.prepared(setup, array, partial(_compared, setup, array, fill, written))
    setup.logbook.note("read_back", **shallow(read_back))
    return read_back


def _compared(setup: Setup, array: Array, fill: Fill, written: Stamp) -> ReadBack:
    fixed_time.require(setup, array, writes=False)
    targets = array.targets
    largest = max(target.size_bytes for target in targets)
    every_s = array_lifecycle.report_s(largest)
    job = jobs.compare(targets, fill.bs, pattern(written), status_interval_s=every_s)
    setup.progress(f"{array.geometry}: read back", 0)
    before = drive_failure.reading_before(setup, array, is_measured=False)
    with drive_failure.attributed(setup, array, before, kind="read back") as files:
        with live_stats.watched(setup.live, array, None, "read back", parse_size(fill.bs)):
            limit_s = largest / array_lifecycle.SLOWEST_FILL_BYTES_PER_S
            finished = process.run(setup.machine, job, limit_s, is_watched=True)
        raw = setup.logbook.keep(f"{array.geometry}-read-back.json.gz", finished.packed)
        files.append(raw)
        wrong = _wrong_transfers(finished)
        result = _accepted(finished, job, targets, wrong)
    drive_failure.reading_after(setup, array, before)
    drives = []
    for drive, target, total, course in zip(array.members, targets, _parts(result), _courses(finished), strict=True):
        read_bytes = sum(interval.read_bytes for interval in total)
        if target.path in wrong:
            block = _examined(setup, target.path, *wrong[target.path], written)
            drives.append(DriveReadBack(drive.name, target.size_bytes, read_bytes, block))
            continue
        slow = _slow_zones(setup, target, rates(course, target.size_bytes), fill.bs, written)
        drives.append(DriveReadBack(drive.name, target.size_bytes, read_bytes, slow=tuple(slow)))
    return ReadBack(array.geometry, result.seconds, tuple(drives), raw)


def _parts(result: FioResult) -> Sequence[Sequence[Interval]]:
    """Return the intervals of each drive, of which there may be only one."""
    return result.parts or (result.intervals,)


def _courses(finished: FinishedProcess) -> Sequence[Sequence[Interval]]:
    """Return the intervals of each drive over time; none of a course that a changed clock makes unusable."""
    reader = output.read(finished.pieces(), MOST_DOCUMENTS)
    try:
        return _parts(reader.so_far())
    except InvalidMeasurement:
        return [() for _ in _parts(reader.totals())]


def _slow_zones(
    setup: Setup, target: JobTarget, of_parts: Sequence[float], bs: str, written: Stamp
) -> Iterator[SlowZone]:
    """Yield the parts that were slow, and are again when they are read by themselves."""
    block_bytes = parse_size(bs)
    size_bytes = target.size_bytes // PARTS // block_bytes * block_bytes
    for number in slow_parts(of_parts)[:MOST_AGAIN]:
        begin_bytes = target.begin_bytes + number * size_bytes
        part = replace(target, begin_bytes=begin_bytes, size_bytes=size_bytes, is_part=True)
        bytes_per_s = _rate_alone(setup, part, bs, written)
        if bytes_per_s < LEAST_SHARE * median(of_parts):
            yield SlowZone(begin_bytes, size_bytes, bytes_per_s, median(of_parts))


def _rate_alone(setup: Setup, part: JobTarget, bs: str, written: Stamp) -> float:
    """Return the bytes per second of a part of one drive that is read while the others are idle."""
    setup.held.require_lease()
    job = jobs.compare([part], bs, pattern(written))
    finished = process.run(setup.machine, job, part.size_bytes / array_lifecycle.SLOWEST_FILL_BYTES_PER_S)
    setup.logbook.keep(f"{Path(part.path).name}-slow-part.json.gz", finished.packed)
    done = finished.completed
    result = acceptance.accept_totals(finished.pieces(), done.status, done.errors, job.expectation)
    return result.read.bytes / result.seconds


def _wrong_transfers(finished: FinishedProcess) -> Mapping[str, tuple[int, int]]:
    """Return offset and size of the first wrong transfer of each path that has one."""
    return first_wrong(acceptance.messages(finished.pieces(), finished.completed.errors))


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


def _accepted(
    finished: FinishedProcess, job: jobs.Job, targets: Sequence[JobTarget], wrong: Container[str]
) -> FioResult:
    """Return fio's counts; those of the paths with a ``wrong`` transfer end there, all others are whole."""
    if wrong:
        totals = output.read(finished.pieces(), MOST_DOCUMENTS).totals()
        read = [sum(interval.read_bytes for interval in part) for part in _parts(totals)]
        whole = zip(targets, read, strict=True)
        if all(size == target.size_bytes for target, size in whole if target.path not in wrong):
            return totals
    done = finished.completed
    return acceptance.accept_totals(finished.pieces(), done.status, done.errors, job.expectation, most=MOST_DOCUMENTS)


def _examined(setup: Setup, path: str, offset_bytes: int, size_bytes: int, written: Stamp) -> WrongBlock:
    """Read a wrong transfer again, and return what is wrong with it."""
    argv = ["sh", "-c", RAW, "raw", path, str(offset_bytes), str(size_bytes)]
    data = gzip.decompress(setup.machine.run(argv, deadline_s=EXAMINE_S, repeatable=True).stdout)
    if len(data) != size_bytes:
        raise RigError(f"{path} returned {len(data)} of {size_bytes} bytes at byte {offset_bytes} when asked again")
    return examine(data, written.at(offset_bytes))
