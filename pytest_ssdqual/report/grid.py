"""Many verdicts of one level in little space: workloads down, arrays or claims across; pure."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual.claim import Claim
from pytest_ssdqual.qual.units import Unit, parse_size
from pytest_ssdqual.qual.verdict import Outcome
from pytest_ssdqual.report.evidence import Evidence

#: Of pytest's TerminalWriter.
COLOUR = {Outcome.FAIL: "red", Outcome.INCONCLUSIVE: "yellow", Outcome.PASS: "green"}
#: Instead of the figure, which such a claim has in a row of its own.
MARK = {Outcome.FAIL: "FAIL", Outcome.INCONCLUSIVE: "?"}
INDENT = "  "


@dataclass(frozen=True, slots=True)
class Line:
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
        """The smallest margin."""
        return percent(min(self.cells.values(), key=lambda each: each.margin_percent))

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

    In the order given. What has no claim that passed has no grid either.
    """
    wide: dict[tuple[str, str, bool], list[Evidence]] = defaultdict(list)
    for each in evidence:
        wide[each.claim, _level(each), len(each.geometries) > 1].append(each)
    narrow: dict[tuple[str, str], list[Evidence]] = defaultdict(list)
    for (claim, level, _), group in wide.items():
        columns = tuple(dict.fromkeys(map(_width, group)))
        if len(columns) == 1:
            narrow[level, columns[0]] += group
        elif _any_passed(group):
            yield Grid(f"{label(claim)} · {level}", columns, tuple(_rows(group, _width)))
    for (level, width), group in narrow.items():
        if _any_passed(group):
            claims = tuple(dict.fromkeys(map(_headed, group)))
            yield Grid(level if level == "drive" else f"{level}{width}", claims, tuple(_rows(group, _headed)))


def draw(grid: Grid, width: int) -> Iterator[Line]:
    """In as many bands of columns as the width makes necessary."""
    limits = () if grid.limit else tuple(map(grid.limit_of, grid.columns))
    title = f"{grid.title} · {grid.limit}" if grid.limit else grid.title
    first = len(INDENT) + max(len(row.label) for row in grid.rows)
    texts = [_cell(each) for row in grid.rows for each in row.cells.values()]
    cell = 1 + max(map(len, [*texts, *limits, *(line for column in grid.columns for line in column.split("\n"))]))
    margin = 2 + max(len("margin"), *(len(row.least) for row in grid.rows))
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
        ends = [("limit".rjust(limit) if limit else "", "margin".rjust(margin))] if is_last else [("", "")]
        yield from _head(title, band, first, cell, "".join(ends[0]))
        if any(limits):
            bounds = "".join(grid.limit_of(column).rjust(cell) for column in band)
            yield Line(f"{INDENT}limit".ljust(first) + bounds)
        for row in grid.rows:
            text = INDENT + row.label
            text = text.ljust(first) + "".join(_cell(row.cells.get(column)).rjust(cell) for column in band)
            if is_last:
                text += (row.limit.rjust(limit) if limit else "") + row.least.rjust(margin)
            yield Line(text.rstrip(), row.colour)
        title = ""


def _head(title: str, columns: Sequence[str], first: int, cell: int, ends: str) -> Iterator[Line]:
    """Titles of columns, the last line of each at the bottom; the grid's own title beside them if there is room."""
    depth = max(column.count("\n") for column in columns) + 1
    stacked = [([""] * depth + column.split("\n"))[-depth:] for column in columns]
    lines = ["".join(each[i].rjust(cell) for each in stacked) for i in range(depth)]
    lines[-1] += ends
    if len(title) >= first + len(lines[0]) - len(lines[0].lstrip()):
        yield Line(title, ("bold",))
        title = ""
    for number, line in enumerate(lines):
        text = (title if number == 0 else "").ljust(first) + line
        yield Line(text, ("bold",))


