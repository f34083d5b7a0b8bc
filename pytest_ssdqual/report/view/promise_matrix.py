"""Matrix of all promises: claim and level down, widths across, each cell with its least margin; pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.view.promises import SINGLE, level, single
from pytest_ssdqual.report.view.tables import SEVERITY, Table, label, margin, parse_geometry, sorting

#: Single promises in all rows together, and at least in each row: a page has 1 MB beside its charts.
MOST_SINGLE, LEAST_OF_ROW = 1_000, 12
MOST_ROWS = 200
RECORDS = "all of them are in records.jsonl"
#: Column of promises about several widths together.
ALL_WIDTHS = "all widths"


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """Promises of one claim on one width; the worst of them stands for all."""

    worst: Evidence
    count: int

    @property
    def outcome(self) -> Finding:
        return self.worst.outcome

    @property
    def reach(self) -> float:
        """Length of the bar in per cent of half the cell, to the left if negative: the margin, at most the limit."""
        found = margin(self.worst)
        return max(-100.0, min(100.0, found)) if not math.isnan(found) else 0.0


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """Promises of one claim on one level; its single promises are in ``singles``, the worst first."""

    claim: str
    level: str
    #: In the order of the columns; None where nothing was judged.
    cells: tuple[MatrixCell | None, ...]
    singles: Table

    @property
    def worst(self) -> MatrixCell:
        return min((cell for cell in self.cells if cell), key=lambda cell: _order(cell.worst))

    @property
    def count(self) -> int:
        return sum(cell.count for cell in self.cells if cell)


@dataclass(frozen=True, slots=True)
class PromiseMatrix:
    """All promises of a run."""

    columns: tuple[str, ...]
    #: The one closest to its limit first, failed ones before all others.
    rows: tuple[MatrixRow, ...]
    caption: str
    note: str = ""


def matrix(judged: Iterable[Judged]) -> PromiseMatrix:
    """Return the matrix of all promises."""
    found = sorted((each.evidence for each in judged if each.evidence.is_promised), key=sorting)
    columns = tuple(dict.fromkeys(_column(each) for each in sorted(found, key=_place)))
    groups: dict[tuple[str, str], list[Evidence]] = {}
    for each in found:
        groups.setdefault((each.claim, level(each)), []).append(each)
    ordered = sorted(groups.items(), key=lambda group: min(map(_order, group[1])))
    most = max(LEAST_OF_ROW, MOST_SINGLE // max(1, min(len(ordered), MOST_ROWS)))
    rows = tuple(_row(*key, group, columns, most) for key, group in ordered[:MOST_ROWS])
    left = len(ordered) - len(rows)
    note = f"{left:,} more rows are left out: {RECORDS}." if left else ""
    return PromiseMatrix(columns, rows, f"Promises: {len(found):,}", note)


def _row(claim: str, of_level: str, group: Sequence[Evidence], columns: Sequence[str], most: int) -> MatrixRow:
    by_column: dict[str, list[Evidence]] = {}
    for each in group:
        by_column.setdefault(_column(each), []).append(each)
    cells = tuple(
        MatrixCell(min(alike, key=_order), len(alike)) if (alike := by_column.get(column)) else None
        for column in columns
    )
    ordered = sorted(group, key=_order)
    caption = f"{len(group):,} of {label(claim)}, {of_level}"
    rows = tuple(single(each)[1:] for each in ordered[:most])
    note = f"{len(group) - most:,} more are left out: {RECORDS}." if len(group) > most else ""
    return MatrixRow(label(claim), of_level, cells, Table(SINGLE[1:], rows, caption, note))


def _order(evidence: Evidence) -> tuple[int, float]:
    # A promise of none, such as that no drive fails, has no margin to lose.
    distance = math.inf if evidence.outcome is Finding.PASS and not evidence.limit else margin(evidence)
    return SEVERITY.index(evidence.outcome), distance


def _column(evidence: Evidence) -> str:
    """Return ``x4``; without a width the name of what was judged."""
    if len(set(evidence.geometries)) != 1:
        return ALL_WIDTHS
    name, _, width = parse_geometry(evidence.geometries[0])
    return f"x{width}" if width else name


def _place(evidence: Evidence) -> tuple[bool, int, str]:
    """Return the sort key of a column: widths, then names, then all widths."""
    column = _column(evidence)
    width = parse_geometry(evidence.geometries[0])[2] if column != ALL_WIDTHS else 0
    return column == ALL_WIDTHS, width or 10**9, column
