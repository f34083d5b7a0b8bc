"""IOPS and mean latency over the number of drives by queue depth (as in Intel 329903-001), and their growth beside the
model of the level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.geometry import PROTOCOLS, Geometry, effective_drives
from pytest_ssdqual.qual.raid.law import Striping, growth_objection
from pytest_ssdqual.qual.raid.scaling import SUPERLINEAR
from pytest_ssdqual.qual.units import Unit, format_latency, format_value
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts.data import NotedMeasurement, Notes, family, family_name, interval_words
from pytest_ssdqual.report.drawing.chart import sentence, slug
from pytest_ssdqual.report.drawing.plot import (
    HOLLOW,
    RULE,
    AnyMark,
    Bars,
    Chart,
    Line,
    Panel,
    Point,
    band,
    over_places,
    published,
    stretches,
    table_of,
)
from pytest_ssdqual.report.drawing.scales import Numbers, Places, Values, by_decades, from_zero
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.view.tables import Table

#: Together as wide as that of a group of bars; the rest parts the groups.
GROUP = 0.8
#: More depths side by side are no bars any more.
MOST_DEPTHS = 6
CLAIM = "steady_iops"
#: Published figures beyond so many times all others are not drawn, or nothing else could be seen; bars begin at zero.
BEYOND = 4.0


@frozen
class DrawnSweep:
    """A family of workloads on all widths of a level, or on the only one."""

    level: str
    family: Workload
    #: By number of drives and depth.
    cells: Mapping[tuple[int, int], NotedMeasurement]

    @property
    def widths(self) -> list[int]:
        return sorted({width for width, _ in self.cells})

    @property
    def depths(self) -> list[int]:
        return sorted({depth for _, depth in self.cells})

    @property
    def state(self) -> str:
        """Level and state: ``raid5``, ``raid5, degraded``."""
        state = next(iter(self.cells.values())).geometry.state
        return self.level if state == "healthy" else f"{self.level}, {state}"

    @property
    def deepest(self) -> int:
        """The deepest queue that was measured on most widths."""
        return max(self.depths, key=lambda depth: (len(self.at(depth)), depth))

    def at(self, depth: int) -> list[NotedMeasurement]:
        """Return the cells, narrowest first."""
        return [self.cells[width, depth] for width in self.widths if (width, depth) in self.cells]


def sweeps(notes: Notes) -> Iterator[DrawnSweep]:
    """Yield every level and family with at least two widths, healthy arrays only, most points first.

    Of a level with a single array, yield its measurements.
    """
    families: dict[tuple[str, Workload], dict[tuple[int, int], NotedMeasurement]] = {}
    for noted in notes.measured:
        if not (noted.geometry.is_side_by_side or noted.geometry.missing or noted.geometry.tuning != PROTOCOLS):
            cells = families.setdefault((noted.geometry.level.value, family(noted.workload)), {})
            cells[noted.geometry.width, noted.workload.qd_per_drive] = noted
    made = [DrawnSweep(level, kind, cells) for (level, kind), cells in families.items()]
    grown = {sweep.level for sweep in made if len(sweep.widths) > 1}
    yield from sorted((sweep for sweep in made if len(sweep.widths) > 1 or sweep.level not in grown), key=_rank)


def _rank(sweep: DrawnSweep) -> tuple[int, bool, bool, float]:
    """Return the sort key among sweeps with equally many points: random accesses of 4 KiB first, as in the papers."""
    kind = sweep.family
    return -len(sweep.cells), bool(kind.name) or kind.has_streams, not kind.is_random, abs(kind.block_bytes - 4096)


def chart(notes: Notes, sweep: DrawnSweep) -> Chart:
    """Draw a group of bars for each number of drives, one bar for each depth."""
    depths = sorted(sorted(sweep.depths, key=lambda depth: (-len(sweep.at(depth)), depth))[:MOST_DEPTHS])
    cells = [cell for (_, depth), cell in sorted(sweep.cells.items()) if depth in depths]
    verdicts = {cell: notes.verdict(CLAIM, str(cell.geometry), str(cell.workload)) for cell in cells}
    rows = {cell: _row(cell, verdict) for cell, verdict in verdicts.items()}
    most = BEYOND * max(cell.rate for cell in cells)
    width = 0.9 * GROUP / len(depths)
    marks, latencies = list[AnyMark](), list[Line]()
    for index, depth in enumerate(depths):
        offset = GROUP * ((index + 0.5) / len(depths) - 0.5)
        places = {cell: sweep.widths.index(cell.geometry.width) + offset for cell in sweep.at(depth)}
        stated = [(x, found) for cell, x in places.items() if (found := verdicts[cell])]
        bars = [Point(x, cell.rate, rows[cell], cell.interval()) for cell, x in places.items()]
        limits = [(x - width / 2, x + width / 2, found.limit or 0.0) for x, found in stated if _has_limit(found)]
        figures = [(x, found.published) for x, found in stated if found.published and found.published.value <= most]
        marks += Bars(bars, index, f"QD {depth}", width=width), stretches(limits, "promised"), published(figures)
        means = [
            Point(x, mean, words=f"{cell.geometry} {cell.workload}: mean {format_latency(mean)}")
            for cell, x in places.items()
            if (mean := cell.mean_latency_ns) is not None
        ]
        latencies.append(Line(over_places(means, range(len(sweep.widths))), index, style=HOLLOW))
    known = [verdict for verdict in verdicts.values() if verdict]
    caption = (
        "Bars are IOPS with 95 % intervals, one for each queue depth per drive; hollow marks are mean latency (right, "
        f"logarithmic).{' Red marks are the least IOPS promised.' if any(map(_has_limit, known)) else ''}"
        f"{_sources(known, most)}"
    )
    name = family_name(sweep.family)
    drives = f"{sweep.widths[0]} to {sweep.widths[-1]}" if len(sweep.widths) > 1 else f"{sweep.widths[0]}"
    title = f"{sweep.state}: {name} on {drives} drives{_grown(sweep)}"
    panel = Panel(
        Places("drives", [str(width) for width in sweep.widths]), Values("IOPS", Unit.IOPS, from_zero), marks,
        Values("mean latency", Unit.NANOSECONDS, by_decades), latencies,
    )  # fmt: skip
    table = Table(
        ("array", "workload", "IOPS", "95 % interval", "mean latency", "promised", "published"), tuple(rows.values())
    )
    return Chart(slug("widths", sweep.level, name), title, caption, panel, table, sweep.level)


def _has_limit(evidence: Evidence) -> bool:
    return evidence.limit is not None and evidence.unit is Unit.IOPS


def _row(cell: NotedMeasurement, verdict: Evidence | None) -> tuple[str, ...]:
    mean_ns = cell.mean_latency_ns
    return (
        str(cell.geometry),
        str(cell.workload),
        format_value(cell.rate, Unit.IOPS),
        interval_words(cell.interval()),
        "" if mean_ns is None else format_latency(mean_ns),
        verdict.bound if verdict else "",
        str(verdict.published) if verdict and verdict.published else "",
    )


def _grown(sweep: DrawnSweep) -> str:
    deepest = sweep.at(sweep.deepest)
    if not 1 < len(deepest) == len(sweep.widths) or not deepest[0].rate:
        return ""
    growth = f"{deepest[-1].rate / deepest[0].rate:.2g}"
    return f", {'the same' if growth == '1' else f'{growth} times the'} IOPS at depth {sweep.deepest}"


def _sources(known: Sequence[Evidence], most: float) -> str:
    """Return sources of published figures, and those too far off to be drawn."""
    stated = [(evidence, evidence.published) for evidence in known if evidence.published]
    sources = list(dict.fromkeys(figure.source for _, figure in stated if figure.value <= most))
    beyond = [
        f"{figure} of {evidence.geometry} {evidence.workload} ({figure.source})"
        for evidence, figure in stated
        if figure.value > most
    ]
    left = f" Published far above this scale: {'; '.join(beyond[:2])}{', and more' if len(beyond) > 2 else ''}."
    return (f" Diamonds are published: {'; '.join(sources[:2])}." if sources else "") + (left if beyond else "")


#: In per cent: from here on a width was measured too high, or the narrowest one too low.
OVER = 100 * (SUPERLINEAR - 1)
CLAIMS = ("scaling_slope", "scaling_deviation")


def judged(notes: Notes, sweep: DrawnSweep) -> list[Evidence]:
    """Return the verdicts on the growth of this sweep, at any depth."""
    return notes.within(list(sweep.cells.values()), *CLAIMS)


def scaling_chart(notes: Notes, sweep: DrawnSweep) -> Chart | None:
    """Draw IOPS as multiples of the narrowest array's by depth; None without a model or a first value."""
    law = _law(sweep)
    depths = [depth for depth in sweep.depths if _is_drawable(sweep, depth)][:MOST_DEPTHS]
    if not law or not depths:
        return None
    verdicts = judged(notes, sweep)
    failed = [evidence for evidence in verdicts if evidence.outcome is Finding.FAIL]
    # Of several limits the strictest.
    short = min((e.limit for e in verdicts if e.claim == "scaling_deviation" and e.limit is not None), default=None)
    marks = list[AnyMark]()
    allowed = ""
    if short is not None:
        lows = [growth * (1 - short / 100) for growth in law.values()]
        marks.append(band(list(law), lows, [growth * SUPERLINEAR for growth in law.values()], "allowed"))
        allowed = f" The band is what is allowed, {short:g} % below the line to {OVER:.0f} % above."
    marks.append(Line([Point(*place) for place in law.items()], name="what the level can do", style=RULE))
    for index, depth in enumerate(depths):
        points = _growth(sweep.at(depth), law, 0.09 * (index - (len(depths) - 1) / 2))
        marks.append(Line(over_places(points, sweep.widths), index, f"QD {depth}"))
    caption = (
        f"The line is what {sweep.level} can do with each number of drives, by what a host I/O costs its members, "
        f"starting at the IOPS of the narrowest array; verdicts compare each width with the others.{allowed} "
        f"{sentence(' '.join(dict.fromkeys(evidence.sentence for evidence in failed))[:400])}"
    ).strip()
    name = family_name(sweep.family)
    outcome = f", {len(failed)} of {len(verdicts)} promises failed" if failed else ""
    panel = Panel(
        Numbers("drives", ticks=sweep.widths),
        Values(f"IOPS over those of {sweep.widths[0]} drives", Unit.RATIO, from_zero), marks,
    )  # fmt: skip
    columns = ("array", "workload", "growth", "95 % interval", "growth of the law", "of the law")
    title = f"{sweep.state}: growth with drives, {name}{outcome}"
    return Chart(slug("scaling", sweep.level, name), title, caption, panel, table_of(columns, panel), sweep.level)


