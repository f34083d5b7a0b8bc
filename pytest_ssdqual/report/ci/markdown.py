"""``summary.md``: a run on one screen, as Markdown for the page of a CI's job.

The rule of the module: what is not our own words is in a code span, and always escaped so that it stays there. A
backslash would not do: GitHub looks for @mentions, #1, addresses and commits in the text that is left when Markdown has
been read, and only what is code is spared (https://github.github.com/gfm/#code-spans).

``summary.md`` of a fleet: verdict, bays and what is broken on one screen. Its rule is in ``report.ci.markdown``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.html.fleet_page import Cell, FleetPage, FleetTable, MeasuredCell, PageLink, State
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.reader import JUDGED, Judged, RunReader
from pytest_ssdqual.report.view import promises, subject
from pytest_ssdqual.report.view.errors import ErrorGroup, troubles
from pytest_ssdqual.report.view.fitness import PageVerdict, count, stand
from pytest_ssdqual.report.view.tables import PageTable

NAME = "summary.md"
#: Records that it is made of.
KINDS = (*JUDGED, "error", "failed", "drive_worsened")
#: GitHub takes 1 MiB of all that one step says (docs.github.com, "Workflow commands"); others may say something, too.
MOST_BYTES = 250_000
#: Broken promises, undecided ones and errors that are told in sentences, of each.
MOST_TOLD = 20
MOST_DRIVES = 60
ALL = "records.jsonl in the run folder has all of them"
#: What our own words are made of: none of it begins anything in Markdown, in a table, or for GitHub.
OURS = re.compile(r"(?!.*www\.)[A-Za-z0-9 µ×±≤≥…∞→%,.;()'+:-]*")
#: Columns of ours that name what users and drives have named.
FOREIGN = frozenset({"Array", "Workload", "Serial number", "Model", "Firmware", "Name"})


def text(folder: Path) -> str:
    """The summary of a run folder: at most ``MOST_BYTES`` of it, and what is left out is said.

    ``OSError`` if there are no records.
    """
    story = RunReader.read(folder, *KINDS)
    judged, found = story.evidence(), troubles(story)
    standing = stand(count(judged, found, story.unreadable()), story.manifest)
    head = "\n".join(_head(story, standing, judged, found))
    drives = subject.drives(story)
    tail = "\n".join([*_table(drives, drives.rows[:MOST_DRIVES]), *_means(story)])
    grid = promises.promised(judged)
    room = MOST_BYTES - len(head.encode()) - len(tail.encode())
    return "\n".join([head, *_table(grid, _fitting(grid, room)), tail])


def write(folder: Path) -> Path:
    """Write ``summary.md`` into a run folder, for its owner alone; ``OSError`` if that cannot be."""
    path = folder / NAME
    safe_files.write_whole(path, text(folder).encode("utf-8", "backslashreplace"))
    return path


def code(foreign: str, most: int = safe_text.LINE_CHARACTERS) -> str:
    """A code span of anything; what would end it, or the cell of a table, is written as control characters are.

    A backslash means nothing in a code span, so the escapes are shown as they are.
    """
    shown = safe_text.line(foreign.replace("`", "\\x60").replace("|", "\\x7c"), most)
    return f"`{shown}`" if shown.strip() else "unknown"


def words(own: str) -> str:
    """Our own words as they are; a code span of what only seems to be ours."""
    return own if OURS.fullmatch(own) else code(own)


def _head(
    story: RunReader, standing: PageVerdict, judged: Sequence[Judged], found: Sequence[ErrorGroup]
) -> Iterator[str]:
    yield f"## {standing.word}: {words(standing.sentence)}\n"
    if not standing.acceptance:
        yield "The protocol is for rehearsals: this run decides nothing about a product.\n"
    yield from (f"{words(remark)}\n" for remark in standing.remarks)
    for title, outcome in (("Broken promises", Finding.FAIL), ("Undecided", Finding.INCONCLUSIVE)):
        of = [each.evidence.sentence for each in judged if each.evidence.outcome is outcome]
        yield from _told(title, [code(sentence) for sentence in of])
    yield from _told("Tests that came to no verdict", [_trouble(each) for each in found])
    yield from _told("Drives that got worse", [code(finding) for finding in subject.worsened(story)])


def _told(title: str, lines: Sequence[str]) -> Iterator[str]:
    if not lines:
        return
    yield f"### {title}: {len(lines):,}\n"
    yield from (f"- {line}" for line in lines[:MOST_TOLD])
    if len(lines) > MOST_TOLD:
        yield f"- and {len(lines) - MOST_TOLD:,} more: {ALL}"
    yield ""


def _trouble(each: ErrorGroup) -> str:
    first = each.message.strip().partition("\n")[0]
    more = f" and {len(each.tests) - 1:,} more tests" if len(each.tests) > 1 else ""
    return f"{code(first)} in {code(each.tests[0])}{more}"


def _fitting(grid: PageTable, room: int) -> list[tuple[str, ...]]:
    """As many rows as there is room for, the first ones."""
    kept = []
    for row in grid.rows:
        room -= len(_row(grid.columns, row).encode()) + 1
        if room < 0:
            break
        kept.append(row)
    return kept


def _table(grid: PageTable, rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    if not grid.rows:
        return
    yield f"### {words(grid.caption)}\n"
    yield f"| {' | '.join(grid.columns)} |"
    yield "|---" * len(grid.columns) + "|"
    yield from (_row(grid.columns, row) for row in rows)
    if left := len(grid.rows) - len(rows):
        yield f"\n{left:,} more rows are left out here: {ALL}."
    if grid.note:
        yield f"\n{words(grid.note)}"
    yield ""


def _row(columns: Sequence[str], row: Sequence[str]) -> str:
    return f"| {' | '.join(_cell(column, text) for column, text in zip(columns, row, strict=True))} |"


def _cell(column: str, text: str) -> str:
    if isinstance(text, Finding):
        return text.upper() if text is Finding.FAIL else str(text)
    return code(text) if column in FOREIGN and text else words(text)


def _means(story: RunReader) -> Iterator[str]:
    manifest = story.manifest
    for name in ("protocol", "spec"):
        yield f"- {name}: {code(subject.text(subject.table(manifest.get(name)), 'name'))}"
    if expected := subject.expected(story):
        yield f"- {words(expected)}"
    for bay in subject.tables(manifest.get("bays")):
        yield f"- machine: {code(subject.text(bay, 'machine'))}"
    yield f"- run folder: {code(str(story.folder), 4096)}"
    yield ""


#: Of each list and table; GitHub takes 1 MiB of all that one step says.
MOST_LISTED, MOST_BAYS, MOST_FIGURES = 20, 150, 60
CELL_CHARACTERS = 120


def fleet_text(page: FleetPage) -> str:
    """The whole file."""
    return "\n".join(
        [
            *_fleet_head(page),
            *_fleet_list("Broken promises", page.broken),
            *_fleet_list("Tests that came to no verdict", page.errors),
            *_fleet_list("Drives that got worse", page.worsened),
            *_differences(page),
            *_fleet_table(page.bays, MOST_BAYS),
            *_fleet_table(page.promised, MOST_FIGURES),
            f"- folder: {code(page.folder, 4096)}",
            "",
        ]
    )


def _fleet_head(page: FleetPage) -> Iterator[str]:
    together = page.together
    yield f"## {together.word}: {words(together.sentence)}\n"
    if not together.acceptance:
        yield f"{words(together.use)}\n"
    yield from (f"- {code(remark)}" for remark in together.remarks)
    yield ""
    if page.standing_out:
        yield from (f"- {code(each)}" for each in page.standing_out[:MOST_LISTED])
        yield ""


def _fleet_list(title: str, found: Sequence[tuple[PageLink, str]]) -> Iterator[str]:
    if not found:
        return
    yield f"### {title}: {len(found):,}\n"
    yield from (f"- {code(f'{bay.text}: {said}')}" for bay, said in found[:MOST_LISTED])
    if len(found) > MOST_LISTED:
        yield f"- and {len(found) - MOST_LISTED:,} more: the pages of the bays have all of them"
    yield ""


def _differences(page: FleetPage) -> Iterator[str]:
    if page.differences:
        yield "### What differs between the bays\n"
        for name, values, _ in page.differences[:MOST_LISTED]:
            yield f"- {code(name)}: " + "; ".join(f"{code(value, 80)} in {code(who, 120)}" for value, who in values[:4])
        yield ""


def _fleet_table(table: FleetTable, most: int) -> Iterator[str]:
    if not table.rows:
        return
    yield f"### {words(table.caption)}\n"
    yield f"| {' | '.join(map(words, table.columns))} |"
    yield "|---" * len(table.columns) + "|"
    yield from (f"| {' | '.join(map(_fleet_cell, row))} |" for row in table.rows[:most])
    if left := len(table.rows) - most if len(table.rows) > most else 0:
        yield f"\n{left:,} more rows are left out here: report.html has them."
    yield ""


def _fleet_cell(value: Cell) -> str:
    if isinstance(value, Finding):
        return value.upper() if value is Finding.FAIL else str(value)
    if isinstance(value, MeasuredCell):
        return f"{words(value.text)} {_fleet_cell(value.outcome)}"
    if isinstance(value, State):
        return value.text
    told = value.text if isinstance(value, PageLink) else value
    # Names are others' words even where they look like ours.
    return (
        (code(told, CELL_CHARACTERS) if isinstance(value, PageLink) else words(told[:CELL_CHARACTERS])) if told else ""
    )
