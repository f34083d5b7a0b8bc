"""``summary.md`` of a fleet: verdict, bays and what is broken on one screen. Its rule is in ``report.ci.markdown``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_ssdqual.report.ci.markdown import code, words
from pytest_ssdqual.report.evidence.part import Finding
from pytest_ssdqual.report.html.fleet_page import Cell, Link, Measured, Page, State, Table

#: Of each list and table; GitHub takes 1 MiB of all that one step says.
MOST_TOLD, MOST_BAYS, MOST_FIGURES = 20, 150, 60
CELL_CHARACTERS = 120


def text(page: Page) -> str:
    """The whole file."""
    return "\n".join(
        [
            *_head(page),
            *_told("Broken promises", page.broken),
            *_told("Tests that came to no verdict", page.errors),
            *_told("Drives that got worse", page.worsened),
            *_differences(page),
            *_table(page.bays, MOST_BAYS),
            *_table(page.promised, MOST_FIGURES),
            f"- folder: {code(page.folder, 4096)}",
            "",
        ]
    )


def _head(page: Page) -> Iterator[str]:
    together = page.together
    yield f"## {together.word}: {words(together.sentence)}\n"
    if not together.acceptance:
        yield f"{words(together.use)}\n"
    yield from (f"- {code(remark)}" for remark in together.remarks)
    yield ""
    if page.standing_out:
        yield from (f"- {code(each)}" for each in page.standing_out[:MOST_TOLD])
        yield ""


def _told(title: str, found: Sequence[tuple[Link, str]]) -> Iterator[str]:
    if not found:
        return
    yield f"### {title}: {len(found):,}\n"
    yield from (f"- {code(f'{bay.text}: {said}')}" for bay, said in found[:MOST_TOLD])
    if len(found) > MOST_TOLD:
        yield f"- and {len(found) - MOST_TOLD:,} more: the pages of the bays have all of them"
    yield ""


def _differences(page: Page) -> Iterator[str]:
    if page.differences:
        yield "### What differs between the bays\n"
        for name, values, _ in page.differences[:MOST_TOLD]:
            yield f"- {code(name)}: " + "; ".join(f"{code(value, 80)} in {code(who, 120)}" for value, who in values[:4])
        yield ""


def _table(table: Table, most: int) -> Iterator[str]:
    if not table.rows:
        return
    yield f"### {words(table.caption)}\n"
    yield f"| {' | '.join(map(words, table.columns))} |"
    yield "|---" * len(table.columns) + "|"
    yield from (f"| {' | '.join(map(_cell, row))} |" for row in table.rows[:most])
    if left := len(table.rows) - most if len(table.rows) > most else 0:
        yield f"\n{left:,} more rows are left out here: report.html has them."
    yield ""


def _cell(value: Cell) -> str:
    if isinstance(value, Finding):
        return value.upper() if value is Finding.FAIL else str(value)
    if isinstance(value, Measured):
        return f"{words(value.text)} {_cell(value.outcome)}"
    if isinstance(value, State):
        return value.text
    told = value.text if isinstance(value, Link) else value
    # Names are others' words even where they look like ours.
    return (code(told, CELL_CHARACTERS) if isinstance(value, Link) else words(told[:CELL_CHARACTERS])) if told else ""
