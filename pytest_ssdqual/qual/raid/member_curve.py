"""A drive's measured curve: IOPS and latencies over the number of I/Os outstanding at it, for one mix.

Curves are measured on bare drives side by side before arrays are judged; `prediction` computes from them what an array
of these drives can do. This module also lists the measurements that a prediction needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid import law
from pytest_ssdqual.qual.raid.geometry import Geometry, costs, loads
from pytest_ssdqual.qual.raid.law import Striping
from pytest_ssdqual.qual.stats.estimate import Estimate, NotApplicable
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.qual.workload.workload_set import random

#: A drive whose IOPS grow less than this from one outstanding I/O to the most is rate-limited: it has no dies to wait
#: for, but a budget, and it may catch up after idle time. QEMU's throttle, cloud volumes and drained write caches do.
RATE_LIMITED = 1.1
#: Quantiles that represent a latency distribution.
QUANTILES = 64


@frozen
class CurvePoint:
    """One drive with a constant number of I/Os outstanding."""

    depth: float
    iops: Estimate
    #: Latencies over the mean latency of all I/Os, as equally likely values; empty if there was no such I/O.
    reads: tuple[float, ...] = ()
    writes: tuple[float, ...] = ()
    #: All I/Os; empty if not measured.
    latency: LatencyHistogram = field(default_factory=LatencyHistogram)
    #: The slowest I/O of each spell, and the length of a spell in seconds.
    slowest_ns: tuple[int, ...] = ()
    spell_s: float = 0.0

    @classmethod
    def of(cls, measured: Measured, iops: Estimate) -> CurvePoint:
        """Build from the measurement of one drive; ``iops`` is its estimate."""
        latency = measured.latency
        mean_ns = latency.mean_ns if latency else 1.0
        reads = LatencyHistogram.merged(run.read_latency for run in measured.runs)
        writes = LatencyHistogram.merged(run.write_latency for run in measured.runs)
        return cls(
            measured.workload.outstanding(1),
            iops,
            _shape(reads, mean_ns),
            _shape(writes, mean_ns),
            latency,
            tuple(each.max_ns for each in measured.spells),
            measured.spell_s,
        )

    def times(self, factor: float) -> CurvePoint:
        """Return the point of a drive that is faster by a factor; its I/Os take as much less time."""
        return replace(self, iops=self.iops.times(factor))


@dataclass(frozen=True)
class MemberCurve:
    """One drive under one mix; points in the order of depth, at least one."""

    #: Serial number.
    drive: str
    #: Share of reads at the drive, 0…1.
    read_fraction: float
    points: tuple[CurvePoint, ...]

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.points, key=lambda point: point.depth))
        if not ordered or ordered[0].iops.value <= 0:
            raise NotApplicable(f"drive {self.drive} has no curve of its own")
        object.__setattr__(self, "points", ordered)

    @cached_property
    def most(self) -> float:
        """Highest IOPS of all depths."""
        return max(point.iops.value for point in self.points)

    @property
    def is_rate_limited(self) -> bool:
        """Return whether the drive does as much with one outstanding I/O as with many; see ``RATE_LIMITED``."""
        first = self.points[0]
        return first.depth == 1 and len(self.points) > 1 and self.most < RATE_LIMITED * first.iops.value

    @property
    def error(self) -> float:
        """Largest relative half-width of the points' intervals."""
        return max((point.iops.high - point.iops.low) / 2 / point.iops.value for point in self.points)

    def iops(self, depth: float) -> float:
        """IOPS at a depth; between points the latency is linear over the depth, as of a queue.

        Below the first point each I/O takes as long as there; beyond the last, IOPS stay.
        """
        points = self.points
        if depth <= points[0].depth:
            return points[0].iops.value * depth / points[0].depth
        for lower, upper in pairwise(points):
            if depth <= upper.depth:
                share = (depth - lower.depth) / (upper.depth - lower.depth)
                first_s, last_s = lower.depth / lower.iops.value, upper.depth / upper.iops.value
                return depth / ((1 - share) * first_s + share * last_s)
        return points[-1].iops.value

    def times(self, factor: float) -> MemberCurve:
        """Return the curve of a drive that is faster by a factor at every depth."""
        return replace(self, points=tuple(point.times(factor) for point in self.points))

    def nearest(self, depth: float) -> CurvePoint:
        """Return the point nearest to a depth, by ratio."""
        return min(self.points, key=lambda point: abs(math.log(point.depth / max(depth, 0.5))))


def _shape(latency: LatencyHistogram, mean_ns: float) -> tuple[float, ...]:
    if not latency:
        return ()
    values = [latency.quantile((index + 0.5) / QUANTILES).value_ns / mean_ns for index in range(QUANTILES)]
    # The middle of each of 64 parts misses the tail; the mean has to stay that of the histogram.
    scale = latency.mean_ns / mean_ns * QUANTILES / sum(values)
    return tuple(value * scale for value in values)


def physical_read_fraction(geometry: Geometry, workload: Workload) -> float:
    """Share of reads among the member I/Os of a workload on an array, 0…1."""
    read, cost = workload.read_fraction, costs(geometry)
    reads = read * cost.reads_for_read + (1 - read) * cost.reads_for_write
    return reads / (reads + (1 - read) * cost.writes_for_write)


def outstanding_at_members(geometry: Geometry, workload: Workload) -> float:
    """Upper estimate of the I/Os outstanding at all members together, on average: those of a phase, all in flight."""
    read, cost = workload.read_fraction, costs(geometry)
    at_once = read * max(1.0, float(cost.reads_for_read))
    at_once += (1 - read) * max(cost.reads_for_write, cost.writes_for_write)
    return workload.outstanding(geometry.width) * at_once


def mean_depth(geometry: Geometry, workload: Workload) -> float:
    """Upper estimate of the I/Os outstanding at the busiest member, on average."""
    of_members = [float(each.reads_for_read + each.writes_for_write) for each in loads(geometry)]
    uneven = max(of_members) * len(of_members) / sum(of_members)
    return outstanding_at_members(geometry, workload) * uneven / len(of_members)


def objection(geometry: Geometry, workload: Workload, striping: Striping) -> str:
    """Reason why no prediction exists for this workload on this array; "" if there is one."""
    if geometry.is_side_by_side:
        return "bare drives have no prediction but their own measurement"
    if workload.replay:
        return "a trace sets its own rate"
    return law.objection(geometry, workload, striping)


def member_workloads(geometry: Geometry, workload: Workload, queue_limit: int | None = None) -> tuple[Workload, ...]:
    """Return the measurements of the bare members that a prediction for ``workload`` needs, the shallowest first.

    The mix is that of the member I/Os in whole per cent, as fio takes it. The rate of a drive of 1,005,000 reads and
    38,000 writes follows its share of writes: at 60 % reads it is 6 % less than at 62.5 %. The depths are 1 and the
    powers of two around the number of I/Os outstanding at a member, which fluctuates as random addresses do; at most
    ``queue_limit``.
    """
    percent = round(100 * physical_read_fraction(geometry, workload))
    return tuple(random(percent, workload.bs, depth) for depth in _depths(mean_depth(geometry, workload), queue_limit))


def _depths(mean: float, limit: int | None) -> Iterator[int]:
    spread = 2.5 * math.sqrt(mean)
    first, last = math.floor(math.log2(max(2.0, mean / 3))), math.ceil(math.log2(mean + spread) - 0.1)
    wanted = (1, *(1 << power for power in range(first, last + 1)))
    yield from dict.fromkeys(min(depth, limit or depth) for depth in wanted)
