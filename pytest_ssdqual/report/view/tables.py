"""Tables of every surface, as lines of text for the terminal; labels of arrays, workloads and claims, and their order.

A small document has sections of sentences and tables, which a terminal shows as text and ``html.page.sheet`` as a page.
Pure. In a page's table a cell may be an outcome, which gets a mark.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field, replace
from textwrap import wrap

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.geometry import TUNING
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.units import Unit, format_value, parse_size
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding

#: ``raid5x4``, ``raid5x4-1failed``.
ARRAY = re.compile(r"(?P<level>[a-z]+\d*)x(?P<width>\d+)(?P<state>-.*)?")
#: ``randrw70_4k_off512_t4xqd32``; names of profiles have no size.
WORKLOAD = re.compile(
    r"(?P<rw>[a-z+]+\d*)_(?P<bs>\d+[kmgt]?)(?P<more>(?:_zoned[\dx_]+\d|_[a-z]+\d*[kmg]?)*)_(?:t(?P<t>\d+)x)?qd(?P<qd>\d+)"
)
#: Colours of pytest's TerminalWriter.
COLOUR = {Finding.FAIL: "red", Finding.INCONCLUSIVE: "yellow", Finding.BOUNDED: "cyan", Finding.PASS: "green"}
#: Outcomes of promises that are not kept, the worst first. A row with such an outcome is coloured.
BROKEN = (Finding.FAIL, Finding.INCONCLUSIVE, Finding.BOUNDED)
#: Sign after a figure of a promise that is not kept, where the outcome has no column.
SIGN = {Finding.FAIL: "!", Finding.INCONCLUSIVE: "?", Finding.BOUNDED: "‖"}
#: Outcomes, the worst first.
SEVERITY = (*BROKEN, Finding.PASS, Finding.OBSERVED)
INDENT = "  "
#: Characters of a margin in a grid.
NARROW = 9
NO_BREAK = "\N{NO-BREAK SPACE}"

GAP = "  "


def sorting(evidence: Evidence) -> tuple[object, ...]:
    """Return a sort key: claim in the order of the enum, level, workload, width; last without an array."""
    known = [claim.value for claim in Claim]
    rank = known.index(evidence.claim) if evidence.claim in known else len(known)
    geometries = tuple(map(parse_geometry, evidence.geometries))
    return not geometries, rank, evidence.claim, [each[:2] for each in geometries[:1]], order_of(evidence), geometries


def span(names: Sequence[str]) -> str:
    """Return the first and the last name: ``raid5x3…x8``, ``randread_4k_qd1…qd32``; empty without names."""
    first, last = names[0] if names else "", names[-1] if names else ""
    if first == last:
        return first
    if last.startswith(first) and re.fullmatch(TUNING, last.removeprefix(first)):  # one array with settings of md
        return f"{first} with {len(names)} settings"
    shared = re.match(r"(raid\d+)x\d+|(.*_)qd\d+", first)
    prefix = (shared[1] or shared[2]) if shared else ""
    return f"{first}…{last.removeprefix(prefix)}"


def label(claim: str) -> str:
    return claim.replace("_", " ").replace("iops", "IOPS").replace("qd ", "QD ")


def parse_geometry(name: str) -> tuple[str, str, int]:
    """Return level, state and width."""
    found = ARRAY.fullmatch(name)
    return (found["level"], found["state"] or "", int(found["width"])) if found else (name, "", 0)


def parsed(name: str) -> Workload | None:
    """Return the workload of an id; None of the name of a profile, or of what is no workload."""
    try:
        return Workload.parse(name)
    except ValueError:
        return None


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


@frozen
class TextLine:
    """A line and its markup, as names of pytest's TerminalWriter (``red``, ``bold``)."""

    text: str
    markup: tuple[str, ...] = ()


def short_margin(evidence: Evidence) -> str:
    """Return the margin for a narrow column: percentage points as ``pt``, and no long distances beyond the limit."""
    text = evidence.margin.replace(" points", " pt")
    return text if len(text) <= NARROW else f"{text[0]}>100 %"


def margin(evidence: Evidence) -> float:
    """Return the margin for comparison; infinite if nothing is promised."""
    return math.inf if evidence.margin_percent is None else evidence.margin_percent


def figure(value: float, unit: Unit) -> str:
    """Return a figure short enough for a cell."""
    return thousands(value) if unit is Unit.IOPS else format_value(value, unit)


def thousands(value: float) -> str:
    """``812``, ``41.3k``, ``1.23M``."""
    for name, factor in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= factor * 0.9995:  # 999.6k would be printed as 1000k
            return f"{value / factor:#.3g}".rstrip(".") + name
    return f"{value:.0f}"


def paragraph(
    text: str, width: int, markup: tuple[str, ...] = (), *, first: str = "", rest: str = INDENT
) -> Iterator[TextLine]:
    """Yield a text in lines; names are not broken at hyphens, and a number stays with its per cent sign."""
    glued = text.replace(" %", f"{NO_BREAK}%")
    for line in wrap(glued, max(20, width), initial_indent=first, subsequent_indent=rest, break_on_hyphens=False):
        yield TextLine(line.replace(NO_BREAK, " "), markup)


@frozen
class PageLink:
    """Text with a link to a bay's page."""

    text: str
    href: str

    def __str__(self) -> str:
        return self.text


@frozen
class MeasuredCell:
    """A figure, its interval and its outcome."""

    text: str
    interval: str
    look: Finding

    def __str__(self) -> str:
        return f"{self.text}{SIGN.get(self.look, '')}"


@frozen
class State:
    """A text with the mark and colour of an outcome."""

    text: str
    look: Finding

    def __str__(self) -> str:
        return self.text


