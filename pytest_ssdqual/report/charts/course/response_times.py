"""Response times of SNIA PTS: histograms at the end of a saturation and at DIRTH's points, and latency over time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from pytest_ssdqual.qual.measured.demand import required
from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.stats.estimate import TooFew
from pytest_ssdqual.qual.stats.latency import quantile_of_rounds
from pytest_ssdqual.qual.units import Unit, format_duration, format_latency
from pytest_ssdqual.report.charts import data
from pytest_ssdqual.report.charts.course import saturation
from pytest_ssdqual.report.charts.course.over_time import TimeCurve, curve_table, draw_curves, gaps_and_points
from pytest_ssdqual.report.charts.course.saturation import MOST_DRIVES, SaturationStrip
from pytest_ssdqual.report.charts.data import Notes
from pytest_ssdqual.report.charts.performance import latency
from pytest_ssdqual.report.charts.performance.demand import DemandGrid
from pytest_ssdqual.report.drawing import scales
from pytest_ssdqual.report.drawing.chart import Chart, printable, slug
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.drawing.palette import DASHES, LIMIT, colour
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.view.sections import shortened
from pytest_ssdqual.report.view.tables import Table

#: Bars of each power of two of latency; fio has 64 buckets.
BARS = 8


def chart(notes: Notes, strip: SaturationStrip, prefix: str = "response-times") -> Chart | None:
    """Draw a line for each of few drives; None if fio's output is gone or the curve never became steady."""
    found = data.saturation_of(notes.story.folder, strip.facts)
    try:
        measured = found.response_times() if found else None
    except TooFew:
        return None
    if measured is None or not measured.latency:
        return None
    shown = measured.members() if 1 < strip.drives <= MOST_DRIVES else (measured,)
    lasted = format_duration(measured.runs[0].window_s)
    limits = [
        each.evidence
        for each in saturation.judged(notes, strip)
        if each.evidence.unit is Unit.NANOSECONDS and each.evidence.limit is not None
    ]
    named = {each.runs[0].drive or f"{strip.geometry}": each for each in shown}
    return _histograms(
        slug(prefix, str(strip.geometry), str(strip.workload)),
        f"{strip.geometry}: response times of {strip.workload} in the last {lasted} of the saturation",
        "I/Os of the steady state",
        named,
        shortened(list(named)),
        limits,
    )


def of_demand(notes: Notes, grid: DemandGrid, prefix: str = "response-times") -> Chart | None:
    """Draw a line for each point that DIRTH names; None if fio's output of one is gone."""
    shown = {}
    for name, point in required(grid.points).items():
        workload, records = grid.cells[str(point)]
        runs = data.read_runs(notes.story.folder, records, workload)
        if not runs:
            return None
        shown[f"{name}, {point}"] = Measured(runs)
    key = slug(prefix, grid.geometry, grid.loop)
    what = f"I/Os of all {'steady' if grid.reached else 'last, unsteady'} rounds"
    title = f"{grid.geometry}: {grid.loop}, response times"
    return _histograms(key, title, what, shown, {name: name for name in shown}, ()) if shown else None


def course(notes: Notes, strip: SaturationStrip, prefix: str = "latency") -> Chart | None:
    """Draw mean and maximum latency of each of fio's reports over the saturation; None if fio's output is gone."""
    found = data.saturation_of(notes.story.folder, strip.facts)
    figures = {"slowest I/O": data.slowest_ns, "mean": data.mean_ns}
    curves = [TimeCurve(name, name, *data.series(found.run, each)) for name, each in figures.items()] if found else []
    if not curves or not all(each.xs for each in curves):
        return None
    key = slug(prefix, str(strip.geometry), str(strip.workload))
    title = f"{strip.geometry}: latency of {strip.workload} from the purged state"
    with drawing():
        plate = Plate.of(2.9)
        draw_curves(plate, plate.axes("time", "latency"), curves, Unit.NANOSECONDS, ())
        svg = plate.svg(key, title, "Mean and maximum latency over time.")
    whose = "all drives together" if strip.drives > 1 else "all I/Os"
    caption = f"Mean and maximum of {whose} since the point before.{gaps_and_points(curves)}"
    return Chart(key, title, caption, svg, curve_table(curves, "of", "latency", Unit.NANOSECONDS),
                 strip.geometry.level.value)  # fmt: skip


def _histograms(
    key: str,
    title: str,
    what: str,
    shown: Mapping[str, Measured],
    legends: Mapping[str, str],
    limits: Sequence[Evidence],
) -> Chart:
    with drawing():
        plate = Plate.of()
        _draw(plate, list(shown.values()), [legends[name] for name in shown])
        for each in limits:
            line = plate.figure.axes[0].axvline(each.limit or 0.0, color=LIMIT, linestyle=(0, (6, 2)), linewidth=1.4)
            plate.entry(line, f"promised, {each.claim.removesuffix('_latency')}: {each.bound}")
        svg = plate.svg(key, title, f"Histograms of {len(shown)} targets on logarithmic scales.")
    caption = (
        f"{what} by their latency, {BARS} bars for each factor of two. "
        "Both scales are logarithmic, so that the few slowest I/Os are seen beside the many fast ones."
    )
    table = Table(
        ("of", "I/Os", "mean", *(name for name, _ in latency.QUANTILES), "slowest"),
        tuple(_row(name, each) for name, each in shown.items()),
    )
    (geometry,) = {each.geometry for each in shown.values()}
    return Chart(key, title, caption, svg, table, geometry.level.value)


def _draw(plate: Plate, shown: Sequence[Measured], names: Sequence[str]) -> None:
    axes = plate.axes("latency", "I/Os")
    bars = [_bars(each.latency) for each in shown]
    for index, (name, counts) in enumerate(zip(names, bars, strict=True)):
        places = range(min(counts), max(counts) + 1)
        edges = [2 ** (place / BARS) for place in (*places, places.stop)]
        drawn = axes.stairs(
            [counts[place] for place in places], edges, color=colour(index), linestyle=DASHES[index % len(DASHES)]
        )
        if len(names) > 1:
            plate.entry(drawn, printable(name, 24))
    # Half an I/O, so that a single one is seen.
    scales.by_decades(axes, Unit.COUNT, [0.5, *(count for counts in bars for count in counts.values())])
    axes.set_ylim(bottom=0.5)
    axes.set_xscale("log")
    scales.log_ticks(axes.xaxis, Unit.NANOSECONDS, *axes.get_xlim())


def _bars(histogram: LatencyHistogram) -> Counter[int]:
    """Return the I/Os by ``BARS`` times the binary logarithm of their latency in nanoseconds, rounded down."""
    counts: Counter[int] = Counter()
    for value_ns, count in histogram.bins:
        counts[math.floor(BARS * math.log2(max(1, value_ns)))] += count
    return counts


def _row(name: str, measured: Measured) -> tuple[str, ...]:
    histogram, rounds = measured.latency, measured.round_latency()
    found = []
    for _, q in latency.QUANTILES:
        try:
            found.append(format_latency(quantile_of_rounds(rounds, q).value))
        except TooFew:
            found.append("too few I/Os")
    return (
        name, f"{histogram.total:,}", format_latency(histogram.mean_ns), *found, format_latency(histogram.max_ns)
    )  # fmt: skip
