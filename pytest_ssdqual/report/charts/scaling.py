"""How IOPS grow with drives beside what the level can do: its line, the band that is allowed, what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_ssdqual.qual import strict_json
from pytest_ssdqual.qual.raid.geometry import effective_drives
from pytest_ssdqual.qual.raid.scaling import SUPERLINEAR, objection
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.charts import base as scales
from pytest_ssdqual.report.charts.chart import Chart, Table, sentence, slug
from pytest_ssdqual.report.charts.data import Noted, Notes, family_name, tests_of
from pytest_ssdqual.report.charts.decimate import over_places
from pytest_ssdqual.report.charts.figure import Plate, drawing
from pytest_ssdqual.report.charts.palette import INK, colour
from pytest_ssdqual.report.charts.width import MOST_DEPTHS, Sweep
from pytest_ssdqual.report.evidence.part import Finding
from pytest_ssdqual.report.run_folder.story import Judged

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: In per cent: from here on the narrowest array was measured too low.
OVER = 100 * (SUPERLINEAR - 1)
CLAIMS = ("scaling_slope", "scaling_deviation")


def judged(notes: Notes, sweep: Sweep) -> tuple[Judged, ...]:
    """The verdicts about the growth of this sweep, at any depth."""
    workloads = {str(cell.workload) for cell in sweep.cells.values()}
    arrays = {str(cell.geometry) for cell in sweep.cells.values()}
    return tuple(
        each
        for each in notes.of_claims(*CLAIMS)
        if set(each.evidence.workloads) <= workloads and set(each.evidence.geometries) <= arrays
    )


def chart(notes: Notes, sweep: Sweep, prefix: str = "scaling") -> Chart | None:
    """IOPS in multiples of the narrowest array's, by depth; None if there is no law, or nothing to begin from."""
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
        f"the narrowest array's IOPS on.{band} {sentence(sentences[:400])}"
    ).strip()
    table = Table(("array", "workload", "growth", "95 % interval", "growth of the law", "of the law"), tuple(rows))
    return Chart(key, title, caption, svg, table, tests_of(verdicts), sweep.level)


def _law(sweep: Sweep) -> dict[int, float]:
    """By width; empty where no law says what the mix costs, or what the writes do."""
    if sweep.family.has_streams or any(map(_is_lawless, sweep.cells.values())):
        return {}
    arrays = {cell.geometry.width: cell.geometry for cell in sweep.cells.values()}
    drives = {width: effective_drives(arrays[width], sweep.family.read_fraction) for width in sweep.widths}
    return {width: each / drives[sweep.widths[0]] for width, each in drives.items()}


def _is_lawless(cell: Noted) -> bool:
    """By the chunk that the array had; what older runs did not note is taken for what the law speaks of."""
    try:
        seen = strict_json.table(strict_json.table(cell.runs[0].facts.get("seen")).get("array"))
        return bool(objection(cell.geometry, cell.workload, strict_json.count(seen, "chunk_bytes")))
    except ValueError:
        return False


def _is_drawn(sweep: Sweep, depth: int) -> bool:
    first = sweep.cells.get((sweep.widths[0], depth))
    return first is not None and first.rate > 0 and len(sweep.at(depth)) > 1


def _allowed(verdicts: Sequence[Judged]) -> float | None:
    """How far below the line, in per cent; of several limits the strictest."""
    limits = [each.evidence.limit for each in verdicts if each.evidence.claim == "scaling_deviation"]
    return min((each for each in limits if each is not None), default=None)


def _outcome(verdicts: Sequence[Judged]) -> str:
    failed = [each for each in verdicts if each.evidence.outcome is Finding.FAIL]
    return f", {len(failed)} of {len(verdicts)} promises broken" if failed else ""


def _line(plate: Plate, axes: Axes, law: Mapping[int, float], short: float | None) -> list[float]:
    widths, line = list(law), list(law.values())
    high = [each * (1 + OVER / 100) for each in line]
    if short is not None:
        plate.band(axes, widths, [each * (1 - short / 100) for each in line], high, "allowed")
    (drawn,) = axes.plot(widths, line, color=INK, linewidth=1.0)
    plate.entry(drawn, "what the level can do")
    return high


def _depth(plate: Plate, axes: Axes, sweep: Sweep, depth: int, law: Mapping[int, float],
           place: tuple[int, int], tops: list[float]) -> list[tuple[str, ...]]:  # fmt: skip
    cells, (index, count) = sweep.at(depth), place
    base = cells[0].rate
    growth = [cell.rate / base for cell in cells]
    xs = [cell.geometry.width + 0.09 * (index - (count - 1) / 2) for cell in cells]
    ends = [None if (end := cell.interval()) is None else (end[0] / base, end[1] / base) for cell in cells]
    shares = [grown / law[cell.geometry.width] for grown, cell in zip(growth, cells, strict=True)]
    told = [f"{cell.geometry} QD {depth}: {grown:.2f} ×, {share:.0%} of the law"
            for cell, grown, share in zip(cells, growth, shares, strict=True)]  # fmt: skip
    plate.whiskers(axes, xs, ends, colour(index))
    steps = [sweep.widths.index(cell.geometry.width) for cell in cells]
    plate.line(axes, *over_places(steps, xs, growth), index, f"QD {depth}", told=told)
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
