"""A measurement over its time with its limit, for a verdict on a single workload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.measured.run import RunRecord
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.charts import data
from pytest_ssdqual.report.charts.data import NotedMeasurement, Notes
from pytest_ssdqual.report.drawing.chart import Pair, sentence, slug
from pytest_ssdqual.report.drawing.course import DrawnCourse, over_time
from pytest_ssdqual.report.drawing.plot import RULE, AnyMark, Chart, Panel, band, level, stated
from pytest_ssdqual.report.drawing.scales import Seconds, Values
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.view.tables import Table

MOST_RUNS = 4
#: End of the caption of a measurement in visits.
IN_VISITS = " The cells of a visit are drawn one behind the other; hours are between two visits."


@dataclass(frozen=True, slots=True)
class PlottedFigure:
    """A figure of every interval of fio's output, or else of every round of a record."""

    name: str
    unit: Unit
    of_interval: Callable[[Interval], float | None]
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


def _latency(direction: str, latencies: Callable[[Interval], LatencyHistogram]) -> PlottedFigure:
    def mean(interval: Interval) -> float | None:
        return latencies(interval).mean_ns if latencies(interval) else None

    return PlottedFigure(f"mean latency of {direction}s", Unit.NANOSECONDS, mean)


def _iops(direction: str, ios: Callable[[Interval], int]) -> PlottedFigure:
    def rate(interval: Interval) -> float | None:
        return ios(interval) / interval.seconds if interval.seconds else None

    return PlottedFigure(f"{direction} IOPS", Unit.IOPS, rate)


IOPS = PlottedFigure("IOPS", Unit.IOPS, data.rate, in_records=True)
THROUGHPUT = PlottedFigure("throughput", Unit.BYTES_PER_SECOND, data.bytes_rate, in_records=True)
SLOWEST = PlottedFigure("slowest I/O", Unit.NANOSECONDS, data.slowest_ns, in_records=True)
MEASURES = {
    "steady_iops": IOPS,
    "read_iops": _iops("read", lambda interval: interval.read_ios),
    "write_iops": _iops("write", lambda interval: interval.write_ios),
    "throughput": THROUGHPUT,
    "worst_second": THROUGHPUT,
    "slowest_second": THROUGHPUT,
    "fastest_second": THROUGHPUT,
    "fastest_to_slowest_second": THROUGHPUT,
    "mean_latency": PlottedFigure("mean latency", Unit.NANOSECONDS, data.mean_ns),
    "read_mean_latency": _latency("read", lambda interval: interval.read_latency),
    "write_mean_latency": _latency("write", lambda interval: interval.write_latency),
    "max_latency": SLOWEST,
    "latency_spread_over_time": SLOWEST,
}


def chart(notes: Notes, noted: NotedMeasurement, judged: Judged) -> Chart | None:
    """Draw a line for each repeat, estimate, interval and limit; None without data."""
    evidence = judged.evidence
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
    """Return the first repeats, or all visits, by seconds or else by rounds.

    Of drives side by side it is the average drive.
    """
    most = None if noted.visited else MOST_RUNS
    series = [data.series(run, measure.of_interval) for run in data.runs_of(notes.story.folder, noted)[:most]]
    if not series:
        series = [data.noted_rounds(noted, measure.rounds(run, noted)) for run in noted.runs[:most]]
    if noted.visited:
        series = data.by_visit(series, noted.visited, noted.runs[0].window_s)
    drives = noted.drives if measure.adds else 1
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
