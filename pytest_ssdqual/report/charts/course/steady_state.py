"""Steady state of a measurement: rounds, the decisive window, its best fit, and the allowed range."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_ssdqual.qual import strict_json
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import from_plain
from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule
from pytest_ssdqual.qual.stats import steady_state
from pytest_ssdqual.qual.stats.drift import DriftTest
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.report.drawing import scales
from pytest_ssdqual.report.drawing.chart import MOST_ROWS, Chart, condensed, condensing, extremes, sentence, slug
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.drawing.palette import INK, LIMIT
from pytest_ssdqual.report.run_folder.reader import Record
from pytest_ssdqual.report.view.tables import Table

#: By claim: the figure of a run's summary, its unit, and whether that of drives side by side is their sum.
FIGURES: Mapping[str, tuple[str, Unit, bool]] = {
    "steady_iops": ("iops", Unit.IOPS, True),
    "read_iops": ("read_iops", Unit.IOPS, True),
    "write_iops": ("write_iops", Unit.IOPS, True),
    "throughput": ("bytes_per_s", Unit.BYTES_PER_SECOND, True),
    "mean_latency": ("mean_latency_ns", Unit.NANOSECONDS, False),
    "max_latency": ("max_latency_ns", Unit.NANOSECONDS, False),
}


@dataclass(frozen=True, slots=True)
class TrackedFigure:
    """A tracked figure over its rounds; ``states`` is the rule on the window from ``begin`` on."""

    geometry: str
    #: What it is of: ``conditioning randwrite_4k_qd8``, ``snia-iops: randwrite_4k_t4xqd32``.
    name: str
    values: tuple[float, ...]
    begin: int
    state: SteadyState
    unit: Unit = Unit.IOPS
    #: Of the drive that drifted most, if the drift over a capacity decided instead of the rule; rounds are then equal
    #: parts of the volume.
    drift: DriftTest | None = None

    @property
    def reached(self) -> bool:
        return self.drift.settled if self.drift else self.state.reached


def conditioned(records: Sequence[Record]) -> Iterator[TrackedFigure]:
    """Yield ``conditioned`` records: rounds of writes until steady; of drives side by side their mean."""
    for record in records:
        facts: Mapping[str, Any] = record.facts
        try:
            rounds = strict_json.array(facts["round_iops"])
            alone = [
                list(map(strict_json.number, strict_json.array(each))) for each in rounds if isinstance(each, list)
            ]
            values = (
                [sum(each) / len(alone) for each in zip(*alone, strict=True)]
                if alone
                else list(map(strict_json.number, rounds))
            )
            noted = strict_json.table(facts["steady"])
            window = len(strict_json.array(noted["values"]))
            allowed, average = strict_json.number(noted["range_allowed"]), strict_json.number(noted["average"])
            slope = strict_json.number(noted["slope_allowed"])
            rule = SteadyRule(window, 100 * allowed / average, 100 * slope / average)
            state = steady_state.judge(values, rule)
            drifts = [from_plain(DriftTest, each) for each in strict_json.table(facts.get("drift", {})).values()]
        except (KeyError, TypeError, ValueError, ArithmeticError):
            continue
        name = f"conditioning with {facts.get('workload')}"
        worst = max(drifts, key=lambda drift: (not drift.settled, abs(drift.change_percent)), default=None)
        begin = len(values) - window
        yield TrackedFigure(str(facts.get("geometry")), name, tuple(values), begin, state, drift=worst)


def looped(records: Sequence[Record]) -> Iterator[TrackedFigure]:
    """Yield the tracked figure of ``loop`` records; of drives side by side the average drive."""
    for record in records:
        facts: Mapping[str, Any] = record.facts
        try:
            yield from _tracked(facts)
        except (KeyError, TypeError, ValueError, IndexError):
            continue


def _tracked(facts: Mapping[str, Any]) -> Iterator[TrackedFigure]:
    from pytest_ssdqual.qual.workload.rounds import Rounds

    for tracked in from_plain(Rounds, facts["asked"]).tracked:
        yield of_loop(facts, str(tracked.workload), tracked.claim)


def of_loop(facts: Mapping[str, Any], workload: str, claim: str) -> TrackedFigure:
    """Return a workload's figure in a ``loop`` record; ``KeyError``, ``TypeError`` or ``ValueError`` without one.

    A loop ends with the first window in which all its tracked figures were steady, so the last window is the judged
    one, also of a figure that was steady before.
    """
    from pytest_ssdqual.qual.workload.rounds import Rounds

    rule, geometry = from_plain(SteadyRule, facts["rule"]), Geometry.parse(facts["geometry"])
    figure, unit, adds = FIGURES[claim]
    names = [str(each) for each in from_plain(Rounds, facts["asked"]).workloads]
    cells = [
        strict_json.table(strict_json.array(each)[names.index(workload)]) for each in strict_json.array(facts["rounds"])
    ]
    is_sum = geometry.is_side_by_side and adds
    values = [strict_json.number(cell[figure]) / (_drives(cell, geometry) if is_sum else 1) for cell in cells]
    state = steady_state.judge(values, rule)
    begin = len(values) - rule.window
    return TrackedFigure(str(geometry), f"{facts['loop']}, {workload}", tuple(values), begin, state, unit)


def _drives(cell: Mapping[str, Any], geometry: Geometry) -> int:
    """Return the number of drives side by side that were measured; some may have been left out."""
    return len(strict_json.array(cell["members"])) if cell.get("members") else geometry.width


def chart(settling: TrackedFigure, prefix: str = "steady") -> Chart:
    """Draw rounds, the window with best fit and average, and the allowed range."""
    state, unit = settling.state, settling.unit
    window = list(range(settling.begin + 1, settling.begin + 1 + len(state.values)))
    key = slug(prefix, settling.geometry, settling.name)
    reached = "steady" if settling.reached else "not steady"
    title = f"{settling.geometry}: {settling.name}, {reached} after {window[-1]} rounds"
    low, high = state.average - state.range_allowed / 2, state.average + state.range_allowed / 2
    with drawing():
        plate = Plate.of(2.8)
        per = ", average drive" if settling.geometry.startswith("drive") else ""
        axes = plate.axes("round", f"{axis_label(unit)}{per}")
        numbers = [index + 1.0 for index in range(len(settling.values))]
        shown = extremes(numbers, settling.values)
        tooltips = [f"round {n:g}: {format_value(v, unit)}" for n, v in zip(*shown, strict=True)]
        plate.band(axes, [window[0] - 0.3, window[-1] + 0.3], [low, low], [high, high], "window and range allowed")
        for end in (low, high):
            axes.hlines([end], [window[0] - 0.3], [window[-1] + 0.3], colors=LIMIT, linestyles="--", linewidth=1.1)
        plate.line(axes, *shown, 0, "each round", tooltips=tooltips, marked=len(numbers) <= MOST_ROWS)
        fit = [state.average + state.slope_per_round * (at - sum(window) / len(window)) for at in window]
        (line,) = axes.plot(window, fit, color=INK, linewidth=1.3)
        plate.entry(line, "best fit")
        plate.entry(
            axes.hlines([state.average], [window[0] - 0.3], [window[-1] + 0.3], colors=INK, linestyles=":"), "average"
        )
        _scale(plate, [*settling.values, low, high], unit, len(numbers))
        svg = plate.svg(key, title, f"{len(numbers)} rounds and the window of {len(window)} that was judged.")
    cut = "" if axes.get_ylim()[0] <= 0 else " The scale does not begin at zero."
    words = f"The dashed lines are the range allowed around the window's average.{cut}"
    decided = settling.drift.describe() if settling.drift else state.describe(unit)
    caption = f"{sentence(decided)} {words}{condensing(len(numbers))}"
    return Chart(key, title, caption, svg, _table(settling, low, high), settling.geometry)


def _table(settling: TrackedFigure, low: float, high: float) -> Table:
    state, unit = settling.state, settling.unit
    points = condensed([(index + 1.0, value) for index, value in enumerate(settling.values)])
    marks = (
        ("average of the window", format_value(state.average, unit, 1)),
        ("range measured", format_value(state.range_measured, unit, 1)),
        ("range allowed", f"{format_value(low, unit, 1)} to {format_value(high, unit, 1)}"),
        ("slope per round", format_value(state.slope_per_round, unit, 1)),
        ("slope excursion measured", format_value(state.slope_excursion, unit, 1)),
        ("slope excursion allowed", format_value(state.slope_allowed, unit, 1)),
        ("correlation", f"{state.correlation:.2f}"),
        (
            "best fit",
            f"{state.slope_per_round:.5g} × round + {state.intercept(settling.begin + 1):.5g}, in {unit.value}",
        ),
    )
    return Table(("round", axis_label(unit)), (*((f"{x:g}", format_value(y, unit, 1)) for x, y in points), *marks))


def axis_label(unit: Unit) -> str:
    """Return what a tracked figure of this unit is."""
    return {Unit.IOPS: "IOPS", Unit.NANOSECONDS: "mean latency", Unit.BYTES_PER_SECOND: "throughput"}.get(
        unit, unit.value
    )


def _scale(plate: Plate, values: Sequence[float], unit: Unit, rounds: int) -> None:
    """Set a scale close around the values, as a tenth matters here."""
    from matplotlib.ticker import MaxNLocator

    axes = plate.figure.axes[0]
    margin = (max(values) - min(values)) * 0.15 or 1.0
    axes.set_ylim(max(0.0, min(values) - margin), max(values) + margin)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=scales.STEPS))
    scales.label(axes.yaxis, unit)
    axes.set_xlim(0.5, max(rounds, MOST_ROWS // 12) + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))
