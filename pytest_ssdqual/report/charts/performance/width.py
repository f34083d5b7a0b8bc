"""IOPS and mean latency over the number of drives by queue depth (as in Intel 329903-001), and their growth beside the
model of the level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.raid.geometry import Geometry, effective_drives
from pytest_ssdqual.qual.raid.law import Striping, growth_objection
from pytest_ssdqual.qual.raid.scaling import SUPERLINEAR
from pytest_ssdqual.qual.units import Unit, format_latency, format_range, format_value
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts.data import NotedMeasurement, Notes, family, family_name
from pytest_ssdqual.report.drawing import scales
from pytest_ssdqual.report.drawing.chart import Chart, over_places, sentence, slug
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.drawing.palette import INK, LIMIT, colour
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.view.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Together as wide as that of a group of bars; the rest parts the groups.
GROUP = 0.8
#: More depths side by side are no bars any more.
MOST_DEPTHS = 6
CLAIM = "steady_iops"
#: Published figures beyond so many times all others are not drawn, or nothing else could be seen; bars begin at zero.
BEYOND = 4.0


@dataclass(frozen=True, slots=True)
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
    found: dict[tuple[str, Workload], dict[tuple[int, int], NotedMeasurement]] = {}
    for each in notes.measured:
        if each.geometry.is_side_by_side or each.geometry.missing:
            continue
        cells = found.setdefault((each.geometry.level.value, family(each.workload)), {})
        cells[each.geometry.width, each.workload.qd_per_drive] = each
    made = [DrawnSweep(level, kind, cells) for (level, kind), cells in found.items()]
    grown = {each.level for each in made if len(each.widths) > 1}
    yield from sorted((each for each in made if len(each.widths) > 1 or each.level not in grown), key=_rank)


def _rank(sweep: DrawnSweep) -> tuple[int, bool, bool, float]:
    """Return the sort key among sweeps with equally many points: random accesses of 4 KiB first, as in the papers."""
    kind = sweep.family
    return -len(sweep.cells), bool(kind.name) or kind.has_streams, not kind.is_random, abs(kind.block_bytes - 4096)


def chart(notes: Notes, sweep: DrawnSweep, prefix: str = "widths") -> Chart:
    """Draw a group of bars for each number of drives, one bar for each depth."""
    depths = sorted(sorted(sweep.depths, key=lambda depth: (-len(sweep.at(depth)), depth))[:MOST_DEPTHS])
    name = family_name(sweep.family)
    key = slug(prefix, sweep.level, name)
    cells = [sweep.cells[width, depth] for width in sweep.widths for depth in depths if (width, depth) in sweep.cells]
    drives = f"{sweep.widths[0]} to {sweep.widths[-1]}" if len(sweep.widths) > 1 else f"{sweep.widths[0]}"
    title = f"{sweep.state}: {name} on {drives} drives{_grown(sweep)}"
    with drawing():
        plate = Plate.of()
        axes = plate.axes("drives", "IOPS", right=True)
        _bars(plate, axes, notes, sweep, depths)
        _latency(plate, axes, sweep, depths)
        svg = plate.svg(key, title, f"Bars: IOPS by queue depth per drive. Lines: mean latency. {len(cells)} points.")
    known = [each for each in (_verdict(notes, cell) for cell in cells) if each]
    has_limit = any(each.limit is not None and each.unit is Unit.IOPS for each in known)
    caption = (
        "Bars are IOPS with 95 % intervals, one for each queue depth per drive; hollow marks are mean latency (right, "
        f"logarithmic).{' Red marks are the least IOPS promised.' if has_limit else ''}"
        f"{_sources(known, cells)}"
    )
    return Chart(key, title, caption, svg, _table(notes, cells), sweep.level)


def _grown(sweep: DrawnSweep) -> str:
    deepest = sweep.at(sweep.deepest)
    if not 1 < len(deepest) == len(sweep.widths) or not deepest[0].rate:
        return ""
    growth = f"{deepest[-1].rate / deepest[0].rate:.2g}"
    return f", {'the same' if growth == '1' else f'{growth} times the'} IOPS at depth {sweep.deepest}"


def _verdict(notes: Notes, cell: NotedMeasurement) -> Evidence | None:
    return notes.verdict(CLAIM, str(cell.geometry), str(cell.workload))


def _sources(known: Sequence[Evidence], cells: Sequence[NotedMeasurement]) -> str:
    """Return sources of published figures, and those too far off to be drawn."""
    stated = [(each, each.published) for each in known if each.published]
    most = BEYOND * max(cell.rate for cell in cells)
    sources = list(dict.fromkeys(each.source for _, each in stated if each.value <= most))
    beyond = [
        f"{each} of {evidence.geometries[0]} {evidence.workloads[0]} ({each.source})"
        for evidence, each in stated
        if each.value > most
    ]
    left = f" Published far above this scale: {'; '.join(beyond[:2])}{', and more' if len(beyond) > 2 else ''}."
    return (f" Diamonds are published: {'; '.join(sources[:2])}." if sources else "") + (left if beyond else "")


def _offset(index: int, count: int) -> float:
    return GROUP * ((index + 0.5) / count - 0.5)


def _bars(plate: Plate, axes: Axes, notes: Notes, sweep: DrawnSweep, depths: Sequence[int]) -> None:
    tops: list[float] = []
    most = BEYOND * max(cell.rate for depth in depths for cell in sweep.at(depth))
    for index, depth in enumerate(depths):
        cells = sweep.at(depth)
        places = [sweep.widths.index(cell.geometry.width) + _offset(index, len(depths)) for cell in cells]
        width = 0.9 * GROUP / len(depths)
        bars = plate.bars(axes, places, [cell.rate for cell in cells], width, index)
        plate.entry(bars[0], f"QD {depth}")
        for bar, cell in zip(bars, cells, strict=True):
            plate.add_tooltips(bar, [f"{cell.geometry} {cell.workload}: {format_value(cell.rate, Unit.IOPS)}"])
        ends = [cell.interval() for cell in cells]
        plate.whiskers(axes, places, ends, INK)
        tops += [cell.rate for cell in cells] + [end[1] for end in ends if end]
        known = [(place, found) for place, cell in zip(places, cells, strict=True) if (found := _verdict(notes, cell))]
        tops += _promised(plate, axes, known, width, most)
    scales.from_zero(axes, Unit.IOPS, tops)
    scales.places(axes, [str(width) for width in sweep.widths])


def _promised(
    plate: Plate, axes: Axes, known: Sequence[tuple[float, Evidence]], width: float, most: float
) -> list[float]:
    """Draw limits and published figures up to ``most``; return their maximum."""
    bounds = [(place, each.limit) for place, each in known if each.limit is not None and each.unit is Unit.IOPS]
    if bounds:
        lines = axes.hlines(
            [bound for _, bound in bounds], [place - width / 2 for place, _ in bounds],
            [place + width / 2 for place, _ in bounds], colors=LIMIT, linewidth=1.6,
        )  # fmt: skip
        plate.entry(lines, "promised")
    stated = [(place, each.published) for place, each in known if each.published and each.published.value <= most]
    return [bound for _, bound in bounds] + plate.published(axes, stated)


def _latency(plate: Plate, axes: Axes, sweep: DrawnSweep, depths: Sequence[int]) -> None:
    twin = plate.second(axes, "mean latency")
    values: list[float] = []
    for index, depth in enumerate(depths):
        found = [(cell, mean) for cell in sweep.at(depth) if (mean := cell.mean_latency_ns) is not None]
        places = [sweep.widths.index(cell.geometry.width) + _offset(index, len(depths)) for cell, _ in found]
        tooltips = [f"{cell.geometry} {cell.workload}: mean {format_latency(mean)}" for cell, mean in found]
        steps = [sweep.widths.index(cell.geometry.width) for cell, _ in found]
        line = over_places(steps, places, [mean for _, mean in found])
        plate.line(twin, *line, index, tooltips=tooltips, hollow=True, thin=True)
        values += [mean for _, mean in found]
    scales.by_decades(twin, Unit.NANOSECONDS, values)


def _table(notes: Notes, cells: Sequence[NotedMeasurement]) -> Table:
    rows = []
    for cell in cells:
        ends, found, mean = cell.interval(), _verdict(notes, cell), cell.mean_latency_ns
        rows.append((
            str(cell.geometry),
            str(cell.workload),
            format_value(cell.rate, Unit.IOPS),
            format_range(*ends, Unit.IOPS) if ends else "",
            "" if mean is None else format_latency(mean),
            found.bound if found else "",
            str(found.published) if found and found.published else "",
        ))  # fmt: skip
    return Table(("array", "workload", "IOPS", "95 % interval", "mean latency", "promised", "published"), tuple(rows))


#: In per cent: from here on a width was measured too high, or the narrowest one too low.
OVER = 100 * (SUPERLINEAR - 1)
CLAIMS = ("scaling_slope", "scaling_deviation")


def judged(notes: Notes, sweep: DrawnSweep) -> tuple[Judged, ...]:
    """Return the verdicts on the growth of this sweep, at any depth."""
    workloads = {str(cell.workload) for cell in sweep.cells.values()}
    arrays = {str(cell.geometry) for cell in sweep.cells.values()}
    return tuple(
        each
        for each in notes.of_claims(*CLAIMS)
        if set(each.evidence.workloads) <= workloads and set(each.evidence.geometries) <= arrays
    )


def scaling_chart(notes: Notes, sweep: DrawnSweep, prefix: str = "scaling") -> Chart | None:
    """Draw IOPS as multiples of the narrowest array's by depth; None without a model or a first value."""
    law = _law(sweep)
    depths = [depth for depth in sweep.depths if _is_drawn(sweep, depth)][:MOST_DEPTHS]
    if not law or not depths:
        return None
    verdicts = judged(notes, sweep)
    short = _allowed(verdicts)
    name = family_name(sweep.family)
    key, title = slug(prefix, sweep.level, name), f"{sweep.state}: growth with drives, {name}{_outcome(verdicts)}"
    with drawing():
        plate = Plate.of()
        axes = plate.axes("drives", f"IOPS over those of {sweep.widths[0]} drives")
        tops = _line(plate, axes, law, short)
        rows: list[tuple[str, ...]] = []
        for index, depth in enumerate(depths):
            rows += _depth(plate, axes, sweep, depth, law, (index, len(depths)), tops)
        scales.from_zero(axes, Unit.RATIO, tops)
        axes.set_xticks(sweep.widths)
        svg = plate.svg(key, title, f"Measured growth at {len(depths)} depths beside the line of the level.")
    band = "" if short is None else f" The band is what is allowed, {short:g} % below the line to {OVER:.0f} % above."
    sentences = " ".join(
        dict.fromkeys(each.evidence.sentence for each in verdicts if each.evidence.outcome is Finding.FAIL)
    )
    caption = (
        f"The line is what {sweep.level} can do with each number of drives, by what a host I/O costs its members, from "
        f"the narrowest array's IOPS on; verdicts compare each width with the others.{band} {sentence(sentences[:400])}"
    ).strip()
    table = Table(("array", "workload", "growth", "95 % interval", "growth of the law", "of the law"), tuple(rows))
    return Chart(key, title, caption, svg, table, sweep.level)


