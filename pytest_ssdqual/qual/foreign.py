"""I/O that was not fio's: what the kernel counted at drives and arrays, against what fio did and the level needs.

Bytes are compared, because they are exact however the kernel splits and merges (measured on all levels, Linux 6.1);
I/Os as well where nothing splits them, because small ones cost a drive more than their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from pytest_ssdqual.qual.check import Check, unknown
from pytest_ssdqual.qual.geometry import FACTS, Geometry, Level, costs
from pytest_ssdqual.qual.measurement import Run
from pytest_ssdqual.qual.seen import SeenArray, SeenDrive, Traffic, total
from pytest_ssdqual.qual.workload import Workload

#: Part of what fio did that others may do: so little cannot be seen in any figure.
SHARE = 0.01
#: What goes on anyway: multipath's path checks, md's superblocks (measured: 6 KiB).
QUIET = Traffic(64, 64, 1 << 20, 1 << 20)
#: What is written to is looked at when it is closed: the kernel looks for partitions, udev for file systems. Measured
#: at arrays and drives after fio ended: up to 230 reads, 4.3 MB. After reading: nothing at all.
LOOKED_AT = Traffic(500, 0, 8 << 20, 0)
#: Up to this size, and aligned, I/Os arrive at a drive as they were made: 16 pages fit into any scatter list.
UNSPLIT_BYTES = 64 << 10
PAGE_BYTES = 4096

BELIEVABLE = f"up to {SHARE:.0%} of what fio did"


@dataclass(frozen=True, slots=True)
class Excess:
    """What was done beyond what was expected, and how much of it is nothing to speak of."""

    found: Traffic
    allowed: Traffic

    @classmethod
    def of(cls, counted: Traffic, expected: Traffic, allowed: Traffic) -> Excess:
        found = Traffic(
            counted.reads - expected.reads,
            counted.writes - expected.writes,
            counted.read_bytes - expected.read_bytes,
            counted.write_bytes - expected.write_bytes,
        )
        return cls(found, allowed)

    def too_much(self, *, ios: bool) -> list[str]:
        """``read 52 MB (12,800 I/Os)``, and the same of writes, where it is more than allowed."""
        found, allowed, said = self.found, self.allowed, []
        for verb, done_bytes, may_bytes, done, may in (
            ("read", found.read_bytes, allowed.read_bytes, found.reads, allowed.reads),
            ("wrote", found.write_bytes, allowed.write_bytes, found.writes, allowed.writes),
        ):
            if done_bytes > may_bytes or (ios and done > may):
                said.append(f"{verb} {_megabytes(done_bytes)}" + (f" ({done:,} I/Os)" if ios else ""))
        return said

    def percent(self, asked: Traffic) -> float:
        """Of what fio did, in bytes."""
        found = max(0, self.found.read_bytes) + max(0, self.found.write_bytes)
        return 100 * found / asked.total_bytes if asked.total_bytes else 0.0


def of_run(run: Run) -> Iterator[Check]:
    """One check for each drive that fio used itself, or for the array and its members."""
    if run.seen is None:
        yield unknown("foreign_percent", BELIEVABLE)
    elif run.seen.array is None:
        yield from (_at_drive(run, drive) for drive in run.seen.drives)
    else:
        yield _at_array(run, run.seen.array)
        yield _at_members(run, run.seen.array, run.seen.drives)


def _at_drive(run: Run, drive: SeenDrive) -> Check:
    counted, asked = drive.device.counted, drive.device.asked
    if counted is None or asked is None:
        return unknown("foreign_percent", BELIEVABLE, drive.name)
    excess = Excess.of(counted, asked, _allowed(run, asked))
    said = [
        f"something else {each} at drive {drive.name} meanwhile" for each in excess.too_much(ios=_whole(run.workload))
    ]
    if asked.total_bytes - counted.total_bytes > SHARE * asked.total_bytes + QUIET.read_bytes:
        said.append(
            f"the kernel counted only {_megabytes(counted.total_bytes)} of the {_megabytes(asked.total_bytes)} "
            f"that fio says it read and wrote at drive {drive.name}"
        )
    return Check("foreign_percent", excess.percent(asked), BELIEVABLE, tuple(said), drive.name)


def _at_array(run: Run, array: SeenArray) -> Check:
    """At the array's own block device."""
    counted, asked = _countable(run.workload, array), array.device.asked
    if counted is None or asked is None:
        return unknown("foreign_percent", BELIEVABLE)
    excess = Excess.of(counted, asked, _allowed(run, asked))
    said = [f"something else {each} at {run.geometry} meanwhile" for each in excess.too_much(ios=False)]
    return Check("foreign_percent", excess.percent(asked), BELIEVABLE, tuple(said))


