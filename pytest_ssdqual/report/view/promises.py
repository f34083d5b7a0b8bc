"""Promises and figures without a promise as tables, condensed if there are thousands; and matrices; pure.

The matrix of promises has claim and level down, widths or bays across, and in each cell the least margin. That of the
receiving inspection has drives down with their verdicts, readings across with their limits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.inspection.checks import CHECKS
from pytest_ssdqual.qual.names import counted
from pytest_ssdqual.report.evidence.evidence import INSPECTED, About, Evidence, Finding, Part
from pytest_ssdqual.report.view.grid import shared
from pytest_ssdqual.report.view.tables import (
    BROKEN,
    SEVERITY,
    Cell,
    MeasuredCell,
    State,
    Table,
    TableRow,
    bounded,
    label,
    margin,
    parse_geometry,
    sorting,
    span,
)

#: Rows of a table.
MOST_ROWS = 300
RECORDS = "all of them are in records.jsonl"
SINGLE = ("Claim", "Array", "Workload", "Measured", "Interval", "Limit", "Margin", "Published", "Outcome")
#: Single promises in all rows together, and at least in each row: a page has 1 MB beside its charts.
MOST_SINGLE, LEAST_OF_ROW = 1_000, 12
MOST_MATRIX_ROWS = 200
#: Bays with a column; of more bays the worst ones have one.
MOST_BAYS = 12
#: Column of promises about several widths together.
ALL_WIDTHS = "all widths"


def promised(judged: Collection[Evidence], most_rows: int) -> Table:
    """Return a row for each promise, the worst first; of more than ``most_rows``, for each claim of each level."""
    found = matrix(judged)
    if sum(row.count for row in found.rows) <= most_rows:
        evidence = sorted(_evidence(judged), key=lambda each: (SEVERITY.index(each.outcome), sorting(each)))
        return listed(found.caption, evidence)
    rows: list[TableRow] = [
        (row.claim, row.level, f"{row.count:,}", row.worst.worst.margin, row.worst.outcome) for row in found.rows
    ]
    return Table(("Claim", "Array", "Promises", "Smallest margin", "Worst"), tuple(rows), found.caption)


def observed(judged: Iterable[Evidence]) -> Table:
    """Return the figures without a promise."""
    evidence = [each for each in judged if not each.is_promised and not each.is_inspection]
    return listed(f"Figures without a promise: {len(evidence):,}", sorted(evidence, key=sorting))


def listed(title: str, evidence: Iterable[Evidence]) -> Table:
    """Return a row for each figure, in this order."""
    return bounded(SINGLE, [single(each) for each in evidence], title, MOST_ROWS, RECORDS).used()


def passed(evidence: Iterable[Evidence]) -> str:
    """Return what passed, by claim, with the smallest margin; empty if nothing did."""
    promises = [each for each in evidence if each.is_promised]
    good = [each for each in promises if each.outcome is Finding.PASS]
    if not good:
        return ""
    counts = Counter("of the inspection" if each.is_inspection else label(each.claim) for each in good)
    told = ", ".join(f"{number:,} {name}" for name, number in counts.items())
    text = f"{len(good):,} of {len(promises):,} promises: {told}"
    # A lot and a limit of zero have no margin; a search has its own.
    if margins := [each for each in good if each.about not in (About.LOT, About.SEARCH) and each.limit]:
        least = min(margins, key=margin)
        of = f"{label(least.claim)} of {span(least.geometries)} {span(least.workloads)}"
        text += f"; smallest margin {least.margin}, {of}"
    return text


def level(evidence: Evidence) -> str:
    """Return level and state: ``raid5``, ``raid5-1failed``."""
    return "".join(parse_geometry(evidence.geometry)[:2])


def single(each: Evidence) -> TableRow:
    """Return the row of a figure, as in ``SINGLE``."""
    times = each.times_published
    return (
        label(each.claim),
        span(each.geometries),
        span(each.workloads),
        each.measured,
        each.interval_in_full,
        each.bound,
        each.margin,
        "" if times is None else f"{times:.3g} times",
        each.outcome if each.is_promised else "",
    )


@frozen
class MatrixCell:
    """Promises of one claim in one column; the worst of them stands for all."""

    worst: Evidence
    count: int

    @property
    def outcome(self) -> Finding:
        return self.worst.outcome

    @property
    def text(self) -> str:
        """Least margin; the outcome if there is no margin."""
        return self.worst.margin or self.outcome.value

    @property
    def width(self) -> str:
        """Column of the worst promise in the matrix of a run: ``x4``."""
        return _column(self.worst)

    @property
    def reach(self) -> float:
        """Length of the bar in per cent of half the cell, to the left if negative: the margin, at most the limit."""
        found = margin(self.worst)
        return max(-100.0, min(100.0, found)) if not math.isnan(found) else 0.0


@frozen
class MatrixRow:
    """Promises of one claim on one level; its single promises are in ``singles``, the worst first, if the page has no
    other table of them.
    """

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


@frozen
class PromiseMatrix:
    """All promises of a run, or of a fleet."""

    columns: tuple[str, ...]
    #: The one closest to its limit first, failed ones before all others.
    rows: tuple[MatrixRow, ...]
    caption: str
    note: str = ""


def matrix(judged: Collection[Evidence]) -> PromiseMatrix:
    """Return the matrix of all promises of a run: a column for each width."""
    found = sorted(_evidence(judged), key=sorting)
    by_column: dict[str, list[Evidence]] = {_column(each): [] for each in sorted(found, key=_place)}
    for each in found:
        by_column[_column(each)].append(each)
    rows, note = _rows(by_column, has_singles=True)
    every = sum(each.is_promised for each in judged)
    apart = f", {every - len(found):,} of them of the inspection" if every > len(found) else ""
    return PromiseMatrix(tuple(by_column), rows, f"Promises: {every:,}{apart}", note)


def of_bays(judged: Mapping[str, Iterable[Evidence]]) -> PromiseMatrix:
    """Return the matrix of a fleet: a column for each bay, or for the bays with the least margins if there are many."""
    found = {name: evidence for name, of_bay in judged.items() if (evidence := _evidence(of_bay))}
    worst = sorted(found, key=lambda name: min(map(_order, found[name])))[:MOST_BAYS]
    rows, note = _rows({name: of_bay for name, of_bay in found.items() if name in worst}, has_singles=False)
    if left := len(found) - len(worst):
        note = " ".join(filter(None, [f"{left:,} more bays have larger margins.", note]))
    columns = tuple(name for name in found if name in worst)
    return PromiseMatrix(columns, rows, f"Promises of each bay: {sum(map(len, found.values())):,}", note)


def _evidence(judged: Iterable[Evidence]) -> list[Evidence]:
    """Return the promises; those of the inspection have a matrix of their own."""
    return [each for each in judged if each.is_promised and not each.is_inspection]


def _rows(by_column: Mapping[str, Sequence[Evidence]], *, has_singles: bool) -> tuple[tuple[MatrixRow, ...], str]:
    """Return the rows, the worst first, and a note about those that are left out."""
    groups: dict[tuple[str, str], dict[str, list[Evidence]]] = {}
    for column, found in by_column.items():
        for each in found:
            groups.setdefault((each.claim, level(each)), {}).setdefault(column, []).append(each)
    ordered = sorted(
        groups.items(), key=lambda group: min(_order(each) for alike in group[1].values() for each in alike)
    )
    most = max(LEAST_OF_ROW, MOST_SINGLE // max(1, min(len(ordered), MOST_MATRIX_ROWS))) if has_singles else 0
    rows = tuple(_row(*key, group, tuple(by_column), most) for key, group in ordered[:MOST_MATRIX_ROWS])
    left = len(ordered) - len(rows)
    return rows, f"{left:,} more rows are left out: {RECORDS}." if left else ""


def _row(
    claim: str, of_level: str, group: Mapping[str, Sequence[Evidence]], columns: Sequence[str], most: int
) -> MatrixRow:
    cells = tuple(
        MatrixCell(min(alike, key=_order), len(alike)) if (alike := group.get(column)) else None for column in columns
    )
    ordered = sorted((each for alike in group.values() for each in alike), key=_order)
    caption = f"{len(ordered):,} of {label(claim)}, {of_level}"
    rows = tuple(single(each)[1:] for each in ordered[:most])
    note = f"{len(ordered) - most:,} more are left out: {RECORDS}." if most and len(ordered) > most else ""
    return MatrixRow(label(claim), of_level, cells, Table(SINGLE[1:], rows, caption, note).used())


def _order(evidence: Evidence) -> tuple[int, float]:
    # A promise of none, such as that no drive fails, has no margin to lose.
    distance = math.inf if evidence.outcome is Finding.PASS and not evidence.limit else margin(evidence)
    return SEVERITY.index(evidence.outcome), distance


def _column(evidence: Evidence) -> str:
    """Return ``x4``; without a width the name of what was judged."""
    if len(set(evidence.geometries)) != 1:
        return ALL_WIDTHS
    name, _, width = parse_geometry(evidence.geometry)
    return f"x{width}" if width else name


def _place(evidence: Evidence) -> tuple[bool, int, str]:
    """Return the sort key of a column: widths, then names, then all widths."""
    column = _column(evidence)
    width = parse_geometry(evidence.geometry)[2] if column != ALL_WIDTHS else 0
    return column == ALL_WIDTHS, width or 10**9, column


INSPECTION_WORDS = {Finding.PASS: "conforming", Finding.FAIL: "deviating", Finding.INCONCLUSIVE: "unknown"}


@frozen
class InspectedDrive:
    """A drive with its readings by the names of the checks."""

    name: str
    #: Empty if the run folder does not have it.
    path: str
    readings: Mapping[str, Part]

    @property
    def outcome(self) -> Finding:
        """The worst one; drives whose readings have no limit conform."""
        outcomes = {part.outcome for part in self.readings.values()}
        return next((each for each in BROKEN if each in outcomes), Finding.PASS)

    @property
    def deviations(self) -> tuple[str, ...]:
        """``power on hours 9,204 h (≤ 24 h)``."""
        deviating = (each for each in self.readings.items() if each[1].outcome is Finding.FAIL)
        return tuple(f"{_label(name)} {part.reading}{_limit(part.bound)}" for name, part in deviating)


def inspected_drives(judged: Iterable[Evidence]) -> tuple[InspectedDrive, ...]:
    """Return the inspected drives, those that deviate first."""
    readings: dict[tuple[str, str], dict[str, Part]] = {}
    for evidence in sorted((each for each in judged if each.is_inspection), key=_check_order):
        for part in evidence.members:
            readings.setdefault((part.name, part.path), {})[evidence.claim.removeprefix(INSPECTED)] = part
    inspected = [InspectedDrive(*drive, parts) for drive, parts in readings.items()]
    return tuple(sorted(inspected, key=lambda drive: SEVERITY.index(drive.outcome)))


def _check_order(evidence: Evidence) -> int:
    """Return the place of a check in the suite."""
    name = evidence.claim.removeprefix(INSPECTED)
    return list(CHECKS).index(name) if name in CHECKS else len(CHECKS)


def inspection_caption(inspected: Sequence[InspectedDrive]) -> str:
    """Return ``Inspection of 8 drives: 6 conforming, 2 deviating``."""
    counts = Counter(drive.outcome for drive in inspected)
    outcomes = ", ".join(f"{counts[outcome]} {word}" for outcome, word in INSPECTION_WORDS.items() if counts[outcome])
    return f"Inspection of {counted(len(inspected), 'drive')}: {outcomes}"


def inspection_matrix(inspected: Sequence[InspectedDrive], *, only_deviating: bool = False) -> Table:
    """Return a row for each drive with its verdict; ``only_deviating``: readings in which no drive deviates are left
    out.
    """
    names = [
        name
        for name in _names(inspected)
        if not only_deviating or any(part.outcome in BROKEN for part in _parts(inspected, name))
    ]
    bounds = [shared(part.bound for part in _parts(inspected, name)) for name in names]
    rows: list[TableRow] = [("limit", "", "", *bounds)] if any(bounds) else []
    for drive in inspected:
        verdict = State(INSPECTION_WORDS.get(drive.outcome, drive.outcome.value), drive.outcome)
        cells = (_cell(drive.readings.get(name), bound) for name, bound in zip(names, bounds, strict=True))
        rows.append((drive.name, drive.path, verdict, *cells))
    return Table(("Drive", "Path", "Verdict", *map(_label, names)), tuple(rows), inspection_caption(inspected)).used()


def conforming(inspected: Sequence[InspectedDrive]) -> Iterator[str]:
    """Yield the readings with a maximum or minimum that no drive misses: ``temperature 34 °C…38 °C (≤ 60 °C)``, and
    the number of the others.
    """
    left, unlimited = 0, []
    for name in _names(inspected):
        parts = _limited(inspected, name)
        if not any(part.outcome in BROKEN for part in parts):
            bound = " or ".join(dict.fromkeys(part.bound for part in parts))
            if bound.startswith(("≤", "≥")):
                yield f"{_label(name)} {_span(parts)}{_limit(bound)}"
            elif bound:
                left += 1
            else:
                unlimited.append(_label(name))
    if left:
        yield f"and {left} more"
    if unlimited:
        yield f"without a limit: {', '.join(unlimited)}"


def _limited(inspected: Sequence[InspectedDrive], name: str) -> Sequence[Part]:
    """Return the readings that have a limit; all if none has: a SATA drive beside NVMe drives has no spare."""
    parts = _parts(inspected, name)
    return [part for part in parts if part.bound] or parts


def _names(inspected: Sequence[InspectedDrive]) -> list[str]:
    return list(dict.fromkeys(name for drive in inspected for name in drive.readings))


def _parts(inspected: Sequence[InspectedDrive], name: str) -> list[Part]:
    return [drive.readings[name] for drive in inspected if name in drive.readings]


def _cell(part: Part | None, bound: str) -> Cell:
    """Return a reading, with its limit where drives have different ones."""
    if part is None:
        return ""
    text = (part.reading or "unknown") + _limit("" if bound else part.bound)
    return MeasuredCell(text, "", part.outcome) if part.outcome in BROKEN else text


def _span(parts: Sequence[Part]) -> str:
    """Return the lowest and the highest reading."""
    ordered = sorted(parts, key=lambda part: part.figures.get("value") or 0.0)
    return "…".join(dict.fromkeys(part.reading for part in (*ordered[:1], *ordered[-1:])))


def _limit(bound: str) -> str:
    return f" ({bound})" if bound else ""


def _label(name: str) -> str:
    return name.replace("_", " ")
