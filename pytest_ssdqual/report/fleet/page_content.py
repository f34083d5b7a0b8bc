"""The page of a fleet as HTML without a script, its content before rendering, and the summary for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.detect import outliers
from pytest_ssdqual.qual.detect.outliers import OUTLYING
from pytest_ssdqual.qual.names import counted, named
from pytest_ssdqual.qual.units import format_value
from pytest_ssdqual.report.charts import archive
from pytest_ssdqual.report.ci import markdown
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
from pytest_ssdqual.report.html import page as pages
from pytest_ssdqual.report.html.page import MARKS, REPORT
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_summary.fitness import LOOKS, NUMBERS, Fitness
from pytest_ssdqual.report.run_summary.next_step import Step
from pytest_ssdqual.report.run_summary.overview import lists, overview, utc
from pytest_ssdqual.report.view import promises
from pytest_ssdqual.report.view.tables import (
    INDENT,
    SIGN,
    Cell,
    MeasuredCell,
    PageLink,
    Section,
    Table,
    TextLine,
    bounded,
    paragraph,
    sentences,
    text_lines,
)

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
#: Maximum number of bays and figures on a terminal, of characters of their names, and of values of a difference.
MOST_TEXT_ROWS, NAME_CHARACTERS, MOST_VALUES = 20, 80, 4


#: Title of a list, the mark of its sentences, and each sentence with a link to the page of its bay.
SentencesOfBays = tuple[str, str, tuple[tuple[PageLink, str], ...]]


def compose(seen: FleetView) -> dict[str, Any]:
    """Return the content of a fleet's page and summary, for their templates."""
    found = view.rows(seen)
    kept, plain = view.promised(found), view.observed(found)
    names = [bay.name for bay in seen.begun]
    charts, note = archive.of_bays(kept, names)
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
        for title, mark, reasons in listed:
            shown.setdefault((title, mark), []).extend((bay, sentence) for sentence in reasons[:OF_ONE])
    why = tuple((title, mark, tuple(every[:MOST_SENTENCES])) for (title, mark), every in shown.items())
    count = sum(len(reasons) for _, listed in of_bays for *_, reasons in listed)
    return why, count - sum(len(reasons) for *_, reasons in why)


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


def summary_lines(seen: FleetView, width: int) -> list[str]:
    """Return lines of at most ``width`` characters, except for long names."""
    of_all = together(seen)
    lines = [*paragraph(f"{of_all.headline}: {of_all.sentence}", width)]
    judged = [f"Judged: {of_all.coverage}."] if of_all.fitness is not Fitness.FIT else []
    for remark in (*judged, *of_all.remarks):
        lines += paragraph(remark, width, first=INDENT, rest=INDENT * 2)
    lines += [TextLine(""), *text_lines(_sections(seen), width)]
    return [safe_text.line(line.text, 10_000) for line in lines]


def _sections(seen: FleetView) -> Iterator[Section]:
    listed = bays(seen, MOST_TEXT_ROWS)
    yield Section(listed.caption, table=_narrow(listed.without("Drives", *labels(seen)).named_by(1)))
    kept, names = view.promised(view.rows(seen)), [bay.name for bay in seen.begun]
    if kept and len(names) > 1:
        has_signs = len(names) <= MOST_COLUMNS and any(row.outcome in SIGN for row in kept)
        legend = sentences("! fail, ? inconclusive, ‖ bounded") if has_signs else ()
        yield Section("Promises", legend, _narrow(figures("", kept, names, MOST_TEXT_ROWS).named_by(3)))


def _narrow(table: Table) -> Table:
    """Return the table with names that leave room for figures."""
    columns = tuple(safe_text.line(name, 24) for name in table.columns)
    rows = tuple((safe_text.line(str(row[0]), NAME_CHARACTERS), *row[1:]) for row in table.rows)
    return replace(table, columns=columns, rows=rows)


def differing(seen: FleetView) -> list[str]:
    """``differs: fio: 3.33 in dut1, dut2; 3.36 in dut3``."""
    lines = []
    for name, values, _ in seen.differences():
        more = f" and {len(values) - MOST_VALUES:,} others" if len(values) > MOST_VALUES else ""
        shown = "; ".join(f"{value} in {bays}" for value, bays in values[:MOST_VALUES])
        lines.append(safe_text.line(f"differs: {name}: {shown}{more}", 1_000))
    return lines


def render(page: Mapping[str, Any]) -> str:
    """Return the HTML file."""
    return pages.render("fleet.html", "page.css", "fleet.css", page=page)


def write(folder: Path) -> Path:
    """Write ``report.html`` and ``summary.md`` of a fleet's folder with mode 0600; return the path of the page.

    Call it after ``fleet.json`` records the end. ``OSError`` without space.
    """
    page = compose(FleetView.read(folder))
    path = folder / REPORT
    safe_files.write_whole(path, render(page).encode("utf-8", "backslashreplace"))
    safe_files.write_whole(folder / markdown.NAME, markdown.fleet_text(page).encode("utf-8", "backslashreplace"))
    return path
