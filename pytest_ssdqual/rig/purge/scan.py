"""Reads ranges of a device on the machine itself, and looks for data that were to be erased; writes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ssdqual.qual.integrity.erasure import ScannedRange
from pytest_ssdqual.qual.integrity.stamp import Stamp
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.guard.sampling import SCRIPT
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import DeadlineExceeded, Machine

PERL, PYTHON = map(scripts.text, ("scan.pl", "scan.py"))
#: Time of a scan beside that of its reads, and their assumed minimum rate in bytes per second.
LEAST_S, SLOWEST_BYTES_PER_S = 300.0, 5_000_000
#: Number of samples of a drive, evenly from its first to its last page, and the bytes of each.
PLACES, PAGE_BYTES = 64, 4096


def scan(machine: Machine, path: str, stamp: Stamp, ranges: Sequence[tuple[int, int]]) -> tuple[ScannedRange, ...]:
    """Read ranges (offset and size in bytes), and look for stamps of this fill.

    A range that could not be read has fewer bytes; there are fewer ranges if the machine did not answer.
    """
    deadline_s = LEAST_S + sum(size for _, size in ranges) / SLOWEST_BYTES_PER_S
    words = [str(number) for part in ranges for number in part]
    known = stamp.cell[:8].hex()  # all but the offset
    done = scripts.answer(machine, SCRIPT, "scan", PERL, PYTHON, known, path, *words, deadline_s=deadline_s)
    rows = [[None if word == "-" else int(word) for word in line.split()] for line in done.text.splitlines()]
    return tuple(
        ScannedRange(begin, read or 0, old_at, fill, checksum or 0)
        for (begin, _), (read, old_at, fill, checksum) in zip(ranges, rows, strict=False)
    )


def sample(machine: Machine, drive: Drive) -> tuple[ScannedRange, ...]:
    """Read places of a drive, the same in each call; none if it does not answer in time: blocks that cannot be read
    may take half a minute each, and a purge repairs them.
    """
    last = drive.size_bytes // PAGE_BYTES - 1
    pages = sorted({last * number // (PLACES - 1) for number in range(PLACES)})
    try:
        return scan(machine, drive.path, Stamp(0, 0, 0), [(page * PAGE_BYTES, PAGE_BYTES) for page in pages])
    except DeadlineExceeded:
        return ()
