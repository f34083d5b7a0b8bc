"""Radar chart of server profiles: a spoke for each, and every array's share of the highest IOPS."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.report.charts.data import NotedMeasurement, Notes
from pytest_ssdqual.report.drawing import scales
from pytest_ssdqual.report.drawing.chart import Chart, printable, slug
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.drawing.palette import DASHES, MARKERS, colour
from pytest_ssdqual.report.view.tables import Table

#: Fewer spokes show no area.
FEWEST = 3
MOST_ARRAYS = 5


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
    found: dict[tuple[int, Geometry], dict[str, NotedMeasurement]] = {}
    for each in notes.measured:
        if each.workload.name and not each.geometry.missing:
            found.setdefault((each.workload.qd_per_drive, each.geometry), {})[each.workload.name] = each
    sets: dict[tuple[tuple[str, ...], int], list[Geometry]] = {}
    for (depth, array), named in found.items():
        if len(named) >= FEWEST:
            sets.setdefault((tuple(sorted(named)), depth), []).append(array)
    tooltips: set[tuple[str, ...]] = set()
    for (names, depth), arrays in sorted(sets.items(), key=lambda each: (-len(each[1]), -each[0][1])):
        if names in tooltips:
            continue
        tooltips.add(names)
        kept = sorted(arrays)[-MOST_ARRAYS:]
        yield Profiles(depth, names, {(array, name): found[depth, array][name] for array in kept for name in names})


def chart(profiles: Profiles) -> Chart:
    """Draw a polygon for each array."""
    arrays = profiles.arrays
    key = slug("profiles", *map(str, arrays), str(profiles.depth))
    title = f"Server profiles at QD {profiles.depth} per drive on {', '.join(map(str, arrays))}"
    most = {name: max(profiles.cells[array, name].rate for array in arrays) for name in profiles.names}
    with drawing():
        plate = Plate.of(3.6)
        axes = plate.figure.add_axes((0.2, 0.13, 0.6, 0.74), projection="polar")
        turns = [2 * math.pi * index / len(profiles.names) for index in range(len(profiles.names))]
        for index, array in enumerate(arrays):
            rates = [profiles.cells[array, name].rate for name in profiles.names]
            shares = [
                100 * rate / most[name] if most[name] else 0.0 for rate, name in zip(rates, profiles.names, strict=True)
            ]
            axes.fill(turns, shares, color=colour(index), alpha=0.10, linewidth=0)
            tooltips = [
                f"{array} {name}: {format_value(rate, Unit.IOPS)}"
                for name, rate in zip(profiles.names, rates, strict=True)
            ]
            polygon(plate, turns, shares, index, str(array), tooltips)
        spokes(plate, turns, [f"{printable(name)}\n{scales.short(most[name])} IOPS" for name in profiles.names])
        svg = plate.svg(key, title, f"{len(arrays)} arrays over {len(profiles.names)} profiles.")
    caption = "Each spoke is one mix of sizes, reads and writes; its end is the most IOPS that any of these arrays did."
    return Chart(key, title, caption, svg, _table(profiles, most), _level(arrays))


def polygon(plate: Plate, turns: list[float], shares: list[float], index: int, words: str, tooltips: list[str]) -> None:
    """Draw the closed line of one array or size over the spokes at ``turns``, in per cent of their ends."""
    (drawn,) = plate.figure.axes[0].plot(
        [*turns, turns[0]],
        [*shares, shares[0]],
        color=colour(index),
        linestyle=DASHES[index],
        marker=MARKERS[index],
    )
    plate.add_tooltips(drawn, [*tooltips, tooltips[0]])
    plate.entry(drawn, words)


def spokes(plate: Plate, turns: list[float], words: list[str]) -> None:
    """Label the spokes of a radar whose ends are 100 %."""
    axes = plate.figure.axes[0]
    axes.set_xticks(turns, words)
    axes.tick_params(axis="x", pad=9)
    axes.set_rlabel_position(180 / len(turns))  # type: ignore[attr-defined]
    axes.set_ylim(0, 105)
    axes.set_yticks([25, 50, 75, 100], ["", "50 %", "", "100 %"])
    for text, turn in zip(axes.get_xticklabels(), turns, strict=True):
        side = math.cos(turn)
        text.set_horizontalalignment("center" if abs(side) < 0.2 else "left" if side > 0 else "right")
    axes.spines["polar"].set_visible(False)


def _table(profiles: Profiles, most: Mapping[str, float]) -> Table:
    rows = tuple(
        (
            name,
            *(format_value(profiles.cells[array, name].rate, Unit.IOPS) for array in profiles.arrays),
            format_value(most[name], Unit.IOPS),
        )
        for name in profiles.names
    )
    return Table(("profile", *map(str, profiles.arrays), "the most"), rows)


def _level(arrays: list[Geometry]) -> str:
    levels = {array.level.value for array in arrays}
    return levels.pop() if len(levels) == 1 else ""
