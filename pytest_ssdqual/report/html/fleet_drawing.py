"""All bays against the limit, a chart for each claim: estimates and intervals as times the limit, so that one line is
the limit of every row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.report.charts.chart import Chart, Table, slug
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.evidence.part import Finding
from pytest_ssdqual.report.fleet.rows import Row
from pytest_ssdqual.report.view.labels import label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pytest_ssdqual.report.charts.figure import Plate

#: Claims that are drawn, and rows of each; broken ones come first.
MOST_CHARTS, MOST_ROWS = 20, 24
#: Of all charts together: a page must fit into a mail and a phone (3 MB).
MOST_BYTES = 1_800_000
#: With more bays a dot is known by its outcome and no more by its bay.
MOST_NAMED = 8
ROW_IN, LABEL_IN, LONGEST_NAME = 0.34, 2.3, 32
#: Of a row, from the first bay's dot to the last one's.
SPREAD = 0.64
#: Intervals are drawn to so many times the range of the estimates; one that is unbounded would hide all others.
BEYOND = 1.5
WORDS = {Finding.PASS: "kept", Finding.FAIL: "broken", Finding.INCONCLUSIVE: "undecided"}
#: Of the palette's series, by outcome; the marker says the same.
SERIES = {Finding.PASS: 2, Finding.FAIL: 1, Finding.INCONCLUSIVE: 6}


@dataclass(frozen=True, slots=True)
class Dot:
    """A bay's estimate in times its limit, and where it is drawn."""

    bay: str
    y: float
    evidence: Evidence
    value: float
    low: float
    high: float


