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
from pytest_ssdqual.report.charts.course.saturation import MOST_DRIVES, SaturationStrip
from pytest_ssdqual.report.charts.data import Notes
from pytest_ssdqual.report.charts.performance.demand import DemandGrid
from pytest_ssdqual.report.charts.performance.latency import QUANTILES
from pytest_ssdqual.report.drawing.chart import slug
from pytest_ssdqual.report.drawing.course import DrawnCourse, over_time
from pytest_ssdqual.report.drawing.plot import PROMISED, AnyMark, Chart, Panel, Point, lines_of, upright
from pytest_ssdqual.report.drawing.scales import Decades, Seconds, Values, counts
from pytest_ssdqual.report.view.sections import shortened
from pytest_ssdqual.report.view.tables import Table

#: Bars of each power of two of latency; fio has 64 buckets.
BARS = 8
#: Style of a histogram's outline.
OUTLINE = {"marker": "", "drawstyle": "steps-post"}


def chart(notes: Notes, strip: SaturationStrip) -> Chart | None:
    """Draw a line for each of few drives; None if fio's output is gone or the curve never became steady."""
    found = data.saturation_of(notes.story.folder, strip.record)
    try:
        measured = found.response_times() if found else None
    except TooFew:
        return None
    if measured is None or not measured.latency:
        return None
    shown = measured.members() if 1 < strip.drives <= MOST_DRIVES else (measured,)
    limits = [
        upright(evidence.limit, f"promised, {evidence.claim.removesuffix('_latency')}: {evidence.bound}", PROMISED)
        for evidence in saturation.judged(notes, strip)
        if evidence.unit is Unit.NANOSECONDS and evidence.limit is not None
    ]
    title = (
        f"{strip.geometry}: response times of {strip.workload} in the last "
        f"{format_duration(measured.runs[0].window_s)} of the saturation"
    )
    named = {each.runs[0].drive or f"{strip.geometry}": each for each in shown}
    key = slug("response-times", str(strip.geometry), str(strip.workload))
    return _histograms(key, title, "I/Os of the steady state", named, shortened(list(named)), limits)


def of_demand(notes: Notes, grid: DemandGrid) -> Chart | None:
    """Draw a line for each point that DIRTH names; None if fio's output of one is gone."""
    shown = {}
    for name, point in required(grid.points).items():
        workload, records = grid.cells[str(point)]
        runs = data.read_runs(notes.story.folder, records, workload)
        if not runs:
            return None
        shown[f"{name}, {point}"] = Measured(runs)
    if not shown:
        return None
    what = f"I/Os of all {'steady' if grid.reached else 'last, unsteady'} rounds"
    title = f"{grid.geometry}: {grid.loop}, response times"
    return _histograms(
        slug("response-times", grid.geometry, grid.loop), title, what, shown, {name: name for name in shown}
    )


def course(notes: Notes, strip: SaturationStrip) -> Chart | None:
    """Draw mean and maximum latency of each of fio's reports over the saturation; None if fio's output is gone."""
    found = data.saturation_of(notes.story.folder, strip.record)
    figures = {"slowest I/O": data.slowest_ns, "mean": data.mean_ns}
    series = [DrawnCourse(name, data.series(found.run, each), name) for name, each in figures.items()] if found else []
    if not series or not all(each.points for each in series):
        return None
    courses = over_time(series, Unit.NANOSECONDS)
    whose = "all drives together" if strip.drives > 1 else "all I/Os"
    caption = f"Mean and maximum of {whose} since the point before.{courses.remarks}"
    title = f"{strip.geometry}: latency of {strip.workload} from the purged state"
    panel = Panel(Seconds(), Values("latency", Unit.NANOSECONDS), courses.lines())
    table = Table(("of", "until", "latency"), courses.rows())
    key = slug("latency", str(strip.geometry), str(strip.workload))
    return Chart(key, title, caption, panel, table, strip.geometry.level.value, 2.9)


def _histograms(key: str, title: str, what: str, shown: Mapping[str, Measured], legends: Mapping[str, str],
                limits: Sequence[AnyMark] = ()) -> Chart:  # fmt: skip
    names = legends if len(shown) > 1 else dict.fromkeys(shown, "")
    lines = lines_of({names[name]: _outline(_bars(each.latency)) for name, each in shown.items()}, OUTLINE)
    caption = (
        f"{what} by their latency, {BARS} bars for each factor of two. "
        "Both scales are logarithmic, so that the few slowest I/Os are seen beside the many fast ones."
    )
    rows = tuple(_row(name, measured) for name, measured in shown.items())
    table = Table(("of", "I/Os", "mean", *(name for name, _ in QUANTILES), "slowest"), rows)
    panel = Panel(Decades("latency", Unit.NANOSECONDS), Values("I/Os", Unit.COUNT, counts), [*lines, *limits])
    (geometry,) = {measured.geometry for measured in shown.values()}
    return Chart(key, title, caption, panel, table, geometry.level.value)


def _outline(bars: Counter[int]) -> list[Point]:
    """Return the upper edges of the bars, from the bottom at the left to the bottom at the right."""
    first, last = min(bars), max(bars) + 1
    tops = [Point(2 ** (place / BARS), bars[place]) for place in range(first, last + 1)]
    return [Point(tops[0].x, 0), *tops]


def _bars(histogram: LatencyHistogram) -> Counter[int]:
    """Return the I/Os by ``BARS`` times the binary logarithm of their latency in nanoseconds, rounded down."""
    bars: Counter[int] = Counter()
    for value_ns, count in histogram.bins:
        bars[math.floor(BARS * math.log2(max(1, value_ns)))] += count
    return bars


def _row(name: str, measured: Measured) -> tuple[str, ...]:
    histogram, quantiles = measured.latency, []
    for _, q in QUANTILES:
        try:
            quantiles.append(format_latency(quantile_of_rounds(measured.round_latency(), q).value))
        except TooFew:
            quantiles.append("too few I/Os")
    slowest = format_latency(histogram.max_ns)
    return (name, f"{histogram.total:,}", format_latency(histogram.mean_ns), *quantiles, slowest)