Cell = str | Finding | PageLink | MeasuredCell | State
TableRow = tuple[Cell, ...]


@frozen
class Table:
    """A table as every surface shows it; the first column names the row."""

    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    caption: str = ""
    #: Number of rows left out, and where they are.
    note: str = ""

    def named_by(self, count: int) -> Table:
        """Return the table with its first columns as one, which names the row."""
        rows = [(" ".join(filter(None, map(str, row[:count]))), *row[count:]) for row in self.rows]
        return replace(self, columns=("", *self.columns[count:]), rows=tuple(rows))

    def used(self) -> Table:
        """Return the table without columns that are empty in every row; the first one stays."""
        rest = range(1, len(self.columns))
        return self._of([0, *(number for number in rest if any(str(row[number]) for row in self.rows))])

    def without(self, *columns: str) -> Table:
        return self._of([number for number, name in enumerate(self.columns) if name not in columns])

    def _of(self, numbers: Sequence[int]) -> Table:
        rows = tuple(tuple(row[number] for number in numbers) for row in self.rows)
        return replace(self, columns=tuple(self.columns[number] for number in numbers), rows=rows)


def bounded(columns: tuple[str, ...], rows: Sequence[TableRow], caption: str, most: int, where: str) -> Table:
    """Return a table of the first ``most`` rows; ``where`` names the place of the rest."""
    left = len(rows) - most
    note = f"{left:,} more {'row is' if left == 1 else 'rows are'} left out: {where}." if left > 0 else ""
    return Table(columns, tuple(rows[:most]), caption, note)


def colour(looks: Collection[Finding | None]) -> tuple[str, ...]:
    """Return the markup of the worst outcome; none if all passed."""
    return next(((COLOUR[each],) for each in BROKEN if each in looks), ())


def _look(cell: Cell) -> Finding | None:
    return cell if isinstance(cell, Finding) else getattr(cell, "look", None)


def text_table(table: Table, width: int) -> Iterator[TextLine]:
    """Yield caption, column heads and rows of text; the first column is aligned left, the others right.

    A row has the colour of the worst outcome in it. Empty columns are left out. Columns move together if the rows fit
    then. Numbers that do not fit beside the row's name go below it; still longer rows are split into bands.
    """
    table = table.used()
    heads = _stacked(table.columns)
    rows = [[str(cell) for cell in row] for row in table.rows]
    sizes = [max(map(len, column)) for column in zip(*heads, *rows, strict=True)]
    name = len(INDENT) + sizes[0]
    least = name + sum(sizes[1:]) + len(sizes[1:])
    gap = " " if least <= width < least + len(sizes[1:]) else GAP
    numbers = sum(sizes[1:]) + len(gap) * len(sizes[1:])
    widest = max(sizes[1:], default=0) + len(gap)
    below = name + numbers > width and (len(INDENT) + numbers <= width or name + widest > width)
    first = len(INDENT) if below else name
    bands = [range(1, len(sizes))] if first + numbers <= width else _bands(sizes, width - first)
    for number, band in enumerate(bands):
        layout = ColumnLayout(tuple(sizes), tuple(band), below, gap)
        yield from _titled(table.caption if number == 0 else "", [layout.line(head, first) for head in heads])
        for whole, row in zip(table.rows, rows, strict=True):
            markup = colour([_look(cell) for cell in whole])
            if below:
                wrapped = wrap(
                    row[0], max(1, width - 2 * len(INDENT)), subsequent_indent=INDENT, break_on_hyphens=False
                )
                yield from (TextLine(INDENT + part, markup) for part in wrapped or [""])
            yield TextLine(layout.line(row, first), markup)


def _stacked(columns: Sequence[str]) -> list[list[str]]:
    """Return the lines of the column heads, which end on the same line."""
    depth = max(column.count("\n") for column in columns) + 1
    stacked = [([""] * depth + column.split("\n"))[-depth:] for column in columns]
    return [list(line) for line in zip(*stacked, strict=True)]


@frozen
class ColumnLayout:
    """Layout of a band of columns, with row names in front or above."""

    sizes: tuple[int, ...]
    band: tuple[int, ...]
    below: bool
    gap: str

    def line(self, row: Sequence[str], first: int) -> str:
        name = "" if self.below else row[0]
        numbers = "".join(self.gap + row[i].rjust(self.sizes[i]) for i in self.band)
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


def _titled(title: str, headings: Sequence[str]) -> Iterator[TextLine]:
    """Yield title and headings; the title is on the first line of them if both fit."""
    first = headings[0]
    if len(title) >= len(first) - len(first.lstrip()):
        yield from (TextLine(title, ("bold",)) for _ in title[:1])
        title = ""
    yield TextLine(title + first[len(title) :], ("bold",))
    yield from (TextLine(heading, ("bold",)) for heading in headings[1:])


@frozen
class Section:
    """A section of a small document."""

    title: str
    #: Sentences, each with its markup for a terminal.
    words: tuple[TextLine, ...] = ()
    table: Table = field(default=Table((), ()))
    #: An ``<svg>`` element.
    svg: str = ""


def sentences(*texts: str) -> tuple[TextLine, ...]:
    return tuple(map(TextLine, texts))


def text_lines(sections: Iterable[Section], width: int) -> Iterator[TextLine]:
    """Yield each section as text: its title, which is also that of its table, its sentences, and an empty line."""
    for section in sections:
        if section.table.rows:
            yield from text_table(replace(section.table, caption=section.title), width)
            yield from paragraph(section.table.note, width)
        else:
            yield TextLine(section.title, ("bold",))
        for sentence in section.words:
            yield from paragraph(sentence.text, width, sentence.markup)
        yield TextLine("")
