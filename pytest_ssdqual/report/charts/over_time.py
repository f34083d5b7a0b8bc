"""One measurement over its time, with its limit: what stands behind a verdict on a single workload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pytest_ssdqual.qual.measured.run import Interval
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.report.charts import base, data
from pytest_ssdqual.report.charts.base import (
    INK,
    MOST_ROWS,
    PUBLISHED,
    Chart,
    ChartTable,
    condensed,
    condensing,
    extremes,
    gaps,
    parted,
    sentence,
)
from pytest_ssdqual.report.charts.data import NotedMeasurement, NotedRun, Notes, tests_of
from pytest_ssdqual.report.charts.figure import Plate, drawing
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.run_folder.reader import Judged

MOST_RUNS = 4


@dataclass(frozen=True, slots=True)
class PlottedFigure:
    """A figure of every interval of fio's output, or of every round of a record where that is all there is."""

    name: str
    unit: Unit
    of_interval: Callable[[Interval], float | None]
    of_record: Callable[[NotedRun, NotedMeasurement], tuple[float | None, ...]]
    #: Whether drives side by side add up to it.
    adds: bool = True


def _iops(run: NotedRun, _: NotedMeasurement) -> tuple[float | None, ...]:
    return run.round_iops


def _bytes(run: NotedRun, noted: NotedMeasurement) -> tuple[float | None, ...]:
    return tuple(each * noted.workload.block_bytes for each in run.round_iops)


def _slowest(run: NotedRun, _: NotedMeasurement) -> tuple[float | None, ...]:
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
    "mean_latency": MEAN,
    "read_mean_latency": _mean_of("read"),
    "write_mean_latency": _mean_of("write"),
    "max_latency": SLOWEST,
    "latency_spread_over_time": SLOWEST,
}


def chart(notes: Notes, noted: NotedMeasurement, judged: Judged, key: str) -> Chart | None:
    """A line for each repeat, the verdict's estimate with its interval, the limit; None if nothing is known of it."""
    evidence = judged.evidence
    measure = MEASURES.get(evidence.claim, SLOWEST if evidence.unit is Unit.NANOSECONDS else IOPS)
    curves = [each for each in _curves(notes, noted, measure) if each[0]]
    if not curves:
        return None
    title = f"{noted.geometry} {noted.workload}: {measure.name} over time"
    with drawing():
        plate = Plate.of(2.9)
        per = " per drive" if noted.drives > 1 and measure.adds else ""
        axes = plate.axes("time", f"{measure.name}{per}")
        for index, (xs, ys) in enumerate(curves):
            shown = extremes(xs, ys)
            told = [f"{x:,.0f} s: {format_value(y, measure.unit)}" for x, y in zip(*shown, strict=True)]
            words = measure.name if len(curves) == 1 else f"repeat {index + 1}"
            line = parted(*shown, gaps(xs))
            plate.line(axes, *line, index, words, told=told, marked=len(shown[0]) <= MOST_ROWS)
        values = [y for _, ys in curves for y in ys]
        last = max(xs[-1] for xs, _ in curves)
        base.suited(axes, measure.unit, values + _stated(plate, evidence, measure, last, values))
        unit = base.seconds(axes, last)
        axes.set_xlabel(f"time, {unit}")
        svg = plate.svg(key, title, f"{measure.name} of {len(curves)} runs over time, with the limit.")
    count = max(len(xs) for xs, _ in curves)
    stalls = " Where a line has a gap, no I/O ended or fio told nothing." if any(gaps(xs) for xs, _ in curves) else ""
    caption = f"{sentence(evidence.sentence)}{stalls}{condensing(count)}"
    rows = tuple(
        (f"{index + 1}", f"{x:,.1f} s", format_value(y, measure.unit, 1))
        for index, (xs, ys) in enumerate(curves)
        for x, y in condensed(list(zip(xs, ys, strict=True)))
    )
    table = ChartTable(("run", "until", measure.name), rows)
    return Chart(key, title, caption, svg, table, tests_of([judged]), noted.geometry.level.value)


def _curves(notes: Notes, noted: NotedMeasurement, measure: PlottedFigure) -> list[tuple[list[float], list[float]]]:
    """Of the first repeats, by seconds or else by rounds; of drives side by side the average drive."""
    runs = data.runs_of(notes.story.folder, noted)[:MOST_RUNS]
    if runs:
        found = [data.series(run, measure.of_interval) for run in runs]
    else:
        found = [data.noted_rounds(noted, measure.of_record(run, noted)) for run in noted.runs[:MOST_RUNS]]
    drives = noted.drives if measure.adds else 1
    return [(xs, [y / drives for y in ys]) for xs, ys in found]


def _stated(plate: Plate, evidence: Evidence, measure: PlottedFigure, last: float, values: list[float]) -> list[float]:
    """Estimate, limit and published figure, where they are in the unit of the axis; returns how high they are."""
    axes = plate.figure.axes[0]
    if evidence.claim == "worst_second" and evidence.limit is not None:
        at = evidence.limit * sum(values) / len(values)
        plate.limit(axes, at, f"promised: {evidence.bound} of the mean")
        return [at]
    if evidence.unit is not measure.unit or evidence.claim not in MEASURES:
        return []
    shown = [evidence.value]
    plate.entry(axes.axhline(evidence.value, color=INK, linewidth=1.0), f"judged: {evidence.measured}")
    if evidence.low is not None and evidence.high is not None:
        plate.band(axes, [0, last], [evidence.low] * 2, [evidence.high] * 2, evidence.interval_in_full)
        shown += [evidence.low, evidence.high]
    if evidence.limit is not None:
        plate.limit(axes, evidence.limit, f"promised: {evidence.bound}")
        shown.append(evidence.limit)
    if evidence.published and evidence.published.unit is measure.unit:
        line = axes.axhline(evidence.published.value, color=PUBLISHED, linestyle="-.", linewidth=1.2)
        plate.entry(line, f"published: {evidence.published}")
        shown.append(evidence.published.value)
    return shown
