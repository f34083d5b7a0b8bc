"""A measurement over its time with its limit, for a verdict on a single workload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.measured.run import RunRecord
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.report.charts import data
from pytest_ssdqual.report.charts.data import DrawnSeries, NotedMeasurement, Notes
from pytest_ssdqual.report.drawing import scales
from pytest_ssdqual.report.drawing.chart import (
    MOST_ROWS,
    Chart,
    condensed,
    condensing,
    extremes,
    gaps,
    parted,
    sentence,
)
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.drawing.palette import INK
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.view.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_RUNS = 4
#: End of the caption of a measurement in visits.
IN_VISITS = " The cells of a visit are drawn one behind the other; hours are between two visits."


@dataclass(frozen=True, slots=True)
class PlottedFigure:
    """A figure of every interval of fio's output, or else of every round of a record."""

    name: str
    unit: Unit
    of_interval: Callable[[Interval], float | None]
    of_record: Callable[[RunRecord, NotedMeasurement], tuple[float | None, ...]]
    #: Whether drives side by side add up to it.
    adds: bool = True


def _iops(run: RunRecord, _: NotedMeasurement) -> tuple[float | None, ...]:
    return run.round_iops


def _bytes(run: RunRecord, noted: NotedMeasurement) -> tuple[float | None, ...]:
    return tuple(each * noted.workload.block_bytes for each in run.round_iops)


def _slowest(run: RunRecord, _: NotedMeasurement) -> tuple[float | None, ...]:
    return run.round_max_latency_ns


def _of_direction(name: str) -> Callable[[Interval], float | None]:
    def rate(interval: Interval) -> float | None:
        count = interval.read_ios if name == "read" else interval.write_ios
        return count / interval.seconds if interval.seconds else None

    return rate


IOPS = PlottedFigure("IOPS", Unit.IOPS, data.rate, _iops)
THROUGHPUT = PlottedFigure("throughput", Unit.BYTES_PER_SECOND, data.bytes_rate, _bytes)
SLOWEST = PlottedFigure("slowest I/O", Unit.NANOSECONDS, data.slowest_ns, _slowest, adds=False)
MEAN = PlottedFigure("mean latency", Unit.NANOSECONDS, data.mean_ns, lambda run, noted: (), adds=False)


def _mean_of(name: str) -> PlottedFigure:
    def mean(interval: Interval) -> float | None:
        latencies = interval.read_latency if name == "read" else interval.write_latency
        return latencies.mean_ns if latencies else None

    return PlottedFigure(f"mean latency of {name}s", Unit.NANOSECONDS, mean, lambda run, noted: (), adds=False)


MEASURES = {
    "steady_iops": IOPS,
    "read_iops": PlottedFigure("read IOPS", Unit.IOPS, _of_direction("read"), lambda run, noted: ()),
    "write_iops": PlottedFigure("write IOPS", Unit.IOPS, _of_direction("write"), lambda run, noted: ()),
    "throughput": THROUGHPUT,
    "worst_second": THROUGHPUT,
    "slowest_second": THROUGHPUT,
    "fastest_second": THROUGHPUT,
    "fastest_to_slowest_second": THROUGHPUT,
    "mean_latency": MEAN,
    "read_mean_latency": _mean_of("read"),
    "write_mean_latency": _mean_of("write"),
    "max_latency": SLOWEST,
    "latency_spread_over_time": SLOWEST,
}


@dataclass(frozen=True, slots=True)
class TimeCurve:
    """A figure over time."""

    #: Name in the table and at the points, and in the legend.
    name: str
    legend: str
    xs: Sequence[float]
    ys: Sequence[float]


def draw_curves(plate: Plate, axes: Axes, curves: Sequence[TimeCurve], unit: Unit, further: Sequence[float]) -> None:
    """Draw the curves on scales that hold them and ``further`` values; gaps stay gaps."""
    for index, each in enumerate(curves):
        shown = extremes(each.xs, each.ys)
        tooltips = [f"{each.name}, {x:,.0f} s: {format_value(y, unit)}" for x, y in zip(*shown, strict=True)]
        line = parted(*shown, gaps(each.xs))
        plate.line(axes, *line, index, each.legend, tooltips=tooltips, marked=len(shown[0]) <= MOST_ROWS)
    scales.suited(axes, unit, [*(y for each in curves for y in each.ys), *further])
    axes.set_xlabel(f"time, {scales.seconds(axes, max(each.xs[-1] for each in curves))}")


