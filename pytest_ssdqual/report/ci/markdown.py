"""``summary.md`` of a run and of a fleet: verdict, failures and tables on one screen, as Markdown for a CI job's page.

Every text that is not a constant of this package is in a code span, escaped so that it stays there. A backslash would
not do: GitHub looks for @mentions, #1, addresses and commits in the text after Markdown was parsed, and spares only
code (https://github.github.com/gfm/#code-spans).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.fleet.page_content import FleetPage
from pytest_ssdqual.report.html.page import REPORT
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.journal import RECORDS
from pytest_ssdqual.report.run_summary.fitness import PageVerdict
from pytest_ssdqual.report.run_summary.next_step import Step
from pytest_ssdqual.report.run_summary.overview import details, lists, overview
from pytest_ssdqual.report.run_summary.run_view import RunView
from pytest_ssdqual.report.view import promises, subject
from pytest_ssdqual.report.view.tables import Cell, MeasuredCell, PageLink, State, Table, TableRow

NAME = "summary.md"
#: Lines of a list and rows of a table above which the rest is folded: the summary is one screen.
MOST_OPEN, MOST_OPEN_ROWS = 4, 12
#: Maximum length of a list. With more promises the table has a row for each claim of each level: one screen.
MOST_LISTED = 20
#: Maximum number of rows of a table of drives, of bays, and of promises or a fleet's figures. GitHub accepts 1 MiB for
#: all output of a step (docs.github.com, "Workflow commands"), not only from this plugin.
MOST_DRIVES, MOST_BAYS, MOST_FIGURES = 60, 150, 60
CELL_CHARACTERS = 240
ALL = f"{RECORDS} in the run folder has all of them"
OF_BAYS = "the folders below bays/ have all of them"
#: Characters of this package's texts; none has a meaning in Markdown, in a table, or for GitHub.
OURS = re.compile(r"(?!.*www\.)[A-Za-z0-9 µ×±≤≥…∞→%,.;()'+:-]*")
#: Columns with names given by users and drives.
FOREIGN = frozenset({"Array", "Workload", "Serial number", "Model", "Firmware", "Name", "Drive", "Path"})


def text(folder: Path) -> str:
    """Return the summary of a run; it states what is left out. ``OSError`` without records."""
    run = RunView.read(folder)
    drives = subject.drives(run.manifest, run.verdict.coverage.untested_as)
    promised = promises.promised(run.judged, MOST_LISTED)
    first = overview(run)
    inspected = promises.inspection_matrix(promises.inspected_drives(run.judged), only_deviating=True)
    return "\n".join(
        [
            *_verdict(run.verdict, ()),
            *_paragraph(f"- {code(each)}" for reason in first.causes for each in reason.lines),
            *_steps(first.steps),
            *_paragraph(f"- {words(each)}" for each in first.limits),
            *_table(inspected, MOST_DRIVES, ALL),
            *chain.from_iterable(_list(title, sentences, ALL) for title, _, sentences in lists(run)[1:]),
            *_table(promised, MOST_FIGURES, ALL),
            *_table(drives, MOST_DRIVES, ALL),
            *_facts((*first.facts, *details(run, _page_or(RECORDS, run.folder)))),
        ]
    )


def fleet_text(page: FleetPage) -> str:
    """Return the summary of a fleet."""
    rest = f"{_page_or('each folder below bays/', Path(page.folder))} has them"
    lists_of_bays = ((title, [f"{bay.text}: {each}" for bay, each in listed]) for title, _, listed in page.why)
    return "\n".join(
        [
            *_verdict(page.standing, page.standing.remarks),
            *_steps(page.steps),
            *_paragraph(f"- {code(each)}" for each in page.standing_out[:MOST_LISTED]),
            *chain.from_iterable(_list(title, sentences, OF_BAYS) for title, sentences in lists_of_bays),
            *_differences(page),
            *_table(page.bays, MOST_BAYS, rest),
            *_table(page.promised, MOST_FIGURES, rest),
            *_facts((*page.about[:1], ("Folder", page.folder))),
        ]
    )


def write(folder: Path) -> Path:
    """Write ``summary.md`` into a run folder with mode 0600; ``OSError`` if that fails."""
    path = folder / NAME
    safe_files.write_whole(path, text(folder).encode("utf-8", "backslashreplace"))
    return path


def code(foreign: str, most: int = safe_text.LINE_CHARACTERS) -> str:
    """Return a code span of any text; characters that would end it or a table cell are written as escapes.

    A backslash has no meaning in a code span, so the escapes are visible.
    """
    shown = safe_text.line(foreign.replace("`", "\\x60").replace("|", "\\x7c"), most)
    return f"`{shown}`" if shown.strip() else "unknown"


def words(own: str) -> str:
    """Return a text that consists of harmless characters as it is, any other one as a code span."""
    return own if OURS.fullmatch(own) else code(own)


def _steps(steps: Iterable[Step]) -> Iterator[str]:
    for number, step in enumerate(steps):
        command = f" {code(step.command)}" if step.command else ""
        yield f"{'Then' if number else 'Next step'}: {words(step.text)}{command}\n"


def _verdict(verdict: PageVerdict, remarks: Iterable[str]) -> Iterator[str]:
    yield f"## {verdict.headline}: {words(verdict.sentence)}\n"
    if not verdict.acceptance:
        yield f"{words(verdict.use)}\n"
    yield from _paragraph(f"- {words(each)}" for each in remarks)


def _facts(facts: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield from _paragraph(f"- {name}: {code(text, 4096)}" for name, text in facts)


def _paragraph(lines: Iterable[str]) -> list[str]:
    """Return the lines with an empty one after them, if there are any."""
    found = list(lines)
    return [*found, ""] if found else []


def _list(title: str, lines: Sequence[str], where: str) -> Iterator[str]:
    """Yield a list with its title and length; ``where`` names the place of all of it."""
    if lines:
        yield f"### {title}: {len(lines):,}\n"
        shown = [f"- {code(line)}" for line in lines[:MOST_LISTED]]
        if (left := len(lines) - MOST_LISTED) > 0:
            shown.append(f"- and {left:,} more: {where}")
        yield from _paragraph(shown[:MOST_OPEN])
        if folded := shown[MOST_OPEN:]:
            yield from _folded(f"{len(lines) - MOST_OPEN:,} more", _paragraph(folded))


def _folded(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines that are shown on a click; ``title`` is HTML."""
    yield f"<details><summary>{title}</summary>\n"
    yield from lines
    yield "</details>\n"