def draw(rows: Sequence[Row], names: Sequence[str]) -> tuple[tuple[Chart, ...], str]:
    """The charts, and a sentence if some or all of them are missing. Nothing that one does wrong costs the page."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.key.key.claim, []).append(row)
    charts: list[Chart] = []
    room = MOST_BYTES
    for claim, group in groups.items():
        drawable = [row for row in group if _dots(row, names, 0)]
        if not drawable:
            continue
        try:
            chart = _chart(slug("fleet", str(len(charts)), claim), drawable[:MOST_ROWS], len(group), names)
        except Exception as error:  # a library draws; the page is worth having without it
            why = safe_text.line(f"{type(error).__name__}: {error}", 300)
            return tuple(charts), f"The charts could not be drawn ({why}); the tables have their numbers."
        room -= len(chart.svg.encode())
        if len(charts) == MOST_CHARTS or room < 0:
            return tuple(charts), "More charts are left out, to keep this page small; the tables have their numbers."
        charts.append(chart)
    return tuple(charts), ""


def _dots(row: Row, names: Sequence[str], at: int) -> list[Dot]:
    """Of bays whose limit is one that a ratio to it can be told of; in the order of the bays, from top to bottom."""
    found = []
    for index, name in enumerate(names):
        each = row.cells.get(name)
        if each is None or each.limit is None or not math.isfinite(each.limit) or each.limit <= 0:
            continue
        if not math.isfinite(each.value) or each.value <= 0:
            continue
        y = at + SPREAD * ((index + 0.5) / len(names) - 0.5)
        low = 0.0 if each.low is None else each.low
        high = math.inf if each.high is None else each.high
        found.append(Dot(name, y, each, *(value / each.limit for value in (each.value, low, high))))
    return found


def _chart(key: str, rows: Sequence[Row], of: int, names: Sequence[str]) -> Chart:
    from pytest_ssdqual.report.charts.figure import Plate, drawing

    dots = [_dots(row, names, at) for at, row in enumerate(rows)]
    title, caption = label(rows[0].key.key.claim), _caption(rows, of, names)
    with drawing():
        plate = Plate.of(max(1.2, ROW_IN * len(rows) + 0.7))
        axes = plate.axes("times the limit", "")
        box = axes.get_position(original=True)
        left = LABEL_IN / plate.figure.get_size_inches()[0]
        axes.set_position((left, box.y0, box.x1 - left, box.height))
        _scale(plate, axes, [each for of_row in dots for each in of_row])
        _series(plate, axes, [each for of_row in dots for each in of_row], names)
        axes.set_yticks(range(len(rows)), [_short(f"{row.array} {row.workload}") for row in rows])
        axes.set_ylim(len(rows) - 0.45, -0.55)
        svg = plate.svg(key, f"{title} of all bays", caption)
    table = Table(("Row", "Limit", "Least", "Median", "Most"), tuple(map(_numbers, rows)))
    return Chart(key, f"{title[:1].upper()}{title[1:]}", caption, svg, table)


def _caption(rows: Sequence[Row], of: int, names: Sequence[str]) -> str:
    better = "at most" if rows[0].first.direction is Direction.AT_MOST else "at least"
    rest = f" The first {len(rows):,} of {of:,} rows." if of > len(rows) else ""
    who = "" if len(names) <= MOST_NAMED else " From top to bottom in the order in which they were asked for."
    return f"Each bay's estimate and interval, in times what is promised: {better} 1 keeps it.{who}{rest}"


def _series(plate: Plate, axes: Axes, dots: Sequence[Dot], names: Sequence[str]) -> None:
    """By bay while they can be told apart, by outcome where there are many."""
    if len(names) <= MOST_NAMED:
        for index, name in enumerate(names):
            _drawn(plate, axes, [each for each in dots if each.bay == name], index, name)
        return
    for outcome, index in SERIES.items():
        _drawn(plate, axes, [each for each in dots if each.evidence.outcome is outcome], index, WORDS[outcome])


def _drawn(plate: Plate, axes: Axes, dots: Sequence[Dot], index: int, words: str) -> None:
    from pytest_ssdqual.report.charts.palette import MARKERS, colour

    if not dots:
        return
    left, right = axes.get_xlim()
    ys = [each.y for each in dots]
    lows, highs = [max(each.low, left) for each in dots], [min(each.high, right) for each in dots]
    axes.hlines(ys, lows, highs, colors=colour(index), linewidth=1.0)
    (drawn,) = axes.plot(
        [each.value for each in dots], ys, linestyle="", marker=MARKERS[index], color=colour(index), markersize=3.6
    )
    plate.tell(drawn, [f"{each.bay}: {each.evidence.sentence}" for each in dots])
    plate.entry(drawn, safe_text.line(words, 40))


def _scale(plate: Plate, axes: Axes, dots: Sequence[Dot]) -> None:
    """Logarithmic: 1 and all estimates are inside, and the ends of intervals as far as ``BEYOND``."""
    from pytest_ssdqual.report.charts.palette import LIMIT
    from pytest_ssdqual.report.compare.compare_output import ticks

    values = [1.0, *(each.value for each in dots)]
    low, high = min(values), max(values)
    beyond = (high / low) ** BEYOND * 1.05
    low = min([low, *(max(each.low, low / beyond) for each in dots)])
    high = max([high, *(min(each.high, high * beyond) for each in dots)])
    edge = max(1.002, (high / low) ** 0.04)
    left, right = low / edge, high * edge
    axes.set_xscale("log")
    axes.set_xlim(left, right)
    axes.set_xticks(marked := ticks(left, right), [f"{each:g}" for each in marked])
    axes.set_xticks([], minor=True)
    plate.entry(axes.axvline(1.0, color=LIMIT, linestyle=(0, (6, 2)), linewidth=1.4), "promised")


def _numbers(row: Row) -> tuple[str, ...]:
    spread, unit = row.spread(), Unit(row.key.unit)
    values = (spread.least, spread.median, spread.most) if spread else ()
    told = [format_value(each, unit) for each in values]
    return f"{row.array} {row.workload}", row.limit, *(told or ("", "", ""))


def _short(name: str) -> str:
    shown = safe_text.line(name, 200)
    return shown if len(shown) <= LONGEST_NAME else f"{shown[: LONGEST_NAME - 1].rstrip('… ')}…"
