"""Convergence of a loop: the figure of each workload of pure writes over the rounds, and the window that counts.

The SNIA PTS wants it beside the steady state of the tracked figures: whether all block sizes became steady.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.report.charts.course import steady_state
from pytest_ssdqual.report.drawing import scales
from pytest_ssdqual.report.drawing.chart import Chart, slug
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.drawing.palette import BAND, DASHES
from pytest_ssdqual.report.run_folder.reader import Record
from pytest_ssdqual.report.view.tables import Table

#: Lines beyond this have no style of their own; one is no comparison.
MOST_LINES, FEWEST = len(DASHES), 2


@dataclass(frozen=True, slots=True)
class Convergence:
    """The rounds of one loop; all lines have the claim, and so the unit, of its first tracked figure."""

    geometry: str
    loop: str
    unit: Unit
    #: Values by workload, in the loop's order; of drives side by side the average drive.
    lines: Mapping[str, tuple[float, ...]]
    #: Rounds of the window, which are the last ones.
    window: int


def convergences(records: Sequence[Record]) -> Iterator[Convergence]:
    """Yield the readable ``loop`` records with several workloads that only write."""
    from pytest_ssdqual.qual.records import from_plain
    from pytest_ssdqual.qual.workload.rounds import Rounds

    for record in records:
        try:
            asked = from_plain(Rounds, record.facts["asked"])
            claim = asked.tracked[0].claim
            writes = [str(each) for each in asked.workloads if each.read_fraction == 0][:MOST_LINES]
            found = {name: steady_state.of_loop(record.facts, name, claim) for name in writes}
        except (KeyError, TypeError, ValueError, IndexError):
            continue
        if len(found) >= FEWEST:
            first = next(iter(found.values()))
            lines = {name: each.values for name, each in found.items()}
            yield Convergence(first.geometry, asked.name, first.unit, lines, len(first.state.values))


def chart(found: Convergence) -> Chart:
    """Draw a line for each workload."""
    key = slug("convergence", found.geometry, found.loop)
    title = f"{found.geometry}: {found.loop}, pure writes from round to round"
    rounds = max(map(len, found.lines.values()))
    numbers = [index + 1.0 for index in range(rounds)]
    with drawing():
        plate = Plate.of()
        per = ", average drive" if found.geometry.startswith("drive") else ""
        axes = plate.axes("round", f"{steady_state.axis_label(found.unit)}{per}")
        for index, (name, values) in enumerate(found.lines.items()):
            tooltips = [f"{name}, round {n:g}: {_value(y, found)}" for n, y in zip(numbers, values, strict=True)]
            plate.line(axes, numbers, values, index, name, tooltips=tooltips)
        axes.axvspan(rounds - found.window + 0.7, rounds + 0.3, color=BAND, alpha=0.12, linewidth=0)
        scales.suited(axes, found.unit, [value for values in found.lines.values() for value in values])
        axes.set_xlim(0.5, rounds + 0.5)
        svg = plate.svg(key, title, f"{len(found.lines)} workloads over {rounds} rounds.")
    caption = f"The shaded rounds are the last {found.window}, in which the tracked figures were judged."
    rows = tuple(
        (f"{number:g}", *(_value(values[index], found) for values in found.lines.values()))
        for index, number in enumerate(numbers)
    )
    return Chart(key, title, caption, svg, Table(("round", *found.lines), rows), found.geometry)


def _value(value: float, found: Convergence) -> str:
    return format_value(value, found.unit, 1)
