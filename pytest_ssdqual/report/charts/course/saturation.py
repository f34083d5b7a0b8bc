"""Writes from the purged state: IOPS over capacities written, with fresh, cliff and settled marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from pytest_ssdqual.qual.measured.result_records import SaturationRecord
from pytest_ssdqual.qual.measured.run import RunRecord
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.units import Unit, format_duration, format_value
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts import data
from pytest_ssdqual.report.charts.data import Notes, drives_of
from pytest_ssdqual.report.drawing.chart import MOST_POINTS, MOST_ROWS, Pair, condensing, sentence, slug
from pytest_ssdqual.report.drawing.course import Courses, DrawnCourse
from pytest_ssdqual.report.drawing.plot import (
    RULE,
    THIN,
    AnyMark,
    Chart,
    Panel,
    level,
    shade,
    stated,
    stretches,
    upright,
)
from pytest_ssdqual.report.drawing.scales import Numbers, Values
from pytest_ssdqual.report.evidence.evidence import About, Evidence
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.view.sections import shortened
from pytest_ssdqual.report.view.tables import Table

#: More drives in one picture cannot be distinguished.
MOST_DRIVES = 8
#: Levels of the verdicts.
FRESH = {"color": RULE["color"], "linewidth": 2.2, "alpha": 0.55}
SETTLED = {"color": RULE["color"], "linestyle": "--", "linewidth": 1.4, "alpha": 0.8}


@dataclass(frozen=True, slots=True)
class SaturationStrip:
    """A recorded saturation; of drives side by side the average drive."""

    geometry: Geometry
    workload: Workload
    run: RunRecord
    #: Of one drive or array.
    capacity_bytes: float
    record: SaturationRecord

    @property
    def drives(self) -> int:
        return drives_of(self.run.members, self.geometry)

    @property
    def points(self) -> list[Pair]:
        """User capacities written by the end of each sample, and its IOPS."""
        rates = [rate / self.drives for rate in self.run.round_iops]
        sample_s = self.run.window_s / len(rates) if rates else 0.0
        of_writes = (1 - self.workload.read_fraction) * self.workload.block_bytes
        written = accumulate(rate * sample_s * of_writes for rate in rates)
        return [(volume / self.capacity_bytes, rate) for volume, rate in zip(written, rates, strict=True)]


def strips(story: RunReader) -> Iterator[SaturationStrip]:
    """Yield the recorded saturations."""
    found = map(_strip, story.contents(SaturationRecord, "saturation"))
    return (strip for strip in found if strip.capacity_bytes > 0 and strip.points and strip.workload.writes)


def _strip(noted: SaturationRecord) -> SaturationStrip:
    capacity_bytes = noted.capacity_bytes / drives_of(noted.run.members, noted.geometry)
    return SaturationStrip(noted.geometry, noted.asked, noted.run, capacity_bytes, noted)


def judged(notes: Notes, strip: SaturationStrip) -> list[Evidence]:
    """Return the verdicts on this curve."""
    place = ((str(strip.geometry),), (str(strip.workload),))
    verdicts = (each.evidence for each in notes.judged if each.evidence.about is About.SATURATION)
    return [evidence for evidence in verdicts if (evidence.geometries, evidence.workloads) == place]


def chart(notes: Notes, strip: SaturationStrip) -> Chart:
    """Draw the curve over capacities written, with the marks of the verdicts."""
    verdicts = judged(notes, strip)
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
    what = f"{strip.geometry}, {strip.drives} drives" if strip.drives > 1 else f"{strip.geometry}"
    fresh, settled = figures.get("fresh_iops"), figures.get("settled_iops")
    is_slower = fresh and settled and fresh >= 1.1 * settled
    fall = f", {fresh / settled:.2g} times slower in the end" if is_slower and fresh and settled else ""
    panel = Panel(
        Numbers("user capacities written", (0, end * 1.01 if end > 0 else 1)),
        Values("IOPS per drive" if strip.drives > 1 else "IOPS", Unit.IOPS), marks,
    )  # fmt: skip
    key = slug("saturation", str(strip.geometry), str(strip.workload))
    title = f"{what}: {strip.workload} from the purged state{fall}"
    table = Table(("of", "capacities written", "IOPS"), rows)
    return Chart(key, title, caption, panel, table, strip.geometry.level.value)


def _courses(notes: Notes, strip: SaturationStrip) -> Courses:
    """Return each of few drives if fio's output is there, else their average."""
    name = "average drive" if strip.drives > 1 else "IOPS"
    curves = {name: strip.points}
    if 1 < strip.drives <= MOST_DRIVES and (found := data.saturation_of(notes.story.folder, strip.record)):
        alone = found.members()
        points = [[(at.bytes_written / each.capacity_bytes, at.iops) for at in each.points] for each in alone]
        if len(alone) == strip.drives and all(points):
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
