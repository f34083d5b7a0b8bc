"""Loops: rounds until steady with the decisive window, pure writes from round to round, and stimuli in sequence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_ssdqual.qual import strict_json
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.result_records import LoopRecord
from pytest_ssdqual.qual.records import from_plain
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule
from pytest_ssdqual.qual.stats import steady_state
from pytest_ssdqual.qual.stats.drift import DriftTest
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.units import Unit, format_duration, format_value
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts.data import drives_of, per_drive, readable
from pytest_ssdqual.report.drawing.chart import MOST_POINTS, MOST_ROWS, Pair, condensing, sentence, slug
from pytest_ssdqual.report.drawing.figure import DASHES, INK, LIMIT
from pytest_ssdqual.report.drawing.plot import (
    RULE,
    AnyMark,
    Chart,
    Courses,
    DrawnCourse,
    Line,
    Panel,
    Point,
    band,
    shade,
    stretches,
)
from pytest_ssdqual.report.drawing.scales import Numbers, Values, around, close
from pytest_ssdqual.report.run_folder.reader import Record
from pytest_ssdqual.report.view.tables import Table

#: The figure of a run's summary by the claim about it.
FIGURES = {
    "steady_iops": "iops",
    "read_iops": "read_iops",
    "write_iops": "write_iops",
    "throughput": "bytes_per_s",
    "mean_latency": "mean_latency_ns",
    "max_latency": "max_latency_ns",
}


@frozen
class TrackedFigure:
    """A tracked figure over its rounds; ``state`` is the rule on its last rounds."""

    geometry: str
    #: What it is of: ``conditioning randwrite_4k_qd8``, ``snia-iops: randwrite_4k_t4xqd32``.
    name: str
    values: tuple[float, ...]
    state: SteadyState
    unit: Unit = Unit.IOPS
    #: Of the drive that drifted most, if the drift over a capacity decided instead of the rule; rounds are then equal
    #: parts of the volume.
    drift: DriftTest | None = None

    @property
    def begin(self) -> int:
        """Ordinal of the first round of the window, which are the last ones."""
        return len(self.values) - len(self.state.values)

    @property
    def reached(self) -> bool:
        return self.drift.settled if self.drift else self.state.reached


def conditioned(records: Sequence[Record]) -> Iterator[TrackedFigure]:
    """Yield ``conditioned`` records: rounds of writes until steady; of drives side by side their mean."""
    return readable(records, _conditioned)


def _conditioned(record: Record) -> TrackedFigure:
    facts: Mapping[str, Any] = record.facts
    rounds = strict_json.array(facts["round_iops"])
    alone = [list(map(strict_json.number, drive)) for drive in rounds if isinstance(drive, list)]
    if alone:
        values = [sum(rates) / len(alone) for rates in zip(*alone, strict=True)]
    else:
        values = list(map(strict_json.number, rounds))
    noted = strict_json.table(facts["steady"])
    window, average = len(strict_json.array(noted["values"])), strict_json.number(noted["average"])
    allowed = (100 * strict_json.number(noted[name]) / average for name in ("range_allowed", "slope_allowed"))
    # The noted state is that of the least steady drive; the chart shows the mean of all.
    state = steady_state.judge(values, SteadyRule(window, *allowed))
    drifts = from_plain(dict[str, DriftTest], facts.get("drift", {})).values()
    worst = max(drifts, key=lambda drift: (not drift.settled, abs(drift.change_percent)), default=None)
    name = f"conditioning with {facts.get('workload')}"
    return TrackedFigure(str(facts.get("geometry")), name, tuple(values), state, drift=worst)


def looped(records: Iterable[LoopRecord]) -> Iterator[TrackedFigure]:
    """Yield the tracked figures of loops; of drives side by side the average drive."""
    for figures in readable(
        records, lambda noted: [of_loop(noted, str(each.workload), each.claim) for each in noted.asked.tracked]
    ):
        yield from figures


def of_loop(noted: LoopRecord, workload: str, claim: str) -> TrackedFigure:
    """Return a workload's figure in a loop; ``KeyError`` or ``ValueError`` without one.

    A loop ends with the first window in which all its tracked figures were steady, so the last window is the judged
    one, also of a figure that was steady before.
    """
    figure, unit = FIGURES[claim], Claim(claim).unit
    # Rates of drives side by side add up, latencies do not.
    adds = unit is not Unit.NANOSECONDS
    column = list(map(str, noted.asked.workloads)).index(workload)
    cells = [cells[column] for cells in noted.rounds]
    values = [getattr(cell, figure) / (drives_of(cell.members, noted.geometry) if adds else 1) for cell in cells]
    state = steady_state.judge(values, noted.rule)
    return TrackedFigure(str(noted.geometry), f"{noted.loop}, {workload}", tuple(values), state, unit)


def chart(settling: TrackedFigure) -> Chart:
    """Draw rounds, the window with best fit and average, and the allowed range."""
    state, unit, values = settling.state, settling.unit, settling.values
    window = range(settling.begin + 1, len(values) + 1)
    begin, end, middle = window[0] - 0.3, window[-1] + 0.3, sum(window) / len(window)
    low, high = state.average - state.range_allowed / 2, state.average + state.range_allowed / 2
    courses = _rounds({"each round": values}, unit, "")
    bounds = [(begin, end, bound) for bound in (low, high)]
    fit = [Point(at, state.average + state.slope_per_round * (at - middle)) for at in window]
    marks: list[AnyMark] = [
        band([begin, end], [low, low], [high, high], "window and range allowed"),
        stretches(bounds, style={"color": LIMIT, "linestyle": "--", "linewidth": 1.1}),
        *courses.lines(),
        Line(fit, name="best fit", style={**RULE, "linewidth": 1.3}),
        stretches([(begin, end, state.average)], "average", {"color": INK, "linestyle": ":"}),
    ]
    decided = settling.drift.describe() if settling.drift else state.describe(unit)
    is_cut = around([*values, low, high], unit)[0] > 0
    caption = (
        f"{sentence(decided)} The dashed lines are the range allowed around the window's average."
        f"{' The scale does not begin at zero.' if is_cut else ''}{condensing(len(values))}"
    )
    rows = (*courses.rows(), *_judged(settling, low, high))
    panel = Panel(
        Numbers("round", (0.5, max(len(values), MOST_ROWS // 12) + 0.5), is_whole=True),
        Values(_axis(unit, settling.geometry), unit, close), marks,
    )  # fmt: skip
    outcome = "steady" if settling.reached else "not steady"
    title = f"{settling.geometry}: {settling.name}, {outcome} after {len(values)} rounds"
    key = slug("steady", settling.geometry, settling.name)
    return Chart(key, title, caption, panel, Table(("round", axis_label(unit)), rows), settling.geometry, 2.8)


def _judged(settling: TrackedFigure, low: float, high: float) -> list[tuple[str, str]]:
    state, unit = settling.state, settling.unit
    line = f"{state.slope_per_round:.5g} × round + {state.intercept(settling.begin + 1):.5g}, in {unit.value}"

    def shown(value: float) -> str:
        return format_value(value, unit, 1)

    return [
        ("average of the window", shown(state.average)),
        ("range measured", shown(state.range_measured)),
        ("range allowed", f"{shown(low)} to {shown(high)}"),
        ("slope per round", shown(state.slope_per_round)),
        ("slope excursion measured", shown(state.slope_excursion)),
        ("slope excursion allowed", shown(state.slope_allowed)),
        ("correlation", f"{state.correlation:.2f}"),
        ("best fit", line),
    ]


def _rounds(lines: Mapping[str, Sequence[float]], unit: Unit, name: str | None = None) -> Courses:
    """Return figures over rounds, by their entries in the legend; these are also the names of points by default."""
    series = [
        DrawnCourse(legend if name is None else name, [(ordinal + 1.0, y) for ordinal, y in enumerate(values)], legend)
        for legend, values in lines.items()
    ]
    return Courses(series, unit, lambda number: f"{number:g}")


def axis_label(unit: Unit) -> str:
    """Return what a tracked figure of this unit is."""
    names = {Unit.IOPS: "IOPS", Unit.NANOSECONDS: "mean latency", Unit.BYTES_PER_SECOND: "throughput"}
    return names.get(unit, unit.value)


def _axis(unit: Unit, geometry: str) -> str:
    return f"{axis_label(unit)}{per_drive(geometry)}"


#: Lines beyond this have no style of their own; one is no comparison.
MOST_LINES, FEWEST = len(DASHES), 2


def convergences(records: Iterable[LoopRecord]) -> Iterator[Chart]:
    """Yield a chart of each loop with several workloads that only write.

    The SNIA PTS wants it beside the steady state of the tracked figures: whether all block sizes became steady.
    """
    return filter(None, readable(records, _convergence))


def _convergence(noted: LoopRecord) -> Chart | None:
    """Draw a line for each workload of pure writes over the rounds, and the window that counts.

    All lines have the claim, and so the unit, of the loop's first tracked figure.
    """
    writes = [str(workload) for workload in noted.asked.workloads if workload.read_fraction == 0][:MOST_LINES]
    if len(writes) < FEWEST:
        return None
    figures = [of_loop(noted, name, noted.asked.tracked[0].claim) for name in writes]
    geometry, unit, window = figures[0].geometry, figures[0].unit, len(figures[0].state.values)
    lines = {name: figure.values for name, figure in zip(writes, figures, strict=True)}
    rounds = len(noted.rounds)
    marks: list[AnyMark] = [*_rounds(lines, unit).lines(), shade(rounds - window + 0.7, rounds + 0.3)]
    rows = tuple(
        (f"{number}", *(format_value(value, unit, 1) for value in values))
        for number, values in enumerate(zip(*lines.values(), strict=True), 1)
    )
    panel = Panel(Numbers("round", (0.5, rounds + 0.5), is_whole=True), Values(_axis(unit, geometry), unit), marks)
    caption = f"The shaded rounds are the last {window}, in which the tracked figures were judged."
    title = f"{geometry}: {noted.loop}, pure writes from round to round"
    key, table = slug("convergence", geometry, noted.loop), Table(("round", *lines), rows)
    return Chart(key, title, caption, panel, table, geometry)


#: Points of a stimulus beyond which markers would hide the line.
MOST_MARKED = 15


@frozen
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


def stimulated(records: Iterable[LoopRecord]) -> Iterator[Chart]:
    """Yield a chart of each loop with stimuli."""
    return filter(None, readable(records, _stimulated))


def _stimuli(noted: LoopRecord) -> Iterator[CourseOfStimulus]:
    begin_s = 0.0
    for stimulus, runs in zip(noted.asked.after, noted.after, strict=False):
        drives = drives_of(runs[0].members, noted.geometry)
        rates = tuple(rate / drives for run in runs for rate in run.round_iops)
        seconds = sum(run.window_s for run in runs) / stimulus.workload.busy_share
        yield CourseOfStimulus(stimulus.workload, begin_s, seconds / len(rates), rates)
        begin_s += seconds


def _stimulated(noted: LoopRecord) -> Chart | None:
    """Draw the rate over time, throughput if transfers have several sizes; stimuli that differ only in their names look
    alike.
    """
    stimuli = list(_stimuli(noted))
    if not stimuli:
        return None
    sizes = {stimulus.workload.block_bytes for stimulus in stimuli}
    unit = Unit.IOPS if len(sizes) == 1 else Unit.BYTES_PER_SECOND
    kinds = [replace(stimulus.workload, name="") for stimulus in stimuli]
    series = [
        DrawnCourse(str(stimulus.workload), stimulus.points(unit), str(kind))
        for stimulus, kind in zip(stimuli, kinds, strict=True)
    ]
    courses = Courses(
        series, unit, lambda hours: format_duration(hours * 3600), MOST_MARKED, MOST_POINTS // len(series)
    )
    ordinals = {kind: index for index, kind in enumerate(dict.fromkeys(kinds))}
    hours = series[-1].points[-1][0]
    geometry = str(noted.geometry)
    panel = Panel(
        Numbers("hours", (0, hours * 1.01)), Values(_axis(unit, geometry), unit),
        courses.lines([ordinals[kind] for kind in kinds]),
    )  # fmt: skip
    has_pauses = any(stimulus.workload.burst_s for stimulus in stimuli)
    caption = (
        "The stimuli follow each other without a purge."
        f"{''.join(f' {sentence(recovery)}' for recovery in noted.recoveries)}"
        f"{' Rates of a workload with pauses are those of its bursts.' if has_pauses else ''}"
        f"{condensing(sum(len(each.points) for each in series))}"
    )
    label = axis_label(unit)
    title = f"{geometry}: {noted.loop}, {label} over {format_duration(hours * 3600)}"
    table = Table(("stimulus", "until", label), courses.rows(len(series)))
    return Chart(slug("stimuli", geometry, noted.loop), title, caption, panel, table, geometry)