def gaps_and_points(curves: Sequence[TimeCurve]) -> str:
    """Return the end of the caption: what a gap is, and whether the table has all points."""
    stalls = " Where a line has a gap, no I/O completed or fio reported nothing."
    return (stalls if any(gaps(each.xs) for each in curves) else "") + condensing(max(len(each.xs) for each in curves))


def curve_table(curves: Sequence[TimeCurve], of: str, figure: str, unit: Unit) -> Table:
    """Return the points; ``of`` and ``figure`` are heads of columns."""
    rows = [
        (each.name, f"{x:,.1f} s", format_value(y, unit, 1))
        for each in curves
        for x, y in condensed(list(zip(each.xs, each.ys, strict=True)))
    ]
    return Table((of, "until", figure), tuple(rows))


def chart(notes: Notes, noted: NotedMeasurement, judged: Judged, key: str) -> Chart | None:
    """Draw a line for each repeat, estimate, interval and limit; None without data."""
    evidence = judged.evidence
    measure = MEASURES.get(evidence.claim, SLOWEST if evidence.unit is Unit.NANOSECONDS else IOPS)
    found = [each for each in _curves(notes, noted, measure) if each[0]]
    if not found:
        return None
    part = "visit" if noted.visited else "repeat"
    # A visit that is left out is the first one.
    begin = 2 if noted.visited and noted.visited.left_out else 1
    names = [f"{part} {number}" for number in range(begin, begin + len(found))]
    legends = names if len(found) > 1 else [measure.name]
    curves = [TimeCurve(name, legend, *series) for name, legend, series in zip(names, legends, found, strict=True)]
    title = f"{noted.geometry} {noted.workload}: {measure.name} over time"
    with drawing():
        plate = Plate.of(2.9)
        per = " per drive" if noted.drives > 1 and measure.adds else ""
        axes = plate.axes("time", f"{measure.name}{per}")
        further = _stated(plate, evidence, measure, curves)
        draw_curves(plate, axes, curves, measure.unit, further)
        svg = plate.svg(key, title, f"{measure.name} of {len(curves)} runs over time, with the limit.")
    caption = f"{sentence(evidence.sentence)}{gaps_and_points(curves)}{IN_VISITS if noted.visited else ''}"
    table = curve_table(curves, "run", measure.name, measure.unit)
    return Chart(key, title, caption, svg, table, noted.geometry.level.value)


def _curves(notes: Notes, noted: NotedMeasurement, measure: PlottedFigure) -> list[DrawnSeries]:
    """Return the first repeats, or all visits, by seconds or else by rounds.

    Of drives side by side it is the average drive.
    """
    most = None if noted.visited else MOST_RUNS
    runs = data.runs_of(notes.story.folder, noted)[:most]
    if runs:
        found = [data.series(run, measure.of_interval) for run in runs]
    else:
        found = [data.noted_rounds(noted, measure.of_record(run, noted)) for run in noted.runs[:most]]
    if noted.visited:
        found = data.by_visit(found, noted.visited, noted.runs[0].window_s)
    drives = noted.drives if measure.adds else 1
    return [(xs, [y / drives for y in ys]) for xs, ys in found]


def _stated(plate: Plate, evidence: Evidence, measure: PlottedFigure, curves: Sequence[TimeCurve]) -> list[float]:
    """Draw estimate, limit and published figure in the unit of the axis; return their maximum."""
    axes = plate.figure.axes[0]
    if evidence.claim == "worst_second" and evidence.limit is not None:
        values = [y for each in curves for y in each.ys]
        at = evidence.limit * sum(values) / len(values)
        plate.limit(axes, at, f"promised: {evidence.bound} of the mean")
        return [at]
    if evidence.unit is not measure.unit or evidence.claim not in MEASURES:
        return []
    shown = [evidence.value]
    plate.entry(axes.axhline(evidence.value, color=INK, linewidth=1.0), f"judged: {evidence.measured}")
    if evidence.low is not None and evidence.high is not None:
        last = max(each.xs[-1] for each in curves)
        plate.band(axes, [0, last], [evidence.low] * 2, [evidence.high] * 2, evidence.interval_in_full)
        shown += [evidence.low, evidence.high]
    return shown + plate.stated(axes, evidence, measure.unit)
