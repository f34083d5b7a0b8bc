"""Writes from the purged state: IOPS over capacities written, with fresh, cliff and settled marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from pytest_ssdqual.qual import strict_json
from pytest_ssdqual.qual.measured.run import RunRecord
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import from_plain
from pytest_ssdqual.qual.units import Unit, format_duration, format_value
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts import data
from pytest_ssdqual.report.charts.data import Notes
from pytest_ssdqual.report.drawing import scales
from pytest_ssdqual.report.drawing.chart import (
    MOST_POINTS,
    MOST_ROWS,
    Chart,
    condensed,
    condensing,
    extremes,
    printable,
    slug,
)
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.drawing.palette import BAND, INK
from pytest_ssdqual.report.evidence.evidence import About
from pytest_ssdqual.report.run_folder.reader import Judged, Record
from pytest_ssdqual.report.view.sections import shortened
from pytest_ssdqual.report.view.tables import Table

#: More drives in one picture cannot be distinguished.
MOST_DRIVES = 8


@dataclass(frozen=True, slots=True)
class SaturationStrip:
    """A recorded saturation; of drives side by side the average drive."""

    geometry: Geometry
    workload: Workload
    run: RunRecord
    #: Of one drive or array.
    capacity_bytes: float
    #: The whole record.
    facts: Mapping[str, Any]

    @property
    def drives(self) -> int:
        return max(1, len(self.run.members)) if self.geometry.is_side_by_side else 1

    @property
    def points(self) -> list[tuple[float, float]]:
        """User capacities written by the end of each sample, and its IOPS."""
        rates = [rate / self.drives for rate in self.run.round_iops]
        each_s = self.run.window_s / len(rates) if rates else 0.0
        of_writes = (1 - self.workload.read_fraction) * self.workload.block_bytes
        written = accumulate(rate * each_s * of_writes for rate in rates)
        return [(volume / self.capacity_bytes, rate) for volume, rate in zip(written, rates, strict=True)]


def strips(records: Sequence[Record]) -> Iterator[SaturationStrip]:
    """Yield the readable ``saturation`` records."""
    for record in records:
        facts: Mapping[str, Any] = record.facts
        try:
            geometry, workload = Geometry.parse(facts["geometry"]), from_plain(Workload, facts["asked"])
            run = from_plain(RunRecord, facts["run"])
            drives = max(1, len(run.members)) if geometry.is_side_by_side else 1
            capacity_bytes = strict_json.count(facts, "capacity_bytes") / drives
            found = SaturationStrip(geometry, workload, run, capacity_bytes, facts)
        except (KeyError, TypeError, ValueError):
            continue
        if capacity_bytes and found.points and workload.writes:
            yield found


def judged(notes: Notes, strip: SaturationStrip) -> tuple[Judged, ...]:
    """Return the verdicts on this curve."""
    place = ((str(strip.geometry),), (str(strip.workload),))
    return tuple(
        each
        for each in notes.judged
        if each.evidence.about is About.SATURATION and (each.evidence.geometries, each.evidence.workloads) == place
    )


def chart(notes: Notes, strip: SaturationStrip, prefix: str = "saturation") -> Chart:
    """Draw the curve over capacities written, with the marks of the verdicts."""
    verdicts = judged(notes, strip)
    figures = {name: value for one in verdicts for name, value in one.evidence.figures.items() if value is not None}
    points, curves = strip.points, _curves(notes, strip)
    key = slug(prefix, str(strip.geometry), str(strip.workload))
    what = f"{strip.geometry}, {strip.drives} drives" if strip.drives > 1 else f"{strip.geometry}"
    title = f"{what}: {strip.workload} from the purged state{_fall(figures)}"
    with drawing():
        plate = Plate.of()
        axes = plate.axes("user capacities written", "IOPS per drive" if strip.drives > 1 else "IOPS")
        short = shortened([name for name, _ in curves]) if len(curves) > 1 else {}
        for index, (name, curve) in enumerate(curves):
            _draw(plate, index, short.get(name, name), curve, alone=len(curves) == 1)
        end = max(x for _, curve in curves for x, _ in curve)
        values = [*(y for _, curve in curves for _, y in curve), *_mark(plate, figures, end)]
        scales.suited(axes, Unit.IOPS, [*values, *_promised(plate, verdicts)])
        axes.set_xlim(0, end * 1.01 if end > 0 else 1)
        svg = plate.svg(key, title, f"{len(points)} samples from the first write on.")
    lasted, count = format_duration(strip.run.window_s), sum(len(curve) for _, curve in curves)
    caption = f"From a purged drive on, for {lasted}. {_found(figures)}{condensing(count)}"
    rows = [
        (name, f"{x:.3f}", format_value(y, Unit.IOPS)) for name, each in curves for x, y in condensed(each, len(curves))
    ]
    marks = [("found", name, value) for name, value in _marks(figures)]
    table = Table(("of", "capacities written", "IOPS"), (*rows, *marks))
    return Chart(key, title, caption, svg, table, strip.geometry.level.value)


def _curves(notes: Notes, strip: SaturationStrip) -> list[tuple[str, list[tuple[float, float]]]]:
    """Return each of few drives if fio's output is there, else their average."""
    if 1 < strip.drives <= MOST_DRIVES and (found := data.saturation_of(notes.story.folder, strip.facts)):
        alone = found.members()
        points = [[(at.bytes_written / each.capacity_bytes, at.iops) for at in each.points] for each in alone]
        if len(alone) == strip.drives and all(points):
            return list(zip((each.run.members[0] for each in alone), points, strict=True))
    return [("average drive" if strip.drives > 1 else "IOPS", strip.points)]


