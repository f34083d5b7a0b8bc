"""Over time: a measurement with its limit, for a verdict on a single workload; temperature of drives, and wear."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from operator import attrgetter
from statistics import fmean

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.environment import DriveTemperature
from pytest_ssdqual.qual.measured.result_records import MeasuredRecord
from pytest_ssdqual.qual.measured.run import RunRecord
from pytest_ssdqual.qual.units import Unit, format_capacity
from pytest_ssdqual.report.charts import data
from pytest_ssdqual.report.charts.data import FigureOf, NotedMeasurement, Notes
from pytest_ssdqual.report.drawing.chart import Pair, printable, sentence, slug
from pytest_ssdqual.report.drawing.plot import (
    RULE,
    AnyMark,
    Bars,
    Chart,
    Courses,
    DrawnCourse,
    Panel,
    Point,
    band,
    level,
    over_time,
    stated,
    table_of,
)
from pytest_ssdqual.report.drawing.scales import Places, Seconds, Values, capacities, close
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.run_folder.manifest import HealthRecord
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.view import subject
from pytest_ssdqual.report.view.sections import shortened
from pytest_ssdqual.report.view.tables import Table

MOST_RUNS = 4
#: End of the caption of a measurement in visits.
IN_VISITS = " The cells of a visit are drawn one behind the other; hours are between two visits."


@frozen
class PlottedFigure:
    """A figure of every interval of fio's output, or else of every round of a record."""

    name: str
    unit: Unit
    of_interval: FigureOf
    #: Whether records have it of every round.
    in_records: bool = False

    @property
    def adds(self) -> bool:
        """True if drives side by side add up to it."""
        return self.unit is not Unit.NANOSECONDS

    def rounds(self, run: RunRecord, noted: NotedMeasurement) -> Sequence[float | None]:
        """Return the figure of every round of a record; empty if it has none."""
        if not self.in_records:
            return ()
        if self.unit is Unit.NANOSECONDS:
            return run.round_max_latency_ns
        return [rate * (1 if self.unit is Unit.IOPS else noted.workload.block_bytes) for rate in run.round_iops]


IOPS = PlottedFigure("IOPS", Unit.IOPS, data.rate, in_records=True)
THROUGHPUT = PlottedFigure("throughput", Unit.BYTES_PER_SECOND, data.bytes_rate, in_records=True)
SLOWEST = PlottedFigure("slowest I/O", Unit.NANOSECONDS, data.slowest_ns, in_records=True)
MEASURES = {
    "steady_iops": IOPS,
    "read_iops": PlottedFigure("read IOPS", Unit.IOPS, data.per_second(attrgetter("read_ios"))),
    "write_iops": PlottedFigure("write IOPS", Unit.IOPS, data.per_second(attrgetter("write_ios"))),
    "throughput": THROUGHPUT,
    "worst_second": THROUGHPUT,
    "slowest_second": THROUGHPUT,
    "fastest_second": THROUGHPUT,
    "fastest_to_slowest_second": THROUGHPUT,
    "mean_latency": PlottedFigure("mean latency", Unit.NANOSECONDS, data.mean_ns),
    "read_mean_latency": PlottedFigure(
        "mean latency of reads", Unit.NANOSECONDS, data.of_latency(attrgetter("mean_ns"), attrgetter("read_latency"))
    ),
    "write_mean_latency": PlottedFigure(
        "mean latency of writes", Unit.NANOSECONDS, data.of_latency(attrgetter("mean_ns"), attrgetter("write_latency"))
    ),
    "max_latency": SLOWEST,
    "latency_spread_over_time": SLOWEST,
}


