"""Workload sets: series of workloads (depths, mixes, alignment), and the set that every level's suite uses.

The sets of single publications are in ``methods``, a module for each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.workload.workload import Workload


@frozen
class WorkloadSet:
    """Workloads that are compared with each other on one array: a queue depth sweep, a sweep over mixes."""

    #: Name in test ids and records.
    name: str
    #: In the order of measurement and of charts.
    workloads: tuple[Workload, ...]

    def __str__(self) -> str:
        return self.name


def random(read_percent: int, bs: str, depth: int, *, offset: str = "0", threads: int | None = None) -> Workload:
    """Random I/O of one size at any share of reads, 0 to 100."""
    if read_percent in (0, 100):
        rw = "randread" if read_percent else "randwrite"
        return Workload(rw, bs, depth, offset=offset, threads=threads)
    return Workload("randrw", bs, depth, read_percent=read_percent, offset=offset, threads=threads)


def depths(workload: Workload, queue_depths: Iterable[int]) -> WorkloadSet:
    """The same workload at rising queue depths: ``randread_4k_qd1to8``."""
    found = tuple(workload.at(depth) for depth in queue_depths)
    return WorkloadSet(f"{found[0]}to{found[-1].qd_per_drive}", found)


def mixes(workload: Workload, read_percents: Iterable[int]) -> WorkloadSet:
    """Random I/O of the size, depth and alignment of ``workload`` at several shares of reads: ``mixes_8k_qd8``.

    The first and the last are the ends of the line that mixes are compared with.
    """

    def at(percent: int) -> Workload:
        return random(percent, workload.bs, workload.qd_per_drive, offset=workload.offset, threads=workload.threads)

    name = str(at(50)).removeprefix("randrw50_")
    return WorkloadSet(f"mixes_{name}", tuple(at(percent) for percent in read_percents))


def unaligned(workload: Workload, offset: str) -> WorkloadSet:
    """A workload, and the same with every address shifted: ``randwrite_4k_qd8_vs_off512``."""
    shifted = replace(workload, offset=offset)
    return WorkloadSet(f"{workload}_vs_off{shifted.offset}", (workload, shifted))


#: Intel white paper 329903-001US (December 2013), S3500 drives in RAID 1 and RAID 5: 4 KiB random at 100 % write,
#: 70 % read, 90 % read and 100 % read, each at queue depths 1, 2, 4 and 8 per drive (A-P5, A-P10).
INTEL_RAID = tuple(random(reads, "4k", depth) for reads in (0, 70, 90, 100) for depth in (1, 2, 4, 8))
