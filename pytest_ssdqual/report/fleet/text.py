"""Summary of a fleet for a terminal: verdict, bays, and the promises that failed or are inconclusive; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.fleet import view
from pytest_ssdqual.report.fleet.view import MOST_COLUMNS, BayView, FleetRow, FleetView, together
from pytest_ssdqual.report.run_summary.fitness import Fitness
from pytest_ssdqual.report.view.sections import SIGN
from pytest_ssdqual.report.view.tables import INDENT, Table, TextLine, figure, paragraph, text_table

#: Maximum number of bays and figures; the page has all.
MOST_BAYS, MOST_FIGURES = 20, 20
NAME_CHARACTERS = 40
#: Maximum number of values of a difference, and of bays of each.
MOST_NAMED = 4


def summary_lines(seen: FleetView, width: int) -> list[str]:
    """Return lines of at most ``width`` characters, except for long names."""
    of_all = together(seen)
    lines = [*paragraph(f"{of_all.headline}: {of_all.sentence}", width)]
    if of_all.fitness is not Fitness.FIT:
        lines += paragraph(f"Judged: {of_all.coverage}.", width, first=INDENT, rest=INDENT * 2)
    for remark in of_all.remarks:
        lines += paragraph(remark, width, first=INDENT, rest=INDENT * 2)
    lines += [TextLine(""), *_bays(seen, width)]
    lines += _figures(view.promised(view.rows(seen)), [bay.name for bay in seen.begun], width)
    return [safe_text.line(line.text, 10_000) for line in lines]


def differing(seen: FleetView) -> list[str]:
    """``differs: fio: 3.33 in dut1, dut2; 3.36 in dut3``."""
    found = []
    for fact in seen.differences():
        values = [f"{value} in {named(who, MOST_NAMED)}" for value, who in seen.who(fact).items()]
        more = f" and {len(values) - MOST_NAMED:,} others" if len(values) > MOST_NAMED else ""
        found.append(safe_text.line(f"differs: {fact.name}: {'; '.join(values[:MOST_NAMED])}{more}", 1_000))
    return found


def _bays(seen: FleetView, width: int) -> Iterator[TextLine]:
    """Yield a row for each bay; in a large fleet only for those that did not pass."""
    shown = list(seen.bays)
    if len(shown) > MOST_BAYS:
        shown = [bay for bay in shown if bay.fitness is not Fitness.FIT][:MOST_BAYS]
    if shown:
        head = ("", "pass", "fail", "inconclusive", "error", "judged", "")
        title = f"bays: {len(seen.bays):,}"
        yield from text_table(Table(head, tuple(map(_bay, shown)), title), width)
    if left := len(seen.bays) - len(shown):
        yield TextLine(f"{INDENT}and {left:,} more on the page")


def _bay(bay: BayView) -> tuple[str, ...]:
    name = safe_text.line(f"{bay.name} {bay.machine}" if bay.machine != bay.name else bay.name, NAME_CHARACTERS)
    if bay.standing is None:
        return (name, "", "", "", "", "", bay.state.text)
    counts = bay.standing.counts
    numbers = (counts.passed, counts.failed, counts.inconclusive, counts.errors)
    return (name, *(f"{each:,}" for each in numbers), str(bay.standing.coverage), bay.state.text)


def _figures(found: Sequence[FleetRow], names: Sequence[str], width: int) -> Iterator[TextLine]:
    """Yield a row for each promise, failed ones first."""
    shown = found[:MOST_FIGURES]
    if not shown or len(names) < 2:
        return
    wide = len(names) <= MOST_COLUMNS
    head = ("", "limit", *names) if wide else ("", "limit", "least", "median", "most", "worst bay", "failed by")
    cells = [
        (safe_text.line(row.name, 80), row.limit, *(_beside(row, names) if wide else _condensed(row))) for row in shown
    ]
    yield TextLine("")
    yield from text_table(Table(tuple(safe_text.line(each, 24) for each in head), tuple(cells), "promises"), width)
    if left := len(found) - len(shown):
        yield TextLine(f"{INDENT}and {left:,} more on the page")
    if wide and any(row.outcome in SIGN for row in shown):
        yield TextLine(f"{INDENT}! fail, ? inconclusive, ‖ bounded")


def _beside(row: FleetRow, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        found = row.cells.get(name)
        yield f"{figure(found.value, found.unit)}{SIGN.get(found.outcome, '')}" if found else ""


def _condensed(row: FleetRow) -> Iterator[str]:
    spread, unit = row.spread(), row.first.unit
    yield from (figure(each, unit) for each in (spread.least, spread.median, spread.most)) if spread else ("", "", "")
    yield safe_text.line(row.worst, 24)
    yield f"{len(row.bays(Finding.FAIL)):,} of {len(row.cells):,}"