def _law(sweep: DrawnSweep) -> dict[int, float]:
    """Return the model by width; empty if no model covers the mix or the writes."""
    arrays = {cell.geometry.width: cell.geometry for cell in sweep.cells.values()}
    geometries = [arrays[width] for width in sweep.widths]
    if sweep.family.has_streams or any(_is_lawless(cell, geometries) for cell in sweep.cells.values()):
        return {}
    drives = {width: effective_drives(arrays[width], sweep.family.read_fraction) for width in sweep.widths}
    return {width: each / drives[sweep.widths[0]] for width, each in drives.items()}


def _is_lawless(cell: NotedMeasurement, geometries: Sequence[Geometry]) -> bool:
    """Return True if the model does not cover a sweep by its array's chunk; without a record of it False."""
    seen = cell.runs[0].seen
    chunk_bytes = seen.array.chunk_bytes if seen and seen.array else None
    if chunk_bytes is None:
        return False
    return bool(growth_objection(geometries, cell.workload, Striping(chunk_bytes)))


def _is_drawn(sweep: DrawnSweep, depth: int) -> bool:
    first = sweep.cells.get((sweep.widths[0], depth))
    return first is not None and first.rate > 0 and len(sweep.at(depth)) > 1


def _allowed(verdicts: Sequence[Judged]) -> float | None:
    """Return the allowed shortfall from the line in per cent; of several limits the strictest."""
    limits = [each.evidence.limit for each in verdicts if each.evidence.claim == "scaling_deviation"]
    return min((each for each in limits if each is not None), default=None)


