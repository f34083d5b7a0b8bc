"""Charts of many runs: over time the verdict of each run by product and the worst margin of a claim in each run; and
the figures of all bays of a fleet side by side, as multiples of the limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.charts import ratios
from pytest_ssdqual.report.drawing.chart import printable, sentence, slug
from pytest_ssdqual.report.drawing.plot import (
    HOLLOW,
    OUTCOMES,
    Chart,
    ChartRoom,
    Line,
    Panel,
    Point,
    Style,
    level,
    lines_of,
    table_of,
)
from pytest_ssdqual.report.drawing.scales import Dates, Rows, Values, day, spread
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.fleet.view import FleetRow
from pytest_ssdqual.report.run_summary.fitness import LOOKS, USE, Fitness, word_of
from pytest_ssdqual.report.run_summary.run_view import RunView
from pytest_ssdqual.report.view.tables import Table, label, short_margin
from pytest_ssdqual.report.view.tables import margin as margin_of

#: Maximum number of charts, and of rows of each; failed ones come first.
MOST_CHARTS, MOST_ROWS = 20, 24
#: Maximum size of all charts: a page must fit into a mail and a phone (3 MB).
MOST_BYTES = 1_800_000
#: With more bays than this, dots are distinguished by outcome instead of by bay.
MOST_NAMED = 8
#: Height that the dots of a row occupy, as a share of the row.
SPREAD = 0.64
#: A verdict of a run.
Margin = tuple[RunView, Evidence]
#: Rows of the chart of verdicts, and products with a series of their own.
MOST_PRODUCTS, MOST_SERIES = 24, 7
#: Margins beyond this are drawn at the edge.
MOST_PERCENT = 100.0
DOTS: Style = {"linestyle": "", "clip_on": False}
#: Style by the word of a verdict: hollow is not for acceptance.
STYLES = {word_of(each, True): OUTCOMES[LOOKS[each]] for each in Fitness}
STYLES[word_of(Fitness.NO_VERDICT, True)] = OUTCOMES[Finding.BOUNDED]
STYLES |= {word_of(each, False): {**OUTCOMES[LOOKS[each]], **HOLLOW} for each in USE}
JOINED: Style = {"linestyle": ":", "linewidth": 0.8, "clip_on": False}


def verdicts(products: Mapping[tuple[str, str], Sequence[RunView]]) -> Chart:
    """Return the verdict of each run: a row for each product, by the start of the run."""
    shown = list(products.items())[:MOST_PRODUCTS]
    lines = [
        Line(
            [
                Point(
                    day(run.started),
                    row,
                    (_started(run), ", ".join(product), run.name, f"{word}. {run.verdict.sentence}"),
                )
                for row, (product, runs) in enumerate(shown)
                for run in runs
                if run.verdict.word == word
            ],
            name=word[0].lower() + word[1:],
            style={**style, **DOTS},
        )
        for word, style in STYLES.items()
    ]
    rest = f" The first {len(shown)} of {len(products):,} products." if len(products) > len(shown) else ""
    caption = f"Each mark is a run, in the row of its model and firmware.{rest}"
    panel = Panel(Dates(), Rows([printable(", ".join(product), 26) for product, _ in shown], room_in=2.15), lines)
    table = table_of(("Started", "Model and firmware", "Run", "Verdict"), panel)
    height_in = max(1.5, 0.75 + 0.36 * len(shown))
    return Chart("verdicts", "Verdicts over time", caption, panel, table, height_in=height_in)


def margin(claim: str, margins: Sequence[Margin]) -> Chart:
    """Return the worst margin of a claim in each run, a series for each product."""
    products = [f"{run.models}, {run.firmware}" for run, _ in margins]
    named = list(dict.fromkeys(products))
    rest = f" Products beyond the first {MOST_SERIES} share a mark." if len(named) > MOST_SERIES else ""
    caption = (
        "Of each run the verdict that is closest to its limit, or misses it most: distance of the figure from the "
        f"limit in per cent, below zero on the bad side; beyond ±{MOST_PERCENT:g} % at the edge.{rest}"
    )
    groups: dict[str, list[Point]] = {}
    for product, (run, evidence) in zip(products, margins, strict=True):
        name = printable(product, 40) if named.index(product) < MOST_SERIES else "other products"
        y = min(max(margin_of(evidence), -MOST_PERCENT), MOST_PERCENT)
        row = _started(run), product, run.name, short_margin(evidence), evidence.sentence
        groups.setdefault(name, []).append(Point(day(run.started), y, row))
    panel = Panel(Dates(), Values("margin", Unit.PERCENT, spread), [*lines_of(groups, JOINED), level(0.0, "promised")])
    table = table_of(("Started", "Model and firmware", "Run", "Margin", "Verdict"), panel)
    title = sentence(label(claim)).rstrip(".")
    return Chart(slug("margin", claim), title, caption, panel, table, height_in=2.7)


def _started(run: RunView) -> str:
    return f"{run.started:%Y-%m-%d %H:%M}"


def of_bays(rows: Sequence[FleetRow], names: Sequence[str]) -> tuple[tuple[Chart, ...], str]:
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
    panel = ratios.spread(labels, _lines(rows, names), "times the limit", 2.3, is_limit=True)
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
