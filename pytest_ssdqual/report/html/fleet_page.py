"""All that the page of a fleet says, in its order, before any of it is markup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.detect import outliers
from pytest_ssdqual.qual.detect.outliers import OUTLYING
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.report.charts.chart import Chart
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.evidence.part import Finding
from pytest_ssdqual.report.fleet import rows as figures
from pytest_ssdqual.report.fleet.rows import Row
from pytest_ssdqual.report.fleet.together import Together, named, together
from pytest_ssdqual.report.fleet.view import Bay, Seen
from pytest_ssdqual.report.html.fleet_drawing import draw
from pytest_ssdqual.report.html.run_page_file import NAME
from pytest_ssdqual.report.view.fitness import Fitness

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
class Link:
    """Text that leads to a bay's own page."""

    text: str
    href: str


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure, its interval below it, and what came of it."""

    text: str
    interval: str
    outcome: Finding


@dataclass(frozen=True, slots=True)
class State:
    """What a bay comes to."""

    text: str
    look: Finding


Cell = str | Finding | Link | Measured | State


@dataclass(frozen=True, slots=True)
class Table:
    """The first column names the row."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """See the module."""

    title: str
    together: Together
    about: tuple[tuple[str, str], ...]
    #: The name of a bay, where its page is, and a sentence.
    broken: tuple[tuple[Link, str], ...]
    errors: tuple[tuple[Link, str], ...]
    worsened: tuple[tuple[Link, str], ...]
    left_out: int
    #: A circumstance that is not the same everywhere, and which bays have which.
    differences: tuple[tuple[str, tuple[tuple[str, str], ...], str], ...]
    bays: Table
    promised: Table
    observed: Table
    lot: Table
    standing_out: tuple[str, ...]
    charts: tuple[Chart, ...]
    #: Why there are no charts, or how many were left out.
    charts_note: str
    folder: str


def compose(seen: Seen) -> Page:
    """Of a fleet's folder that was read."""
    found = figures.rows(seen)
    kept, plain = figures.promised(found), figures.observed(found)
    names = [bay.name for bay in seen.begun]
    charts, note = draw(kept, names)
    told = [_sentences(seen.bays, kind) for kind in ("broken", "errors", "worsened")]
    return Page(
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


def link(bay: Bay) -> Link:
    """Nothing to lead to where there is no page."""
    return Link(bay.name, f"bays/{quote(bay.name, safe='')}/{NAME}" if bay.has_page else "")


def bays(seen: Seen) -> Table:
    """A row for each; promises of bays that were never begun are not counted as anything."""
    labels = list(dict.fromkeys(name for bay in seen.bays for name in bay.labels))[:MOST_LABELS]
    columns = ("Bay", "Machine", *map(_brief, labels), "Drives", "Kept", "Broken", "Undecided", "In error", "Verdict")
    shown = list(seen.bays)
    if len(shown) > MOST_IN_ORDER:
        shown.sort(key=lambda bay: list(LOOKS).index(bay.fitness))
    left = len(shown) - MOST_BAYS
    note = f"{left:,} more bays are left out here: fleet.json has them." if left > 0 else ""
    made = tuple(tuple(_bay(bay, labels)) for bay in shown[:MOST_BAYS])
    return Table(f"Bays: {len(seen.bays):,}", columns, made, note)


def _brief(text: str) -> str:
    """Of a table of many rows, whose words are others'."""
    return safe_text.line(text, CELL_CHARACTERS)


def _bay(bay: Bay, labels: Sequence[str]) -> Iterator[Cell]:
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


def _about(seen: Seen) -> Iterator[tuple[str, str]]:
    if seen.fleet:
        yield "Begun", _moment(seen.fleet.started)
        yield "Ended", _moment(seen.fleet.ended) if seen.fleet.ended else "not by itself"
        if seen.fleet.merged:
            yield "Made of", "runs that were made separately, and merged"
        yield "Command line", " ".join(seen.fleet.command_line[:MOST_BAYS])
        yield "Version", seen.fleet.version


def _moment(time: str) -> str:
    return time.partition(".")[0].replace("T", " ").removesuffix("+00:00") + " UTC"


def _sentences(found: Sequence[Bay], kind: str) -> tuple[tuple[tuple[Link, str], ...], int]:
    """What was said of bays, and how much of it there was no room for."""
    every = [(link(bay), each) for bay in found for each in getattr(bay, kind)[:OF_ONE]]
    left = sum(max(0, len(getattr(bay, kind)) - OF_ONE) for bay in found) + max(0, len(every) - MOST_SENTENCES)
    return tuple(every[:MOST_SENTENCES]), left


def _differences(seen: Seen) -> Iterator[tuple[str, tuple[tuple[str, str], ...], str]]:
    for fact in seen.differences():
        yield fact.name, tuple((value, named(who, 6)) for value, who in seen.who(fact).items()), fact.meaning


def _figures(caption: str, found: Sequence[Row], names: Sequence[str]) -> Table:
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
    return Table(caption, columns, tuple(made), note)


def _beside(row: Row, names: Sequence[str]) -> Iterator[Cell]:
    for name in names:
        found = row.cells.get(name)
        yield Measured(found.measured, found.interval, found.outcome) if found else ""


def _condensed(row: Row) -> Iterator[Cell]:
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


def _lot(found: Sequence[Row]) -> Table:
    """Of figures that more than one bay has."""
    several = [row for row in found if len(row.values) > 1]
    made = [(row.claim, row.array, row.workload, *_statistics(row)) for row in several[:MOST_ROWS]]
    left = len(several) - len(made)
    columns = (
        "Figure", "Array", "Workload", "Bays", "Mean", "Standard deviation", "Least", "Most", "Spread", "Stands out",
        "Kept by", "Share that keeps it",
    )  # fmt: skip
    note = f"{left:,} more rows are left out here: {LEFT_OUT}." if left else ""
    return Table(f"The bays as a sample: {len(several):,} figures", columns, tuple(made), note)


def _statistics(row: Row) -> Iterator[str]:
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


def _standing_out(found: Sequence[Row]) -> Iterator[str]:
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
