"""Ceiling of md and the host: IOPS of the same array of members that need no flash."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.workload.workload import Workload


@dataclass(frozen=True, slots=True)
class Ceiling:
    """IOPS of one workload on an array of memory devices, on the host of the drives."""

    geometry: Geometry
    workload: str
    #: The block driver below md: ``null_blk``, ``brd`` or ``zram``; "" if nothing could be measured.
    driver: str
    #: None if unknown.
    iops: float | None
    #: Reason why ``iops`` is None.
    unknown: str = ""
    #: Completion time of the memory devices, nanoseconds.
    completion_ns: int = 0
    #: The boot of the machine that it was measured in; another one may have another kernel or other settings. Empty if
    #: unknown.
    boot_id: str = ""
    #: The whole workload, as two may have one name; None if unknown.
    asked: Workload | None = None