def chart(notes: Notes, noted: NotedMeasurement, evidence: Evidence) -> Chart | None:
    """Draw a line for each repeat, estimate, interval and limit; None without data."""
    measure = MEASURES.get(evidence.claim, SLOWEST if evidence.unit is Unit.NANOSECONDS else IOPS)
    series = [points for points in _series(notes, noted, measure) if points]
    if not series:
        return None
    part = "visit" if noted.visited else "repeat"
    # A visit that is left out is the first one.
    begin = 2 if noted.visited and noted.visited.left_out else 1
    names = [f"{part} {number}" for number in range(begin, begin + len(series))]
    legends = names if len(series) > 1 else [measure.name]
    courses = over_time(list(map(DrawnCourse, names, series, legends)), measure.unit)
    label = f"{measure.name}{' per drive' if noted.drives > 1 and measure.adds else ''}"
    marks = [*_stated(evidence, measure, series), *courses.lines()]
    caption = f"{sentence(evidence.sentence)}{courses.remarks}{IN_VISITS if noted.visited else ''}"
    title = f"{noted.geometry} {noted.workload}: {measure.name} over time"
    panel = Panel(Seconds(), Values(label, measure.unit), marks)
    table = Table(("run", "until", measure.name), courses.rows())
    return Chart(slug("time", title), title, caption, panel, table, noted.geometry.level.value, 2.9)


def _series(notes: Notes, noted: NotedMeasurement, measure: PlottedFigure) -> list[list[Pair]]:
    """Return the first repeats, or all visits; of drives side by side it is the average drive."""
    drives = noted.drives if measure.adds else 1
    series = data.courses(
        notes.story.folder, noted, measure.of_interval, lambda run: measure.rounds(run, noted), MOST_RUNS
    )
    return [[(x, y / drives) for x, y in points] for points in series]


def _stated(evidence: Evidence, measure: PlottedFigure, series: Sequence[Sequence[Pair]]) -> Iterator[AnyMark]:
    """Yield estimate, limit and published figure in the unit of the axis."""
    if evidence.claim == "worst_second" and evidence.limit is not None:
        mean = fmean(y for points in series for _, y in points)
        yield level(evidence.limit * mean, f"promised: {evidence.bound} of the mean")
    elif evidence.unit is measure.unit and evidence.claim in MEASURES:
        yield level(evidence.value, f"judged: {evidence.measured}", RULE)
        if evidence.low is not None and evidence.high is not None:
            ends = (0, max(points[-1][0] for points in series))
            yield band(ends, [evidence.low] * 2, [evidence.high] * 2, evidence.interval_in_full)
        yield from stated(evidence, measure.unit)


#: More drives in one picture cannot be distinguished; the table has all of them.
MOST_DRIVES = 8
#: Of a line, with so many lines in one picture; markers would hide a line of more than the second.
MOST_POINTS, MOST_MARKED = 120, 20
#: More bars are not named.
MOST_NAMED = 32
#: Figures of health that are shown before and after.
FIGURES = ("percentage_used", "media_errors", "critical_warning", "power_on_hours")


def _readings(story: RunReader) -> Iterator[tuple[str, float, DriveTemperature]]:
    """Yield the temperatures that were read: name of the drive, seconds since the run began, and the temperature."""
    # Measurements name drives by serial number.
    serials = story.manifest.serials
    timed = [(record, at) for record in story.records if (at := subject.moment(record.time))]
    for record, at in timed:
        seconds = (at - timed[0][1]).total_seconds()
        with suppress(ValueError):
            if record.kind == "health":
                reading = record.content(HealthRecord)
                yield serials.get(reading.drive, reading.drive), seconds, DriveTemperature(reading.temperature_c, None)
            elif record.kind == "measured":
                for run in record.content(MeasuredRecord).runs:
                    for drive in run.seen.drives if run.seen else ():
                        yield drive.name, seconds, drive.heat


