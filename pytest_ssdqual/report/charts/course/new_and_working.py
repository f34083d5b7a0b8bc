"""A new drive against a working one, pattern by pattern: two bars each, in per cent of the new drive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_ssdqual.qual.methods.stec import NEW_READS
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.report.charts.data import Notes
from pytest_ssdqual.report.drawing.chart import printable, slug
from pytest_ssdqual.report.drawing.plot import Bars, Chart, Panel, Point
from pytest_ssdqual.report.drawing.scales import Places, Values, from_zero
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
    rows = {name: (*(format_value(iops, Unit.IOPS) for iops in pair), f"{100 * pair[1] / pair[0]:.0f} %")
            for name, pair in found.pairs.items()}  # fmt: skip
    marks = []
    for index, state in enumerate(("new", "working")):
        points = [
            Point(
                place + (index - 0.5) * BAR, 100 * pair[index] / pair[0], words=f"{name}, {state}: {rows[name][index]}"
            )
            for place, (name, pair) in enumerate(found.pairs.items())
        ]
        marks.append(Bars(points, index, state, width=BAR))
    caption = (
        "Writes are new before their cliff and working once settled. Reads are new on a drive that was purged and "
        "written once in order, and working after conditioning. A mix on a new drive reads blocks that were never "
        "written, which needs no flash."
    )
    names = ["\n".join(printable(part, 30) for part in name.split("_")[:-1]) for name in found.pairs]
    panel = Panel(Places("", names), Values("of the new drive", Unit.PERCENT, from_zero), marks)
    is_several = found.geometry.startswith("drive") and found.geometry != "drivex1"
    title = f"{found.geometry}: new against working{', the slowest drive' if is_several else ''}"
    table = Table(("workload", "new", "working", "of new"), tuple((name, *cells) for name, cells in rows.items()))
    return Chart(slug("new", found.geometry), title, caption, panel, table, found.geometry, 3.0)
