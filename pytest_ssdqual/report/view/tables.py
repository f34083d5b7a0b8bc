"""Many verdicts of one level in little space: workloads down, arrays or claims across; pure.

Rows of text in columns within the width of a terminal; pure.

A table of the page: a caption, named columns, and rows of text; a cell may be a verdict, which gets a mark.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import wrap

from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.view.labels import label, order_of, parse_geometry, span

#: Of pytest's TerminalWriter.
COLOUR = {Finding.FAIL: "red", Finding.INCONCLUSIVE: "yellow", Finding.PASS: "green"}
#: Instead of the figure, which such a claim has in a row of its own.
MARK = {Finding.FAIL: "FAIL", Finding.INCONCLUSIVE: "?"}
INDENT = "  "
#: Share of all their workloads that claims must have in common to be shown in one grid.
SHARED_ROWS = 0.25


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line, and the names of pytest's TerminalWriter for how it looks (``red``, ``bold``)."""

    text: str
    markup: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One workload; by column, of which no two claims share one."""

    label: str
    cells: dict[str, Evidence]

    @property
    def limit(self) -> str:
        return _shared(_bound(each) for each in self.cells.values())

    @property
    def least(self) -> str:
        """The smallest margin; nothing if nothing is promised."""
        margins = [each for each in self.cells.values() if each.margin_percent is not None]
        return percent(min(margins, key=margin)) if margins else ""

    @property
    def colour(self) -> tuple[str, ...]:
        outcomes = {each.outcome for each in self.cells.values()}
        return next(((COLOUR[each],) for each in MARK if each in outcomes), ())


@dataclass(frozen=True, slots=True)
class Grid:
    """What is drawn; the title of a column is one or two lines."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    #: What a cell shows.
    show: Callable[[Evidence], str] = field(default=lambda each: shown(each))

    @property
    def limit(self) -> str:
        """The one limit of all cells, if there is only one."""
        return _shared(each.bound for each in self._cells())

    def limit_of(self, column: str) -> str:
        return _shared(_bound(row.cells[column]) for row in self.rows if column in row.cells)

    def _cells(self) -> Iterator[Evidence]:
        return (each for row in self.rows for each in row.cells.values())


def grids(evidence: Iterable[Evidence]) -> Iterator[Grid]:
    """One for each claim about several widths of a level; claims about a level that have only one column share one.

    In the order given. What has only claims that did not pass has no grid: each of them is told in full.
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
    """Claims about mostly the same workloads together: a grid of strangers would be mostly empty."""
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
    """In as many bands of columns as the width makes necessary."""
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
    if room < len(grid.columns) * cell:  # rather the arrays side by side than each row's limit
        room, limit = room + limit, 0
    per_band = max(1, room // cell)
    if room >= min(per_band, len(grid.columns)) * (cell + 1):
        cell += 1  # set wider apart while there is room for it
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
    """Titles of columns, the last line of each at the bottom; the grid's own title beside them if there is room."""
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
    """Claims made twice, of two machines or against two limits, come in rows below each other."""
    found: dict[tuple[str, int], Row] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for each in evidence:
        name, column = span(each.workloads), column_of(each)
        found.setdefault((name, seen[name, column]), Row(name, {})).cells[column] = each
        seen[name, column] += 1
    order = {each.workloads: order_of(each) for each in evidence}
    names = {span(workloads): key for workloads, key in order.items()}
    return (found[key] for key in sorted(found, key=lambda key: (names[key[0]], key[1])))


def percent(evidence: Evidence) -> str:
    """The margin; beyond a hundredfold the number itself says nothing any more."""
    found = margin(evidence)
    if evidence.margin_percent is None:
        return ""
    if abs(found) > 9999:
        return f">{math.copysign(9999, found):+,.0f} %"
    text = f"{found:+,.0f} %" if abs(found) >= 99.95 else f"{found:+.1f} %"
    return "0.0 %" if text in ("+0.0 %", "-0.0 %") else text


def margin(evidence: Evidence) -> float:
    """For comparing; beyond all others where nothing is promised."""
    return math.inf if evidence.margin_percent is None else evidence.margin_percent


def _headed(evidence: Evidence) -> str:
    """A claim on two lines of about equal length: ``latency spread`` above ``over time``."""
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
    """In a cell: the figure, or that it is told elsewhere."""
    return MARK.get(evidence.outcome) or figure(evidence.value, evidence.unit)