def _countable(workload: Workload, array: SeenArray) -> Traffic | None:
    """What the kernel counted at the array, where it counts it right.

    Kernels before 5.13 count an I/O that crosses a chunk twice, some none at all.
    """
    counted, asked, chunk = array.device.counted, array.device.asked, array.chunk_bytes
    if counted is None or asked is None or chunk is None or counted.total_bytes < asked.total_bytes / 2:
        return None
    crosses = chunk > 0 and (workload.offset_bytes > 0 or any(chunk % size for size, _ in workload.sizes))
    return None if crosses else counted


def _at_members(run: Run, array: SeenArray, drives: tuple[SeenDrive, ...]) -> Check:
    """What all members did, against what the level needs for what was done at the array, by whomever.

    Exact for striping and mirrors, and for reads of arrays with parity; of their writes the most that they can cost,
    as data in md's cache need not be read. Nothing is known of arrays with members missing, or while md reads and
    writes them itself.
    """
    name = "members_foreign_percent"
    known = [each.device.counted for each in drives if each.device.counted is not None]
    done = _countable(run.workload, array) or array.device.asked
    if done is None or run.geometry.missing or array.syncs or len(known) < len(drives):
        return unknown(name, BELIEVABLE)
    expected = needed(run.geometry, run.workload, done)
    excess = Excess.of(total(known), expected, _allowed(run, expected))
    found, allowed, said = excess.found, excess.allowed, []
    if found.read_bytes > allowed.read_bytes:
        said.append(_of_members(run, "read", found.read_bytes, [each.read_bytes for each in known]))
    # Where there is a bitmap, each of its bits that changes is written to every member.
    if found.write_bytes > allowed.write_bytes and array.bitmap is False:
        said.append(_of_members(run, "wrote", found.write_bytes, [each.write_bytes for each in known]))
    return Check(name, excess.percent(expected), BELIEVABLE, tuple(said))


def _of_members(run: Run, verb: str, excess: int, each: Sequence[int]) -> str:
    most = max(range(len(each)), key=each.__getitem__)
    others = median([*each[:most], *each[most + 1 :]])
    return (
        f"the members of {run.geometry} {verb} {_megabytes(excess)} more than it needs for what was done at it, so "
        f"something else uses them (most at drive {run.members[most]}: {_megabytes(each[most])}, the others "
        f"{_megabytes(others)})"
    )


def needed(geometry: Geometry, workload: Workload, asked: Traffic) -> Traffic:
    """The most that all members together do for what was asked of the array; I/Os are not told apart.

    With parity a page is the least that is read and written, data and parity alike (drivers/md/raid5.c).
    """
    if not geometry.has_parity:
        copies = FACTS[geometry.level].copies or geometry.width
        return Traffic(asked.reads, asked.writes * copies, asked.read_bytes, asked.write_bytes * copies)
    pages = asked.write_bytes * _pages(workload)
    reads = costs(geometry).reads
    if geometry.level is Level.RAID6:  # on CPUs without an xor_syndrome routine all other data are read
        reads = max(reads, geometry.width - 3)
    # A page that is written in part has to be read itself, whatever way the new parity is got.
    reads += _pages(workload) > 1
    writes = FACTS[geometry.level].parity + 1
    return Traffic(
        round(asked.reads + asked.writes * reads),
        asked.writes * writes,
        round(asked.read_bytes + pages * reads),
        round(pages * writes),
    )


def _pages(workload: Workload) -> float:
    """Bytes of the pages that are touched at most, over bytes transferred."""
    offset = workload.offset_bytes

    def touched(size: int) -> int:
        whole = not (size % PAGE_BYTES or offset % PAGE_BYTES)
        return size if whole else ((size - 1) // PAGE_BYTES + 2) * PAGE_BYTES

    return sum(share * touched(size) for size, share in workload.sizes) / (100 * workload.block_bytes)


def _allowed(run: Run, expected: Traffic) -> Traffic:
    """Beyond what is expected; what was under way at the end, fio may not have counted."""
    workload, geometry = run.workload, run.geometry
    under_way = workload.outstanding(1 if geometry.is_side_by_side else geometry.width)
    looked_at = LOOKED_AT if workload.writes else Traffic(0, 0, 0, 0)
    ios = round(SHARE * expected.ios) + under_way
    size = round(SHARE * expected.total_bytes) + under_way * workload.largest_bytes
    return total([QUIET, looked_at, Traffic(ios, ios, size, size)])


def _whole(workload: Workload) -> bool:
    """Whether I/Os reach a drive as they were made; sequential ones may be merged, which is counted."""
    return workload.largest_bytes <= UNSPLIT_BYTES and not workload.offset_bytes


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.1f} MB"
