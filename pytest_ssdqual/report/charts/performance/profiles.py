"""Server profiles: a radar of the arrays' shares of the highest IOPS, and their growth over the number of drives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.report.charts.data import NotedMeasurement, Notes
from pytest_ssdqual.report.drawing.chart import printable, slug
from pytest_ssdqual.report.drawing.palette import SERIES
from pytest_ssdqual.report.drawing.plot import DOTTED, Chart, Line, Panel, Point, Radar, lines_of
from pytest_ssdqual.report.drawing.scales import Numbers, Values, from_zero, short
from pytest_ssdqual.report.view.tables import Table

#: Fewer spokes show no area.
FEWEST_SPOKES = 3
MOST_ARRAYS = 5
#: Fewer profiles, or widths, are no comparison of growth.
FEWEST = 2


@dataclass(frozen=True, slots=True)
class Profiles:
    """Named workloads of one depth on several arrays."""

    depth: int
    names: tuple[str, ...]
    #: By array and name.
    cells: Mapping[tuple[Geometry, str], NotedMeasurement]

    @property
    def arrays(self) -> list[Geometry]:
        return sorted({array for array, _ in self.cells})


def radars(notes: Notes) -> Iterator[Profiles]:
    """Yield the profiles of each set of arrays, at the deepest common queue."""
    measured: dict[tuple[int, Geometry], dict[str, NotedMeasurement]] = {}
    for noted in notes.measured:
        if noted.workload.name and not noted.geometry.missing:
            measured.setdefault((noted.workload.qd_per_drive, noted.geometry), {})[noted.workload.name] = noted
    sets: dict[tuple[tuple[str, ...], int], list[Geometry]] = {}
    for (depth, array), named in measured.items():
        if len(named) >= FEWEST_SPOKES:
            sets.setdefault((tuple(sorted(named)), depth), []).append(array)
    drawn_names: set[tuple[str, ...]] = set()
    for (names, depth), arrays in sorted(sets.items(), key=lambda item: (-len(item[1]), -item[0][1])):
        if names not in drawn_names:
            drawn_names.add(names)
            kept = sorted(arrays)[-MOST_ARRAYS:]
            yield Profiles(
                depth, names, {(array, name): measured[depth, array][name] for array in kept for name in names}
            )


def radar(profiles: Profiles) -> Chart:
    """Draw a ring for each array, a spoke for each profile."""
    arrays = profiles.arrays
    rates = {place: cell.rate for place, cell in profiles.cells.items()}
    most = {name: max(rates[array, name] for array in arrays) for name in profiles.names}
    rings = {}
    for array in arrays:
        rings[str(array)] = [
            Point(
                0,
                100 * rates[array, name] / most[name] if most[name] else 0.0,
                words=f"{array} {name}: {format_value(rates[array, name], Unit.IOPS)}",
            )
            for name in profiles.names
        ]
    spokes = [f"{printable(name)}\n{short(most[name])} IOPS" for name in profiles.names]
    rows = [
        (name, *(format_value(rate, Unit.IOPS) for rate in (*(rates[array, name] for array in arrays), most[name])))
        for name in profiles.names
    ]
    table = Table(("profile", *map(str, arrays), "the most"), tuple(rows))
    caption = "Each spoke is one mix of sizes, reads and writes; its end is the most IOPS that any of these arrays did."
    title = f"Server profiles at QD {profiles.depth} per drive on {', '.join(map(str, arrays))}"
    key = slug("profiles", *map(str, arrays), str(profiles.depth))
    levels = {array.level.value for array in arrays}
    return Chart(
        key, title, caption, Radar(spokes, lines_of(rings)), table, levels.pop() if len(levels) == 1 else "", 3.6
    )


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
    measured: dict[tuple[RaidLevel, int], dict[str, dict[int, float]]] = {}
    for noted in notes.measured:
        geometry = noted.geometry
        if noted.workload.name and noted.rate and not geometry.missing and not geometry.is_side_by_side:
            named = measured.setdefault((geometry.level, noted.workload.qd_per_drive), {})
            named.setdefault(str(noted.workload).rpartition("_")[0], {})[geometry.width] = noted.rate
    levels: set[RaidLevel] = set()
    for (level, depth), named in sorted(measured.items(), key=lambda item: -item[0][1]):
        several = {name: iops for name, iops in named.items() if len(iops) >= FEWEST}
        if len(several) >= FEWEST and level not in levels:
            levels.add(level)
            yield ProfileGrowth(level, depth, dict(list(several.items())[: len(SERIES)]))


def growth_chart(growth: ProfileGrowth) -> Chart:
    """Draw a line for each profile relative to its narrowest array, and the growth in proportion to the drives."""
    widths = growth.widths
    straight = Line([Point(width, width / widths[0]) for width in widths], name="in proportion", style=DOTTED)
    series, rows = {}, []
    for name, iops in growth.iops.items():
        narrowest = min(iops)
        # A profile that lacks the narrowest array begins on the line of its own first one.
        first = iops[narrowest] * widths[0] / narrowest
        texts = {width: format_value(rate, Unit.IOPS) for width, rate in sorted(iops.items())}
        series[name] = [
            Point(width, iops[width] / first, words=f"{name}, {width} drives: {text}") for width, text in texts.items()
        ]
        rows.append((name, *(texts.get(width, "") for width in widths)))
    caption = (
        f"Each line is one profile; on the dotted line an array of {widths[-1]} drives does "
        f"{widths[-1] / widths[0]:g} times as many IOPS as one of {widths[0]}."
    )
    key = slug("profile-growth", growth.level.value, str(growth.depth))
    title = f"{growth.level.value}: growth of server profiles over drives, QD {growth.depth} per drive"
    scale = Values(f"IOPS over those of {widths[0]} drives", Unit.RATIO, from_zero)
    panel = Panel(Numbers("drives", ticks=widths), scale, [straight, *lines_of(series)])
    table = Table(("profile", *(f"{width} drives" for width in widths)), tuple(rows))
    return Chart(key, title, caption, panel, table, growth.level.value)