def _draw(plate: Plate, index: int, name: str, curve: Sequence[tuple[float, float]], *, alone: bool) -> None:
    xs, ys = extremes([x for x, _ in curve], [y for _, y in curve], MOST_POINTS if alone else MOST_POINTS // 4)
    tooltips = [f"{name}, {x:.2f} × capacity: {format_value(y, Unit.IOPS)}" for x, y in zip(xs, ys, strict=True)]
    marked = alone and len(xs) <= MOST_ROWS
    plate.line(
        plate.figure.axes[0],
        xs,
        ys,
        index,
        printable(name, 24),
        tooltips=tooltips if marked else (),
        marked=marked,
        thin=not alone,
    )


def _fall(figures: Mapping[str, float]) -> str:
    fresh, settled = figures.get("fresh_iops"), figures.get("settled_iops")
    return f", {fresh / settled:.2g} times slower in the end" if fresh and settled and fresh >= 1.1 * settled else ""


def _marks(figures: Mapping[str, float]) -> list[tuple[str, str]]:
    shown = []
    if "fresh_iops" in figures:
        shown.append(("fresh", format_value(figures["fresh_iops"], Unit.IOPS)))
    if "cliff_capacities" in figures:
        shown.append(("cliff after", f"{figures['cliff_capacities']:.3f} capacities"))
    if "settled_iops" in figures:
        shown.append(("settled", format_value(figures["settled_iops"], Unit.IOPS)))
    if "settled_capacities" in figures:
        shown.append(("settled after", f"{figures['settled_capacities']:.3f} capacities"))
    return shown


def _found(figures: Mapping[str, float]) -> str:
    words = ", ".join(f"{name} {value}" for name, value in _marks(figures))
    return f"{words[:1].upper()}{words[1:]}." if words else "No claim about it was judged."


def _mark(plate: Plate, figures: Mapping[str, float], end: float) -> list[float]:
    """Draw levels as lines over their stretch and the cliff as a vertical one; return their maximum."""
    axes, shown = plate.figure.axes[0], []
    cliff, settled = figures.get("cliff_capacities"), figures.get("settled_capacities")
    if (fresh := figures.get("fresh_iops")) is not None:
        plate.entry(axes.hlines([fresh], [0], [cliff or end / 4], colors=INK, linewidth=2.2, alpha=0.55), "fresh")
        shown.append(fresh)
    if cliff is not None:
        plate.entry(axes.axvline(cliff, color=INK, linestyle=(0, (1.5, 2)), linewidth=1.2), "cliff")
    if (level := figures.get("settled_iops")) is not None:
        plate.entry(
            axes.hlines([level], [settled or 0], [end], colors=INK, linestyles="--", linewidth=1.4, alpha=0.8),
            "settled",
        )
        shown.append(level)
    if settled is not None:
        axes.axvspan(settled, end, color=BAND, alpha=0.12, linewidth=0)
    return shown


def _promised(plate: Plate, verdicts: Sequence[Judged]) -> list[float]:
    axes, shown = plate.figure.axes[0], list[float]()
    for each in (one.evidence for one in verdicts if one.evidence.unit is Unit.IOPS):
        shown += plate.stated(axes, each, Unit.IOPS, f", {each.claim.removesuffix('_iops')}")
    return shown + _ratio(plate, verdicts)


def _ratio(plate: Plate, verdicts: Sequence[Judged]) -> list[float]:
    """Draw the limit of a ratio as the maximum of fresh writes by the settled ones."""
    for each in (one.evidence for one in verdicts if one.evidence.claim == "fresh_to_steady"):
        settled = each.figures.get("settled_iops") or None
        if each.limit is not None and settled:
            plate.limit(plate.figure.axes[0], each.limit * settled, f"promised, fresh: {each.bound} of settled")
            return [each.limit * settled]
    return []
