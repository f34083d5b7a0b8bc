"""How IOPS grow with drives, measured against what the level can do rather than against N.

The narrowest array sets the line: its IOPS per effective drive (N/P, ``geometry.effective_drives``). A
RAID 5 of eight that writes twice as fast as one of three is therefore perfect, not a quarter short.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_ssdqual.qual.estimate import Estimate, ratio
from pytest_ssdqual.qual.geometry import Geometry, effective_drives
from pytest_ssdqual.qual.units import Unit

#: Above this an array beats its own narrowest sibling, which says that the narrowest was measured too low.
SUPERLINEAR = 1.05


@dataclass(frozen=True, slots=True)
class Point:
    """One array of the sweep."""

    geometry: Geometry
    iops: Estimate
    effective_drives: float
    #: IOPS per effective drive over that of the narrowest array; 1 by definition for that one.
    efficiency: Estimate


@dataclass(frozen=True, slots=True)
class Scaling:
    """A sweep over widths of one level, narrowest first."""

    points: tuple[Point, ...]
    #: Least-squares line through the origin of efficiency over effective drives; 1 is linear.
    slope: Estimate
    #: How far the worst array stays below the line, in percent of the line; negative when all are above.
    deviation: Estimate
    #: The array that ``deviation`` speaks of.
    worst: Geometry

    def warnings(self) -> tuple[str, ...]:
        """Arrays that are surely better than linear: the baseline is doubtful, though no promise is broken."""
        return tuple(
            f"{point.geometry} does {point.efficiency} of what {self.points[0].geometry} does per effective drive: "
            "better than linear, so the narrowest array was probably measured too low"
            for point in self.points
            if point.efficiency.low > SUPERLINEAR
        )

    def to_record(self) -> dict[str, object]:
        """Plain data: every width's efficiency, for the evidence."""
        return {
            "slope": self.slope.to_record(),
            "deviation": self.deviation.to_record(),
            "worst": str(self.worst),
            "points": [
                {
                    "geometry": str(point.geometry),
                    "effective_drives": point.effective_drives,
                    "iops": point.iops.to_record(),
                    "efficiency": point.efficiency.to_record(),
                }
                for point in self.points
            ],
        }


def fit(iops: Mapping[Geometry, Estimate], read_fraction: float) -> Scaling:
    """Judge a sweep: IOPS of each width of one level under the same workload per drive.

    Intervals are propagated by their ends (each point's worst with the baseline's best, and the other
    way round): wider than a joint interval at the same confidence, never narrower. ValueError with fewer
    than two widths, several levels or states (healthy, degraded), or a baseline that may be zero.
    """
    widths = sorted(iops)
    if len(widths) < 2 or len({(each.level, each.missing, each.rebuilding) for each in widths}) > 1:
        raise ValueError(f"scaling needs at least 2 widths of one level, not {', '.join(map(str, widths)) or 'none'}")
    if iops[widths[0]].low <= 0:
        raise ValueError(f"{widths[0]} is no baseline: {iops[widths[0]]}")
    points = tuple(_point(geometry, iops, widths[0], read_fraction) for geometry in widths)
    worst = min(points[1:], key=lambda point: point.efficiency.value)
    shortfalls = [point.efficiency for point in points[1:]]
    n = min(point.iops.n for point in points)
    deviation = Estimate(
        value=100 * (1 - worst.efficiency.value),
        low=100 * (1 - min(each.high for each in shortfalls)),
        high=100 * (1 - min(each.low for each in shortfalls)),
        n=n,
        unit=Unit.PERCENT,
    )
    slope = Estimate(
        value=_slope([(point.effective_drives, point.efficiency.value) for point in points]),
        low=_slope([(point.effective_drives, point.efficiency.low) for point in points]),
        high=_slope([(point.effective_drives, point.efficiency.high) for point in points]),
        n=n,
        unit=Unit.RATIO,
    )
    return Scaling(points, slope, deviation, worst.geometry)


def _point(geometry: Geometry, iops: Mapping[Geometry, Estimate], first: Geometry, read_fraction: float) -> Point:
    drives, baseline, own = effective_drives(geometry, read_fraction), iops[first], iops[geometry]
    if geometry == first:
        return Point(geometry, own, drives, Estimate(1.0, 1.0, 1.0, own.n, Unit.RATIO))
    share = effective_drives(first, read_fraction) / drives
    found = ratio(own, baseline, Unit.RATIO)
    efficiency = Estimate(found.value * share, found.low * share, found.high * share, own.n, Unit.RATIO)
    return Point(geometry, own, drives, efficiency)


def _slope(points: list[tuple[float, float]]) -> float:
    """Of y = efficiency × x against x, through the origin: Σxy/Σx², so wide arrays weigh most."""
    return sum(x * x * efficiency for x, efficiency in points) / sum(x * x for x, _ in points)