def _differences(page: FleetPage) -> Iterator[str]:
    if page.differences:
        yield "### What differs between the bays\n"
        for name, values, _ in page.differences[:MOST_LISTED]:
            yield f"- {code(name)}: " + "; ".join(f"{code(value, 80)} in {code(who, 120)}" for value, who in values[:4])
        yield ""


def _page_or(other: str, folder: Path) -> str:
    """Return the name of the page; ``other`` if the folder has no page."""
    return REPORT if (folder / REPORT).is_file() else other


def _table(table: Table, most: int, where: str) -> Iterator[str]:
    """Yield the first ``most`` rows of a table; ``where`` names the place of the rest."""
    if not table.rows:
        return
    lines = list(_lines(table, most, where))
    if len(table.rows) > MOST_OPEN_ROWS:
        yield from _folded(f"{html.escape(table.caption)} ({len(table.rows):,} rows)", lines)
    else:
        yield f"### {words(table.caption)}\n"
        yield from lines


def _lines(table: Table, most: int, where: str) -> Iterator[str]:
    yield f"| {' | '.join(map(words, table.columns))} |"
    yield "|---" * len(table.columns) + "|"
    yield from (_row(table.columns, row) for row in table.rows[:most])
    if left := max(0, len(table.rows) - most):
        yield f"\n{left:,} more rows are left out: {where}."
    if table.note:
        yield f"\n{words(table.note)}"
    yield ""


def _row(columns: Sequence[str], row: TableRow) -> str:
    return f"| {' | '.join(_cell(column, value) for column, value in zip(columns, row, strict=True))} |"


def _cell(column: str, value: Cell) -> str:
    match value:
        case Finding():
            return value.upper() if value is Finding.FAIL else str(value)
        case MeasuredCell():
            return f"{words(value.text)} {_cell(column, value.look)}"
        case State():
            return value.text
        case PageLink():
            return code(value.text, CELL_CHARACTERS)
    return code(value, CELL_CHARACTERS) if column in FOREIGN and value else words(value)
