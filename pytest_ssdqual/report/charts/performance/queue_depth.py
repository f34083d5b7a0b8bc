"""IOPS and latency over the queue depth with the knee, the bathtub curve over mixes, bars, and demand variation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.result_records import LoopRecord
from pytest_ssdqual.qual.measured.run import RunRecord
from pytest_ssdqual.qual.methods import demand
from pytest_ssdqual.qual.methods.demand import DemandPoint
from pytest_ssdqual.qual.units import Unit, format_latency, format_value
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts.data import Notes, drives_of, interval_words, per_drive, readable
from pytest_ssdqual.report.drawing.chart import printable, sentence, slug
from pytest_ssdqual.report.drawing.plot import (
    DOTTED,
    HOLLOW,
    KNEE,
    PROMISED,
    RULE,
    THIN,
    AnyMark,
    Bars,
    Chart,
    Line,
    Panel,
    Point,
    level,
    lines_of,
    published,
    upright,
    worded,
)
from pytest_ssdqual.report.drawing.scales import Depths, Numbers, Places, Values, by_decades, from_zero
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Part
from pytest_ssdqual.report.view.tables import Table, parsed

FEWEST = 3
#: Published latencies on the scale at the right.
PUBLISHED_LATENCY = {
    "linestyle": ":", "marker": "d", "markersize": 4, "markerfacecolor": "none", "linewidth": 0.9,
}  # fmt: skip


@frozen
class DepthCurve:
    """A series of workloads on an array, with its verdicts."""

    geometry: str
    group: str
    points: tuple[Part, ...]
    judged: tuple[Evidence, ...]

    @property
    def name(self) -> str:
        """The array; of drives side by side the average drive."""
        return self.geometry + per_drive(self.geometry, ", per drive")

    def of_claim(self, claim: str) -> Evidence | None:
        return next((evidence for evidence in self.judged if evidence.claim == claim), None)


def curves(notes: Notes) -> Iterator[DepthCurve]:
    """Yield every series on every array, in the order in which they were judged."""
    series: dict[tuple[str, str], list[Evidence]] = {}
    for evidence in notes.judged:
        if evidence.about is About.CURVE and evidence.points and len(evidence.geometries) == 1:
            series.setdefault((evidence.geometry, evidence.group), []).append(evidence)
    for (geometry, group), verdicts in series.items():
        first = verdicts[0]
        yield DepthCurve(geometry, group or " ".join(first.workloads), first.points, tuple(verdicts))


def is_by_depth(curve: DepthCurve) -> bool:
    """Return True if the points differ in the number of outstanding I/Os."""
    depths = [point.figures.get("outstanding") for point in curve.points]
    return len(depths) >= FEWEST and all(depth and depth > 0 for depth in depths) and len(set(depths)) == len(depths)


def chart(notes: Notes, curve: DepthCurve) -> Chart:
    """Draw IOPS solid, mean latency hollow on the right, and published figures as diamonds."""
    parts = sorted(curve.points, key=lambda part: part.figures.get("outstanding") or 0)
    located = [(part.figures.get("outstanding") or 0, part) for part in parts]
    knee = curve.of_claim("qd_knee")
    sources = "; ".join(list(dict.fromkeys(figure.source for part in parts for figure in part.published))[:2])
    rates = [(x, figure) for x, part in located if (figure := part.stated(Unit.IOPS))]
    marks: list[AnyMark] = [
        Line(_points(notes, curve, located), 0, "IOPS"),
        published(rates),
        *([upright(knee.value, f"knee: {knee.measured}")] if knee else []),
    ]
    means = [
        Point(x, mean, words=f"{x:,.0f} outstanding: mean {format_latency(mean)}")
        for x, part in located
        if (mean := part.figures.get("mean_latency_ns"))
    ]
    figures = [(x, figure) for x, part in located if (figure := part.stated(Unit.NANOSECONDS))]
    latencies = [
        Line(means, 1, "mean latency (right)", HOLLOW),
        published(figures, "published latency (right)", PUBLISHED_LATENCY),
    ]
    panel = Panel(
        Depths("I/Os outstanding", [x or 1 for x, _ in located]), Values("IOPS", Unit.IOPS), marks,
        Values("mean latency", Unit.NANOSECONDS, by_decades), latencies,
    )  # fmt: skip
    caption = (
        "IOPS (left) with 95 % intervals and mean latency (right, logarithmic) over the I/Os outstanding."
        f"{f' {sentence(knee.sentence)}' if knee else ''}"
        f"{f' Published: {sources}.' if sources else ''}"
    )
    where = f", no gain beyond {knee.value:,.0f} outstanding" if knee and knee.high is not None else ""
    title = f"{curve.name}: queue depth, {curve.group}{where}"
    table = _table(notes, curve, parts)
    return Chart(slug("depths", curve.geometry, curve.group), title, caption, panel, table, curve.geometry)


def bars(notes: Notes, curve: DepthCurve) -> Chart | None:
    """Draw one bar for each point of a series that is no curve, such as aligned and shifted; None without IOPS."""
    points = _points(notes, curve, list(enumerate(curve.points)))
    if not points:
        return None
    names = [printable(part.name, 30) for part in curve.points]
    marks = [Bars([point], index, width=0.5) for index, point in enumerate(points)]
    panel = Panel(Places("", names, is_steep=len(names) > FEWEST), Values("IOPS", Unit.IOPS, from_zero), marks)
    caption = " ".join(sentence(evidence.sentence) for evidence in curve.judged)
    title, table = f"{curve.name}: {curve.group}, side by side", _table(notes, curve, curve.points)
    return Chart(slug("points", curve.geometry, curve.group), title, caption, panel, table, curve.geometry, 2.8)


def _points(notes: Notes, curve: DepthCurve, located: Sequence[tuple[float, Part]]) -> list[Point]:
    """Return IOPS at their places, with the intervals of their measurements."""
    return [
        Point(x, iops, interval=_interval(notes, curve, part), words=f"{part.name}: {format_value(iops, Unit.IOPS)}")
        for x, part in located
        if (iops := part.figures.get("iops")) is not None
    ]


def _interval(notes: Notes, curve: DepthCurve, part: Part) -> tuple[float, float] | None:
    noted = notes.at(curve.geometry, part.name)
    # The interval of reads beside writes would be that of both together.
    return noted.interval() if noted and not noted.workload.beside else None


def _table(notes: Notes, curve: DepthCurve, parts: Sequence[Part]) -> Table:
    rows = []
    for part in parts:
        depth, iops, mean = (part.figures.get(name) for name in ("outstanding", "iops", "mean_latency_ns"))
        rows.append((
            part.name,
            "" if depth is None else f"{depth:,.0f}",
            "" if iops is None else format_value(iops, Unit.IOPS),
            interval_words(_interval(notes, curve, part)),
            "" if mean is None else format_latency(mean),
            "; ".join(map(str, part.published)),
        ))  # fmt: skip
    return Table(("workload", "outstanding", "IOPS", "95 % interval", "mean latency", "published"), tuple(rows))


BATHTUB_CLAIM = "bathtub_depth"


def shares(curve: DepthCurve) -> list[tuple[float, Part]]:
    """Return per cent of reads and point, pure reads first; empty if a name has no mix or a point no IOPS."""
    mixes = []
    for part in curve.points:
        workload = parsed(part.name)
        if workload is None or workload.has_streams or part.figures.get("iops") is None:
            return []
        mixes.append((100 * workload.read_fraction, part))
    return sorted(mixes, key=lambda mix: -mix[0])


def is_by_mix(curve: DepthCurve) -> bool:
    """Return True for a series from pure reads to pure writes."""
    mixes = [share for share, _ in shares(curve)]
    return len(set(mixes)) == len(mixes) >= FEWEST and mixes[0] == 100 and mixes[-1] == 0


def bathtub(notes: Notes, curve: DepthCurve) -> Chart:
    """Draw the curve over the mixes, the straight line between its ends, and the limit."""
    mixes = shares(curve)
    points = _points(notes, curve, mixes)
    reads, writes = points[0].y, points[-1].y
    line = [Point(point.x, writes + (reads - writes) * point.x / 100) for point in points]
    evidence = curve.of_claim(BATHTUB_CLAIM)
    marks = [Line(line, name="line from pure reads to pure writes", style=DOTTED)]
    if evidence and evidence.limit is not None:
        least = [Point(point.x, evidence.limit * point.y) for point in line]
        marks.append(Line(least, name=f"promised: {evidence.bound} of it", style=PROMISED))
    figures = [(x, figure) for x, part in mixes if (figure := part.stated(Unit.IOPS))]
    marks += Line(points, 0, "IOPS"), published(figures)
    caption = f"From pure reads (left) to pure writes. {sentence(evidence.sentence) if evidence else ''}".rstrip()
    rows = tuple(
        (
            part.name, f"{share:.0f} %", format_value(point.y, Unit.IOPS), interval_words(point.interval),
            format_value(straight.y, Unit.IOPS), "; ".join(map(str, part.published)),
        )
        for (share, part), point, straight in zip(mixes, points, line, strict=True)
    )  # fmt: skip
    table = Table(("workload", "reads", "IOPS", "95 % interval", "the line", "published"), rows)
    panel = Panel(
        Numbers("reads, %", (103, -3), [share for share, _ in mixes]), Values("IOPS", Unit.IOPS, from_zero), marks
    )
    deepest = f", at worst {evidence.measured} of the line" if evidence else ""
    title = f"{curve.name}: mixes of reads and writes, {curve.group}{deepest}"
    return Chart(slug("mixes", curve.geometry, curve.group), title, caption, panel, table, curve.geometry)


#: Around a required point.
RING = {**RULE, "linestyle": "", "marker": "o", "markersize": 10, "markerfacecolor": "none", "zorder": 5}


@frozen
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
