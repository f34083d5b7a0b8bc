"""All that the page of a fleet says, in its order, before any of it is markup.

All bays against the limit, a chart for each claim: estimates and intervals as times the limit, so that one line is
the limit of every row.

The page of a fleet as HTML, by the means of a run's page: its style sheet, everything else escaped, no script.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.detect import outliers
from pytest_ssdqual.qual.detect.outliers import OUTLYING
from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.report.charts.base import Chart, ChartTable, slug
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.fleet import view
from pytest_ssdqual.report.fleet.view import BayView, FleetRow, FleetView, Together, named, together
from pytest_ssdqual.report.html.run_page import NAME, environment, style
from pytest_ssdqual.report.view.fitness import Fitness
from pytest_ssdqual.report.view.labels import label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pytest_ssdqual.report.charts.figure import Plate


#: Claims that are drawn, and rows of each; broken ones come first.
MOST_CHARTS, MOST_CHART_ROWS = 20, 24
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


def draw(rows: Sequence[FleetRow], names: Sequence[str]) -> tuple[tuple[Chart, ...], str]:
    """The charts, and a sentence if some or all of them are missing. Nothing that one does wrong costs the page."""
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
            chart = _chart(slug("fleet", str(len(charts)), claim), drawable[:MOST_CHART_ROWS], len(group), names)
        except Exception as error:  # a library draws; the page is worth having without it
            why = safe_text.line(f"{type(error).__name__}: {error}", 300)
            return tuple(charts), f"The charts could not be drawn ({why}); the tables have their numbers."
        room -= len(chart.svg.encode())
        if len(charts) == MOST_CHARTS or room < 0:
            return tuple(charts), "More charts are left out, to keep this page small; the tables have their numbers."
        charts.append(chart)
    return tuple(charts), ""


def _dots(row: FleetRow, names: Sequence[str], at: int) -> list[Dot]:
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


def _chart(key: str, rows: Sequence[FleetRow], of: int, names: Sequence[str]) -> Chart:
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
    table = ChartTable(("Row", "Limit", "Least", "Median", "Most"), tuple(map(_numbers, rows)))
    return Chart(key, f"{title[:1].upper()}{title[1:]}", caption, svg, table)


def _caption(rows: Sequence[FleetRow], of: int, names: Sequence[str]) -> str:
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
    from pytest_ssdqual.report.charts.base import MARKERS, colour

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
    from pytest_ssdqual.report.charts.base import LIMIT
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


def _numbers(row: FleetRow) -> tuple[str, ...]:
    spread, unit = row.spread(), Unit(row.key.unit)
    values = (spread.least, spread.median, spread.most) if spread else ()
    told = [format_value(each, unit) for each in values]
    return f"{row.array} {row.workload}", row.limit, *(told or ("", "", ""))


def _short(name: str) -> str:
    shown = safe_text.line(name, 200)
    return shown if len(shown) <= LONGEST_NAME else f"{shown[: LONGEST_NAME - 1].rstrip('… ')}…"


#: With more bays a table has no room for a column of each.
MOST_COLUMNS = 8
#: Of what ``fleet.json`` and manifests may have as much of as they like.
MOST_BAYS, MOST_LABELS, CELL_CHARACTERS = 1_000, 8, 160
#: Rows of figures, broken ones first; nobody reads thousands.
MOST_ROWS = 300
#: Broken promises, errors and worsened drives that are told in sentences, of each.
MOST_SENTENCES = 200
#: Sentences of one bay, so that others have room.
OF_ONE = 20
#: Figures in which a bay stands out that are told in sentences.
MOST_OUTLYING = 12
LEFT_OUT = "the pages of the bays have them"
STATES: Mapping[Fitness | None, str] = {
    Fitness.FIT: "keeps all",
    Fitness.UNFIT: "breaks promises",
    Fitness.OPEN: "cannot say",
    None: "never begun",
}
#: What a state looks like, the worse the sooner.
LOOKS: Mapping[Fitness | None, Finding] = {
    Fitness.UNFIT: Finding.FAIL,
    Fitness.OPEN: Finding.INCONCLUSIVE,
    None: Finding.OBSERVED,
    Fitness.FIT: Finding.PASS,
}
#: With more bays, those that do not keep all come first in their table.
MOST_IN_ORDER = 20


@dataclass(frozen=True, slots=True)
class PageLink:
    """Text that leads to a bay's own page."""

    text: str
    href: str


@dataclass(frozen=True, slots=True)
class MeasuredCell:
    """A figure, its interval below it, and what came of it."""

    text: str
    interval: str
    outcome: Finding


@dataclass(frozen=True, slots=True)
class State:
    """What a bay comes to."""

    text: str
    look: Finding


Cell = str | Finding | PageLink | MeasuredCell | State


