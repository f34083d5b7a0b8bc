"""Demand variation of a mix: IOPS over depth for each number of threads, and mean latency over IOPS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean

from pytest_ssdqual.qual.measured import demand
from pytest_ssdqual.qual.measured.demand import DemandPoint
from pytest_ssdqual.qual.measured.result_records import LoopRecord
from pytest_ssdqual.qual.measured.run import RunRecord
from pytest_ssdqual.qual.units import Unit, format_latency, format_value
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts.data import drives_of, per_drive, readable
from pytest_ssdqual.report.drawing.chart import slug
from pytest_ssdqual.report.drawing.plot import (
    KNEE,
    RULE,
    THIN,
    AnyMark,
    Chart,
    Line,
    Panel,
    Point,
    level,
    lines_of,
    worded,
)
from pytest_ssdqual.report.drawing.scales import Depths, Numbers, Values, by_decades
from pytest_ssdqual.report.view.tables import Table

#: Around a required point.
RING = {**RULE, "linestyle": "", "marker": "o", "markersize": 10, "markerfacecolor": "none", "zorder": 5}


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
        return sorted({point.threads for point in self.points})

    def of(self, threads: int) -> list[DemandPoint]:
        """Return the points of a number of threads, by rising depth."""
        return sorted((point for point in self.points if point.threads == threads), key=lambda point: point.depth)


def grids(records: Iterable[LoopRecord]) -> Iterator[DemandGrid]:
    """Yield the loops that vary demand."""
    return filter(None, readable(records, _grid))


def _grid(noted: LoopRecord) -> DemandGrid | None:
    workloads = noted.asked.workloads
    if not demand.is_grid(workloads):
        return None
    # Rounds end with the first window in which all is steady, so the last window counts.
    window = noted.rounds[-noted.rule.window :]
    points, cells = [], {}
    for index, workload in enumerate(workloads):
        runs = tuple(row[index] for row in window)
        known = [(run.ios, run.mean_latency_ns) for run in runs if run.ios and run.mean_latency_ns is not None]
        latency_ns = sum(ios * mean_ns for ios, mean_ns in known) / sum(ios for ios, _ in known)
        iops = fmean(run.iops for run in runs) / drives_of(runs[0].members, noted.geometry)
        points.append(DemandPoint(workload.threads or 1, workload.qd_per_drive, iops, latency_ns))
        cells[str(points[-1])] = workload, runs
    return DemandGrid(str(noted.geometry), noted.loop, tuple(points), noted.reached, cells)


def variation(grid: DemandGrid) -> Chart:
    """Draw IOPS over depth, a line for each number of threads."""
    lines = {
        f"TC{threads}": [Point(at.depth, at.iops, words=f"{at}: {_iops(at)}") for at in grid.of(threads)]
        for threads in grid.threads
    }
    depths = sorted({point.depth for point in grid.points})
    found = {(point.depth, point.threads): _iops(point) for point in grid.points}
    rows = tuple((f"{depth}", *(found.get((depth, threads), "") for threads in grid.threads)) for depth in depths)
    required = demand.required(grid.points)
    sentences = [f"{name} is {_words(point)}." for name, point in required.items()]
    best = ""
    if most := required.get(demand.MAX_IOPS):
        best = f": {most.iops:,.0f} below {CEILING} at {most}"
    else:
        sentences.append(f"No point has a mean latency below {CEILING}, so there is no MaxIOPS.")
    caption = f"Demand variation: {_about(grid)} {' '.join(sentences)}"
    panel = Panel(Depths("depth of each thread (QD)", depths), Values(_axis(grid), Unit.IOPS), lines_of(lines))
    key = slug("demand", "variation", grid.geometry, grid.loop)
    title = f"{grid.geometry}: {grid.loop}, IOPS over depth and threads{best}"
    table = Table(("QD", *lines), rows)
    return Chart(key, title, caption, panel, table, grid.geometry)


def intensity(grid: DemandGrid) -> Chart:
    """Draw mean latency over IOPS, a line for each number of threads, with the required points and the ceiling."""
    required = demand.required(grid.points)
    lines = {f"TC{threads}": [_at(point, _words(point)) for point in grid.of(threads)] for threads in grid.threads}
    marks: list[AnyMark] = [*lines_of(lines, THIN)]
    marks.append(level(demand.CEILING_NS, f"mean latency of {CEILING}", KNEE))
    marks.append(Line([_at(point) for point in required.values()], style=RING))
    for name, point in required.items():
        # Curves rise to the right, so there is room above and to the left; the first point is next to the axis.
        offset, side = ((9, 9), "left") if name == demand.MIN_IOPS else ((-9, 5), "right")
        marks.append(worded(_at(point), name, offset, side))
    caption = (
        f"Demand intensity: {_about(grid)} Along a line the depth rises. MaxIOPS is the best below "
        f"{CEILING}, MinIOPS is TC1/QD1, MidIOPS is nearest to the middle of both."
    )
    points = sorted(grid.points, key=lambda point: (point.threads, point.depth))
    rows = tuple(
        (name, str(point), _iops(point), format_latency(point.mean_latency_ns))
        for name, point in (*required.items(), *(("", point) for point in points))
    )
    across = Numbers(_axis(grid), (0, max(point.iops for point in points) * 1.08 or 1.0), unit=Unit.IOPS)
    panel = Panel(across, Values("mean latency", Unit.NANOSECONDS, by_decades), marks)
    key = slug("demand", "intensity", grid.geometry, grid.loop)
    title = f"{grid.geometry}: {grid.loop}, mean latency over IOPS"
    table = Table(("", "threads/depth", "IOPS", "mean latency"), rows)
    return Chart(key, title, caption, panel, table, grid.geometry)


CEILING = format_latency(demand.CEILING_NS)


def _axis(grid: DemandGrid) -> str:
    return f"IOPS{per_drive(grid.geometry, ' per drive')}"


def _at(point: DemandPoint, words: str = "") -> Point:
    return Point(point.iops, point.mean_latency_ns, words=words)


def _about(grid: DemandGrid) -> str:
    state = "steady" if grid.reached else "last, unsteady"
    return f"the mean{per_drive(grid.geometry, ' of the average drive')} over the {state} rounds."


def _iops(point: DemandPoint) -> str:
    return format_value(point.iops, Unit.IOPS)


def _words(point: DemandPoint) -> str:
    return f"{_iops(point)} at {point}, mean {format_latency(point.mean_latency_ns)}"
