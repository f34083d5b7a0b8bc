"""Bar chart of drives side by side, with the outlier named."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from statistics import median

from pytest_ssdqual.qual.measured.environment import ProcessEnvironment
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.report.drawing.chart import printable, sentence, slug
from pytest_ssdqual.report.drawing.figure import INK
from pytest_ssdqual.report.drawing.plot import (
    DOTTED,
    AnyMark,
    Bars,
    Chart,
    Line,
    Panel,
    Point,
    level,
    stated,
    stretches,
    table_of,
    worded,
)
from pytest_ssdqual.report.drawing.scales import Places, Values, from_zero, is_wide
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding, Part
from pytest_ssdqual.report.view import witnesses
from pytest_ssdqual.report.view.sections import shortened
from pytest_ssdqual.report.view.tables import Table, label

#: Ordinals of the palette for a drive like the others, one that is not as good as promised, and the worst.
USUAL, BROKEN = 0, 1
#: Beyond so many drives their names are turned, beyond the second only the worst is named.
STRAIGHT, NAMED = 8, 32
#: What is shown of a member's queue: axis, unit, name and factor.
OF_QUEUES = (
    ("IOPS", Unit.IOPS, "iops", 1),
    ("mean wait", Unit.NANOSECONDS, "wait_ns", 1),
    ("busy", Unit.PERCENT, "busy", 100),
)
AXES = {
    Unit.NANOSECONDS: "latency",
    Unit.BYTES_PER_SECOND: "throughput",
    Unit.RATIO: "ratio",
    Unit.COUNT: "figure",
    Unit.CELSIUS: "temperature",
}


def figure_of(evidence: Evidence, part: Part) -> tuple[float, Unit] | None:
    """Return the figure by which drives are compared; of likeness that from which it was computed."""
    slowest_ns, value, iops = (part.figures.get(name) for name in ("slowest_ns", "value", "iops"))
    if slowest_ns is not None:
        return slowest_ns, Unit.NANOSECONDS
    if value is not None:
        # Of a lot: the value is that of the claim that drives were judged by, the evidence counts drives.
        return value, _lot_unit(evidence) if evidence.unit is Unit.COUNT else evidence.unit
    return None if iops is None else (iops, Unit.IOPS)


def _lot_unit(evidence: Evidence) -> Unit:
    return evidence.unit_of_parts or (Claim(evidence.group).unit if evidence.group in set(Claim) else Unit.COUNT)


def chart(evidence: Evidence) -> Chart | None:
    """Draw one bar for each drive; None if fewer than two have a figure."""
    figures = [(part, figure) for part in evidence.members if (figure := figure_of(evidence, part)) is not None]
    if len(figures) < 2:
        return None
    unit, parts = figures[0][1][1], [part for part, _ in figures]
    points = [
        Point(index, value, (part.name, format_value(value, unit), str(part.outcome or "")))
        for index, (part, (value, _)) in enumerate(figures)
    ]
    middle = median(point.y for point in points)
    limits = list(_limits(evidence, parts, middle, unit))
    marks = [*limits, *_drives(evidence, points, limits), level(middle, "median drive", {**DOTTED, "linewidth": 1.2})]
    short = shortened([part.name for part in parts])
    is_steep = STRAIGHT < len(parts) <= NAMED
    named = {part.name for part in parts if len(parts) <= NAMED or part.name == evidence.worst}
    names = [printable(short[part.name], 12 if is_steep else 24) if part.name in named else "" for part in parts]
    axis = AXES.get(unit, unit.value)
    panel = Panel(Places("", names, is_steep), Values(axis, unit), marks)
    is_broken = evidence.worst and evidence.outcome is Finding.FAIL
    title = (
        f"{' '.join(evidence.geometries)}, {label(evidence.group or evidence.claim)} of "
        f"{' '.join(evidence.workloads[:2])}, drive by drive"
        f"{f': {printable(evidence.worst, 30)} stands out' if is_broken else ''}"
    )
    key, columns = slug("drives", evidence.claim, *evidence.geometries, *evidence.workloads), ("drive", axis, "outcome")
    return Chart(key, title, sentence(evidence.sentence), panel, table_of(columns, panel), evidence.geometry, 2.9)


def under_load(seen: ProcessEnvironment, culprits: Collection[str], of: str) -> Chart | None:
    """Draw IOPS, wait and busy share of the members of an array as the kernel counted them; None without counters."""
    queues = {drive.name: drive.queue for drive in seen.drives if drive.queue and drive.queue.wait_ns is not None}
    if len(queues) < 2:
        return None
    short = shortened(list(queues))
    places = Places("", [printable(short[name], 24) for name in queues], len(queues) > STRAIGHT)
    panels = []
    for axis, unit, name, scale in OF_QUEUES:
        points = [Point(index, scale * (getattr(queue, name) or 0)) for index, queue in enumerate(queues.values())]
        bad = [point for drive, point in zip(queues, points, strict=True) if drive in culprits]
        others = Bars([point for point in points if point not in bad], USUAL, "other members" if culprits else "member")
        panels.append(Panel(places, Values(axis, unit, from_zero), [others, Bars(bad, BROKEN, "cause")]))
    named = printable(", ".join(culprits), 60)
    title = f"{of}, member by member{named and f': {named} stands out'}"
    caption = "What the kernel counted at each drive while the array was measured; of equal drives all bars are equal."
    table = witnesses.members(seen) or Table((), ())
    return Chart(slug("members", of), title, caption, tuple(panels), table, height_in=3.4)


def _drives(evidence: Evidence, points: Sequence[Point], limits: Sequence[AnyMark]) -> Iterator[AnyMark]:
    """Yield a bar for each drive, or a dot: bars have no length on a scale without zero."""
    has_dots = is_wide([*(point.y for point in points), *(value for mark in limits for value in mark.values)])
    is_named = len(points) <= NAMED
    for point in points:
        name, _, outcome = point.row
        is_worst = name == evidence.worst and evidence.outcome is Finding.FAIL
        is_broken = outcome == Finding.FAIL or is_worst
        index, entry = (BROKEN, "fail") if is_broken else (USUAL, "drive")
        if has_dots:
            dot = {"marker": "X" if is_broken else "o", "markersize": 8, "linestyle": ""}
            yield Line([point], index, entry, dot)
        elif is_broken:
            yield Bars([point], index, entry, {"edgecolor": INK, "linewidth": 1.8 if is_named else 0.8})
        else:
            yield Bars([point], index, entry, {} if is_named else {"linewidth": 0.3})
        if name == evidence.worst and is_broken and is_named:
            yield worded(point, printable(name, 24))


def _limits(evidence: Evidence, parts: Sequence[Part], middle: float, unit: Unit) -> Iterator[AnyMark]:
    """Yield the limit in the drives' unit; that of likeness is a multiple of the median drive."""
    limits = ((index, part.figures.get("limit")) for index, part in enumerate(parts))
    own = [(index - 0.4, index + 0.4, limit) for index, limit in limits if limit is not None]
    if own and evidence.unit is unit:  # of several specs
        yield stretches(own, "promised")
        return
    yield from stated(evidence, unit)
    if evidence.limit is not None and evidence.unit is not unit and evidence.claim == "member_spread":
        yield level(evidence.limit * middle, f"promised: {evidence.bound} of the median")
