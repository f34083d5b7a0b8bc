"""What fio wrote, as values: its cumulative status documents become intervals, or an error that names the cause.

The one place for differences between fio's versions. Pure; everything was seen on fio 3.33 and 3.42
(tests/data/fio). fio's exit status and its ``error`` fields are signs among others: a killed worker, a refused
target and a full disk all end with status 0 in one version or both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_ssdqual.qual.histogram import LatencyHistogram
from pytest_ssdqual.qual.measurement import Interval
from pytest_ssdqual.rig.fio import counters
from pytest_ssdqual.rig.fio.counters import Counters, Direction, Snapshot
from pytest_ssdqual.rig.machine import InvalidMeasurement

#: Documents begin and end alone at the left margin; everything between them is fio's talk.
DOCUMENT = re.compile(r"^\{", re.MULTILINE)

#: How ``jobfile`` names the first section of each of several drives, by which fio names the group.
DRIVE = re.compile(r"drive-(\d+)(?:-\w+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class DiskUse:
    """The kernel's count of one block device during the process; members of an array are listed as well."""

    name: str
    read_ios: int
    write_ios: int
    busy_percent: float


@dataclass(frozen=True, slots=True)
class FioResult:
    """One fio process, all jobs together; the sum of ``intervals`` is ``read`` and ``write`` exactly.

    ``parts`` are the same intervals of each of several drives side by side, in the order they were given in: of equal
    number and at equal times, so that ``intervals`` is their sum. Of one target there are none.

    ``seconds`` is fio's own run time. ``started_ms`` is the machine's clock (UNIX epoch) when it began, to place
    the intervals among what others sampled. CPU is per cent of one core, mean of the jobs: near 100 the jobs were
    the limit, not the drives.
    """

    version: str
    started_ms: int
    seconds: float
    intervals: tuple[Interval, ...]
    read: Direction
    write: Direction
    #: errno of the first job that failed, or 0.
    error: int
    user_percent: float
    system_percent: float
    disks: tuple[DiskUse, ...]
    #: Lines of text between the documents.
    messages: tuple[str, ...]
    parts: tuple[tuple[Interval, ...], ...] = ()


def parse(data: bytes) -> FioResult:
    """Read the file written by ``--output-format=json+ --status-interval``.

    ``InvalidMeasurement`` if it holds no document, if a document is cut off or has another shape, if counters ran
    backwards, or if the machine's clock was set meanwhile. Whether the run is any good is ``verify.check``'s question.
    """
    snapshots: list[Snapshot] = []
    messages: list[str] = []
    last: dict[str, Any] = {}
    try:
        for piece in pieces(data):
            if isinstance(piece, str):
                messages.append(piece)
            else:
                snapshots.append(_snapshot(piece))
                last = piece
        if not snapshots:
            raise InvalidMeasurement(f"fio wrote no result{_quoted(messages)}")
        return _result(snapshots, last, messages)
    except (KeyError, TypeError, ZeroDivisionError) as error:
        version = last.get("fio version", "an unknown fio")
        raise InvalidMeasurement(f"the output of {version} has an unknown shape: {error!r}") from error
    except ValueError as error:
        raise InvalidMeasurement(f"fio's counters are not those of one run: {error}") from error


def pieces(data: bytes) -> Iterator[dict[str, Any] | str]:
    """The documents of an output file, and the lines of text before, between and after them, in their order."""
    text = data.decode("utf-8", "backslashreplace")
    decoder = json.JSONDecoder()
    position = count = 0
    while found := DOCUMENT.search(text, position):
        yield from _lines(text[position : found.start()])
        try:
            document, position = decoder.raw_decode(text, found.start())
        except json.JSONDecodeError as error:
            where = f"after {count} whole documents, at byte {error.pos} of {len(data)}"
            raise InvalidMeasurement(f"fio's output is damaged or cut off {where}; is its file system full?") from error
        count += 1
        yield document
    yield from _lines(text[position:])


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _result(snapshots: Sequence[Snapshot], last: dict[str, Any], messages: Sequence[str]) -> FioResult:
    parts, started_ms = counters.parts(snapshots)
    jobs, final = last["jobs"], snapshots[-1].parts
    return FioResult(
        version=str(last["fio version"]),
        started_ms=started_ms,
        seconds=snapshots[-1].asked_ms / 1000,
        intervals=parts[0] if len(parts) == 1 else tuple(map(counters.together, zip(*parts, strict=True))),
        read=counters.summed([part.read for part in final]),
        write=counters.summed([part.write for part in final]),
        error=next((int(job["error"]) for job in jobs if job["error"]), 0),
        user_percent=sum(job["usr_cpu"] for job in jobs) / len(jobs),
        system_percent=sum(job["sys_cpu"] for job in jobs) / len(jobs),
        disks=tuple(_disks(last)),
        messages=tuple(messages),
        parts=tuple(parts) if len(parts) > 1 else (),
    )


def _snapshot(document: dict[str, Any]) -> Snapshot:
    jobs = document["jobs"]
    return Snapshot(
        printed_ms=int(document["timestamp_ms"]),
        asked_ms=max(int(job[way]["runtime"]) for job in jobs for way in ("read", "write")),
        parts=_parts(jobs),
    )


def _parts(jobs: Sequence[dict[str, Any]]) -> tuple[Counters, ...]:
    """Of drives side by side each one's counters; otherwise everything in one."""
    each = [Counters(_direction(job["read"]), _direction(job["write"])) for job in jobs]
    found = [DRIVE.fullmatch(str(job.get("jobname", ""))) for job in jobs]
    numbers = [int(drive[1]) for drive in found if drive]
    if numbers and numbers == list(range(len(jobs))):
        return tuple(each)
    return (Counters(counters.summed([one.read for one in each]), counters.summed([one.write for one in each])),)


def _direction(way: dict[str, Any]) -> Direction:
    latency = way["lat_ns"]
    return Direction(
        ios=way["total_ios"],
        bytes=way["io_bytes"],
        latency=_histogram(latency),
        mean_ns=latency["mean"] if latency["N"] else 0.0,
        max_ns=latency["max"],
    )


def _histogram(latency: dict[str, Any]) -> LatencyHistogram:
    # fio leaves "bins" out of a direction without I/O.
    bins = latency.get("bins", {})
    return LatencyHistogram.from_bins({int(value_ns): count for value_ns, count in bins.items()})


def _disks(document: dict[str, Any]) -> list[DiskUse]:
    """None for plain files on some file systems, or when a process was refused at once."""
    return [
        DiskUse(str(disk["name"]), int(disk["read_ios"]), int(disk["write_ios"]), float(disk["util"]))
        for disk in document.get("disk_util", ())
    ]


def _quoted(messages: Sequence[str]) -> str:
    return f": {messages[0].strip()}" if messages else ""
