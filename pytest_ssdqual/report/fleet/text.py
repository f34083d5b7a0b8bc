"""Summary of a fleet for a terminal: verdict, bays, and the promises that failed or are inconclusive; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.fleet import page_content, view
from pytest_ssdqual.report.fleet.view import MOST_COLUMNS, FleetView, together
from pytest_ssdqual.report.run_summary.fitness import Fitness
from pytest_ssdqual.report.view.document import Section, sentences, text_lines
from pytest_ssdqual.report.view.tables import INDENT, SIGN, Table, TextLine, paragraph

#: Maximum number of bays and figures; the page has all.
MOST_ROWS = 20
NAME_CHARACTERS = 80
#: Maximum number of values of a difference.
MOST_VALUES = 4


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
    bays = page_content.bays(seen, MOST_ROWS)
    yield Section(bays.caption, table=_narrow(bays.without("Drives", *page_content.labels(seen)).named_by(1)))
    kept, names = view.promised(view.rows(seen)), [bay.name for bay in seen.begun]
    if kept and len(names) > 1:
        has_signs = len(names) <= MOST_COLUMNS and any(row.outcome in SIGN for row in kept)
        legend = sentences("! fail, ? inconclusive, ‖ bounded") if has_signs else ()
        yield Section("Promises", legend, _narrow(page_content.figures("", kept, names, MOST_ROWS).named_by(3)))


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
