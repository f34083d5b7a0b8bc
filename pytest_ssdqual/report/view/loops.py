"""Rounds of many workloads: the averages of all cells, sizes down and mixes across, and how it became steady; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.evidence import About, Evidence
from pytest_ssdqual.report.view.columns import columns
from pytest_ssdqual.report.view.labels import label
from pytest_ssdqual.report.view.tables import COLOUR, INDENT, MARK, Line, shown


def loops(evidence: Sequence[Evidence], width: int) -> Iterator[Line]:
    """A table for each claim about the cells of each loop on each array; the determination once for each loop."""
    cells = [each for each in evidence if each.about is About.LOOP]
    for group, geometries in dict.fromkeys((each.group, each.geometries) for each in cells):
        of_loop = [each for each in cells if (each.group, each.geometries) == (group, geometries)]
        for claim in dict.fromkeys(each.claim for each in of_loop):
            drives = max(len(each.members) for each in of_loop)
            title = f"{label(claim)} · {group} · {' '.join(geometries)}" + (f", worst of {drives}" if drives else "")
            yield from _table(title, [each for each in of_loop if each.claim == claim], width)
        for remark in dict.fromkeys(remark for each in of_loop for remark in each.remarks):
            yield from _wrapped(remark, width)
        yield Line("")


def _table(title: str, cells: Sequence[Evidence], width: int) -> Iterator[Line]:
    places = {_place(each.workloads[0]): each for each in cells}
    sizes = sorted({place.size: place.bytes for place in places}.items(), key=lambda size: -size[1])
    mixes = list(dict.fromkeys(place.mix for place in sorted(places, key=lambda place: place.order)))
    by_name = {(place.size, place.mix): each for place, each in places.items()}
    rows, colours = [], []
    for size, _ in sizes:
        row = [by_name.get((size, mix)) for mix in mixes]
        rows.append((size, *("" if each is None else shown(each) for each in row)))
        outcomes = {each.outcome for each in row if each}
        colours.append(next(((COLOUR[mark],) for mark in MARK if mark in outcomes), ()))
    yield from columns(title, ("reads/writes" if any(mixes) else "", *mixes), rows, width, colours)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cell is: its size, and its mix as the test specification writes it (``65/35``: reads/writes)."""

    size: str
    bytes: float
    mix: str
    order: tuple[bool, float]


def _place(name: str) -> Place:
    try:
        workload = Workload.parse(name)
    except ValueError:  # a profile: its id does not say what it consists of
        return Place(name, 0.0, "", (True, 1.0))
    reads = round(100 * workload.read_fraction)
    return Place(
        workload.bs if workload.offset == "0" else f"{workload.bs}+{workload.offset}",
        workload.block_bytes,
        f"{'' if workload.is_random else 'seq '}{reads}/{100 - reads}",
        (not workload.is_random, -workload.read_fraction),
    )


def _wrapped(text: str, width: int) -> Iterator[Line]:
    line = INDENT
    for word in text.split():
        if len(line) + len(word) > width and line.strip():
            yield Line(line.rstrip())
            line = INDENT * 2
        line += f"{word} "
    yield Line(line.rstrip())