def temperatures(story: RunReader) -> Chart | None:
    """Draw a line for each drive; None if no drive has two readings."""
    seen: dict[str, list[Pair]] = {}
    limits: dict[str, float] = {}
    for name, seconds, heat in _readings(story):
        if heat.temperature_c is not None:
            seen.setdefault(name, []).append((seconds, heat.temperature_c))
        if heat.limit_c is not None:
            limits[name] = min(heat.limit_c, limits.get(name, heat.limit_c))
    curves = {name: points for name, points in seen.items() if len(points) > 1}
    if not curves:
        return None
    degrees = {name: [value for _, value in points] for name, points in curves.items()}
    hottest = sorted(curves, key=lambda name: -max(degrees[name]))[:MOST_DRIVES]
    short = shortened(list(curves))
    series = [
        DrawnCourse(printable(name, 40), sorted(points), printable(short[name], 24))
        for name, points in curves.items()
        if name in hottest
    ]
    courses = Courses(series, Unit.CELSIUS, lambda seconds: f"{seconds:,.0f} s", MOST_MARKED, MOST_POINTS)
    marks: list[AnyMark] = [*courses.lines()]
    if promised := [limits[name] for name in hottest if name in limits]:
        marks.append(level(min(promised), f"promised by the drive: at most {min(promised):g} °C"))
    left = f" Drawn are the {len(series)} hottest of {len(curves)}." if len(series) < len(curves) else ""
    caption = (
        "As the drives reported around every measurement, from the start of the run. The scale does not begin at zero."
        f"{left}"
    )
    rows = [(name, min(degrees[name]), max(degrees[name]), limits.get(name)) for name in curves]
    shown = tuple((name, *("" if value is None else f"{value:g} °C" for value in values)) for name, *values in rows)
    title = f"Temperature of {len(curves)} drives over the run, at most {max(map(max, degrees.values())):g} °C"
    panel = Panel(Seconds(), Values("temperature", Unit.CELSIUS, close), marks)
    table = Table(("drive", "coolest", "hottest", "its own limit"), shown)
    return Chart("temperature", title, caption, panel, table, height_in=2.8)


def wear(story: RunReader) -> Chart | None:
    """Draw host writes of each drive in the run, with health before and after; None if no drive counts."""
    serials = story.manifest.serials
    health: dict[str, dict[str, HealthRecord]] = {}
    for reading in story.contents(HealthRecord, "health"):
        of_drive = health.setdefault(serials.get(reading.drive, reading.drive), {})
        # Each session of a resumed run begins and ends with readings: the run's are the first and the last.
        if reading.when != "before" or reading.when not in of_drive:
            of_drive[reading.when] = reading
    both = {
        name: (of_drive["before"], of_drive["after"])
        for name, of_drive in health.items()
        if {"before", "after"} <= of_drive.keys()
    }
    written = {
        name: after.data_written_bytes - before.data_written_bytes
        for name, (before, after) in both.items()
        if before.data_written_bytes is not None and after.data_written_bytes is not None
    }
    if not any(written.values()):
        return None
    short, is_named = shortened(list(written)), len(written) <= MOST_NAMED
    points = [
        Point(
            index,
            count,
            (
                name,
                format_capacity(count),
                *(_before_and_after(both[name], figure) for figure in FIGURES),
            ),
        )
        for index, (name, count) in enumerate(written.items())
    ]
    names = [printable(short[name], 12) if is_named else "" for name in written]
    panel = Panel(
        Places("", names, is_steep=len(names) > MOST_DRIVES), Values("written", Unit.COUNT, capacities),
        [Bars(points, style={} if is_named else {"linewidth": 0.3})],
    )  # fmt: skip
    title = f"Written to {len(written)} drives in this run: {format_capacity(sum(written.values()))}"
    caption = "Counted by the drives themselves before and after. The table has their health at both ends."
    columns = ("drive", "written", *(name.replace("_", " ") for name in FIGURES))
    return Chart(slug("wear"), title, caption, panel, table_of(columns, panel), height_in=2.6)


def _before_and_after(readings: Sequence[HealthRecord], figure: str) -> str:
    values = [getattr(reading, figure) for reading in readings]
    texts = ["-" if value is None else printable(value, 20) for value in values]
    return " → ".join(dict.fromkeys(texts))
