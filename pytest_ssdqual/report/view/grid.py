"""Grids of verdicts for the terminal: workloads down, arrays or claims across; pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.view.tables import (
    SIGN,
    Cell,
    State,
    Table,
    TableRow,
    figure,
    label,
    margin,
    order_of,
    parse_geometry,
    short_margin,
    span,
    thousands,
)

#: Share of all their workloads that claims must have in common to be shown in one grid.
SHARED_ROWS = 0.25


def grids(evidence: Iterable[Evidence]) -> Iterator[Table]:
    """Yield a grid for each claim about several widths of a level; claims with a single column share a grid."""
    wide: dict[tuple[str, str, bool], list[Evidence]] = defaultdict(list)
    for each in evidence:
        wide[each.claim, _level(each), len(each.geometries) > 1].append(each)
    narrow: dict[tuple[str, str], list[Evidence]] = defaultdict(list)
    for (claim, level, _), group in wide.items():
        columns = tuple(dict.fromkeys(_width(each) for each in sorted(group, key=_widths)))
        if len(columns) == 1:
            narrow[level, columns[0]] += group
        else:
            yield grid(f"{label(claim)} · {level}", group, _by_width)
    for everything in narrow.values():
        for group in _alike(everything):
            yield grid(span(group[0].geometries), group, _by_claim)


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


def shown(evidence: Evidence) -> str:
    """Return the figure of a cell, with a sign if it did not pass."""
    return f"{figure(evidence.value, evidence.unit)}{SIGN.get(evidence.outcome, '')}"


@frozen
class CellPlace:
    """Row and column of a figure, with the keys by which they are sorted."""

    row: str
    row_order: Any
    column: str
    column_order: Any = ()
    #: Name of the columns.
    head: str = ""


def by_workload(each: Evidence, column: str, column_order: Sequence[int] = ()) -> CellPlace:
    return CellPlace(span(each.workloads), order_of(each), column, column_order)


def grid(
    title: str,
    evidence: Sequence[Evidence],
    place_of: Callable[[Evidence], CellPlace],
) -> Table:
    """Return the figures in rows and columns, which ``place_of`` names.

    A limit of all cells is in the title, that of whole columns in a first row, any other one at the end of the rows.
    Figures of one place (two machines, two limits) come in rows below each other.
    """
    places = [(each, place_of(each)) for each in evidence]
    columns = _in_order((place.column, place.column_order) for _, place in places)
    placed: dict[tuple[str, int], dict[str, Evidence]] = {}
    taken: Counter[tuple[str, str]] = Counter()
    for each, place in places:
        placed.setdefault((place.row, taken[place.row, place.column]), {})[place.column] = each
        taken[place.row, place.column] += 1
    order = {place.row: place.row_order for _, place in places}
    of_all = shared(each.bound for each in evidence)
    limits = [shared(_bound(each) for each, place in places if place.column == column) for column in columns]
    limits = [] if of_all else limits
    rows: list[TableRow] = [("limit", *limits, "", "")] if any(limits) else []
    for name, number in sorted(placed, key=lambda place: (order[place[0]], place[1])):
        cells = placed[name, number]
        own = "" if of_all or any(limits) else shared(map(_bound, cells.values()))
        rows.append((name, *(_state(cells.get(column)) for column in columns), own, _least(cells.values())))
    head = places[0][1].head if any(columns) else ""
    return Table((head, *columns, "limit", "margin"), tuple(rows), f"{title} · {of_all}" if of_all else title)


def _in_order(named: Iterable[tuple[str, Any]]) -> list[str]:
    """Return each name once, in the order of its key."""
    return list(dict.fromkeys(name for name, _ in sorted(named, key=lambda each: each[1])))


def _state(each: Evidence | None) -> Cell:
    return State(shown(each), each.outcome) if each else ""


def _least(evidence: Iterable[Evidence]) -> str:
    """Return the smallest margin; empty if nothing is promised."""
    margins = [each for each in evidence if each.margin_percent is not None]
    return short_margin(min(margins, key=margin)) if margins else ""


def _by_width(evidence: Evidence) -> CellPlace:
    return by_workload(evidence, _width(evidence), _widths(evidence))


def _by_claim(evidence: Evidence) -> CellPlace:
    """Return the place in the column of its claim, named on two lines of about equal length."""
    words = label(evidence.claim).split()
    cut = min(range(1, len(words)), key=lambda i: max(len(" ".join(words[:i])), len(" ".join(words[i:]))), default=1)
    return by_workload(evidence, "\n".join(filter(None, (" ".join(words[:cut]), " ".join(words[cut:])))))


def shared(texts: Iterable[str]) -> str:
    """Return the one text that all are; empty if they differ."""
    different = set(texts)
    return different.pop() if len(different) == 1 else ""


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
