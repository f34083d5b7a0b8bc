"""Grid of verdicts for the terminal: workloads down, arrays or claims across; pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.view.tables import (
    INDENT,
    TextLine,
    figure,
    label,
    margin,
    order_of,
    parse_geometry,
    short_margin,
    span,
    thousands,
)

#: Colours of pytest's TerminalWriter.
COLOUR = {Finding.FAIL: "red", Finding.INCONCLUSIVE: "yellow", Finding.BOUNDED: "cyan", Finding.PASS: "green"}
#: Shown instead of the figure, as such a claim has a row of its own elsewhere.
MARK = {Finding.FAIL: "FAIL", Finding.INCONCLUSIVE: "?", Finding.BOUNDED: "bound"}
#: Share of all their workloads that claims must have in common to be shown in one grid.
SHARED_ROWS = 0.25


@dataclass(frozen=True, slots=True)
class Row:
    """Verdicts of one workload by column; a column has one claim."""

    label: str
    cells: dict[str, Evidence]

    @property
    def limit(self) -> str:
        return _shared(_bound(each) for each in self.cells.values())

    @property
    def least(self) -> str:
        """The smallest margin; empty if nothing is promised."""
        margins = [each for each in self.cells.values() if each.margin_percent is not None]
        return short_margin(min(margins, key=margin)) if margins else ""

    @property
    def colour(self) -> tuple[str, ...]:
        outcomes = {each.outcome for each in self.cells.values()}
        return next(((COLOUR[each],) for each in MARK if each in outcomes), ())


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid of verdicts; the title of a column has one or two lines."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    #: Text of a cell.
    show: Callable[[Evidence], str] = field(default=lambda each: shown(each))

    @property
    def limit(self) -> str:
        """The limit of all cells if it is the same; else empty."""
        return _shared(each.bound for each in self._cells())

    def limit_of(self, column: str) -> str:
        return _shared(_bound(row.cells[column]) for row in self.rows if column in row.cells)

    def _cells(self) -> Iterator[Evidence]:
        return (each for row in self.rows for each in row.cells.values())


def grids(evidence: Iterable[Evidence]) -> Iterator[Grid]:
    """Yield a grid for each claim about several widths of a level; claims with a single column share a grid.

    A group of claims of which none passed has no grid: each of them has a row of its own elsewhere.
    """
    wide: dict[tuple[str, str, bool], list[Evidence]] = defaultdict(list)
    for each in evidence:
        wide[each.claim, _level(each), len(each.geometries) > 1].append(each)
    narrow: dict[tuple[str, str], list[Evidence]] = defaultdict(list)
    for (claim, level, _), group in wide.items():
        columns = tuple(dict.fromkeys(_width(each) for each in sorted(group, key=_widths)))
        if len(columns) == 1:
            narrow[level, columns[0]] += group
        elif any_shown(group):
            yield Grid(f"{label(claim)} · {level}", columns, tuple(rows(group, _width)))
    for everything in narrow.values():
        for group in _alike(everything):
            if any_shown(group):
                claims = tuple(dict.fromkeys(map(_headed, group)))
                yield Grid(span(group[0].geometries), claims, tuple(rows(group, _headed)))


def _alike(evidence: Sequence[Evidence]) -> list[list[Evidence]]:
    """Group claims that share most workloads; otherwise a grid would be mostly empty."""
    by_claim: dict[str, list[Evidence]] = defaultdict(list)
    for each in evidence:
        by_claim[each.claim].append(each)
    found: list[list[Evidence]] = []
    for group in by_claim.values():
        workloads = {each.workloads for each in group}
        for other in found:
            there = {each.workloads for each in other}
            if len(there & workloads) >= SHARED_ROWS * len(there | workloads):
                other += group
                break
        else:
            found.append(list(group))
    return found


def draw(grid: Grid, width: int) -> Iterator[TextLine]:
    """Yield the lines of a grid, in as many bands of columns as the width requires."""
    limits = () if grid.limit else tuple(map(grid.limit_of, grid.columns))
    title = f"{grid.title} · {grid.limit}" if grid.limit else grid.title
    first = len(INDENT) + max(len(row.label) for row in grid.rows)
    texts = [grid.show(each) for row in grid.rows for each in row.cells.values()]
    cell = 1 + max(map(len, [*texts, *limits, *(line for column in grid.columns for line in column.split("\n"))]))
    least = max(len(row.least) for row in grid.rows)
    margin = 2 + max(len("margin"), least) if least else 0
    own = 0 if grid.limit or any(limits) else max(len(row.limit) for row in grid.rows)
    limit = max(own, len("limit")) + 1 if own and first + cell + own + 1 + margin <= width else 0
    room = width - first - margin - limit
    if room < len(grid.columns) * cell:  # the arrays side by side matter more than each row's limit
        room, limit = room + limit, 0
    per_band = max(1, room // cell)
    if room >= min(per_band, len(grid.columns)) * (cell + 1):
        cell += 1  # wider columns if there is room
    for start in range(0, len(grid.columns), per_band):
        band = grid.columns[start : start + per_band]
        is_last = start + per_band >= len(grid.columns)
        ends = ("limit".rjust(limit) if limit else "") + ("margin".rjust(margin) if margin else "") if is_last else ""
        yield from _head(title, band, first, cell, ends)
        if any(limits):
            bounds = "".join(grid.limit_of(column).rjust(cell) for column in band)
            yield TextLine((f"{INDENT}limit".ljust(first) + bounds).rstrip())
        for row in grid.rows:
            text = INDENT + row.label
            text = text.ljust(first) + "".join(_cell(grid, row, column).rjust(cell) for column in band)
            if is_last:
                text += (row.limit.rjust(limit) if limit else "") + row.least.rjust(margin)
            yield TextLine(text.rstrip(), row.colour)
        title = ""


def _head(title: str, columns: Sequence[str], first: int, cell: int, ends: str) -> Iterator[TextLine]:
    """Yield the column titles, aligned at the bottom, with the grid's title beside them if it fits."""
    depth = max(column.count("\n") for column in columns) + 1
    stacked = [([""] * depth + column.split("\n"))[-depth:] for column in columns]
    lines = ["".join(each[i].rjust(cell) for each in stacked) for i in range(depth)]
    lines[-1] += ends
    if len(title) >= first + len(lines[0]) - len(lines[0].lstrip()):
        yield TextLine(title, ("bold",))
        title = ""
    for number, line in enumerate(lines):
        text = (title if number == 0 else "").ljust(first) + line
        yield TextLine(text, ("bold",))


