"""Growth of named profiles over the number of drives, each relative to its narrowest array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_ssdqual.qual.raid.geometry import RaidLevel
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.report.charts.data import Notes
from pytest_ssdqual.report.drawing import scales
from pytest_ssdqual.report.drawing.chart import Chart, printable, slug
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.drawing.palette import INK, SERIES
from pytest_ssdqual.report.view.tables import Table

#: Fewer profiles, or arrays, are no comparison.
FEWEST = 2


@dataclass(frozen=True, slots=True)
class ProfileGrowth:
    """IOPS of named workloads of one depth, by width, on arrays of one level."""

    level: RaidLevel
    depth: int
    #: By name, then by width.
    iops: Mapping[str, Mapping[int, float]]

    @property
    def widths(self) -> list[int]:
        return sorted({width for of_name in self.iops.values() for width in of_name})


def growths(notes: Notes) -> Iterator[ProfileGrowth]:
    """Yield the profiles of each level at the deepest queue that at least two of them have on several widths."""
    found: dict[tuple[RaidLevel, int], dict[str, dict[int, float]]] = {}
    for each in notes.measured:
        if each.workload.name and each.rate and not each.geometry.missing and not each.geometry.is_side_by_side:
            place = each.geometry.level, each.workload.qd_per_drive
            name = str(each.workload).rpartition("_")[0]
            found.setdefault(place, {}).setdefault(name, {})[each.geometry.width] = each.rate
    levels: set[RaidLevel] = set()
    for (level, depth), named in sorted(found.items(), key=lambda item: -item[0][1]):
        several = {name: iops for name, iops in named.items() if len(iops) >= FEWEST}
        if len(several) >= FEWEST and level not in levels:
            levels.add(level)
            yield ProfileGrowth(level, depth, dict(list(several.items())[: len(SERIES)]))


def chart(growth: ProfileGrowth) -> Chart:
    """Draw a line for each profile, and the line of a growth in proportion to the drives."""
    widths = growth.widths
    key = slug("profile-growth", growth.level.value, str(growth.depth))
    title = f"{growth.level.value}: growth of server profiles over drives, QD {growth.depth} per drive"
    with drawing():
        plate = Plate.of()
        axes = plate.axes("drives", f"IOPS over those of {widths[0]} drives")
        (straight,) = axes.plot(
            widths, [width / widths[0] for width in widths], color=INK, linewidth=1.0, linestyle=":"
        )
        plate.entry(straight, "in proportion")
        for index, (name, iops) in enumerate(growth.iops.items()):
            found = sorted(iops.items())
            # A profile that lacks the narrowest array begins on the line of its own first one.
            first = found[0][1] * widths[0] / found[0][0]
            tooltips = [f"{name}, {width} drives: {format_value(rate, Unit.IOPS)}" for width, rate in found]
            ys = [rate / first for _, rate in found]
            plate.line(axes, [width for width, _ in found], ys, index, printable(name), tooltips=tooltips)
        scales.from_zero(axes, Unit.RATIO, [widths[-1] / widths[0]])
        axes.set_xticks(widths)
        svg = plate.svg(key, title, f"{len(growth.iops)} profiles over {len(widths)} widths.")
    caption = (
        f"Each line is one profile; on the dotted line an array of {widths[-1]} drives does "
        f"{widths[-1] / widths[0]:g} times as many IOPS as one of {widths[0]}."
    )
    rows = tuple(
        (name, *(format_value(iops[width], Unit.IOPS) if width in iops else "" for width in widths))
        for name, iops in growth.iops.items()
    )
    return Chart(key, title, caption, svg, Table(("profile", *(f"{each} drives" for each in widths)), rows),
                 growth.level.value)  # fmt: skip
