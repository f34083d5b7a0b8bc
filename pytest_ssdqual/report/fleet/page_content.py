"""Content of a fleet's page and summary, before rendering."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.detect import outliers
from pytest_ssdqual.qual.detect.outliers import OUTLYING
from pytest_ssdqual.qual.names import counted, named
from pytest_ssdqual.qual.units import format_value
from pytest_ssdqual.report.charts import bays as bay_charts
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.fleet import view
from pytest_ssdqual.report.fleet.folder import BAYS
from pytest_ssdqual.report.fleet.view import (
    MOST_COLUMNS,
    NOT_STARTED,
    WORST_FIRST,
    BayView,
    FleetRow,
    FleetView,
    together,
)
from pytest_ssdqual.report.html.page import MARKS, REPORT
from pytest_ssdqual.report.run_summary.fitness import LOOKS, NUMBERS, Fitness
from pytest_ssdqual.report.run_summary.next_step import Step
from pytest_ssdqual.report.run_summary.overview import lists, overview, utc
from pytest_ssdqual.report.view import promises
from pytest_ssdqual.report.view.tables import Cell, MeasuredCell, PageLink, Table, bounded

#: Limits for content of ``fleet.json`` and manifests, which have none of their own.
MOST_BAYS, MOST_LABELS, CELL_CHARACTERS = 1_000, 8, 160
#: Maximum number of rows of figures, failed ones first.
MOST_ROWS = 300
#: Maximum number of sentences about causes, failed promises, errors and worsened drives, of each.
MOST_SENTENCES = 200
#: Maximum number of sentences of one bay.
OF_ONE = 20
#: Maximum number of next steps, and of bays that one names.
MOST_STEPS, MOST_NAMED = 6, 6
#: Maximum number of sentences about outlying bays.
MOST_OUTLYING = 12
LEFT_OUT = "the pages of the bays have them"
#: With more bays than this, those that did not pass come first.
MOST_IN_ORDER = 20


#: Title of a list, the mark of its sentences, and each sentence with a link to the page of its bay.
SentencesOfBays = tuple[str, str, tuple[tuple[PageLink, str], ...]]


def compose(seen: FleetView) -> dict[str, Any]:
    """Return the content of a fleet's page and summary, for their templates."""
    found = view.rows(seen)
    kept, plain = view.promised(found), view.observed(found)
    names = [bay.name for bay in seen.begun]
    charts, note = bay_charts.draw(kept, names)
    why, left_out = _why(seen)
    return {
        "title": f"{seen.folder.resolve().name}: {counted(len(seen.bays), 'bay')}",
        "standing": together(seen),
        # Numbers of bays by their verdicts.
        "counters": tuple(counters(seen)),
        "steps": tuple(steps(seen))[:MOST_STEPS],
        "fleet": seen.fleet,
        "utc": utc,
        "why": why,
        "left_out": left_out,
        "differences": tuple(seen.differences()),
        "bays": bays(seen),
        "matrix": promises.of_bays({bay.name: bay.run.judged for bay in seen.bays if bay.run}),
        "promised": figures(f"Promises: {len(kept):,}", kept, names),
        "observed": figures(f"Figures without a promise: {len(plain):,}", plain, names),
        # Figures that more than one bay has, and what their statistics are written with.
        "lot": [row for row in found if len(row.values) > 1],
        "spread": outliers.spread,
        "shown": format_value,
        "standing_out": tuple(_standing_out(found)),
        "charts": charts,
        "charts_note": note,
        "folder": str(seen.folder),
    }


def steps(seen: FleetView) -> Iterator[Step]:
    """Yield what to do next, each step once: first what some bays need, which are named, then what all need."""
    name = seen.folder.resolve().name
    again = Step("Remove the reason, and resume the run with the same options and", f"--ssd-resume={name}")
    about: dict[Step, list[str]] = {}
    for bay in seen.bays:
        is_done = bay.fitness is Fitness.FIT and bay.standing and bay.standing.acceptance
        if is_done:
            continue
        for step in overview(bay.run).steps if bay.run else (again,):
            about.setdefault(step, []).append(bay.name)
    few = {step: names for step, names in about.items() if len(names) < len(seen.bays)}
    yield from (replace(step, text=f"{named(names, MOST_NAMED)}: {step.text}") for step, names in few.items())
    yield from (step for step in about if step not in few)
    if seen.bays and not about:
        certificate = f"ssdqual certificate {name}/{BAYS}/{seen.bays[0].name} -o certificate.pdf"
        yield Step("Keep the folder as a baseline, and write the certificate of each bay:", certificate)


def link(bay: BayView) -> PageLink:
    """Return a link to a bay's page; without a target if there is no page."""
    return PageLink(bay.name, f"bays/{quote(bay.name, safe='')}/{REPORT}" if bay.has_page else "")