def figure(value: float, unit: Unit) -> str:
    """Short enough for a cell."""
    return thousands(value) if unit is Unit.IOPS else format_value(value, unit)


def _bound(evidence: Evidence) -> str:
    """Short enough for a cell; ``grid.limit`` is exact."""
    if evidence.limit is None or evidence.unit is not Unit.IOPS:
        return evidence.bound
    return f"{evidence.bound[0]} {thousands(evidence.limit)}"


def thousands(value: float) -> str:
    """``812``, ``41.3k``, ``1.23M``."""
    for name, factor in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= factor * 0.9995:  # 999.6k would be printed as 1000k
            return f"{value / factor:#.3g}".rstrip(".") + name
    return f"{value:.0f}"


def _level(evidence: Evidence) -> str:
    """``raid5``, ``raid5-1failed``."""
    return " ".join(dict.fromkeys("".join(parse_geometry(each)[:2]) for each in evidence.geometries))


def _width(evidence: Evidence) -> str:
    """``x4``, ``x3…x8``."""
    return span([f"x{width}" for width in _widths(evidence)])


def _widths(evidence: Evidence) -> list[int]:
    return [parse_geometry(each)[2] for each in evidence.geometries]


GAP = "  "


def columns(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], width: int, colours: Sequence[tuple[str, ...]] = ()
) -> Iterator[TextLine]:
    """A title, the heads of the columns, and the rows: the first column to the left, the others to the right.

    Columns in which every row is empty are left out. Where rows do not fit beside their names they go below them, and
    where they are too long for that, too, into bands.
    """
    used = [0, *(i for i in range(1, len(head)) if any(row[i] for row in rows))]
    cells = [[row[i] for i in used] for row in (head, *rows)]
    sizes = [max(map(len, column)) for column in zip(*cells, strict=True)]
    name, numbers = len(INDENT) + sizes[0], sum(sizes[1:]) + len(GAP) * len(sizes[1:])
    below = name + numbers > width and len(INDENT) + numbers <= width
    first = len(INDENT) if below else name
    bands = [range(1, len(sizes))] if below or name + numbers <= width else _bands(sizes, width - first)
    for number, band in enumerate(bands):
        layout = ColumnLayout(tuple(sizes), tuple(band), below)
        yield from _titled(title if number == 0 else "", layout.line(cells[0], first))
        for index, row in enumerate(cells[1:]):
            colour = colours[index] if colours else ()
            if below:
                told = wrap(row[0], max(1, width - 2 * len(INDENT)), subsequent_indent=INDENT, break_on_hyphens=False)
                yield from (TextLine(INDENT + part, colour) for part in told or [""])
            yield TextLine(layout.line(row, first), colour)


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """Some of the columns beside each other, with the names of the rows in front or above."""

    sizes: tuple[int, ...]
    band: tuple[int, ...]
    below: bool

    def line(self, row: Sequence[str], first: int) -> str:
        name = "" if self.below else row[0]
        numbers = "".join(GAP + row[i].rjust(self.sizes[i]) for i in self.band)
        return ((INDENT + name).ljust(first) + numbers).rstrip()


def _bands(sizes: Sequence[int], room: int) -> Iterator[range]:
    """As many columns as there is room for, and at least one."""
    start, taken = 1, 0
    for index in range(1, len(sizes)):
        if index > start and taken + len(GAP) + sizes[index] > room:
            yield range(start, index)
            start, taken = index, 0
        taken += len(GAP) + sizes[index]
    yield range(start, len(sizes))


def _titled(title: str, heading: str) -> Iterator[TextLine]:
    """Beside each other, if there is room for both."""
    if len(title) < len(heading) - len(heading.lstrip()):
        yield TextLine(title + heading[len(title) :], ("bold",))
        return
    if title:
        yield TextLine(title, ("bold",))
    yield TextLine(heading, ("bold",))


Cell = str | Finding
PageRow = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class PageTable:
    """The first column names the row."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[PageRow, ...]
    #: What was left out, and where it is.
    note: str = ""


def bounded(caption: str, columns: tuple[str, ...], rows: Sequence[PageRow], most: int, where: str) -> PageTable:
    """The first ``most`` rows; ``where`` says who has the others."""
    left = len(rows) - most
    note = f"{left:,} more {'row is' if left == 1 else 'rows are'} left out here: {where}." if left > 0 else ""
    return PageTable(caption, columns, tuple(rows[:most]), note)
