"""Rates of random I/O for forecasts where none is published for exactly this workload; no verdict depends on them."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_ssdqual.qual.raid.geometry import ONE_DRIVE, Geometry, expected_iops
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.drive_class import DriveClass
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.units import parse_size
from pytest_ssdqual.qual.workload.workload import Workload

#: Random writes of 4 KiB per second of one steady drive, by class: the lower quartile of the shipped sheets, rounded.
WRITES_PER_S = {
    DriveClass.SATA: 30_000.0,
    DriveClass.SAS: 60_000.0,
    DriveClass.NVME: 60_000.0,
    DriveClass.NVME_GEN4: 140_000.0,
    DriveClass.NVME_GEN5: 200_000.0,
}
#: Shortest time of one read and of one write, seconds: at a low depth a drive does no more than the depth over this.
READ_S, WRITE_S = 80e-6, 20e-6


def nearest(spec: Spec, geometry: Geometry, workload: Workload) -> float | None:
    """IOPS of random I/O from the figures of one drive with the same size and the nearest depth, by the level's law.

    For drives side by side, of each. None for other workloads, for arrays that are rebuilding, and without a figure.
    """
    if not workload.is_random or geometry.rebuilding:
        return None
    array = geometry.target
    size = parse_size(workload.bs) if "/" not in workload.bs and ":" not in workload.bs else 0
    depth = workload.depth_per_member(array.width)
    reads = _of_one_drive(spec, "randread", size, depth, READ_S)
    writes = _of_one_drive(spec, "randwrite", size, depth, WRITE_S)
    if (workload.reads and reads is None) or (workload.writes and writes is None):
        return None
    most = expected_iops(array, workload.read_fraction, reads or 1e9, writes or 1e9)
    return min(most, workload.asked_iops(array.width)) if workload.rate_iops else most


def most_bytes_per_s(spec: Spec) -> float | None:
    """Highest published throughput of one drive: larger transfers than are published do not exceed it."""
    return max((value for _, value in _published(spec, Claim.THROUGHPUT)), default=None)


def assumed_writes(spec: Spec) -> float:
    """Random writes of 4 KiB per second of one drive of which nothing is known but its class, at most."""
    return WRITES_PER_S.get(spec.drive_class or DriveClass.SATA, WRITES_PER_S[DriveClass.SATA])


def _of_one_drive(spec: Spec, rw: str, size: int, depth: float, shortest_s: float) -> float | None:
    figures = (
        (workload.outstanding(1), iops)
        for workload, iops in _published(spec, Claim.STEADY_IOPS, f"{rw}_")
        if workload.largest_bytes == size and len(workload.sizes) == 1
    )
    nearest_iops = min(figures, key=lambda figure: abs(figure[0] - depth), default=None)
    return min(nearest_iops[1], max(1.0, depth) / shortest_s) if nearest_iops else None


def _published(spec: Spec, claim: Claim, prefix: str = "") -> Iterator[tuple[Workload, float]]:
    """Yield each figure of one drive about the claim, under workloads whose names begin with ``prefix``."""
    for figure in spec.figures:
        for array, name, quantity in figure.places():
            if array == ONE_DRIVE and quantity is claim and name.startswith(prefix):
                workload = Workload.parse(name)
                if published := spec.published(claim, array, workload):
                    yield workload, published.value
