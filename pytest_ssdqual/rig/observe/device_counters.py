"""Counters of block devices in sysfs, and the traffic and queue of a device between two readings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import astuple
from operator import sub

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.environment import DeviceQueue, Traffic, total
from pytest_ssdqual.qual.numbers import count, decimal

SECTOR_BYTES = 512
#: Fields of /sys/block/<name>/stat (Documentation/block/stat.rst), counted from 0.
READS, READ_MERGES, READ_SECTORS, WRITES, WRITE_MERGES, WRITE_SECTORS = 0, 1, 2, 4, 5, 6
#: Of the same file, milliseconds: of all reads, of all writes, with any I/O outstanding, of all outstanding I/Os.
READ_MS, WRITE_MS, BUSY_MS, QUEUED_MS = 3, 7, 9, 10
#: Of the same file since Linux 4.18.
DISCARD_SECTORS = 13
#: The kernel prints the milliseconds as 32-bit numbers (block/genhd.c), which begin again at 0. 256 outstanding I/Os
#: pass all of them in 4.6 hours, 2048 in 35 minutes.
WRAP_MS = 1 << 32
#: Fewest requests that are taken for possible at a device, whatever the workload: md and file systems make some, too.
FEWEST_POSSIBLE = 256
#: The block layer splits a large I/O into requests of at most max_sectors_kb, rarely less than this; and a write of an
#: array has up to two requests at one member, the read and the write of a parity update.
REQUEST_BYTES, LEAST_REQUESTS = 128 << 10, 2


@frozen
class Counted:
    """Counters of one block device at one moment."""

    #: The kernel's number of this appearance of the device (diskseq); 0 if the kernel reports none.
    appearance: int = 0
    #: I/O since it appeared; None if it is absent, or does not count.
    traffic: Traffic | None = None
    #: Milliseconds of reads, of writes, with I/O outstanding, and of all outstanding I/Os; None as above.
    milliseconds: tuple[int, int, int, int] | None = None
    discarded_bytes: int = 0


def counted(name: str, files: Mapping[str, str]) -> Counted:
    """Counters of the head, or of all its paths together where only those count."""
    before, _, number = map(re.escape, name.rpartition("n"))
    path = re.compile(rf"/sys/block/{before}c\d+n{number}/stat")
    own = files.get(f"/sys/block/{name}/stat", "")
    head = traffic(own)
    paths = [path_traffic for file, value in files.items() if path.fullmatch(file) and (path_traffic := traffic(value))]
    if head is None or files.get(f"/sys/block/{name}/queue/iostats") == "0":
        return Counted()
    together = head.combined(max, total(paths))
    # Paths of a namespace count their own queues; the head of old kernels counts none.
    milliseconds = _milliseconds(own) if not paths else None
    appearance = decimal(files.get(f"/sys/block/{name}/diskseq")) or 0
    return Counted(appearance, together, milliseconds, _discarded(own))


def _discarded(text: str) -> int:
    fields = text.split()
    return count(fields[DISCARD_SECTORS]) * SECTOR_BYTES if len(fields) > DISCARD_SECTORS else 0


def _milliseconds(text: str) -> tuple[int, int, int, int] | None:
    fields = [count(word) for word in text.split()]
    if len(fields) <= QUEUED_MS:
        return None
    return fields[READ_MS], fields[WRITE_MS], fields[BUSY_MS], fields[QUEUED_MS]


def traffic(text: str) -> Traffic | None:
    """Parse a ``stat`` file; None if it has too few fields, ``ValueError`` if one is no number."""
    fields = [count(word) for word in text.split()]
    if len(fields) <= WRITE_SECTORS:
        return None
    return Traffic(
        fields[READS] + fields[READ_MERGES],
        fields[WRITES] + fields[WRITE_MERGES],
        fields[READ_SECTORS] * SECTOR_BYTES,
        fields[WRITE_SECTORS] * SECTOR_BYTES,
    )


def most_requests(outstanding: int, block_bytes: int) -> int:
    """Return the most requests at a device that ``outstanding`` I/Os of at most ``block_bytes`` can cause."""
    return max(FEWEST_POSSIBLE, outstanding * max(LEAST_REQUESTS, -(-block_bytes // REQUEST_BYTES)))


def queue(before: Counted, after: Counted, seconds: float, most: int) -> DeviceQueue | None:
    """Queue of a device between two readings, over the run time of fio; None if it is not known.

    ``most`` requests are possible at a time. The queue is unknown if the counters could have begun again unnoticed
    with so many, and if they rose by more than so many cause, because then they went backwards.
    """
    moved, first, last = traffic_between(before, after), before.milliseconds, after.milliseconds
    most_ms = 1000 * seconds * most
    if moved is None or first is None or last is None or not 0 < most_ms < WRAP_MS:
        return None
    risen = [(now - then) % WRAP_MS for then, now in zip(first, last, strict=True)]
    if max(risen) > most_ms:
        return None
    reads_ms, writes_ms, busy_ms, queued_ms = risen
    return DeviceQueue(
        read_iops=moved.reads / seconds,
        write_iops=moved.writes / seconds,
        mean_depth=queued_ms / 1000 / seconds,
        read_wait_ns=1e6 * reads_ms / moved.reads if moved.reads else None,
        write_wait_ns=1e6 * writes_ms / moved.writes if moved.writes else None,
        busy=min(1.0, busy_ms / 1000 / seconds),
    )


def traffic_between(before: Counted, after: Counted) -> Traffic | None:
    """I/O between two readings of a device; None if it is not the same appearance of the same device."""
    earlier, now = before.traffic, after.traffic
    if earlier is None or now is None or before.appearance != after.appearance:
        return None
    moved = now.combined(sub, earlier)
    return moved if min(astuple(moved)) >= 0 else None


def changed_bytes(before: Counted, after: Counted) -> int:
    """Return the bytes that were written to a device and discarded between two readings; 0 if that is not known."""
    moved = traffic_between(before, after)
    return moved.write_bytes + after.discarded_bytes - before.discarded_bytes if moved else 0