@dataclass(frozen=True, slots=True)
class FleetTable:
    """The first column names the row."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class FleetPage:
    """See the module."""

    title: str
    together: Together
    about: tuple[tuple[str, str], ...]
    #: The name of a bay, where its page is, and a sentence.
    broken: tuple[tuple[PageLink, str], ...]
    errors: tuple[tuple[PageLink, str], ...]
    worsened: tuple[tuple[PageLink, str], ...]
    left_out: int
    #: A circumstance that is not the same everywhere, and which bays have which.
    differences: tuple[tuple[str, tuple[tuple[str, str], ...], str], ...]
    bays: FleetTable
    promised: FleetTable
    observed: FleetTable
    lot: FleetTable
    standing_out: tuple[str, ...]
    charts: tuple[Chart, ...]
    #: Why there are no charts, or how many were left out.
    charts_note: str
    folder: str


def compose(seen: FleetView) -> FleetPage:
    """Of a fleet's folder that was read."""
    found = view.rows(seen)
    kept, plain = view.promised(found), view.observed(found)
    names = [bay.name for bay in seen.begun]
    charts, note = draw(kept, names)
    told = [_sentences(seen.bays, kind) for kind in ("broken", "errors", "worsened")]
    return FleetPage(
        title=f"{seen.folder.resolve().name}: {len(seen.bays):,} {'bay' if len(seen.bays) == 1 else 'bays'}",
        together=together(seen),
        about=tuple(_about(seen)),
        broken=told[0][0],
        errors=told[1][0],
        worsened=told[2][0],
        left_out=sum(each[1] for each in told),
        differences=tuple(_differences(seen)),
        bays=bays(seen),
        promised=_figures(f"Promises: {len(kept):,}", kept, names),
        observed=_figures(f"Figures without a promise: {len(plain):,}", plain, names),
        lot=_lot(found),
        standing_out=tuple(_standing_out(found)),
        charts=charts,
        charts_note=note,
        folder=str(seen.folder),
    )


def link(bay: BayView) -> PageLink:
    """Nothing to lead to where there is no page."""
    return PageLink(bay.name, f"bays/{quote(bay.name, safe='')}/{NAME}" if bay.has_page else "")


def bays(seen: FleetView) -> FleetTable:
    """A row for each; promises of bays that were never begun are not counted as anything."""
    labels = list(dict.fromkeys(name for bay in seen.bays for name in bay.labels))[:MOST_LABELS]
    columns = ("Bay", "Machine", *map(_brief, labels), "Drives", "Kept", "Broken", "Undecided", "In error", "Verdict")
    shown = list(seen.bays)
    if len(shown) > MOST_IN_ORDER:
        shown.sort(key=lambda bay: list(LOOKS).index(bay.fitness))
    left = len(shown) - MOST_BAYS
    note = f"{left:,} more bays are left out here: fleet.json has them." if left > 0 else ""
    made = tuple(tuple(_bay(bay, labels)) for bay in shown[:MOST_BAYS])
    return FleetTable(f"Bays: {len(seen.bays):,}", columns, made, note)


def _brief(text: str) -> str:
    """Of a table of many rows, whose words are others'."""
    return safe_text.line(text, CELL_CHARACTERS)


def _bay(bay: BayView, labels: Sequence[str]) -> Iterator[Cell]:
    yield link(bay)
    yield _brief(bay.machine) or "unknown"
    yield from (_brief(bay.labels.get(name, "")) for name in labels)
    yield _brief(bay.drives)
    if bay.standing:
        counts = bay.standing.counts
        yield from (f"{each:,}" for each in (counts.kept, counts.broken, counts.undecided, counts.troubled))
    else:
        yield from ("", "", "", "")
    yield State(STATES[bay.fitness], LOOKS[bay.fitness])


def _about(seen: FleetView) -> Iterator[tuple[str, str]]:
    if seen.fleet:
        yield "Begun", _moment(seen.fleet.started)
        yield "Ended", _moment(seen.fleet.ended) if seen.fleet.ended else "not by itself"
        if seen.fleet.merged:
            yield "Made of", "runs that were made separately, and merged"
        yield "Command line", " ".join(seen.fleet.command_line[:MOST_BAYS])
        yield "Version", seen.fleet.version


def _moment(time: str) -> str:
    return time.partition(".")[0].replace("T", " ").removesuffix("+00:00") + " UTC"


def _sentences(found: Sequence[BayView], kind: str) -> tuple[tuple[tuple[PageLink, str], ...], int]:
    """What was said of bays, and how much of it there was no room for."""
    every = [(link(bay), each) for bay in found for each in getattr(bay, kind)[:OF_ONE]]
    left = sum(max(0, len(getattr(bay, kind)) - OF_ONE) for bay in found) + max(0, len(every) - MOST_SENTENCES)
    return tuple(every[:MOST_SENTENCES]), left


def _differences(seen: FleetView) -> Iterator[tuple[str, tuple[tuple[str, str], ...], str]]:
    for fact in seen.differences():
        yield fact.name, tuple((value, named(who, 6)) for value, who in seen.who(fact).items()), fact.meaning


