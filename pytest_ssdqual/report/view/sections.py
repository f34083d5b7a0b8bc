"""Curves: what was measured of each workload of a series, and of writes from the purged state; pure.

Rounds of many workloads: the averages of all cells, sizes down and mixes across, and how it became steady; pure.

Drives side by side: a column for each, the outlier marked; pure.

Our figures beside those that are published of the same array and workload; pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_ssdqual.qual.spec.datasheet import Published
from pytest_ssdqual.qual.units import Unit, format_duration, format_latency
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Finding, Part
from pytest_ssdqual.report.view.labels import label, sorting, span
from pytest_ssdqual.report.view.tables import (
    COLOUR,
    INDENT,
    MARK,
    Grid,
    TextLine,
    columns,
    figure,
    rows,
    shown,
    thousands,
)

#: More sources than this are named in the run folder only.
SOURCES = 3


def beside(evidence: Sequence[Evidence], width: int) -> Iterator[TextLine]:
    """A block for each claim; nothing if nothing is published of what was measured."""
    found = [each for each in evidence if each.published]
    for claim in dict.fromkeys(each.claim for each in found):
        group = [each for each in found if each.claim == claim]
        rows = [(name(each), each.measured, str(each.published), times(each.value, each.published)) for each in group]
        colours = [(COLOUR[each.outcome],) if each.outcome in MARK else () for each in group]
        yield from columns(label(claim), ("", "measured", "published", "ours/published"), rows, width, colours)
        sources = dict.fromkeys(each.published.source for each in group if each.published)
        if len(sources) <= SOURCES:
            yield from (TextLine(f"  published in {source}"[:width]) for source in sources)
        yield TextLine("")


def name(evidence: Evidence) -> str:
    """The array and the workload; of drives side by side which of them it is."""
    drive = f" {evidence.worst}" if evidence.worst else ""
    return f"{span(evidence.geometries)}{drive} {span(evidence.workloads)}"


def times(value: float | None, published: Published | None) -> str:
    """``1.06 ×``; nothing if one of the two is not there."""
    if value is None or not published or not published.value:
        return ""
    found = value / published.value
    return f"{found:,.0f} ×" if found >= 99.95 else f"{found:.2f} ×"


def stated(published: Published | None) -> str:
    """In a narrow column: ``75.0k``, ``~110k``."""
    if published is None:
        return ""
    return f"{'~' if published.approximate else ''}{figure(published.value, published.unit)}"


OF_SERIES = ("", "IOPS", "mean latency", "published", "ours", "published", "ours")
OF_SATURATION = ("", "fresh IOPS", "cliff after", "settled IOPS", "from", "written in all")


def series(evidence: Sequence[Evidence], width: int) -> Iterator[TextLine]:
    """A table for each series on each array, however many claims were judged on it.

    None for a curve of which every point is judged by itself, unless it is to be read beside a published one.
    """
    alone = {(each.geometries, each.workloads[0]) for each in evidence if each.about is About.RUN}
    seen = {(each.group, each.geometries): each for each in evidence if each.about is About.SERIES and each.points}
    for (group, geometries), each in seen.items():
        told = all((geometries, point.name) in alone for point in each.points)
        if told and not any(point.published for point in each.points):
            continue
        depths = [point.figure("outstanding") for point in each.points]
        by_depth = len(set(depths)) == len(depths) and None not in depths
        drive = ", per drive" if geometries[0].startswith("drive") else ""
        title = f"{group or label(each.claim)} · {' '.join(geometries)}{drive}"
        rows = [_point(point, by_depth=by_depth) for point in each.points]
        yield from columns(title, ("outstanding" if by_depth else "", *OF_SERIES[1:]), rows, width)
        yield TextLine("")


def saturations(evidence: Sequence[Evidence], width: int) -> Iterator[TextLine]:
    """One row for each curve, however many claims were judged on it."""
    seen: dict[tuple[object, ...], Evidence] = {}
    for each in evidence:
        if each.about is About.SATURATION:
            seen.setdefault((each.geometries, each.workloads, each.worst), each)
    if seen:
        rows = [_saturation(each) for each in seen.values()]
        yield from columns("from the purged state (× user capacity)", OF_SATURATION, rows, width)
        yield TextLine("")


def _point(point: Part, *, by_depth: bool) -> tuple[str, ...]:
    iops, latency_ns = point.figure("iops"), point.figure("mean_latency_ns")
    published_iops, published_ns = point.stated(Unit.IOPS), point.stated(Unit.NANOSECONDS)
    depth = point.figure("outstanding")
    return (
        f"{depth:,.0f}" if by_depth and depth is not None else point.name,
        "" if iops is None else thousands(iops),
        "" if latency_ns is None else format_latency(latency_ns),
        stated(published_iops),
        times(iops, published_iops),
        stated(published_ns),
        times(latency_ns, published_ns),
    )


def _saturation(each: Evidence) -> tuple[str, ...]:
    figures = {figure.name: figure.value for figure in each.figures}

    def place(kind: str) -> str:
        capacities, seconds = figures.get(f"{kind}capacities"), figures.get(f"{kind}s" if kind else "seconds")
        if capacities is None or seconds is None:
            return "none" if kind == "cliff_" else "-"
        return f"{capacities:.2f} ×, {format_duration(round(seconds))}"

    def iops(kind: str) -> str:
        found = figures.get(f"{kind}_iops")
        return "-" if found is None else thousands(found)

    settled = figures.get("settled_iops") is not None
    return (
        name(each),
        iops("fresh"),
        place("cliff_"),
        iops("settled") if settled else "not settled",
        place("settled_") if settled else "",
        place(""),
    )


def loops(evidence: Sequence[Evidence], width: int) -> Iterator[TextLine]:
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
        yield TextLine("")


def _table(title: str, cells: Sequence[Evidence], width: int) -> Iterator[TextLine]:
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
class CellPlace:
    """Where a cell is: its size, and its mix as the test specification writes it (``65/35``: reads/writes)."""

    size: str
    bytes: float
    mix: str
    order: tuple[bool, float]


def _place(name: str) -> CellPlace:
    try:
        workload = Workload.parse(name)
    except ValueError:  # a profile: its id does not say what it consists of
        return CellPlace(name, 0.0, "", (True, 1.0))
    reads = round(100 * workload.read_fraction)
    return CellPlace(
        workload.bs if workload.offset == "0" else f"{workload.bs}+{workload.offset}",
        workload.block_bytes,
        f"{'' if workload.is_random else 'seq '}{reads}/{100 - reads}",
        (not workload.is_random, -workload.read_fraction),
    )


def _wrapped(text: str, width: int) -> Iterator[TextLine]:
    line = INDENT
    for word in text.split():
        if len(line) + len(word) > width and line.strip():
            yield TextLine(line.rstrip())
            line = INDENT * 2
        line += f"{word} "
    yield TextLine(line.rstrip())


#: After the figure of a drive that is not as good as promised, or of which that is not sure.
SIGN = {Finding.FAIL: "!", Finding.INCONCLUSIVE: "?"}
#: Fewest characters that a serial number is shortened to.
SHORTEST = 4


def members(evidence: Sequence[Evidence]) -> Iterator[Grid]:
    """A grid for each claim about drives that were measured side by side."""
    found = [each for each in sorted(evidence, key=sorting) if each.members]
    for claim, geometries in dict.fromkeys((each.claim, each.geometries) for each in found):
        group = [each for each in found if (each.claim, each.geometries) == (claim, geometries)]
        yield _grid(f"{label(claim)} · {' '.join(geometries)}", group)


def _grid(title: str, evidence: Sequence[Evidence]) -> Grid:
    alone = [_alone(each, part) for each in evidence for part in each.members]
    short = shortened(list(dict.fromkeys(each.worst for each in alone)))
    return Grid(title, tuple(short.values()), tuple(rows(alone, lambda each: short[each.worst])), _marked)


def shortened(serials: Sequence[str]) -> dict[str, str]:
    """The shortest ends of serial numbers that still tell them apart: ``…0001``."""
    longest = max(map(len, serials))
    for length in range(SHORTEST, longest):
        ends = [serial[-length:] for serial in serials]
        if len(set(ends)) == len(set(serials)):
            return {
                serial: serial if len(serial) <= length + 1 else f"…{end}"
                for serial, end in zip(serials, ends, strict=True)
            }
    return {serial: serial for serial in serials}


def _alone(evidence: Evidence, part: Part) -> Evidence:
    """What one drive did, as if nothing else had been measured; likeness is shown as what it was computed from."""
    value, iops, slowest_ns = part.figure("value"), part.figure("iops"), part.figure("slowest_ns")
    outcome = part.outcome
    if outcome is None:  # nothing is judged of a single drive: only the slowest is at fault
        outcome = evidence.outcome if part.name == evidence.worst or evidence.outcome not in MARK else Finding.PASS
    if slowest_ns is not None:
        return replace(evidence, worst=part.name, value=slowest_ns, unit=Unit.NANOSECONDS, outcome=outcome, limit=None)
    if value is None:
        return replace(evidence, worst=part.name, value=iops or 0.0, unit=Unit.IOPS, outcome=outcome, limit=None)
    return replace(evidence, worst=part.name, value=value, outcome=outcome)


def _marked(evidence: Evidence) -> str:
    return f"{figure(evidence.value, evidence.unit)}{SIGN.get(evidence.outcome, '')}"
