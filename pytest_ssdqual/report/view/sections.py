"""Sections of the summary: published figures, series, saturations, SNIA rounds, lots, searches, drives; pure.

Each function yields the lines of its section, and nothing if the run has no such evidence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_ssdqual.qual.spec.claims import Direction, Published
from pytest_ssdqual.qual.units import Unit, format_duration, format_latency
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Finding, Part
from pytest_ssdqual.report.view.grid import CellPlace, by_workload, grid
from pytest_ssdqual.report.view.tables import (
    BROKEN,
    COLOUR,
    INDENT,
    State,
    Table,
    TextLine,
    figure,
    label,
    paragraph,
    parsed,
    sorting,
    span,
    text_table,
    thousands,
)

#: Kinds of evidence whose sentence is shown instead of figures.
CONCLUDED = (About.LOT, About.SEARCH)
#: Maximum number of sources that are named.
SOURCES = 3

OF_SERIES = ("", "IOPS", "mean latency", "published", "ours", "published", "ours")
OF_SATURATION = ("", "fresh IOPS", "cliff after", "settled IOPS", "from", "written in all")
#: Threads and depth at the end of an id, which profiles have, too.
_LOAD = re.compile(r"_(?:t(\d+)x)?qd(\d+)$")
#: Minimum length of a shortened serial number.
SHORTEST = 4


def beside(evidence: Sequence[Evidence], width: int) -> Iterator[TextLine]:
    """Yield a block of published and measured figures for each claim."""
    found = [each for each in evidence if each.published]
    for claim in dict.fromkeys(each.claim for each in found):
        group = [each for each in found if each.claim == claim]
        rows = [
            (name(each), State(each.measured, each.outcome), str(each.published), times(each.value, each.published))
            for each in group
        ]
        table = Table(("", "measured", "published", "measured/published"), tuple(rows), label(claim))
        yield from text_table(table, width)
        sources = dict.fromkeys(each.published.source for each in group if each.published)
        if len(sources) <= SOURCES:
            for source in sources:
                yield from paragraph(f"published in {source}", width, first=INDENT)
        yield TextLine("")


def name(evidence: Evidence) -> str:
    """Return array and workload; of drives side by side the drive as well."""
    drive = f" {evidence.worst}" if evidence.worst else ""
    return f"{span(evidence.geometries)}{drive} {span(evidence.workloads)}"


def times(value: float | None, published: Published | None) -> str:
    """Return ``1.06 ×``; empty if one of the figures is missing."""
    if value is None or not published or not published.value:
        return ""
    found = value / published.value
    return f"{found:,.0f} ×" if found >= 99.95 else f"{found:.2f} ×"


def stated(published: Published | None) -> str:
    """Return a published figure for a narrow column: ``75.0k``, ``~110k``."""
    if published is None:
        return ""
    return f"{'~' if published.approximate else ''}{figure(published.value, published.unit)}"


def series(evidence: Sequence[Evidence], width: int) -> Iterator[TextLine]:
    """Yield a table for each series on each array, whatever the number of claims.

    A series whose points were judged one by one has none, unless a point has a published figure.
    """
    alone = {(each.geometries, each.workload) for each in evidence if each.about is About.RUN}
    with_points = [each for each in evidence if each.about in (About.CURVE, About.SWEEP) and each.points]
    seen = {(each.group, each.geometries, each.workloads): each for each in with_points}
    for (group, geometries, workloads), each in seen.items():
        shown = all((geometries, point.name) in alone for point in each.points)
        if shown and not any(point.published for point in each.points):
            continue
        depths = [point.figures.get("outstanding") for point in each.points]
        by_depth = len(set(depths)) == len(depths) and None not in depths
        drive = ", per drive" if geometries[0].startswith("drive") else ""
        of_sweep = f" {span(workloads)}" if each.about is About.SWEEP else ""
        title = f"{group or label(each.claim)} · {span(geometries)}{of_sweep}{drive}"
        rows = [_point(point, by_depth=by_depth) for point in each.points]
        head = ("outstanding" if by_depth else "", *OF_SERIES[1:])
        yield from text_table(Table(head, tuple(rows), title), width)
        yield TextLine("")


def saturations(evidence: Sequence[Evidence], width: int) -> Iterator[TextLine]:
    """Yield one row for each curve, whatever the number of claims."""
    seen: dict[tuple[object, ...], Evidence] = {}
    for each in evidence:
        if each.about is About.SATURATION:
            seen.setdefault((each.geometries, each.workloads, each.worst), each)
    if seen:
        rows = [_saturation(each) for each in seen.values()]
        yield from text_table(Table(OF_SATURATION, tuple(rows), "from the purged state (× user capacity)"), width)
        yield TextLine("")


def _point(point: Part, *, by_depth: bool) -> tuple[str, ...]:
    iops, latency_ns = point.figures.get("iops"), point.figures.get("mean_latency_ns")
    published_iops, published_ns = point.stated(Unit.IOPS), point.stated(Unit.NANOSECONDS)
    depth = point.figures.get("outstanding")
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
    figures = each.figures

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
    """Yield a table for each claim about the cells of a loop on an array, and the loop's steady state once."""
    cells = [each for each in evidence if each.about is About.LOOP]
    for group, geometries in dict.fromkeys((each.group, each.geometries) for each in cells):
        of_loop = [each for each in cells if (each.group, each.geometries) == (group, geometries)]
        for claim in dict.fromkeys(each.claim for each in of_loop):
            drives = max(len(each.members) for each in of_loop)
            title = f"{label(claim)} · {group} · {' '.join(geometries)}" + (f", worst of {drives}" if drives else "")
            yield from text_table(_cells(title, [each for each in of_loop if each.claim == claim]), width)
        for remark in dict.fromkeys(remark for each in of_loop for remark in each.remarks):
            yield from paragraph(remark, width, first=INDENT, rest=INDENT * 2)
        yield TextLine("")