def _figures(caption: str, found: Sequence[FleetRow], names: Sequence[str]) -> FleetTable:
    """A column for each bay or, of many bays, what is the least, the most and the worst."""
    head = ("Claim", "Array", "Workload", "Limit")
    wide = len(names) <= MOST_COLUMNS
    columns = (*head, *names) if wide else (*head, "Least", "Median", "Most", "Worst bay", "Broken by", "Outcome")
    shown = found[:MOST_ROWS]
    made = [
        (row.claim, row.array, row.workload, row.limit, *(_beside(row, names) if wide else _condensed(row)))
        for row in shown
    ]
    left = len(found) - len(shown)
    note = f"{left:,} more rows are left out here: {LEFT_OUT}." if left else ""
    return FleetTable(caption, columns, tuple(made), note)


def _beside(row: FleetRow, names: Sequence[str]) -> Iterator[Cell]:
    for name in names:
        found = row.cells.get(name)
        yield MeasuredCell(found.measured, found.interval, found.outcome) if found else ""


def _condensed(row: FleetRow) -> Iterator[Cell]:
    spread, unit = row.spread(), Unit(row.key.unit)
    values = (spread.least, spread.median, spread.most) if spread else ()
    yield from (format_value(each, unit) for each in values)
    yield from ("",) * (3 - len(values))
    yield _worst(row.worst, row.cells.get(row.worst))
    broken, undecided = row.bays(Finding.FAIL), row.bays(Finding.INCONCLUSIVE)
    more = f", {len(undecided):,} undecided" if undecided else ""
    yield f"{len(broken):,} of {len(row.cells):,}{more}" if row.is_promised else ""
    yield row.outcome


def _worst(name: str, found: Evidence | None) -> str:
    return f"{name}: {found.measured} ({found.interval})" if found else ""


def _lot(found: Sequence[FleetRow]) -> FleetTable:
    """Of figures that more than one bay has."""
    several = [row for row in found if len(row.values) > 1]
    made = [(row.claim, row.array, row.workload, *_statistics(row)) for row in several[:MOST_ROWS]]
    left = len(several) - len(made)
    columns = (
        "Figure", "Array", "Workload", "Bays", "Mean", "Standard deviation", "Least", "Most", "Spread", "Stands out",
        "Kept by", "Share that keeps it",
    )  # fmt: skip
    note = f"{left:,} more rows are left out here: {LEFT_OUT}." if left else ""
    return FleetTable(f"The bays as a sample: {len(several):,} figures", columns, tuple(made), note)


def _statistics(row: FleetRow) -> Iterator[str]:
    unit, spread, share = Unit(row.key.unit), outliers.spread(row.values), row.share()
    yield f"{spread.n:,}"
    for value in (spread.mean, spread.deviation, spread.least, spread.most):
        yield "" if value is None else format_value(value, unit)
    yield "" if spread.range_percent is None else f"{spread.range_percent:.3g} %"
    out = row.standing_out()
    yield f"{out[0]} ({out[1].score:+.1f})" if out else ""
    if share is None:
        yield from ("", "")
        return
    kept, undecided, of, low, high = share
    yield f"{kept:,} of {of:,}" + (f", {undecided:,} undecided" if undecided else "")
    yield f"{100 * low:.3g}…{100 * high:.3g} %"


def _standing_out(found: Sequence[FleetRow]) -> Iterator[str]:
    """A sentence for each figure of which one bay is not like the others; the table has them all."""
    told = [(row, out) for row in found[:MOST_ROWS] if (out := row.standing_out())]
    for row, (name, outlying) in told[:MOST_OUTLYING]:
        yield (
            f"{name} stands out in {row.name}: {row.cells[name].measured}, median of {len(row.values)} bays "
            f"{format_value(outliers.spread(row.values).median, Unit(row.key.unit))} (modified z-score "
            f"{outlying.score:+.1f}, beyond {OUTLYING:g})"
        )
    if len(told) > MOST_OUTLYING:
        yield f"One bay stands out in {len(told) - MOST_OUTLYING:,} more figures."


if TYPE_CHECKING:
    pass

FOLDER = Path(__file__).with_name("templates")
#: Styles of drawings are attributes; see ``page.rendering.policy``.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def render(page: FleetPage) -> str:
    """The whole file."""
    from markupsafe import Markup

    from pytest_ssdqual.report.charts.base import style_sheet

    pass

    made = environment(FOLDER)
    made.tests["link"] = lambda value: isinstance(value, PageLink)
    made.tests["measured"] = lambda value: isinstance(value, MeasuredCell)
    made.tests["state"] = lambda value: isinstance(value, State)
    own = (FOLDER / "fleet.css").read_text(encoding="utf-8")
    look = Markup(style_sheet() + style() + own)  # noqa: S704 (our own files)
    return made.get_template("fleet.html").render(page=page, policy=POLICY, style=look)
