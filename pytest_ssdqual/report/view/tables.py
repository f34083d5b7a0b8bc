"""Tables: a grid of verdicts for the terminal, aligned columns for the terminal, and a table for pages; pure.

A grid has workloads down and arrays or claims across. In a page's table a cell may be an outcome, which gets a mark.

Labels of arrays, workloads and claims in tables, and their order; pure.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from textwrap import wrap

from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.units import Unit, format_value, parse_size
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding

#: ``raid5x4``, ``raid5x4-1failed``.
ARRAY = re.compile(r"(?P<level>[a-z]+\d*)x(?P<width>\d+)(?P<state>-.*)?")
#: ``randrw70_4k_off512_t4xqd32``; names of profiles have no size.
WORKLOAD = re.compile(
    r"(?P<rw>[a-z+]+\d*)_(?P<bs>\d+[kmgt]?)(?P<more>(?:_[a-z]+\d*[kmg]?)*)_(?:t(?P<t>\d+)x)?qd(?P<qd>\d+)"
)


def sorting(evidence: Evidence) -> tuple[object, ...]:
    """Return a sort key: claim in the order of the enum, level, workload, width."""
    known = [claim.value for claim in Claim]
    rank = known.index(evidence.claim) if evidence.claim in known else len(known)
    geometries = tuple(map(parse_geometry, evidence.geometries))
    return rank, evidence.claim, geometries[0][:2], order_of(evidence), geometries


def span(names: Sequence[str]) -> str:
    """Return the first and the last name: ``raid5x3…x8``, ``randread_4k_qd1…qd32``."""
    first, last = names[0], names[-1]
    if first == last:
        return first
    shared = re.match(r"(raid\d+)x\d+|(.*_)qd\d+", first)
    prefix = (shared[1] or shared[2]) if shared else ""
    return f"{first}…{last.removeprefix(prefix)}"


def label(claim: str) -> str:
    return claim.replace("_", " ").replace("iops", "IOPS").replace("qd ", "QD ")


def parse_geometry(name: str) -> tuple[str, str, int]:
    """Return level, state and width."""
    found = ARRAY.fullmatch(name)
    return (found["level"], found["state"] or "", int(found["width"])) if found else (name, "", 0)


def order_of(evidence: Evidence) -> tuple[tuple[str, int, str, int, int, str], ...]:
    """Return a sort key: pattern, transfer size, depth; names in another form sort by the name."""
    return tuple(map(workload_order, evidence.workloads))


def workload_order(name: str) -> tuple[str, int, str, int, int, str]:
    """Return the sort key of a workload's id."""
    found = WORKLOAD.fullmatch(name)
    if not found:
        kind, _, depth = name.rpartition("qd")
        return (kind, 0, "", 0, int(depth) if depth.isdecimal() else 0, name)
    return (found["rw"], parse_size(found["bs"]), found["more"], int(found["t"] or 0), int(found["qd"]), name)


#: Colours of pytest's TerminalWriter.
COLOUR = {Finding.FAIL: "red", Finding.INCONCLUSIVE: "yellow", Finding.BOUNDED: "cyan", Finding.PASS: "green"}
#: Shown instead of the figure, as such a claim has a row of its own elsewhere.
MARK = {Finding.FAIL: "FAIL", Finding.INCONCLUSIVE: "?", Finding.BOUNDED: "bound"}
#: Outcomes, the worst first.
SEVERITY = (Finding.FAIL, Finding.INCONCLUSIVE, Finding.BOUNDED, Finding.PASS, Finding.OBSERVED)
INDENT = "  "
#: Characters of a margin in a grid.
NARROW = 9
NO_BREAK = "\N{NO-BREAK SPACE}"
#: Share of all their workloads that claims must have in common to be shown in one grid.
SHARED_ROWS = 0.25


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line and its markup, as names of pytest's TerminalWriter (``red``, ``bold``)."""

    text: str
    markup: tuple[str, ...] = ()


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


def short_margin(evidence: Evidence) -> str:
    """Return the margin for a narrow column: percentage points as ``pt``, and no long distances beyond the limit."""
    text = evidence.margin.replace(" points", " pt")
    return text if len(text) <= NARROW else f"{text[0]}>100 %"


def margin(evidence: Evidence) -> float:
    """Return the margin for comparison; infinite if nothing is promised."""
    return math.inf if evidence.margin_percent is None else evidence.margin_percent


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


