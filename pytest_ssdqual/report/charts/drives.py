"""Bar chart of drives side by side, with the outlier named."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.report.drawing import scales
from pytest_ssdqual.report.drawing.chart import Chart, printable, sentence, slug
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.drawing.palette import INK, LIMIT, colour
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding, Part
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.view.sections import shortened
from pytest_ssdqual.report.view.tables import Table, label

if TYPE_CHECKING:
    from matplotlib.artist import Artist

#: Ordinals of the palette for a drive like the others, one that is not as good as promised, and the worst.
USUAL, BROKEN = 0, 1
#: Beyond so many drives their names are turned, beyond the second only the worst is named.
STRAIGHT, NAMED = 8, 32


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


def chart(judged: Judged, prefix: str = "drives") -> Chart | None:
    """Draw one bar for each drive; None if fewer than two have a figure."""
    evidence = judged.evidence
    found = [(part, each) for part in evidence.members if (each := figure_of(evidence, part)) is not None]
    if len(found) < 2:
        return None
    unit, values = found[0][1][1], [value for _, (value, _) in found]
    names = [part.name for part, _ in found]
    short = shortened(names)
    claim = label(evidence.group or evidence.claim)
    key = slug(prefix, evidence.claim, *evidence.geometries, *evidence.workloads)
    worst = (
        f": {printable(evidence.worst, 30)} stands out" if evidence.worst and evidence.outcome is Finding.FAIL else ""
    )
    title = f"{' '.join(evidence.geometries)}, {claim} of {' '.join(evidence.workloads[:2])}, drive by drive{worst}"
    with drawing():
        plate = Plate.of(2.9)
        axes = plate.axes("", _axis(unit))
        bounds = _limits(plate, evidence, [part for part, _ in found], values, unit)
        # Bars have no length on a scale without zero.
        is_wide = scales.is_wide([*values, *bounds])
        _drives(plate, evidence, [part for part, _ in found], values, unit, dots=is_wide)
        plate.entry(axes.axhline(median(values), color=INK, linestyle=":", linewidth=1.2), "median drive")
        scales.suited(axes, unit, [*values, *bounds])
        steep = STRAIGHT < len(names) <= NAMED
        words = {name: printable(short[name], 12 if steep else 24) for name in names}
        shown = [words[name] if len(names) <= NAMED or name == evidence.worst else "" for name in names]
        scales.places(axes, shown, steep=steep)
        svg = plate.svg(key, title, f"One bar for each of {len(found)} drives.")
    rows = tuple((part.name, format_value(value, unit), str(part.outcome or "")) for part, (value, _) in found)
    table = Table(("drive", _axis(unit), "outcome"), rows)
    return Chart(key, title, sentence(evidence.sentence), svg, table, evidence.geometries[0])


def _drives(plate: Plate, evidence: Evidence, parts: Sequence[Part], values: Sequence[float], unit: Unit,
            *, dots: bool) -> None:  # fmt: skip
    axes = plate.figure.axes[0]
    for index, (part, value) in enumerate(zip(parts, values, strict=True)):
        broken = part.outcome is Finding.FAIL or (part.name == evidence.worst and evidence.outcome is Finding.FAIL)
        tint, name = colour(BROKEN if broken else USUAL), "fail" if broken else "drive"
        drawn: Artist
        if dots:
            mark = "X" if broken else "o"
            (drawn,) = axes.plot([index], [value], color=tint, marker=mark, markersize=8, linestyle="")
        else:
            (drawn,) = plate.bars(axes, [index], [value], 0.66, BROKEN if broken else USUAL)
            if broken:
                drawn.set(edgecolor=INK, linewidth=1.8 if len(parts) <= NAMED else 0.8)
            elif len(parts) > NAMED:
                drawn.set(linewidth=0.3)
        if part.name == evidence.worst and broken and len(parts) <= NAMED:
            axes.annotate(
                printable(part.name, 24), (index, value), (0, 3), textcoords="offset points", ha="center", fontsize=8
            )
        plate.entry(drawn, name)
        plate.add_tooltips(drawn, [f"{part.name}: {format_value(value, unit)}"])


def _limits(
    plate: Plate, evidence: Evidence, parts: Sequence[Part], values: Sequence[float], unit: Unit
) -> list[float]:
    """Draw the limit in the drives' unit; that of likeness is a multiple of the median drive."""
    axes = plate.figure.axes[0]
    limits = ((at, part.figures.get("limit")) for at, part in enumerate(parts))
    own = [(at, limit) for at, limit in limits if limit is not None]
    if own and evidence.unit is unit:  # of several specs
        lines = axes.hlines([limit for _, limit in own], [at - 0.4 for at, _ in own], [at + 0.4 for at, _ in own],
                            colors=LIMIT, linewidth=1.6)  # fmt: skip
        plate.entry(lines, "promised")
        return [limit for _, limit in own]
    shown = plate.stated(axes, evidence, unit)
    if evidence.limit is not None and evidence.unit is not unit and evidence.claim == "member_spread":
        at = evidence.limit * median(values)
        plate.limit(axes, at, f"promised: {evidence.bound} of the median")
        shown.append(at)
    return shown


def _axis(unit: Unit) -> str:
    return {
        Unit.NANOSECONDS: "latency",
        Unit.BYTES_PER_SECOND: "throughput",
        Unit.RATIO: "ratio",
        Unit.COUNT: "figure",
        Unit.CELSIUS: "temperature",
    }.get(unit, unit.value)