def bays(seen: FleetView, most: int = MOST_BAYS) -> Table:
    """Return a row for each bay; a bay that was not started has no counts."""
    marks = labels(seen)
    columns = (
        "Bay", "Machine", *map(_brief, marks), "Drives", *NUMBERS, "Verdict"
    )  # fmt: skip
    shown = list(seen.bays)
    if len(shown) > MOST_IN_ORDER:
        shown.sort(key=lambda bay: WORST_FIRST.index(bay.fitness))
    made = [tuple(_bay(bay, marks)) for bay in shown]
    return bounded(columns, made, f"Bays: {len(seen.bays):,}", most, "fleet.json has them")


def labels(seen: FleetView) -> Sequence[str]:
    """Return the labels that have a column."""
    return list(dict.fromkeys(name for bay in seen.bays for name in bay.labels))[:MOST_LABELS]


def _brief(text: str) -> str:
    """Shorten a text of a table with many rows."""
    return safe_text.line(text, CELL_CHARACTERS)


def _bay(bay: BayView, shown: Sequence[str]) -> Iterator[Cell]:
    yield link(bay)
    yield _brief(bay.machine) or "unknown"
    yield from (_brief(bay.labels.get(name, "")) for name in shown)
    yield _brief(bay.drives)
    yield from bay.standing.numbers if bay.standing else ("",) * len(NUMBERS)
    yield bay.state


def counters(seen: FleetView) -> Iterator[tuple[str, int]]:
    """Yield the number of bays by their verdicts."""
    for fitness, names in seen.by_fitness.items():
        mark = MARKS[LOOKS[fitness] if fitness else Finding.OBSERVED]
        yield f"{mark} bays: {fitness.value if fitness else NOT_STARTED}", len(names)


def _why(seen: FleetView) -> tuple[tuple[SentencesOfBays, ...], int]:
    """Return the reasons against the bays or their runs, and the number of sentences left out."""
    of_bays = [(link(bay), lists(bay.run)) for bay in seen.bays if bay.run]
    shown: dict[tuple[str, str], list[tuple[PageLink, str]]] = {}
    for bay, listed in of_bays:
        for title, mark, sentences in listed:
            shown.setdefault((title, mark), []).extend((bay, each) for each in sentences[:OF_ONE])
    why = tuple((title, mark, tuple(every[:MOST_SENTENCES])) for (title, mark), every in shown.items())
    count = sum(len(sentences) for _, listed in of_bays for *_, sentences in listed)
    return why, count - sum(len(sentences) for *_, sentences in why)


def figures(caption: str, found: Sequence[FleetRow], names: Sequence[str], most: int = MOST_ROWS) -> Table:
    """Return a column for each bay; of many bays the least, the median, the most and the worst."""
    head = ("Claim", "Array", "Workload", "Limit")
    wide = len(names) <= MOST_COLUMNS
    columns = (*head, *names) if wide else (*head, "Least", "Median", "Most", "Worst bay", "Failed by", "Outcome")
    made = [
        (row.claim, row.array, row.workload, row.limit, *(_beside(row, names) if wide else _condensed(row)))
        for row in found
    ]
    return bounded(columns, made, caption, most, LEFT_OUT)


def _beside(row: FleetRow, names: Sequence[str]) -> Iterator[Cell]:
    for name in names:
        found = row.cells.get(name)
        yield MeasuredCell(found.measured, found.interval, found.outcome) if found else ""


def _condensed(row: FleetRow) -> Iterator[Cell]:
    yield from row.range
    yield _worst(row.worst, row.cells.get(row.worst))
    failed, inconclusive = row.bays(Finding.FAIL), row.bays(Finding.INCONCLUSIVE)
    more = f", {len(inconclusive):,} inconclusive" if inconclusive else ""
    yield f"{len(failed):,} of {len(row.cells):,}{more}" if row.is_promised else ""
    yield row.outcome


def _worst(name: str, found: Evidence | None) -> str:
    return f"{name}: {found.measured} ({found.interval})" if found else ""


def _standing_out(found: Sequence[FleetRow]) -> Iterator[str]:
    """Yield a sentence for each figure with an outlying bay; the table has all of them."""
    listed = [(row, out) for row in found[:MOST_ROWS] if (out := row.standing_out())]
    for row, (name, outlying) in listed[:MOST_OUTLYING]:
        yield (
            f"{name} stands out in {row.name}: {row.cells[name].measured}, median of {len(row.values)} bays "
            f"{row.range[1]} (modified z-score "
            f"{outlying.score:+.1f}, beyond {OUTLYING:g})"
        )
    if len(listed) > MOST_OUTLYING:
        yield f"One bay stands out in {len(listed) - MOST_OUTLYING:,} more figures."