def figure(value: float, unit: Unit) -> str:
    """Return a figure short enough for a cell."""
    return thousands(value) if unit is Unit.IOPS else format_value(value, unit)


def _bound(evidence: Evidence) -> str:
    """Return a limit short enough for a cell; ``grid.limit`` is exact."""
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


def paragraph(
    text: str, width: int, markup: tuple[str, ...] = (), *, first: str = "", rest: str = INDENT
) -> Iterator[TextLine]:
    """Yield a text in lines; names are not broken at hyphens, and a number stays with its per cent sign."""
    glued = text.replace(" %", f"{NO_BREAK}%")
    for line in wrap(glued, max(20, width), initial_indent=first, subsequent_indent=rest, break_on_hyphens=False):
        yield TextLine(line.replace(NO_BREAK, " "), markup)


@dataclass(frozen=True, slots=True)
class PageLink:
    """Text with a link to a bay's page."""

    text: str
    href: str


@dataclass(frozen=True, slots=True)
class MeasuredCell:
    """A figure, its interval and its outcome."""

    text: str
    interval: str
    outcome: Finding


@dataclass(frozen=True, slots=True)
class State:
    """Fitness of a bay as text and mark."""

    text: str
    look: Finding


Cell = str | Finding | PageLink | MeasuredCell | State
TableRow = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table as every surface shows it; the first column names the row."""

    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    caption: str = ""
    #: Number of rows left out, and where they are.
    note: str = ""


def bounded(columns: tuple[str, ...], rows: Sequence[TableRow], caption: str, most: int, where: str) -> Table:
    """Return a table of the first ``most`` rows; ``where`` names the place of the rest."""
    left = len(rows) - most
    note = f"{left:,} more {'row is' if left == 1 else 'rows are'} left out: {where}." if left > 0 else ""
    return Table(columns, tuple(rows[:most]), caption, note)


GAP = "  "


def text_table(table: Table, width: int, colours: Sequence[tuple[str, ...]] = ()) -> Iterator[TextLine]:
    """Yield caption, column heads and rows of text; the first column is aligned left, the others right.

    Empty columns are left out. Numbers that do not fit beside the row's name go below it; still longer rows are
    split into bands.
    """
    used = [0, *(i for i in range(1, len(table.columns)) if any(row[i] for row in table.rows))]
    cells = [[str(row[i]) for i in used] for row in (table.columns, *table.rows)]
    sizes = [max(map(len, column)) for column in zip(*cells, strict=True)]
    name, numbers = len(INDENT) + sizes[0], sum(sizes[1:]) + len(GAP) * len(sizes[1:])
    below = name + numbers > width and len(INDENT) + numbers <= width
    first = len(INDENT) if below else name
    bands = [range(1, len(sizes))] if below or name + numbers <= width else _bands(sizes, width - first)
    for number, band in enumerate(bands):
        layout = ColumnLayout(tuple(sizes), tuple(band), below)
        yield from _titled(table.caption if number == 0 else "", layout.line(cells[0], first))
        for index, row in enumerate(cells[1:]):
            colour = colours[index] if colours else ()
            if below:
                wrapped = wrap(
                    row[0], max(1, width - 2 * len(INDENT)), subsequent_indent=INDENT, break_on_hyphens=False
                )
                yield from (TextLine(INDENT + part, colour) for part in wrapped or [""])
            yield TextLine(layout.line(row, first), colour)


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """Layout of a band of columns, with row names in front or above."""

    sizes: tuple[int, ...]
    band: tuple[int, ...]
    below: bool

    def line(self, row: Sequence[str], first: int) -> str:
        name = "" if self.below else row[0]
        numbers = "".join(GAP + row[i].rjust(self.sizes[i]) for i in self.band)
        return ((INDENT + name).ljust(first) + numbers).rstrip()


def _bands(sizes: Sequence[int], room: int) -> Iterator[range]:
    """Yield bands of as many columns as fit, at least one."""
    start, taken = 1, 0
    for index in range(1, len(sizes)):
        if index > start and taken + len(GAP) + sizes[index] > room:
            yield range(start, index)
            start, taken = index, 0
        taken += len(GAP) + sizes[index]
    yield range(start, len(sizes))


def _titled(title: str, heading: str) -> Iterator[TextLine]:
    """Yield title and heading on one line if both fit."""
    if len(title) < len(heading) - len(heading.lstrip()):
        yield TextLine(title + heading[len(title) :], ("bold",))
        return
    if title:
        yield TextLine(title, ("bold",))
    yield TextLine(heading, ("bold",))