def _cells(title: str, cells: Sequence[Evidence]) -> Table:
    names = [each.workload for each in cells]
    is_one_mix = len(names) > 1 and len({_LOAD.sub("", name) for name in names}) == 1
    place = _load_place if is_one_mix else _place
    return grid(title, cells, lambda each: place(each.workload))


def _place(name: str) -> CellPlace:
    """Return size and mix of a cell as the test specification writes it: ``65/35``, reads/writes."""
    workload = parsed(name)
    if workload is None:  # a profile, whose id has no size and mix
        return CellPlace(name, 0.0, "", (True, 1.0))
    reads = round(100 * workload.read_fraction)
    return CellPlace(
        workload.bs if workload.offset == "0" else f"{workload.bs}+{workload.offset}",
        -workload.block_bytes,
        f"{'' if workload.is_random else 'seq '}{reads}/{100 - reads}",
        (not workload.is_random, -workload.read_fraction),
        "reads/writes",
    )


def _load_place(name: str) -> CellPlace:
    """Return depth and threads of a cell: ``QD32`` and ``TC4``."""
    found = _LOAD.search(name)
    threads, depth = (int(found[1] or 0), int(found[2])) if found else (0, 0)
    return CellPlace(f"QD{depth}", depth, f"TC{threads}" if threads else "", (False, threads), "depth/threads")


def conclusions(evidence: Sequence[Evidence], width: int) -> Iterator[TextLine]:
    """Yield sentence and remarks of each lot, then of each search; lots share remarks, each of which comes once."""
    shown: set[str] = set()
    for each in sorted((each for each in evidence if each.about in CONCLUDED), key=lambda one: one.about):
        colour = (COLOUR[each.outcome], "bold") if each.outcome in COLOUR else ("bold",)
        yield from paragraph(each.group if each.about is About.SEARCH else each.sentence, width, colour)
        for remark in each.remarks:
            if each.about is About.SEARCH or remark not in shown:
                yield from paragraph(remark, width, first=INDENT, rest=INDENT * 2)
            shown.add(remark)
        yield TextLine("")


def members(evidence: Sequence[Evidence]) -> Iterator[Table]:
    """Yield a grid for each claim about drives that were measured side by side."""
    found = [each for each in sorted(evidence, key=sorting) if any(part.figures for part in each.members)]
    for claim, geometries in dict.fromkeys((each.claim, each.geometries) for each in found):
        group = [each for each in found if (each.claim, each.geometries) == (claim, geometries)]
        yield _grid(f"{label(claim)} · {' '.join(geometries)}", group)


def _grid(title: str, evidence: Sequence[Evidence]) -> Table:
    # A drive of a lot that failed has an outcome and no figure.
    alone = [_alone(each, part) for each in evidence for part in each.members if part.figures]
    short = shortened(list(dict.fromkeys(each.worst for each in alone)))
    return grid(title, alone, lambda each: by_workload(each, short[each.worst]))


def shortened(serials: Sequence[str]) -> dict[str, str]:
    """Return the shortest ends of serial numbers that distinguish them: ``…0001``."""
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
    """Return the evidence of a single drive; likeness is shown as the figure that it was computed from."""
    value, iops, slowest_ns = part.figures.get("value"), part.figures.get("iops"), part.figures.get("slowest_ns")
    outcome = part.outcome
    if outcome is None:  # single drives were not judged: only the slowest failed
        outcome = evidence.outcome if part.name == evidence.worst or evidence.outcome not in BROKEN else Finding.PASS
    if slowest_ns is not None:
        return replace(evidence, worst=part.name, value=slowest_ns, unit=Unit.NANOSECONDS, outcome=outcome, limit=None)
    if value is None:
        return replace(evidence, worst=part.name, value=iops or 0.0, unit=Unit.IOPS, outcome=outcome, limit=None)
    limit = part.figures.get("limit", evidence.limit)  # with several specs a drive has its own
    distance = 0.0 if limit is None else value - limit
    margin = 100 * (distance if evidence.direction is Direction.AT_LEAST else -distance) / (limit or math.inf)
    return replace(evidence, worst=part.name, value=value, outcome=outcome, limit=limit, margin_percent=margin)
