"""Stimuli that follow each other: IOPS or throughput over time (SNIA PTS, cross stimulus and host idle recovery)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_ssdqual.qual import strict_json
from pytest_ssdqual.qual.measured.run import RunRecord
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import from_plain
from pytest_ssdqual.qual.units import Unit, format_duration, format_value
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts.course.steady_state import axis_label
from pytest_ssdqual.report.drawing import scales
from pytest_ssdqual.report.drawing.chart import MOST_POINTS, Chart, condensed, condensing, extremes, sentence, slug
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.run_folder.reader import Record
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

    def points(self, unit: Unit) -> list[tuple[float, float]]:
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
        sizes = {each.workload.block_bytes for each in self.stimuli}
        return Unit.IOPS if len(sizes) == 1 else Unit.BYTES_PER_SECOND


def courses(records: Sequence[Record]) -> Iterator[CourseOfLoop]:
    """Yield the readable ``loop`` records with stimuli."""
    for record in records:
        try:
            found = tuple(_stimuli(record.facts))
            if found:
                back = tuple(map(str, strict_json.array(record.facts["recoveries"])))
                yield CourseOfLoop(str(record.facts["geometry"]), str(record.facts["loop"]), found, back)
        except (KeyError, TypeError, ValueError, ArithmeticError, IndexError):
            continue


def _stimuli(facts: Mapping[str, Any]) -> Iterator[CourseOfStimulus]:
    from pytest_ssdqual.qual.workload.rounds import Rounds

    geometry, begin_s = Geometry.parse(facts["geometry"]), 0.0
    asked = from_plain(Rounds, facts["asked"]).after
    for stimulus, noted in zip(asked, strict_json.array(facts["after"]), strict=False):
        runs = [from_plain(RunRecord, each) for each in strict_json.array(noted)]
        drives = max(1, len(runs[0].members)) if geometry.is_side_by_side else 1
        rates = tuple(rate / drives for run in runs for rate in run.round_iops)
        seconds = sum(run.window_s for run in runs) / stimulus.workload.busy_share
        yield CourseOfStimulus(stimulus.workload, begin_s, seconds / len(rates), rates)
        begin_s += seconds


def chart(found: CourseOfLoop, prefix: str = "stimuli") -> Chart:
    """Draw the rate over time; stimuli that differ only in their names look alike."""
    unit, key = found.unit, slug(prefix, found.geometry, found.loop)
    lines = [(each, each.points(unit)) for each in found.stimuli]
    hours = lines[-1][1][-1][0]
    title = f"{found.geometry}: {found.loop}, {axis_label(unit)} over {format_duration(hours * 3600)}"
    with drawing():
        plate = Plate.of()
        per = ", average drive" if found.geometry.startswith("drive") else ""
        axes = plate.axes("hours", f"{axis_label(unit)}{per}")
        kinds: dict[Workload, int] = {}
        for each, points in lines:
            kind = replace(each.workload, name="")
            is_new = kind not in kinds
            xs, ys = extremes([x for x, _ in points], [y for _, y in points], MOST_POINTS // len(lines))
            tooltips = [
                f"{each.workload}, {format_duration(x * 3600)}: {format_value(y, unit)}"
                for x, y in zip(xs, ys, strict=True)
            ]
            index = kinds.setdefault(kind, len(kinds))
            words = str(kind) if is_new else ""
            plate.line(axes, xs, ys, index, words, tooltips=tooltips, marked=len(xs) <= MOST_MARKED)
        scales.suited(axes, unit, [y for _, points in lines for _, y in points])
        axes.set_xlim(0, hours * 1.01)
        svg = plate.svg(key, title, f"{len(lines)} stimuli, one after the other.")
    pauses = (
        " Rates of a workload with pauses are those of its bursts."
        if any(each.workload.burst_s for each in found.stimuli)
        else ""
    )
    count = sum(len(points) for _, points in lines)
    back = "".join(f" {sentence(each)}" for each in found.recoveries)
    caption = f"The stimuli follow each other without a purge.{back}{pauses}{condensing(count)}"
    rows = [
        (str(each.workload), format_duration(x * 3600), format_value(y, unit))
        for each, points in lines
        for x, y in condensed(points, len(lines))
    ]
    return Chart(key, title, caption, svg, Table(("stimulus", "until", axis_label(unit)), tuple(rows)), found.geometry)
