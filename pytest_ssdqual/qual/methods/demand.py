"""Demand variation: IOPS and mean latency of one mix over threads × depth, and the points that SNIA's DIRTH names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.workload.workload import Workload

#: Mean latency below which the best IOPS count (SNIA PTS 2.0.2, DIRTH).
CEILING_NS = 5e6
#: Names of the points, in the order of demand.
MIN_IOPS, MID_IOPS, MAX_IOPS = "MinIOPS", "MidIOPS", "MaxIOPS"


@frozen
class DemandPoint:
    """The mix at one number of threads and one depth."""

    threads: int
    depth: int
    iops: float
    mean_latency_ns: float

    def __str__(self) -> str:
        """Return ``TC32/QD16``, as the specification writes it."""
        return f"TC{self.threads}/QD{self.depth}"


def is_grid(workloads: Sequence[Workload]) -> bool:
    """Return True if these are one mix at several numbers of threads, each at several depths."""
    loads = {(each.threads, each.qd_per_drive) for each in workloads if each.threads}
    threads, depths = {each for each, _ in loads}, {each for _, each in loads}
    is_one_mix = len({replace(each, threads=1, qd_per_drive=1) for each in workloads}) == 1
    return is_one_mix and min(len(threads), len(depths)) > 1 and len(loads) == len(workloads)


def required(points: Sequence[DemandPoint]) -> dict[str, DemandPoint]:
    """Return the specification's three points by name, without those that the grid does not have.

    MinIOPS is one I/O at a time. MaxIOPS is the best below ``CEILING_NS``. MidIOPS is the point nearest to the middle
    of the two; of equally near ones the fastest to respond, as IOPS beyond saturation differ by noise only.
    """
    least = next((each for each in points if each.threads == each.depth == 1), None)
    below = [each for each in points if each.mean_latency_ns < CEILING_NS]
    most = max(below, key=lambda each: (each.iops, -each.mean_latency_ns), default=None)
    middle = None
    if least and most:
        target = (least.iops + most.iops) / 2
        middle = min(points, key=lambda each: (abs(each.iops - target), each.mean_latency_ns))
    found = {MIN_IOPS: least, MID_IOPS: middle, MAX_IOPS: most}
    return {name: each for name, each in found.items() if each}