def _outcome(verdicts: Sequence[Judged]) -> str:
    failed = [each for each in verdicts if each.evidence.outcome is Finding.FAIL]
    return f", {len(failed)} of {len(verdicts)} promises failed" if failed else ""


def _line(plate: Plate, axes: Axes, law: Mapping[int, float], short: float | None) -> list[float]:
    widths, line = list(law), list(law.values())
    high = [each * (1 + OVER / 100) for each in line]
    if short is not None:
        plate.band(axes, widths, [each * (1 - short / 100) for each in line], high, "allowed")
    (drawn,) = axes.plot(widths, line, color=INK, linewidth=1.0)
    plate.entry(drawn, "what the level can do")
    return high


def _depth(plate: Plate, axes: Axes, sweep: DrawnSweep, depth: int, law: Mapping[int, float],
           place: tuple[int, int], tops: list[float]) -> list[tuple[str, ...]]:  # fmt: skip
    cells, (index, count) = sweep.at(depth), place
    base = cells[0].rate
    growth = [cell.rate / base for cell in cells]
    xs = [cell.geometry.width + 0.09 * (index - (count - 1) / 2) for cell in cells]
    ends = [None if (end := cell.interval()) is None else (end[0] / base, end[1] / base) for cell in cells]
    shares = [grown / law[cell.geometry.width] for grown, cell in zip(growth, cells, strict=True)]
    tooltips = [f"{cell.geometry} QD {depth}: {grown:.2f} ×, {share:.0%} of the law"
            for cell, grown, share in zip(cells, growth, shares, strict=True)]  # fmt: skip
    plate.whiskers(axes, xs, ends, colour(index))
    steps = [sweep.widths.index(cell.geometry.width) for cell in cells]
    plate.line(axes, *over_places(steps, xs, growth), index, f"QD {depth}", tooltips=tooltips)
    tops += growth + [end[1] for end in ends if end]
    return [
        (
            str(cell.geometry),
            str(cell.workload),
            f"{grown:.3f} ×",
            f"{end[0]:.3f}…{end[1]:.3f} ×" if end else "",
            f"{law[cell.geometry.width]:.3f} ×",
            f"{100 * share:.1f} %",
        )
        for cell, grown, end, share in zip(cells, growth, ends, shares, strict=True)
    ]