def _growth(cells: Sequence[NotedMeasurement], law: Mapping[int, float], offset: float) -> list[Point]:
    """Return the growth from the first cell on, each beside its place."""
    points = []
    for cell in cells:
        growth, expected = cell.rate / cells[0].rate, law[cell.geometry.width]
        interval = cell.interval()
        ends = (interval[0] / cells[0].rate, interval[1] / cells[0].rate) if interval else None
        row = (
            str(cell.geometry),
            str(cell.workload),
            f"{growth:.3f} ×",
            f"{ends[0]:.3f}…{ends[1]:.3f} ×" if ends else "",
            f"{expected:.3f} ×",
            f"{100 * growth / expected:.1f} %",
        )
        points.append(Point(cell.geometry.width + offset, growth, row, ends))
    return points


def _law(sweep: DrawnSweep) -> dict[int, float]:
    """Return the model by width; empty if no model covers the mix or the writes."""
    arrays = {cell.geometry.width: cell.geometry for cell in sweep.cells.values()}
    geometries = [arrays[width] for width in sweep.widths]
    if sweep.family.has_streams or any(_is_lawless(cell, geometries) for cell in sweep.cells.values()):
        return {}
    drives = [effective_drives(geometry, sweep.family.read_fraction) for geometry in geometries]
    return {width: each / drives[0] for width, each in zip(sweep.widths, drives, strict=True)}


def _is_lawless(cell: NotedMeasurement, geometries: Sequence[Geometry]) -> bool:
    """Return True if the model does not cover a sweep by its array's chunk; without a record of it False."""
    seen = cell.runs[0].seen
    chunk_bytes = seen.array.chunk_bytes if seen and seen.array else None
    if chunk_bytes is None:
        return False
    return bool(growth_objection(geometries, cell.workload, Striping(chunk_bytes)))


def _is_drawable(sweep: DrawnSweep, depth: int) -> bool:
    first = sweep.cells.get((sweep.widths[0], depth))
    return first is not None and first.rate > 0 and len(sweep.at(depth)) > 1
