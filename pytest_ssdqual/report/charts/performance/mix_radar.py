"""Radar chart of a matrix of sizes and mixes: a spoke for each mix, a ring for each size."""

from __future__ import annotations

import math

from pytest_ssdqual.qual.units import Unit, format_size, format_value
from pytest_ssdqual.report.charts.performance.block_size_and_mix import Matrix, mix_label, named, table
from pytest_ssdqual.report.charts.performance.profiles import polygon, spokes
from pytest_ssdqual.report.drawing.chart import Chart
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.drawing.palette import DASHES

#: Rings beyond this have no line style of their own.
MOST_RINGS = len(DASHES)


def chart(matrix: Matrix, unit: Unit = Unit.IOPS) -> Chart:
    """Draw a ring for each size; 100 % is the highest value of the matrix."""
    what = "IOPS" if unit is Unit.IOPS else "bandwidth"
    key, title = named(f"radar-{what}", matrix, f"{what} by mix")
    mixes, sizes = matrix.mixes, _drawn(matrix)
    most = max((matrix.value(cell, unit) for cell in matrix.cells if cell[0] in sizes), default=0.0)
    turns = [2 * math.pi * index / len(mixes) for index in range(len(mixes))]
    with drawing():
        plate = Plate.of(3.9)
        plate.figure.add_axes((0.2, 0.13, 0.6, 0.74), projection="polar")
        for index, size in enumerate(sizes):
            values = [matrix.value((size, mix), unit) for mix in mixes]
            shares = [100 * value / most if most else 0.0 for value in values]
            tooltips = [
                f"{format_size(size)}, {mix_label(mix)}: {format_value(value, unit)}"
                for mix, value in zip(mixes, values, strict=True)
            ]
            polygon(plate, turns, shares, index, format_size(size), tooltips)
        spokes(plate, turns, [mix_label(mix) for mix in mixes])
        svg = plate.svg(key, title, f"{len(sizes)} sizes over {len(mixes)} mixes of reads and writes.")
    rim = format_value(most, unit)
    left_out = "" if len(sizes) == len(matrix.sizes) else " Sizes without every mix are left out."
    caption = f"Each spoke is one mix of reads/writes in per cent, each ring one size; the rim is {rim}.{left_out}"
    return Chart(key, title, caption, svg, table(matrix, unit), matrix.geometry)


def _drawn(matrix: Matrix) -> list[int]:
    """Sizes with every mix: a ring with a gap would be read as a dip."""
    whole = [size for size in matrix.sizes if all((size, mix) in matrix.cells for mix in matrix.mixes)]
    return whole[:MOST_RINGS]
