"""Stimuli that follow each other: IOPS or throughput over time (SNIA PTS, cross stimulus and host idle recovery)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pytest_ssdqual.qual.measured.result_records import LoopRecord
from pytest_ssdqual.qual.units import Unit, format_duration
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts.course.steady_state import axis_label
from pytest_ssdqual.report.charts.data import drives_of, per_drive, readable
from pytest_ssdqual.report.drawing.chart import MOST_POINTS, Pair, condensing, sentence, slug
from pytest_ssdqual.report.drawing.course import Courses, DrawnCourse
from pytest_ssdqual.report.drawing.plot import Chart, Panel
from pytest_ssdqual.report.drawing.scales import Numbers, Values
from pytest_ssdqual.report.view.tables import Table

#: Points of a stimulus beyond which markers would hide the line.
MOST_MARKED = 15


@dataclass(frozen=True, slots=True)
class CourseOfStimulus:
    """The rate of each part of one stimulus, of drives side by side that of the average drive."""

    workload: Workload
    #: Since the first stimulus began, seconds.
    begin_s: float
    part_s: float
    iops: tuple[float, ...]

    def points(self, unit: Unit) -> list[Pair]:
        """Hours at the end of each part, and its rate."""
        factor = 1.0 if unit is Unit.IOPS else self.workload.block_bytes
        return [
            ((self.begin_s + (index + 1) * self.part_s) / 3600, rate * factor) for index, rate in enumerate(self.iops)
        ]


@dataclass(frozen=True, slots=True)
class CourseOfLoop:
    """All stimuli of one loop, in order."""

    geometry: str
    loop: str
    stimuli: tuple[CourseOfStimulus, ...]
    #: When a stimulus that repeats another one was back at its level, a sentence each.
    recoveries: tuple[str, ...]

    @property
    def unit(self) -> Unit:
        """Throughput, if there are transfers of several sizes."""
        sizes = {stimulus.workload.block_bytes for stimulus in self.stimuli}
        return Unit.IOPS if len(sizes) == 1 else Unit.BYTES_PER_SECOND


def courses(records: Iterable[LoopRecord]) -> Iterator[CourseOfLoop]:
    """Yield the loops with stimuli."""
    return (course for course in readable(records, _course) if course.stimuli)


def _course(noted: LoopRecord) -> CourseOfLoop:
    return CourseOfLoop(str(noted.geometry), noted.loop, tuple(_stimuli(noted)), noted.recoveries)


def _stimuli(noted: LoopRecord) -> Iterator[CourseOfStimulus]:
    begin_s = 0.0
    for stimulus, runs in zip(noted.asked.after, noted.after, strict=False):
        drives = drives_of(runs[0].members, noted.geometry)
        rates = tuple(rate / drives for run in runs for rate in run.round_iops)
        seconds = sum(run.window_s for run in runs) / stimulus.workload.busy_share
        yield CourseOfStimulus(stimulus.workload, begin_s, seconds / len(rates), rates)
        begin_s += seconds


def chart(found: CourseOfLoop) -> Chart:
    """Draw the rate over time; stimuli that differ only in their names look alike."""
    kinds = [replace(stimulus.workload, name="") for stimulus in found.stimuli]
    series = [
        DrawnCourse(str(stimulus.workload), stimulus.points(found.unit), str(kind))
        for stimulus, kind in zip(found.stimuli, kinds, strict=True)
    ]
    drawn_courses = Courses(
        series, found.unit, lambda hours: format_duration(hours * 3600), MOST_MARKED, MOST_POINTS // len(series)
    )
    ordinals = {kind: index for index, kind in enumerate(dict.fromkeys(kinds))}
    hours = series[-1].points[-1][0]
    label = axis_label(found.unit)
    panel = Panel(
        Numbers("hours", (0, hours * 1.01)), Values(f"{label}{per_drive(found.geometry)}", found.unit),
        drawn_courses.lines([ordinals[kind] for kind in kinds]),
    )  # fmt: skip
    has_pauses = any(stimulus.workload.burst_s for stimulus in found.stimuli)
    caption = (
        "The stimuli follow each other without a purge."
        f"{''.join(f' {sentence(recovery)}' for recovery in found.recoveries)}"
        f"{' Rates of a workload with pauses are those of its bursts.' if has_pauses else ''}"
        f"{condensing(sum(len(each.points) for each in series))}"
    )
    title = f"{found.geometry}: {found.loop}, {label} over {format_duration(hours * 3600)}"
    table = Table(("stimulus", "until", label), drawn_courses.rows(len(series)))
    return Chart(slug("stimuli", found.geometry, found.loop), title, caption, panel, table, found.geometry)
