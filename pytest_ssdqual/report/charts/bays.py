"""Figures of all bays of a fleet side by side, as multiples of the limit: a chart for each claim."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.report.charts import ratios
from pytest_ssdqual.report.charts.ratios import DrawnRatio, RatioLook, RatioSeries
from pytest_ssdqual.report.drawing.chart import Chart, slug
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
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
LOOK = RatioLook("times the limit", 0.34, 2.3, name_characters=32, line_width=1.0, marker_size=3.6, is_limit=True)
#: Series of the palette by outcome; markers differ as well.
SERIES: Mapping[Finding, int] = {Finding.PASS: 2, Finding.FAIL: 1, Finding.INCONCLUSIVE: 6, Finding.BOUNDED: 4}
#: Bay, evidence and its place in the chart.
Dot = tuple[str, Evidence, DrawnRatio]


def draw(rows: Sequence[FleetRow], names: Sequence[str]) -> tuple[tuple[Chart, ...], str]:
    """Return the charts, and a sentence if any are missing. An error in a chart does not cost the page."""
    groups: dict[str, list[FleetRow]] = {}
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


def _dots(row: FleetRow, names: Sequence[str], at: int) -> list[Dot]:
    """Return the dots of bays with a positive finite limit, in the order of the bays from top to bottom."""
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
        value, low, high = (value / each.limit for value in (each.value, low, high))
        found.append((name, each, DrawnRatio(y, value, low, high, f"{name}: {each.sentence}")))
    return found


def _chart(key: str, rows: Sequence[FleetRow], of: int, names: Sequence[str]) -> Chart:
    dots = [dot for at, row in enumerate(rows) for dot in _dots(row, names, at)]
    title, caption = label(rows[0].key.key.claim), _caption(rows, of, names)
    labels = [f"{row.array} {row.workload}" for row in rows]
    svg = ratios.svg(key, f"{title} of all bays", caption, labels, _series(dots, names), LOOK)
    table = Table(("Row", "Limit", "Least", "Median", "Most"), tuple(map(_numbers, rows)))
    return Chart(key, f"{title[:1].upper()}{title[1:]}", caption, svg, table)


def _caption(rows: Sequence[FleetRow], of: int, names: Sequence[str]) -> str:
    better = "at most" if rows[0].first.direction is Direction.AT_MOST else "at least"
    rest = f" The first {len(rows):,} of {of:,} rows." if of > len(rows) else ""
    who = "" if len(names) <= MOST_NAMED else " From top to bottom in the order in which they were requested."
    return f"Each bay's estimate and interval as a multiple of the limit: {better} 1 passes.{who}{rest}"


def _series(dots: Sequence[Dot], names: Sequence[str]) -> list[RatioSeries]:
    """Return the dots by bay if there are few bays, else by outcome."""
    if len(names) <= MOST_NAMED:
        return [
            RatioSeries(name, index, [dot for bay, _, dot in dots if bay == name]) for index, name in enumerate(names)
        ]
    return [
        RatioSeries(outcome.value, index, [dot for _, each, dot in dots if each.outcome is outcome])
        for outcome, index in SERIES.items()
    ]


def _numbers(row: FleetRow) -> tuple[str, ...]:
    spread, unit = row.spread(), Unit(row.key.unit)
    values = (spread.least, spread.median, spread.most) if spread else ()
    texts = [format_value(each, unit) for each in values]
    return f"{row.array} {row.workload}", row.limit, *(texts or ("", "", ""))
