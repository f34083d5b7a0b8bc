"""Rows of text in columns within the width of a terminal; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from pytest_ssdqual.report.view.tables import INDENT, Line

GAP = "  "


def columns(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], width: int, colours: Sequence[tuple[str, ...]] = ()
) -> Iterator[Line]:
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
        layout = Layout(tuple(sizes), tuple(band), below)
        yield from _headed(title if number == 0 else "", layout.line(cells[0], first))
        for index, row in enumerate(cells[1:]):
            colour = colours[index] if colours else ()
            if below:
                told = wrap(row[0], max(1, width - 2 * len(INDENT)), subsequent_indent=INDENT, break_on_hyphens=False)
                yield from (Line(INDENT + part, colour) for part in told or [""])
            yield Line(layout.line(row, first), colour)


@dataclass(frozen=True, slots=True)
class Layout:
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


def _headed(title: str, heading: str) -> Iterator[Line]:
    """Beside each other, if there is room for both."""
    if len(title) < len(heading) - len(heading.lstrip()):
        yield Line(title + heading[len(title) :], ("bold",))
        return
    if title:
        yield Line(title, ("bold",))
    yield Line(heading, ("bold",))
