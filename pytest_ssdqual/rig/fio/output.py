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
from itertools import pairwise
from typing import Any

from pytest_ssdqual.qual.histogram import LatencyHistogram
from pytest_ssdqual.qual.measurement import Interval
from pytest_ssdqual.rig.machine import InvalidMeasurement

#: Documents begin and end alone at the left margin; everything between them is fio's talk.
DOCUMENT = re.compile(r"^\{", re.MULTILINE)

#: Scheduling noise between the moment a status is asked for and the moment it is stamped.
CLOCK_SLACK_MS = 100


@dataclass(frozen=True, slots=True)
class Direction:
    """All reads, or all writes, of a whole process."""

    ios: int
    bytes: int
    latency: LatencyHistogram
    #: Exact, not from the bins.
    mean_ns: float
    max_ns: int


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


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """Cumulative counters of one document, and the two clocks it carries (see ``_moments``)."""

    printed_ms: int
    asked_ms: int
    read: Direction
    write: Direction


def parse(data: bytes) -> FioResult:
    """Read the file written by ``--output-format=json+ --status-interval``.

    ``InvalidMeasurement`` if it holds no document, if a document is cut off or has another shape, if counters ran
    backwards, or if the machine's clock was set meanwhile. Whether the run is any good is ``verify.check``'s question.
    """
    snapshots: list[_Snapshot] = []
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


def _result(snapshots: Sequence[_Snapshot], last: dict[str, Any], messages: Sequence[str]) -> FioResult:
    moments_ms, started_ms = _moments(snapshots)
    jobs = last["jobs"]
    return FioResult(
        version=str(last["fio version"]),
        started_ms=started_ms,
        seconds=snapshots[-1].asked_ms / 1000,
        intervals=tuple(_intervals(snapshots, moments_ms)),
        read=snapshots[-1].read,
        write=snapshots[-1].write,
        error=next((int(job["error"]) for job in jobs if job["error"]), 0),
        user_percent=sum(job["usr_cpu"] for job in jobs) / len(jobs),
        system_percent=sum(job["sys_cpu"] for job in jobs) / len(jobs),
        disks=tuple(_disks(last)),
        messages=tuple(messages),
    )


def _snapshot(document: dict[str, Any]) -> _Snapshot:
    jobs = document["jobs"]
    return _Snapshot(
        printed_ms=int(document["timestamp_ms"]),
        asked_ms=max(int(job[way]["runtime"]) for job in jobs for way in ("read", "write")),
        read=_direction([job["read"] for job in jobs]),
        write=_direction([job["write"] for job in jobs]),
    )


def _direction(parts: Sequence[dict[str, Any]]) -> Direction:
    """The sum over jobs; with group_reporting there is one."""
    latencies = [part["lat_ns"] for part in parts]
    samples = sum(latency["N"] for latency in latencies)
    return Direction(
        ios=sum(part["total_ios"] for part in parts),
        bytes=sum(part["io_bytes"] for part in parts),
        latency=LatencyHistogram.merged(map(_histogram, latencies)),
        mean_ns=sum(latency["mean"] * latency["N"] for latency in latencies) / samples if samples else 0.0,
        max_ns=max(latency["max"] for latency in latencies),
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


def _moments(snapshots: Sequence[_Snapshot]) -> tuple[list[int], int]:
    """When each document's counters were read, in ms since the start; and the start, by the machine's clock.

    ``runtime`` is the time a status was *asked for*: fio then waits for every worker, so that after a stall it is
    seconds too early for the counters beside it (1.9 s against 3.4 s in tests/data/fio/*/stalled). ``timestamp_ms``
    is stamped after the wait, but only relative, and in the final document up to 250 ms after the last I/O. So:
    the stamp for all but the last, which has its run time. ``elapsed`` is whole seconds, ``job_runtime`` a sum
    over jobs, ``job_start`` newer than 3.33.

    A status is printed before the next is asked for. A stamp that breaks this rule means that the clock was set.
    """
    *running, last = snapshots
    offsets = [each.printed_ms - each.asked_ms for each in running if each.asked_ms]
    started_ms = min(offsets, default=last.printed_ms - last.asked_ms)
    moments_ms = []
    for each, following in pairwise(snapshots):
        moment_ms = each.printed_ms - started_ms
        if moment_ms > following.asked_ms + CLOCK_SLACK_MS and following is not last:
            late_ms = moment_ms - following.asked_ms
            raise InvalidMeasurement(f"the machine's clock was set by {late_ms} ms or more during the measurement")
        moments_ms.append(max(each.asked_ms, min(moment_ms, following.asked_ms)))
    return [*moments_ms, last.asked_ms], started_ms


def _intervals(snapshots: Sequence[_Snapshot], moments_ms: Sequence[int]) -> list[Interval]:
    """Differences between documents whose time went on; counts of the others fall to the next interval.

    Being cumulative, a document can be left out without loss, except the last: it takes the place of those that
    claim to be as late as itself (repeated time stamps, fio#971).
    """
    last_ms = moments_ms[-1]
    kept: list[tuple[int, _Snapshot]] = []
    for moment_ms, snapshot in zip(moments_ms[:-1], snapshots[:-1], strict=True):
        if (kept[-1][0] if kept else 0) < moment_ms < last_ms:
            kept.append((moment_ms, snapshot))
    if last_ms:
        kept.append((last_ms, snapshots[-1]))
    intervals = []
    before_ms, before = 0, _Snapshot(0, 0, _NOTHING, _NOTHING)
    for moment_ms, snapshot in kept:
        intervals.append(_between(before_ms, before, moment_ms, snapshot, snapshots[-1]))
        before_ms, before = moment_ms, snapshot
    return intervals


def _between(start_ms: int, before: _Snapshot, end_ms: int, after: _Snapshot, last: _Snapshot) -> Interval:
    read_latency = after.read.latency - before.read.latency
    write_latency = after.write.latency - before.write.latency
    return Interval(
        start_s=start_ms / 1000,
        seconds=(end_ms - start_ms) / 1000,
        read_ios=read_latency.total,
        write_ios=write_latency.total,
        read_bytes=_bytes(before.read, after.read, last.read, read_latency.total),
        write_bytes=_bytes(before.write, after.write, last.write, write_latency.total),
        read_latency=read_latency,
        write_latency=write_latency,
    )


def _bytes(before: Direction, after: Direction, last: Direction, ios: int) -> int:
    """Bytes of ``ios`` completions.

    fio reads ``io_bytes`` before it waits for the workers (3.33: 90k I/Os' worth beside 151k counted in the bins of
    one stalled document), so where all transfers have one size the count is taken from the bins.
    """
    if last.ios and last.bytes % last.ios == 0 and last.ios == last.latency.total:
        return ios * (last.bytes // last.ios)
    return after.bytes - before.bytes


def _quoted(messages: Sequence[str]) -> str:
    return f": {messages[0].strip()}" if messages else ""


_NOTHING = Direction(0, 0, LatencyHistogram(), 0.0, 0)
