"""Writes from the purged state: IOPS over capacities, response times, and a new drive against a working one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.result_records import SaturationRecord
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.methods.demand import required
from pytest_ssdqual.qual.methods.stec import NEW_READS
from pytest_ssdqual.qual.stats.estimate import TooFew
from pytest_ssdqual.qual.stats.latency import quantile_of_rounds
from pytest_ssdqual.qual.units import Unit, format_duration, format_latency, format_value
from pytest_ssdqual.report.charts import data
from pytest_ssdqual.report.charts.data import Notes, drives_of
from pytest_ssdqual.report.charts.performance.latency import QUANTILES
from pytest_ssdqual.report.charts.performance.queue_depth import DemandGrid
from pytest_ssdqual.report.drawing.chart import MOST_POINTS, MOST_ROWS, Pair, condensing, printable, sentence, slug
from pytest_ssdqual.report.drawing.plot import (
    PROMISED,
    RULE,
    THIN,
    AnyMark,
    Bars,
    Chart,
    Courses,
    DrawnCourse,
    Panel,
    Point,
    level,
    lines_of,
    over_time,
    shade,
    stated,
    stretches,
    upright,
)
from pytest_ssdqual.report.drawing.scales import Decades, Numbers, Places, Seconds, Values, counts, from_zero
from pytest_ssdqual.report.evidence.evidence import About, Evidence
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.view.sections import shortened
from pytest_ssdqual.report.view.tables import Table

#: More drives in one picture cannot be distinguished.
MOST_DRIVES = 8
#: Levels of the verdicts.
FRESH = {"color": RULE["color"], "linewidth": 2.2, "alpha": 0.55}
SETTLED = {"color": RULE["color"], "linestyle": "--", "linewidth": 1.4, "alpha": 0.8}


def strips(story: RunReader) -> Iterator[SaturationRecord]:
    """Yield the recorded saturations."""
    records = story.contents(SaturationRecord, "saturation")
    return (strip for strip in records if strip.capacity_bytes > 0 and strip.run.round_iops and strip.asked.writes)


def _drives(strip: SaturationRecord) -> int:
    return drives_of(strip.run.members, strip.geometry)


def points_of(strip: SaturationRecord) -> list[Pair]:
    """Return user capacities written by the end of each sample, and its IOPS; of drives side by side the average
    drive.
    """
    drives = _drives(strip)
    capacity_bytes, sample_s = strip.capacity_bytes / drives, strip.run.window_s / len(strip.run.round_iops)
    rates = [rate / drives for rate in strip.run.round_iops]
    of_writes = (1 - strip.asked.read_fraction) * strip.asked.block_bytes
    written = accumulate(rate * sample_s * of_writes for rate in rates)
    return [(volume / capacity_bytes, rate) for volume, rate in zip(written, rates, strict=True)]


def verdicts_of(notes: Notes, strip: SaturationRecord) -> list[Evidence]:
    """Return the verdicts on this curve."""
    place = ((str(strip.geometry),), (str(strip.asked),))
    verdicts = (judged for judged in notes.judged if judged.about is About.SATURATION)
    return [evidence for evidence in verdicts if (evidence.geometries, evidence.workloads) == place]


def chart(notes: Notes, strip: SaturationRecord) -> Chart:
    """Draw the curve over capacities written, with the marks of the verdicts."""
    verdicts = verdicts_of(notes, strip)
    figures = {name: value for one in verdicts for name, value in one.figures.items() if value is not None}
    courses = _courses(notes, strip)
    is_alone = len(courses.series) == 1
    end = max(x for series in courses.series for x, _ in series.points)
    marks = [*courses.lines((), {} if is_alone else THIN), *_marks(figures, end), *_promised(verdicts)]
    labels = _labels(figures)
    words = sentence(", ".join(f"{name} {value}" for name, value in labels)) or "No claim about it was judged."
    count = sum(len(series.points) for series in courses.series)
    caption = f"From a purged drive on, for {format_duration(strip.run.window_s)}. {words}{condensing(count)}"
    rows = (*courses.rows(len(courses.series)), *(("found", name, value) for name, value in labels))
    what = f"{strip.geometry}, {_drives(strip)} drives" if _drives(strip) > 1 else f"{strip.geometry}"
    fresh, settled = figures.get("fresh_iops"), figures.get("settled_iops")
    is_slower = fresh and settled and fresh >= 1.1 * settled
    fall = f", {fresh / settled:.2g} times slower in the end" if is_slower and fresh and settled else ""
    panel = Panel(
        Numbers("user capacities written", (0, end * 1.01 if end > 0 else 1)),
        Values("IOPS per drive" if _drives(strip) > 1 else "IOPS", Unit.IOPS), marks,
    )  # fmt: skip
    key = slug("saturation", strip.geometry, strip.asked)
    title = f"{what}: {strip.asked} from the purged state{fall}"
    table = Table(("of", "capacities written", "IOPS"), rows)
    return Chart(key, title, caption, panel, table, strip.geometry.level.value)


def _courses(notes: Notes, strip: SaturationRecord) -> Courses:
    """Return each of few drives if fio's output is there, else their average."""
    name = "average drive" if _drives(strip) > 1 else "IOPS"
    curves = {name: points_of(strip)}
    if 1 < _drives(strip) <= MOST_DRIVES and (found := data.saturation_of(notes.story.folder, strip)):
        alone = found.members()
        points = [[(at.bytes_written / each.capacity_bytes, at.iops) for at in each.points] for each in alone]
        if len(alone) == _drives(strip) and all(points):
            curves = dict(zip((each.run.members[0] for each in alone), points, strict=True))
    short = shortened(list(curves)) if len(curves) > 1 else {name: name}
    series = [DrawnCourse(name, points, short[name]) for name, points in curves.items()]
    is_alone = len(series) == 1
    most_points, most_marked = (MOST_POINTS, MOST_ROWS) if is_alone else (MOST_POINTS // 4, 0)
    return Courses(series, Unit.IOPS, lambda volume: f"{volume:.3f}", most_marked, most_points)


def _labels(figures: Mapping[str, float]) -> list[tuple[str, str]]:
    names = {"fresh_iops": "fresh", "cliff_capacities": "cliff after", "settled_iops": "settled",
             "settled_capacities": "settled after"}  # fmt: skip
    return [
        (words, format_value(figures[name], Unit.IOPS) if "iops" in name else f"{figures[name]:.3f} capacities")
        for name, words in names.items()
        if name in figures
    ]


def _marks(figures: Mapping[str, float], end: float) -> Iterator[AnyMark]:
    """Yield levels as lines over their stretch and the cliff as a vertical one."""
    cliff, settled = figures.get("cliff_capacities"), figures.get("settled_capacities")
    if "fresh_iops" in figures:
        yield stretches([(0, cliff or end / 4, figures["fresh_iops"])], "fresh", FRESH)
    if cliff is not None:
        yield upright(cliff, "cliff")
    if "settled_iops" in figures:
        yield stretches([(settled or 0, end, figures["settled_iops"])], "settled", SETTLED)
    if settled is not None:
        yield shade(settled, end)


def _promised(verdicts: Sequence[Evidence]) -> Iterator[AnyMark]:
    """Yield limits; that of a ratio as the maximum of fresh writes by the settled ones."""
    for evidence in verdicts:
        settled = evidence.figures.get("settled_iops")
        if evidence.unit is Unit.IOPS:
            yield from stated(evidence, Unit.IOPS, f", {evidence.claim.removesuffix('_iops')}")
        elif evidence.claim == "fresh_to_steady" and evidence.limit is not None and settled:
            yield level(evidence.limit * settled, f"promised, fresh: {evidence.bound} of settled")


#: Bars of each power of two of latency; fio has 64 buckets.
BARS = 8
#: Style of a histogram's outline.
OUTLINE = {"marker": "", "drawstyle": "steps-post"}


def response_times(notes: Notes, strip: SaturationRecord) -> Chart | None:
    """Draw a line for each of few drives; None if fio's output is gone or the curve never became steady."""
    found = data.saturation_of(notes.story.folder, strip)
    try:
        measured = found.response_times() if found else None
    except TooFew:
        return None
    if measured is None or not measured.latency:
        return None
    shown = measured.members() if 1 < _drives(strip) <= MOST_DRIVES else (measured,)
    limits = [
        upright(evidence.limit, f"promised, {evidence.claim.removesuffix('_latency')}: {evidence.bound}", PROMISED)
        for evidence in verdicts_of(notes, strip)
        if evidence.unit is Unit.NANOSECONDS and evidence.limit is not None
    ]
    title = (
        f"{strip.geometry}: response times of {strip.asked} in the last "
        f"{format_duration(measured.runs[0].window_s)} of the saturation"
    )
    named = {each.runs[0].drive or f"{strip.geometry}": each for each in shown}
    key = slug("response-times", strip.geometry, strip.asked)
    return _histograms(key, title, "I/Os of the steady state", named, shortened(list(named)), limits)


def response_times_of_demand(notes: Notes, grid: DemandGrid) -> Chart | None:
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


def latency_course(notes: Notes, strip: SaturationRecord) -> Chart | None:
    """Draw mean and maximum latency of each of fio's reports over the saturation; None if fio's output is gone."""
    found = data.saturation_of(notes.story.folder, strip)
    figures = {"slowest I/O": data.slowest_ns, "mean": data.mean_ns}
    series = [DrawnCourse(name, data.series(found.run, each), name) for name, each in figures.items()] if found else []
    if not series or not all(each.points for each in series):
        return None
    courses = over_time(series, Unit.NANOSECONDS)
    whose = "all drives together" if _drives(strip) > 1 else "all I/Os"
    caption = f"Mean and maximum of {whose} since the point before.{courses.remarks}"
    title = f"{strip.geometry}: latency of {strip.asked} from the purged state"
    panel = Panel(Seconds(), Values("latency", Unit.NANOSECONDS), courses.lines())
    table = Table(("of", "until", "latency"), courses.rows())
    key = slug("latency", strip.geometry, strip.asked)
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


#: One pair is no comparison of patterns.
FEWEST = 2
BAR = 0.36
OF_NEW, OF_WORKING, OF_READS = "fresh_iops", "settled_iops", "steady_iops"


def compared(notes: Notes) -> Iterator[Chart]:
    """Yield a chart of each array with at least two workloads that were measured in both states."""
    new: dict[tuple[str, str], float] = {}
    working: dict[tuple[str, str], float] = {}
    for evidence in notes.judged:
        if len(evidence.geometries) != 1 or len(evidence.workloads) != 1:
            continue
        place = evidence.geometry, evidence.workload
        if evidence.about is About.SATURATION and evidence.claim in (OF_NEW, OF_WORKING):
            (new if evidence.claim == OF_NEW else working)[place] = evidence.value
        elif evidence.claim == OF_READS and evidence.about is About.LOOP and evidence.group == str(NEW_READS):
            new[place] = evidence.value
        elif evidence.claim == OF_READS and evidence.about is About.RUN:
            working[place] = evidence.value
    by_array: dict[str, dict[str, tuple[float, float]]] = {}
    for (array, workload), iops in new.items():
        if iops > 0 and (array, workload) in working:
            by_array.setdefault(array, {})[workload] = (iops, working[array, workload])
    yield from (_comparison(array, pairs) for array, pairs in by_array.items() if len(pairs) >= FEWEST)


def _comparison(geometry: str, pairs: Mapping[str, tuple[float, float]]) -> Chart:
    """Draw two bars for each workload: IOPS of the new and of the working drive."""
    rows = {name: (*(format_value(iops, Unit.IOPS) for iops in pair), f"{100 * pair[1] / pair[0]:.0f} %")
            for name, pair in pairs.items()}  # fmt: skip
    marks = []
    for index, state in enumerate(("new", "working")):
        points = [
            Point(
                place + (index - 0.5) * BAR, 100 * pair[index] / pair[0], words=f"{name}, {state}: {rows[name][index]}"
            )
            for place, (name, pair) in enumerate(pairs.items())
        ]
        marks.append(Bars(points, index, state, width=BAR))
    caption = (
        "Writes are new before their cliff and working once settled. Reads are new on a drive that was purged and "
        "written once in order, and working after conditioning. A mix on a new drive reads blocks that were never "
        "written, which needs no flash."
    )
    names = ["\n".join(printable(part, 30) for part in name.split("_")[:-1]) for name in pairs]
    panel = Panel(Places("", names), Values("of the new drive", Unit.PERCENT, from_zero), marks)
    is_several = geometry.startswith("drive") and geometry != "drivex1"
    title = f"{geometry}: new against working{', the slowest drive' if is_several else ''}"
    table = Table(("workload", "new", "working", "of new"), tuple((name, *cells) for name, cells in rows.items()))
    return Chart(slug("new", geometry), title, caption, panel, table, geometry, 3.0)
