"""Simulated drives that do what a shipped data sheet publishes: ``SIMULATED_SHEET`` is its name.

A drive alone is as fast as its depth and the latency of an empty queue allow, and no faster than the sheet's maximum of
the mix. An array does what a closed queueing network of such drives does.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache

from pytest_ssdqual.qual.raid import member_curve, prediction
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.raid.member_curve import CurvePoint, MemberCurve
from pytest_ssdqual.qual.spec import datasheet, spec
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.drive_class import DriveClass
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload

#: Seconds of a read and of a write in an empty queue.
NVME_S, SATA_S = (80e-6, 20e-6), (130e-6, 60e-6)
#: How sharp the bend is between what the latency and what the maximum allows.
SHARPNESS = 4
DEPTHS = tuple(1 << power for power in range(10))
BLOCK_BYTES = 4096


@dataclass(frozen=True)
class PublishedDrives:
    """Rates of one drive: IOPS of 4 KiB, bytes per second of large transfers, for reads and for writes."""

    iops: tuple[float, float]
    bytes_per_s: tuple[float, float]
    latency_s: tuple[float, float]

    @classmethod
    def of_environment(cls) -> PublishedDrives | None:
        key = os.environ.get("SIMULATED_SHEET")
        return _published(key) if key else None

    def rate(self, geometry: Geometry, workload: Workload) -> float:
        """I/Os per second of a bare drive or of an array."""
        size, reads = workload.block_bytes, workload.read_fraction
        if geometry.is_side_by_side:
            return self.alone(reads, size, workload.outstanding(1), is_random=workload.is_random)
        if not workload.is_random:
            each = self.alone(reads, size, workload.outstanding(1), is_random=False)
            return each * geometry.data_drives
        present = replace(geometry, rebuilding=False)  # the copying itself costs nothing here
        return _of_array(self, present, reads, size, workload.outstanding(geometry.width))

    def alone(self, reads: float, size: float, depth: float, *, is_random: bool = True) -> float:
        shares = reads, 1 - reads
        most = 0.0
        for share, iops, bytes_per_s in zip(shares, self.iops, self.bytes_per_s, strict=True):
            of_size = bytes_per_s / size
            most += share / (min(iops, of_size) if is_random else of_size)
        latency_s = sum(share * each for share, each in zip(shares, self.latency_s, strict=True))
        ends = 1 / most, depth / latency_s
        return float(sum(end**-SHARPNESS for end in ends) ** (-1 / SHARPNESS))


@cache
def interface(key: str) -> tuple[str, str | None, int | None]:
    """lsblk's transport of drives of a sheet, sysfs' link of PCIe drives, and the queue depth of others."""
    kind = spec.load(key).product.drive_class
    if kind in (DriveClass.SATA, DriveClass.SAS):
        return str(kind), None, 32 if kind is DriveClass.SATA else 254
    rate = {DriveClass.NVME_GEN4: 16.0, DriveClass.NVME_GEN5: 32.0}.get(kind or DriveClass.NVME, 8.0)
    return "nvme", f"{rate} GT/s PCIe", None


@cache
def _published(key: str) -> PublishedDrives:
    sheet = spec.load(key)
    reads, writes = (
        anchor.published.value for anchor in datasheet.anchors(sheet.figures, ("randread", "randwrite"), "4k")
    )
    rates = {
        figure.rw: value
        for figure in sheet.figures
        for claim, value in figure.quantities.items()
        if claim is Claim.THROUGHPUT and figure.array is None
    }
    most = rates.get("read", reads * BLOCK_BYTES), rates.get("write", writes * BLOCK_BYTES)
    is_slow = sheet.product.drive_class in (DriveClass.SATA, DriveClass.SAS)
    return PublishedDrives((reads, writes), most, SATA_S if is_slow else NVME_S)


@cache
def _of_array(drives: PublishedDrives, geometry: Geometry, reads: float, size: float, outstanding: int) -> float:
    load = Workload("randrw", "4k", 1, round(100 * reads)) if 0 < reads < 1 else None
    mix = member_curve.physical_read_fraction(geometry, load or Workload("randread" if reads else "randwrite", "4k", 1))
    points = []
    for depth in DEPTHS:
        value = drives.alone(mix, size, depth)
        points.append(CurvePoint(depth, Estimate(value, value, value, 10, Unit.IOPS)))
    members = [MemberCurve(str(number), mix, tuple(points)) for number in range(geometry.width - geometry.missing)]
    return prediction.predict(geometry, reads, outstanding, members).iops.value
