"""Figures of all bays of a fleet side by side, as multiples of the limit: a chart for each claim."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.report.charts.ratios import spread
from pytest_ssdqual.report.drawing.chart import slug
from pytest_ssdqual.report.drawing.plot import OUTCOMES, Chart, ChartRoom, Line, Point
from pytest_ssdqual.report.fleet.view import FleetRow
from pytest_ssdqual.report.view.tables import Table, label

#: Maximum number of charts, and of rows of each; failed ones come first.
MOST_CHARTS, MOST_ROWS = 20, 24
#: Maximum size of all charts: a page must fit into a mail and a phone (3 MB).
MOST_BYTES = 1_800_000
#: With more bays than this, dots are distinguished by outcome instead of by bay.
MOST_NAMED = 8
#: Height that the dots of a row occupy, as a share of the row.
SPREAD = 0.64


def draw(rows: Sequence[FleetRow], names: Sequence[str]) -> tuple[tuple[Chart, ...], str]:
    """Return the charts, and a sentence if any are missing. An error in a chart does not cost the page."""
    groups: dict[str, list[FleetRow]] = {}
    for row in rows:
        groups.setdefault(row.key.claim, []).append(row)
    drawable = {claim: [row for row in group if _dots(row, names, 0)] for claim, group in groups.items()}
    drawable = {claim: group for claim, group in drawable.items() if group}
    room = ChartRoom(MOST_BYTES)
    charts = room.taken(
        _chart(slug("fleet", str(number), claim), drawn[:MOST_ROWS], len(groups[claim]), names)
        for number, (claim, drawn) in enumerate(list(drawable.items())[:MOST_CHARTS])
    )
    room.left_out += max(0, len(drawable) - MOST_CHARTS)
    return charts, room.note


def _dots(row: FleetRow, names: Sequence[str], at: int) -> dict[str, Point]:
    """Return the dots of bays with a positive finite limit, in the order of the bays from top to bottom."""
    dots = {}
    for index, name in enumerate(names):
        evidence = row.cells.get(name)
        if evidence is None or not _is_drawable(evidence.limit) or not _is_drawable(evidence.value):
            continue
        limit = evidence.limit or 1.0
        low = 0.0 if evidence.low is None else evidence.low
        high = math.inf if evidence.high is None else evidence.high
        y = at + SPREAD * ((index + 0.5) / len(names) - 0.5)
        interval = (low / limit, high / limit)
        dots[name] = Point(evidence.value / limit, y, interval=interval, words=f"{name}: {evidence.sentence}")
    return dots


def _is_drawable(value: float | None) -> bool:
    return value is not None and 0 < value < math.inf


def _chart(key: str, rows: Sequence[FleetRow], of: int, names: Sequence[str]) -> Chart:
    title = label(rows[0].key.claim)
    better = "at most" if rows[0].first.direction is Direction.AT_MOST else "at least"
    rest = f" The first {len(rows):,} of {of:,} rows." if of > len(rows) else ""
    who = "" if len(names) <= MOST_NAMED else " From top to bottom in the order in which they were requested."
    caption = f"Each bay's estimate and interval as a multiple of the limit: {better} 1 passes.{who}{rest}"
    labels = [f"{row.array} {row.workload}" for row in rows]
    panel = spread(labels, _lines(rows, names), "times the limit", 2.3, is_limit=True)
    table = Table(("Row", "Limit", "Least", "Median", "Most"), tuple(map(_numbers, rows)))
    height_in = max(1.2, 0.34 * len(rows) + 0.7)
    return Chart(key, f"{title[:1].upper()}{title[1:]}", caption, panel, table, height_in=height_in)


def _lines(rows: Sequence[FleetRow], names: Sequence[str]) -> list[Line]:
    """Return the dots by bay if there are few bays, else by outcome."""
    dots = [(row.cells[name], name, dot) for at, row in enumerate(rows) for name, dot in _dots(row, names, at).items()]
    if len(names) <= MOST_NAMED:
        return [
            Line([dot for _, bay, dot in dots if bay == name], index, safe_text.line(name, 40))
            for index, name in enumerate(names)
        ]
    return [
        Line([dot for evidence, _, dot in dots if evidence.outcome is outcome], name=outcome, style=style)
        for outcome, style in OUTCOMES.items()
    ]


def _numbers(row: FleetRow) -> tuple[str, ...]:
    return f"{row.array} {row.workload}", row.limit, *row.range
