"""A new drive against a working one, pattern by pattern: two bars each, in per cent of the new drive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_ssdqual.qual.methods.stec import NEW_READS
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.report.charts.data import Notes
from pytest_ssdqual.report.drawing import scales
from pytest_ssdqual.report.drawing.chart import Chart, printable, slug
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.evidence.evidence import About
from pytest_ssdqual.report.view.tables import Table

#: One pair is no comparison of patterns.
FEWEST = 2
BAR = 0.36
FRESH, SETTLED, READS = "fresh_iops", "settled_iops", "steady_iops"


@dataclass(frozen=True, slots=True)
class NewAndWorking:
    """IOPS of the new and of the working drive, by workload."""

    geometry: str
    pairs: Mapping[str, tuple[float, float]]


def compared(notes: Notes) -> Iterator[NewAndWorking]:
    """Yield the arrays with at least two workloads that were measured in both states."""
    new: dict[tuple[str, str], float] = {}
    working: dict[tuple[str, str], float] = {}
    for judged in notes.judged:
        evidence = judged.evidence
        if len(evidence.geometries) != 1 or len(evidence.workloads) != 1:
            continue
        place = evidence.geometries[0], evidence.workloads[0]
        if evidence.about is About.SATURATION and evidence.claim in (FRESH, SETTLED):
            (new if evidence.claim == FRESH else working)[place] = evidence.value
        elif evidence.claim == READS and evidence.about is About.LOOP and evidence.group == str(NEW_READS):
            new[place] = evidence.value
        elif evidence.claim == READS and evidence.about is About.RUN:
            working[place] = evidence.value
    by_array: dict[str, dict[str, tuple[float, float]]] = {}
    for (array, workload), iops in new.items():
        if iops > 0 and (array, workload) in working:
            by_array.setdefault(array, {})[workload] = (iops, working[array, workload])
    yield from (NewAndWorking(array, pairs) for array, pairs in by_array.items() if len(pairs) >= FEWEST)


def chart(found: NewAndWorking) -> Chart:
    """Draw two bars for each workload."""
    key = slug("new", found.geometry)
    is_several = found.geometry.startswith("drive") and found.geometry != "drivex1"
    title = f"{found.geometry}: new against working{', the slowest drive' if is_several else ''}"
    shares = [100 * working / new for new, working in found.pairs.values()]
    with drawing():
        plate = Plate.of(3.0)
        axes = plate.axes("", "of the new drive, %")
        for index, state in enumerate(("new", "working")):
            xs = [place + (index - 0.5) * BAR for place in range(len(shares))]
            bars = plate.bars(axes, xs, [100.0] * len(shares) if index == 0 else shares, BAR, index)
            for bar, (name, pair) in zip(bars, found.pairs.items(), strict=True):
                plate.add_tooltips(bar, [f"{name}, {state}: {format_value(pair[index], Unit.IOPS)}"])
            plate.entry(bars[0], state)
        axes.set_ylim(0, max(105.0, *shares) * 1.02)
        scales.places(axes, ["\n".join(printable(part, 30) for part in name.split("_")[:-1]) for name in found.pairs])
        svg = plate.svg(key, title, f"{len(shares)} workloads on a new and on a working drive.")
    caption = (
        "Writes are new before their cliff and working once settled. Reads are new on a drive that was purged and "
        "written once in order, and working after conditioning. A mix on a new drive reads blocks that were never "
        "written, which needs no flash."
    )
    rows = tuple(
        (name, format_value(new, Unit.IOPS), format_value(working, Unit.IOPS), f"{100 * working / new:.0f} %")
        for name, (new, working) in found.pairs.items()
    )
    return Chart(key, title, caption, svg, Table(("workload", "new", "working", "of new"), rows), found.geometry)