def _rows(evidence: Sequence[Evidence], column_of: Callable[[Evidence], str]) -> Iterator[Row]:
    """Claims made twice, of two machines or against two limits, come in rows below each other."""
    rows: dict[tuple[str, int], Row] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for each in evidence:
        name, column = span(each.workloads), column_of(each)
        rows.setdefault((name, seen[name, column]), Row(name, {})).cells[column] = each
        seen[name, column] += 1
    order = {each.workloads: _workload_order(each) for each in evidence}
    names = {span(workloads): key for workloads, key in order.items()}
    return (rows[key] for key in sorted(rows, key=lambda key: (names[key[0]], key[1])))


def sorting(evidence: Evidence) -> tuple[object, ...]:
    """Claims as the enum has them, then levels, workloads, widths."""
    known = [claim.value for claim in Claim]
    rank = known.index(evidence.claim) if evidence.claim in known else len(known)
    geometries = tuple(map(_parse_geometry, evidence.geometries))
    return rank, evidence.claim, geometries[0][0], _workload_order(evidence), geometries


def span(names: Sequence[str]) -> str:
    """The first and the last: ``raid5x3…x8``, ``randread_4k_qd1…qd32``."""
    first, last = names[0], names[-1]
    if first == last:
        return first
    shared = re.match(r"(raid\d+)x\d+|(.*_)qd\d+", first)
    prefix = (shared[1] or shared[2]) if shared else ""
    return f"{first}…{last.removeprefix(prefix)}"


def percent(evidence: Evidence) -> str:
    """The margin; beyond a hundredfold the number itself says nothing any more."""
    margin = evidence.margin_percent
    if abs(margin) > 9999:
        return f">{math.copysign(9999, margin):+,.0f} %"
    text = f"{margin:+,.0f} %" if abs(margin) >= 99.95 else f"{margin:+.1f} %"
    return "0.0 %" if text in ("+0.0 %", "-0.0 %") else text


def label(claim: str) -> str:
    return claim.replace("_", " ").replace("iops", "IOPS")


def _headed(evidence: Evidence) -> str:
    """A claim on two lines of about equal length: ``latency spread`` above ``over time``."""
    words = label(evidence.claim).split()
    cut = min(range(1, len(words)), key=lambda i: max(len(" ".join(words[:i])), len(" ".join(words[i:]))), default=1)
    return "\n".join(filter(None, (" ".join(words[:cut]), " ".join(words[cut:]))))


def _any_passed(evidence: Iterable[Evidence]) -> bool:
    return any(each.outcome is Outcome.PASS for each in evidence)


def _shared(texts: Iterable[str]) -> str:
    different = set(texts)
    return different.pop() if len(different) == 1 else ""


def _cell(evidence: Evidence | None) -> str:
    if evidence is None:
        return ""
    if evidence.outcome in MARK:
        return MARK[evidence.outcome]
    return _thousands(evidence.value) if evidence.unit is Unit.IOPS else evidence.measured


def _bound(evidence: Evidence) -> str:
    """Short enough for a cell; ``grid.limit`` is exact."""
    return f"{evidence.bound[0]} {_thousands(evidence.limit)}" if evidence.unit is Unit.IOPS else evidence.bound


def _thousands(value: float) -> str:
    """``812``, ``41.3k``, ``1.23M``."""
    for name, factor in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= factor * 0.9995:  # 999.6k would be printed as 1000k
            return f"{value / factor:#.3g}".rstrip(".") + name
    return f"{value:.0f}"


def _level(evidence: Evidence) -> str:
    return " ".join(dict.fromkeys(_parse_geometry(each)[0] for each in evidence.geometries))


def _width(evidence: Evidence) -> str:
    """``x4``, ``x3…x8``."""
    return span(tuple(f"x{_parse_geometry(each)[1]}" for each in evidence.geometries))


def _parse_geometry(name: str) -> tuple[str, int]:
    level, _, width = name.rpartition("x")
    return (level, int(width)) if level and width.isdecimal() else (name, 0)


def _workload_order(evidence: Evidence) -> tuple[tuple[str, int, int, str], ...]:
    """Pattern, transfer size, depth; what is spelled otherwise comes by its name."""
    matches = [(re.fullmatch(r"([a-z]+\d*)_(\d+[kmgt]?)_qd(\d+)", name), name) for name in evidence.workloads]
    return tuple((m[1], parse_size(m[2]), int(m[3]), name) if m else (name, 0, 0, name) for m, name in matches)
