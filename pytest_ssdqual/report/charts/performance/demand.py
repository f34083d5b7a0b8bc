"""Demand variation of a mix: IOPS over depth for each number of threads, and mean latency over IOPS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from pytest_ssdqual.qual import strict_json
from pytest_ssdqual.qual.measured import demand
from pytest_ssdqual.qual.measured.demand import DemandPoint
from pytest_ssdqual.qual.measured.run import RunRecord
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import from_plain
from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule
from pytest_ssdqual.qual.units import Unit, format_latency, format_value
from pytest_ssdqual.report.charts.performance.queue_depth import depth_scale
from pytest_ssdqual.report.drawing import scales
from pytest_ssdqual.report.drawing.chart import Chart, slug
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.drawing.palette import INK
from pytest_ssdqual.report.run_folder.reader import Record
from pytest_ssdqual.report.view.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pytest_ssdqual.qual.workload.workload import Workload


@dataclass(frozen=True, slots=True)
class DemandGrid:
    """Cells of a loop over threads × depth, the mean of the rounds that count; of drives side by side the average."""

    geometry: str
    loop: str
    points: tuple[DemandPoint, ...]
    #: True if the loop became steady.
    reached: bool
    #: Of each point by its name the workload, and the rounds that count.
    cells: Mapping[str, tuple[Workload, tuple[RunRecord, ...]]]

    @property
    def threads(self) -> list[int]:
        return sorted({each.threads for each in self.points})

    def of(self, threads: int) -> list[DemandPoint]:
        """Return the points of a number of threads, by rising depth."""
        return sorted((each for each in self.points if each.threads == threads), key=lambda each: each.depth)

    @property
    def per(self) -> str:
        return " per drive" if self.geometry.startswith("drive") else ""


def grids(records: Sequence[Record]) -> Iterator[DemandGrid]:
    """Yield the ``loop`` records that vary demand."""
    from pytest_ssdqual.qual.workload.rounds import Rounds

    for record in records:
        facts: Mapping[str, Any] = record.facts
        try:
            workloads = from_plain(Rounds, facts["asked"]).workloads
            if demand.is_grid(workloads):
                yield _grid(facts, workloads)
        except (KeyError, TypeError, ValueError, IndexError, ArithmeticError):
            continue  # damaged


def _grid(facts: Mapping[str, Any], workloads: Sequence[Workload]) -> DemandGrid:
    geometry, rule = Geometry.parse(facts["geometry"]), from_plain(SteadyRule, facts["rule"])
    # Rounds end with the first window in which all is steady, so the last window counts.
    window = [strict_json.array(each) for each in strict_json.array(facts["rounds"])[-rule.window :]]
    points, cells = [], {}
    for index, workload in enumerate(workloads):
        runs = tuple(from_plain(RunRecord, each[index]) for each in window)
        drives = max(1, len(runs[0].members)) if geometry.is_side_by_side else 1
        known = [(run.ios, run.mean_latency_ns) for run in runs if run.ios and run.mean_latency_ns is not None]
        latency_ns = sum(ios * mean_ns for ios, mean_ns in known) / sum(ios for ios, _ in known)
        iops = fmean(run.iops for run in runs) / drives
        points.append(DemandPoint(workload.threads or 1, workload.qd_per_drive, iops, latency_ns))
        cells[str(points[-1])] = workload, runs
    return DemandGrid(str(geometry), str(facts["loop"]), tuple(points), facts["reached"] is True, cells)


def variation(grid: DemandGrid, prefix: str = "demand") -> Chart:
    """Draw IOPS over depth, a line for each number of threads."""
    key = slug(prefix, "variation", grid.geometry, grid.loop)
    title = f"{grid.geometry}: {grid.loop}, IOPS over depth and threads{_best(grid)}"
    depths = sorted({each.depth for each in grid.points})
    with drawing():
        plate = Plate.of()
        axes = plate.axes("depth of each thread (QD)", f"IOPS{grid.per}")
        for index, threads in enumerate(grid.threads):
            line = grid.of(threads)
            tooltips = [f"{each}: {format_value(each.iops, Unit.IOPS)}" for each in line]
            xs, ys = [float(each.depth) for each in line], [each.iops for each in line]
            plate.line(axes, xs, ys, index, _threads(threads), tooltips=tooltips)
        depth_scale(axes, depths)
        scales.suited(axes, Unit.IOPS, [each.iops for each in grid.points])
        svg = plate.svg(key, title, f"{len(grid.points)} combinations of threads and depth.")
    found = {(each.depth, each.threads): format_value(each.iops, Unit.IOPS) for each in grid.points}
    rows = [(f"{depth}", *(found.get((depth, each), "") for each in grid.threads)) for depth in depths]
    caption = f"Demand variation: {_about(grid)} {_required(grid)}"
    return Chart(key, title, caption, svg, Table(("QD", *map(_threads, grid.threads)), tuple(rows)), grid.geometry)


def intensity(grid: DemandGrid, prefix: str = "demand") -> Chart:
    """Draw mean latency over IOPS, a line for each number of threads, with the required points."""
    key = slug(prefix, "intensity", grid.geometry, grid.loop)
    title = f"{grid.geometry}: {grid.loop}, mean latency over IOPS"
    with drawing():
        plate = Plate.of()
        axes = plate.axes(f"IOPS{grid.per}", "mean latency")
        for index, threads in enumerate(grid.threads):
            line = grid.of(threads)
            tooltips = [_words(each) for each in line]
            xs, ys = [each.iops for each in line], [each.mean_latency_ns for each in line]
            plate.line(axes, xs, ys, index, _threads(threads), tooltips=tooltips, thin=True)
        _mark(plate, axes, grid)
        latencies = [each.mean_latency_ns for each in grid.points]
        scales.by_decades(axes, Unit.NANOSECONDS, [*latencies, demand.CEILING_NS])
        _iops_scale(axes, [each.iops for each in grid.points])
        svg = plate.svg(key, title, f"{len(grid.points)} combinations of threads and depth.")
    caption = (
        f"Demand intensity: {_about(grid)} Along a line the depth rises. MaxIOPS is the best below "
        f"{format_latency(demand.CEILING_NS)}, MinIOPS is TC1/QD1, MidIOPS is nearest to the middle of both."
    )
    points = sorted(grid.points, key=lambda each: (each.threads, each.depth))
    named = [*demand.required(grid.points).items(), *(("", each) for each in points)]
    rows = [
        (name, str(each), format_value(each.iops, Unit.IOPS), format_latency(each.mean_latency_ns))
        for name, each in named
    ]
    return Chart(
        key, title, caption, svg, Table(("", "threads/depth", "IOPS", "mean latency"), tuple(rows)), grid.geometry
    )


def _mark(plate: Plate, axes: Axes, grid: DemandGrid) -> None:
    """Draw the ceiling as a line, and a circle with its name around each required point."""
    ceiling = axes.axhline(demand.CEILING_NS, color=INK, linestyle=(0, (1.5, 2)), linewidth=1.2)
    plate.entry(ceiling, f"mean latency of {format_latency(demand.CEILING_NS)}")
    for name, each in demand.required(grid.points).items():
        axes.plot(
            [each.iops], [each.mean_latency_ns], linestyle="", marker="o", markersize=10, markerfacecolor="none",
            color=INK, zorder=5,
        )  # fmt: skip
        # Curves rise to the right, so there is room above and to the left; the first point is next to the axis.
        right = name == demand.MIN_IOPS
        place, side = (9, 9) if right else (-9, 5), "left" if right else "right"
        axes.annotate(name, (each.iops, each.mean_latency_ns), place, textcoords="offset points", ha=side)


def _iops_scale(axes: Axes, values: Sequence[float]) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_xlim(0, max(values) * 1.08 or 1.0)
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=scales.STEPS))
    scales.label(axes.xaxis, Unit.IOPS)


def _threads(threads: int) -> str:
    return f"TC{threads}"


def _best(grid: DemandGrid) -> str:
    most = demand.required(grid.points).get(demand.MAX_IOPS)
    return f": {most.iops:,.0f} below {format_latency(demand.CEILING_NS)} at {most}" if most else ""


def _about(grid: DemandGrid) -> str:
    whose = " of the average drive" if grid.per else ""
    state = "steady" if grid.reached else "last, unsteady"
    return f"the mean{whose} over the {state} rounds."


def _required(grid: DemandGrid) -> str:
    points = demand.required(grid.points)
    found = [f"{name} is {_words(each)}." for name, each in points.items()]
    if demand.MAX_IOPS not in points:
        found.append(f"No point has a mean latency below {format_latency(demand.CEILING_NS)}, so there is no MaxIOPS.")
    return " ".join(found)


def _words(point: DemandPoint) -> str:
    return f"{format_value(point.iops, Unit.IOPS)} at {point}, mean {format_latency(point.mean_latency_ns)}"