def rows(evidence: Sequence[Evidence], column_of: Callable[[Evidence], str]) -> Iterator[Row]:
    """Yield rows; claims about the same cell (two machines, two limits) come in rows below each other."""
    found: dict[tuple[str, int], Row] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for each in evidence:
        name, column = span(each.workloads), column_of(each)
        found.setdefault((name, seen[name, column]), Row(name, {})).cells[column] = each
        seen[name, column] += 1
    order = {each.workloads: order_of(each) for each in evidence}
    names = {span(workloads): key for workloads, key in order.items()}
    return (found[key] for key in sorted(found, key=lambda key: (names[key[0]], key[1])))


def _headed(evidence: Evidence) -> str:
    """Return a claim on two lines of about equal length: ``latency spread`` above ``over time``."""
    words = label(evidence.claim).split()
    cut = min(range(1, len(words)), key=lambda i: max(len(" ".join(words[:i])), len(" ".join(words[i:]))), default=1)
    return "\n".join(filter(None, (" ".join(words[:cut]), " ".join(words[cut:]))))


def any_shown(evidence: Iterable[Evidence]) -> bool:
    return any(each.outcome not in MARK for each in evidence)


def _shared(texts: Iterable[str]) -> str:
    different = set(texts)
    return different.pop() if len(different) == 1 else ""


def _cell(grid: Grid, row: Row, column: str) -> str:
    return grid.show(row.cells[column]) if column in row.cells else ""


def shown(evidence: Evidence) -> str:
    """Return the figure of a cell, or a mark if it has a row of its own elsewhere."""
    return MARK.get(evidence.outcome) or figure(evidence.value, evidence.unit)


def _bound(evidence: Evidence) -> str:
    """Return a limit short enough for a cell; ``grid.limit`` is exact."""
    if evidence.limit is None or evidence.unit is not Unit.IOPS:
        return evidence.bound
    return f"{evidence.bound[0]} {thousands(evidence.limit)}"


def _level(evidence: Evidence) -> str:
    """``raid5``, ``raid5-1failed``."""
    return " ".join(dict.fromkeys("".join(parse_geometry(each)[:2]) for each in evidence.geometries))


def _width(evidence: Evidence) -> str:
    """``x4``, ``x3…x8``."""
    return span([f"x{width}" for width in _widths(evidence)])


def _widths(evidence: Evidence) -> list[int]:
    return [parse_geometry(each)[2] for each in evidence.geometries]
