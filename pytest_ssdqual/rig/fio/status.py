"""One of fio's status documents, as values; every value is looked at before it is used. Pure.

The file comes from the machine under test: whatever is not of the shape that fio 3.33 and 3.42 write is ``OddShape``,
never an error of Python's somewhere behind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from pytest_ssdqual.qual import safe_text, strict_json
from pytest_ssdqual.qual.measured.histogram import LatencyHistogram, packed_buckets
from pytest_ssdqual.rig.fio import intervals
from pytest_ssdqual.rig.fio.intervals import Counters, IoDirection, Snapshot

#: How ``jobfile`` names the first section of each of several drives, by which fio names the group.
DRIVE = re.compile(r"drive-(\d{1,9})(?:-\w+)*", re.ASCII)
WAYS = ("read", "write")
#: fio's buckets end at 17 s; its counters have 64 bits.
LARGEST_COUNT = 2**63


class OddShape(ValueError):
    """A document is not one of fio's; the sentence says what is odd."""


@dataclass(frozen=True, slots=True)
class DiskUse:
    """The kernel's count of one block device during the process; members of an array are listed as well."""

    name: str
    read_ios: int
    write_ios: int
    busy_percent: float


@dataclass(frozen=True, slots=True)
class Ended:
    """What only the last document of a process is asked for."""

    version: str
    #: errno of the first job that failed, or 0.
    error: int
    #: Per cent of one core, mean of the jobs.
    user_percent: float
    system_percent: float
    disks: tuple[DiskUse, ...]


def snapshot(document: Mapping[str, object]) -> Snapshot:
    """Its counters and clocks."""
    jobs = _jobs(document)
    return Snapshot(
        printed_ms=_count(document, "timestamp_ms"),
        asked_ms=max(_count(_table(job, way), "runtime") for job in jobs for way in WAYS),
        parts=_parts(jobs),
    )


def ended(document: Mapping[str, object]) -> Ended:
    """Of the last document."""
    jobs = _jobs(document)
    return Ended(
        version=version(document),
        error=next(filter(None, (_whole(job, "error") for job in jobs)), 0),
        user_percent=sum(_number(job, "usr_cpu") for job in jobs) / len(jobs),
        system_percent=sum(_number(job, "sys_cpu") for job in jobs) / len(jobs),
        disks=_disks(document),
    )


def version(document: Mapping[str, object]) -> str:
    """As it calls itself, ``fio-3.33``."""
    return safe_text.line(str(document.get("fio version", "an unknown fio")), 80)


def _jobs(document: Mapping[str, object]) -> list[Mapping[str, object]]:
    found = document.get("jobs")
    if not isinstance(found, list) or not found or not all(isinstance(job, dict) for job in found):
        raise OddShape("it has no jobs")
    return found


def _parts(jobs: Sequence[Mapping[str, object]]) -> tuple[Counters, ...]:
    """Of drives side by side each one's counters; otherwise everything in one."""
    each = [Counters(*(_direction(_table(job, way)) for way in WAYS)) for job in jobs]
    found = [DRIVE.fullmatch(str(job.get("jobname", ""))) for job in jobs]
    numbers = [int(drive[1]) for drive in found if drive]
    if numbers and numbers == list(range(len(jobs))):
        return tuple(each)
    return (Counters(intervals.summed([one.read for one in each]), intervals.summed([one.write for one in each])),)


def _direction(way: Mapping[str, object]) -> IoDirection:
    latency = _table(way, "lat_ns")
    return IoDirection(
        ios=_count(way, "total_ios"),
        bytes=_count(way, "io_bytes"),
        latency=_histogram(latency),
        mean_ns=_number(latency, "mean") if _count(latency, "N") else 0.0,
        max_ns=_count(latency, "max"),
    )


def _histogram(latency: Mapping[str, object]) -> LatencyHistogram:
    # fio leaves "bins" out of a direction without I/O.
    bins = _table(latency, "bins") if "bins" in latency else {}
    try:
        if set(map(type, bins.values())) == {int} and (buckets := _buckets(tuple(bins))):
            return LatencyHistogram.in_buckets(buckets, cast("list[int]", list(bins.values())))
        return LatencyHistogram.from_bins({int(value_ns): strict_json.count(bins, value_ns) for value_ns in bins})
    except ValueError as error:
        raise OddShape(f"its bins are none: {error}") from error


# One for each direction of 32 drives. Nineteen of twenty documents have the buckets of the one before: they are read
# and kept once.
@lru_cache(maxsize=64)
def _buckets(names: tuple[str, ...]) -> bytes | None:
    """None unless they rise, as fio's do."""
    try:
        return packed_buckets(map(int, names))
    except ValueError:
        return None


def _disks(document: Mapping[str, object]) -> tuple[DiskUse, ...]:
    """None for plain files on some file systems, or when a process was refused at once."""
    found = document.get("disk_util", [])
    if not isinstance(found, list) or not all(isinstance(disk, dict) for disk in found):
        raise OddShape("its disks are none")
    return tuple(
        DiskUse(
            safe_text.line(str(disk.get("name"))), _count(disk, "read_ios"), _count(disk, "write_ios"),
            _number(disk, "util"),
        )
        for disk in found
    )  # fmt: skip


def _table(record: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = record.get(name)
    if not isinstance(found, dict):
        raise OddShape(f"{name} is missing")
    return found


def _count(record: Mapping[str, object], name: str) -> int:
    found = strict_json.whole(record.get(name), LARGEST_COUNT)
    if found is None:
        raise OddShape(f"{name} is no count")
    return found


def _whole(record: Mapping[str, object], name: str) -> int:
    """Of either sign: errno is told negative in places."""
    found = record.get(name)
    if not isinstance(found, int) or isinstance(found, bool) or abs(found) > LARGEST_COUNT:
        raise OddShape(f"{name} is no number")
    return found


def _number(record: Mapping[str, object], name: str) -> float:
    try:
        return strict_json.number(record.get(name))
    except ValueError:
        raise OddShape(f"{name} is no number") from None
