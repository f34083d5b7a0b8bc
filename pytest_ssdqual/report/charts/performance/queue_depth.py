"""IOPS and latency over the queue depth, with the knee and published figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.units import Unit, format_latency, format_range, format_value
from pytest_ssdqual.report.charts.data import Notes
from pytest_ssdqual.report.drawing import scales
from pytest_ssdqual.report.drawing.chart import Chart, printable, sentence, slug
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.drawing.palette import INK, PUBLISHED, colour
from pytest_ssdqual.report.evidence.evidence import About, Part
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.view.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST = 3


@dataclass(frozen=True, slots=True)
class DepthCurve:
    """A series of workloads on an array, with its verdicts."""

    geometry: str
    group: str
    points: tuple[Part, ...]
    judged: tuple[Judged, ...]

    @property
    def per(self) -> str:
        """Label of the target; of drives side by side the average drive."""
        return ", per drive" if self.geometry.startswith("drive") else ""

    def of_claim(self, claim: str) -> Judged | None:
        return next((each for each in self.judged if each.evidence.claim == claim), None)


def curves(notes: Notes) -> Iterator[DepthCurve]:
    """Yield every series on every array, in the order in which they were judged."""
    found: dict[tuple[str, str], list[Judged]] = {}
    for each in notes.judged:
        if each.evidence.about is About.CURVE and each.evidence.points and len(each.evidence.geometries) == 1:
            found.setdefault((each.evidence.geometries[0], each.evidence.group), []).append(each)
    for (geometry, group), judged in found.items():
        yield DepthCurve(
            geometry, group or " ".join(judged[0].evidence.workloads), judged[0].evidence.points, tuple(judged)
        )


def is_by_depth(curve: DepthCurve) -> bool:
    """Return True if the points differ in the number of outstanding I/Os."""
    depths = [point.figures.get("outstanding") for point in curve.points]
    return len(depths) >= FEWEST and all(depth and depth > 0 for depth in depths) and len(set(depths)) == len(depths)


def chart(notes: Notes, curve: DepthCurve, prefix: str = "depths") -> Chart:
    """Draw IOPS solid, mean latency hollow on the right, and published figures as diamonds."""
    points = sorted(curve.points, key=lambda point: point.figures.get("outstanding") or 0)
    key = slug(prefix, curve.geometry, curve.group)
    knee = curve.of_claim("qd_knee")
    where = (
        f", no gain beyond {knee.evidence.value:,.0f} outstanding" if knee and knee.evidence.high is not None else ""
    )
    title = f"{curve.geometry}{curve.per}: queue depth, {curve.group}{where}"
    with drawing():
        plate = Plate.of()
        axes = plate.axes("I/Os outstanding", "IOPS", right=True)
        _iops(plate, axes, notes, curve, points)
        _latency(plate, axes, points)
        if knee:
            line = axes.axvline(knee.evidence.value, color=INK, linestyle=(0, (1.5, 2)), linewidth=1.2)
            plate.entry(line, f"knee: {knee.evidence.measured}")
        depth_scale(axes, [point.figures.get("outstanding") or 1 for point in points])
        svg = plate.svg(key, title, f"{len(points)} depths, IOPS and mean latency.")
    caption = (
        "IOPS (left) with 95 % intervals and mean latency (right, logarithmic) over the I/Os outstanding."
        f"{f' {sentence(knee.evidence.sentence)}' if knee else ''}{_sources(points)}"
    )
    return Chart(key, title, caption, svg, _table(points, intervals(notes, curve, points)), curve.geometry)


def bars(notes: Notes, curve: DepthCurve, prefix: str = "points") -> Chart | None:
    """Draw one bar for each point of a series that is no curve, such as aligned and shifted; None without IOPS."""
    found = [(point, y) for point in curve.points if (y := point.figures.get("iops")) is not None]
    if not found:
        return None
    key, title = slug(prefix, curve.geometry, curve.group), f"{curve.geometry}{curve.per}: {curve.group}, side by side"
    with drawing():
        plate = Plate.of(2.8)
        axes = plate.axes("", "IOPS")
        for index, (point, y) in enumerate(found):
            (bar,) = plate.bars(axes, [index], [y], 0.5, index)
            plate.add_tooltips(bar, [f"{point.name}: {format_value(y, Unit.IOPS)}"])
        ends = intervals(notes, curve, [point for point, _ in found])
        plate.whiskers(axes, list(range(len(found))), ends, INK)
        scales.from_zero(axes, Unit.IOPS, [*(y for _, y in found), *(end[1] for end in ends if end)])
        scales.places(axes, [printable(point.name, 30) for point, _ in found], steep=len(found) > 3)
        svg = plate.svg(key, title, f"IOPS of {len(found)} workloads.")
    caption = " ".join(sentence(each.evidence.sentence) for each in curve.judged)
    return Chart(key, title, caption, svg, _table(curve.points, intervals(notes, curve, curve.points)), curve.geometry)


def intervals(notes: Notes, curve: DepthCurve, points: Sequence[Part]) -> list[tuple[float, float] | None]:
    """Return the intervals of IOPS from the measurements of the points."""
    found = [notes.at(curve.geometry, point.name) for point in points]
    return [each.interval() if each else None for each in found]


def _iops(plate: Plate, axes: Axes, notes: Notes, curve: DepthCurve, points: Sequence[Part]) -> None:
    found = [(point, y) for point in points if (y := point.figures.get("iops")) is not None]
    xs, ys = [point.figures.get("outstanding") or 0 for point, _ in found], [y for _, y in found]
    ends = intervals(notes, curve, [point for point, _ in found])
    tooltips = [f"{point.name}: {format_value(y, Unit.IOPS)}" for point, y in found]
    plate.whiskers(axes, xs, ends, colour(0))
    plate.line(axes, xs, ys, 0, "IOPS", tooltips=tooltips)
    stated = [(point.figures.get("outstanding") or 0, each) for point in points if (each := point.stated(Unit.IOPS))]
    shown = plate.published(axes, stated)
    scales.suited(axes, Unit.IOPS, [*ys, *shown, *(end[1] for end in ends if end)])


def _latency(plate: Plate, axes: Axes, points: Sequence[Part]) -> None:
    twin = plate.second(axes, "mean latency")
    found = [
        (point.figures.get("outstanding") or 0, y) for point in points if (y := point.figures.get("mean_latency_ns"))
    ]
    tooltips = [f"{x:,.0f} outstanding: mean {format_latency(y)}" for x, y in found]
    plate.line(
        twin,
        [x for x, _ in found],
        [y for _, y in found],
        1,
        "mean latency (right)",
        tooltips=tooltips,
        hollow=True,
        thin=True,
    )
    stated = [
        (point.figures.get("outstanding") or 0, each.value)
        for point in points
        if (each := point.stated(Unit.NANOSECONDS))
    ]
    if stated:
        (line,) = twin.plot([x for x, _ in stated], [y for _, y in stated], linestyle=":", marker="d", markersize=4,
                            markerfacecolor="none", linewidth=0.9, color=PUBLISHED)  # fmt: skip
        plate.entry(line, "published latency (right)")
    scales.by_decades(twin, Unit.NANOSECONDS, [y for _, y in (*found, *stated)])


def depth_scale(axes: Axes, depths: Sequence[float]) -> None:
    """Set a scale of powers of two with a tick at each depth."""
    from matplotlib.ticker import NullLocator

    axes.set_xlim(min(depths) / 1.25, max(depths) * 1.25)
    axes.set_xscale("log", base=2)
    axes.set_xticks(depths, [f"{depth:,.0f}" for depth in depths])
    axes.xaxis.set_minor_locator(NullLocator())


def _sources(points: Sequence[Part]) -> str:
    sources = dict.fromkeys(each.source for point in points for each in point.published)
    return f" Published: {'; '.join(list(sources)[:2])}." if sources else ""


def _table(points: Sequence[Part], ends: Sequence[tuple[float, float] | None]) -> Table:
    rows = []
    for point, end in zip(points, ends, strict=True):
        depth, iops, mean = (point.figures.get(name) for name in ("outstanding", "iops", "mean_latency_ns"))
        rows.append((
            point.name,
            "" if depth is None else f"{depth:,.0f}",
            "" if iops is None else format_value(iops, Unit.IOPS),
            interval_words(end),
            "" if mean is None else format_latency(mean),
            "; ".join(str(each) for each in point.published),
        ))  # fmt: skip
    return Table(("workload", "outstanding", "IOPS", "95 % interval", "mean latency", "published"), tuple(rows))


def interval_words(ends: tuple[float, float] | None) -> str:
    """Return an interval for a table; empty without one."""
    return format_range(*ends, Unit.IOPS) if ends else ""
