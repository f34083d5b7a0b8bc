"""IOPS, bandwidth and latency by transfer size and mix, as lines, as maps and as radars."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_ssdqual.qual.units import Unit, format_size, format_value
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts.data import Notes, per_drive
from pytest_ssdqual.report.drawing.chart import sentence, slug
from pytest_ssdqual.report.drawing.palette import DASHES
from pytest_ssdqual.report.drawing.plot import Chart, Mark, Panel, Point, Radar, lines_of, over_places, tile
from pytest_ssdqual.report.drawing.scales import Places, Rows, Values, tick
from pytest_ssdqual.report.evidence.evidence import About, Finding
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.view.tables import Table

#: Sizes and mixes that make a map; fewer are a curve.
FEWEST = 3
#: From the palest to the strongest tint of a map, at least: noise must not look like a landscape.
LEAST_SPAN = 4.0
#: Rings of a radar beyond this have no line style of their own.
MOST_RINGS = len(DASHES)
CLAIM = "steady_iops"
#: Maps of loops beside that of IOPS (SNIA PTS 2.0.2, latency test), with the name of the figure.
LATENCIES = {"mean_latency": "mean latency", "max_latency": "maximum latency"}
Cell = tuple[int, int]
#: Figures and verdicts of cells by array and by what they have in common.
Found = dict[tuple[str, str], tuple[dict[Cell, float], dict[Cell, Judged]]]


@dataclass(frozen=True, slots=True)
class Matrix:
    """IOPS or a latency by size in bytes and per cent of reads, of random accesses that are otherwise equal."""

    geometry: str
    #: ``4 threads × QD 32``, or the name of the loop.
    how: str
    cells: Mapping[Cell, float]
    judged: Mapping[Cell, Judged]
    claim: str = CLAIM

    @property
    def unit(self) -> Unit:
        return Unit.NANOSECONDS if self.claim in LATENCIES else Unit.IOPS

    @property
    def sizes(self) -> list[int]:
        return sorted({size for size, _ in self.cells})

    @property
    def mixes(self) -> list[int]:
        """Mixes, pure reads first, as in the sources."""
        return sorted({mix for _, mix in self.cells}, reverse=True)

    @property
    def is_one(self) -> bool:
        return len(self.sizes) >= FEWEST and len(self.mixes) >= FEWEST

    def value(self, cell: Cell, unit: Unit) -> float:
        """Figure of a cell, or from its IOPS the bytes per second: all its transfers have one size."""
        return self.cells[cell] * (cell[0] if unit is Unit.BYTES_PER_SECOND else 1)

    def named(self, prefix: str, what: str) -> tuple[str, str]:
        """Key and title of a chart."""
        level = self.geometry + per_drive("" if self.claim in LATENCIES else self.geometry, ", per drive")
        return slug(prefix, self.geometry, self.how), f"{level}: {what}, {self.how}"

    def table(self, unit: Unit) -> Table:
        """Return a row for each size, a column for each mix."""
        rows = [
            (
                format_size(size),
                *(
                    format_value(self.value((size, mix), unit), unit) if (size, mix) in self.cells else ""
                    for mix in self.mixes
                ),
            )
            for size in self.sizes
        ]
        return Table(("block size", *map(mix_label, self.mixes)), tuple(rows))

    def point(self, x: float, cell: Cell, unit: Unit, most: float = 100.0) -> Point:
        """Return the figure of a cell in per cent of ``most``: by default as it is."""
        value = self.value(cell, unit)
        words = f"{format_size(cell[0])}, {mix_label(cell[1])}: {format_value(value, unit)}"
        return Point(x, 100 * value / most if most else 0.0, words=words)


def matrices(notes: Notes) -> Iterator[Matrix]:
    """Yield the matrices of IOPS of loops, then of single measurements, the largest first."""
    found = _of_loops(notes, CLAIM)
    for noted in notes.measured:
        if not noted.geometry.missing and _is_plain(noted.workload):
            array, cell = str(noted.geometry), _cell(noted.workload)
            cells, judged = found.setdefault((array, _how(noted.workload)), ({}, {}))
            cells[cell] = noted.rate
            for verdict in notes.verdicts(CLAIM, array, str(noted.workload)):
                judged[cell] = verdict
    yield from sorted(_large(found, CLAIM), key=lambda matrix: -len(matrix.cells))


def latency_matrices(notes: Notes) -> Iterator[Matrix]:
    """Yield the matrices of mean and maximum latency of loops."""
    for claim in LATENCIES:
        yield from _large(_of_loops(notes, claim), claim)


def _of_loops(notes: Notes, claim: str) -> Found:
    found: Found = {}
    for judged in notes.of_claims(claim):
        evidence = judged.evidence
        if evidence.about is About.LOOP and (work := _workload(evidence.workloads[0])):
            cells, verdicts = found.setdefault((evidence.geometries[0], evidence.group), ({}, {}))
            cells[_cell(work)], verdicts[_cell(work)] = evidence.value, judged
    return found


def _large(found: Found, claim: str) -> Iterator[Matrix]:
    made = (Matrix(array, how, cells, judged, claim) for (array, how), (cells, judged) in found.items())
    return (matrix for matrix in made if matrix.is_one)


def lines(matrix: Matrix) -> Chart:
    """Draw IOPS over the size, a line for each mix."""
    key, title = matrix.named("blocks", "IOPS by block size")
    return _lines(matrix, Values("IOPS", Unit.IOPS), key, title, "falls in step with the size")


def bandwidth_lines(matrix: Matrix) -> Chart:
    """Draw bandwidth over the size, a line for each mix."""
    key, title = matrix.named("bandwidth", "bandwidth by block size")
    return _lines(matrix, Values("bandwidth", Unit.BYTES_PER_SECOND), key, title, "is level")


def _lines(matrix: Matrix, scale: Values, key: str, title: str, limited: str) -> Chart:
    places = range(len(matrix.sizes))
    series = {}
    for mix in matrix.mixes:
        cells = [(place, (size, mix)) for place, size in enumerate(matrix.sizes) if (size, mix) in matrix.cells]
        points = [matrix.point(place, cell, scale.unit) for place, cell in cells]
        series[mix_label(mix)] = over_places(points, places)
    caption = f"Each line is one mix of reads/writes in per cent. Where a line {limited}, bandwidth is the limit."
    panel = Panel(Places("block size, bytes", [format_size(size) for size in matrix.sizes]), scale, lines_of(series))
    return Chart(key, title, caption, panel, matrix.table(scale.unit), matrix.geometry)


def heat_map(matrix: Matrix) -> Chart:
    """Draw a cell for each size and mix, darker for more IOPS or a longer latency, on a logarithmic scale."""
    figure = LATENCIES.get(matrix.claim, "IOPS")
    key, title = matrix.named(f"map-{figure}", f"{figure} by block size and mix")
    sizes, mixes = matrix.sizes[::-1], matrix.mixes
    failed = {cell for cell, judged in matrix.judged.items() if judged.evidence.outcome is Finding.FAIL}
    tiles = [Mark("grid", [False])]
    for cell, value in matrix.cells.items():
        at, share = (mixes.index(cell[1]), sizes.index(cell[0])), _share(value, list(matrix.cells.values()))
        tiles += tile(*at, tick(value, matrix.unit), share, is_framed=cell in failed)
    scale = f"logarithmic, over a factor of at least {LEAST_SPAN:g}"
    caption = (
        f"{sentence(figure)[:-1]} of every size and mix; the stronger the tint, the more ({scale})."
        f"{' Framed cells failed.' if failed else ''}"
    )
    rows = Rows([format_size(size) for size in sizes], "block size, bytes")
    panel = Panel(Places("reads/writes, %", list(map(mix_label, mixes))), rows, tiles)
    return Chart(key, title, caption, panel, matrix.table(matrix.unit), matrix.geometry, 0.62 + 0.3 * len(sizes))


def _share(value: float, values: Sequence[float]) -> float:
    """Return the position between minimum and maximum, 0…1, on a logarithmic scale with a minimum span."""
    positive = [each for each in values if each > 0]
    if value <= 0 or not positive:
        return 0.0
    span = max(max(positive) / min(positive), LEAST_SPAN)
    return max(0.0, 1 - math.log(max(positive) / value) / math.log(span))


def radar(matrix: Matrix, unit: Unit = Unit.IOPS) -> Chart:
    """Draw a ring for each size, a spoke for each mix; 100 % is the highest value of the matrix."""
    what = "IOPS" if unit is Unit.IOPS else "bandwidth"
    key, title = matrix.named(f"radar-{what}", f"{what} by mix")
    # A ring with a gap would be read as a dip.
    whole = [size for size in matrix.sizes if all((size, mix) in matrix.cells for mix in matrix.mixes)][:MOST_RINGS]
    most = max((matrix.value(cell, unit) for cell in matrix.cells if cell[0] in whole), default=0.0)
    rings = {format_size(size): [matrix.point(0, (size, mix), unit, most) for mix in matrix.mixes] for size in whole}
    caption = (
        "Each spoke is one mix of reads/writes in per cent, each ring one size; "
        f"the rim is {format_value(most, unit)}."
        f"{'' if len(whole) == len(matrix.sizes) else ' Sizes without every mix are left out.'}"
    )
    shown = Radar(list(map(mix_label, matrix.mixes)), lines_of(rings))
    return Chart(key, title, caption, shown, matrix.table(unit), matrix.geometry, 3.9)


def mix_label(reads: int) -> str:
    """A mix as the sources write it: ``65/35``."""
    return f"{reads}/{100 - reads}"


def _cell(workload: Workload) -> Cell:
    return round(workload.block_bytes), round(100 * workload.read_fraction)


def _how(workload: Workload) -> str:
    threads = "" if workload.threads is None else f"{workload.threads} threads × "
    streams = "" if workload.streams_per_drive == 1 else f"{workload.streams_per_drive} streams, "
    return f"{streams}{threads}QD {workload.qd_per_drive}{'' if workload.threads else ' per drive'}"


def _workload(name: str) -> Workload | None:
    try:
        workload = Workload.parse(name)
    except ValueError:
        return None
    return workload if _is_plain(workload) else None


def _is_plain(workload: Workload) -> bool:
    """Return True for random aligned accesses of one size to all addresses, which differ in size and mix only."""
    same = replace(workload, name="") if "/" not in workload.bs else workload
    plain = same.is_usual and same.is_random and same.random_percent == 100 and same.offset == "0"
    return plain and not same.has_streams and not workload.name and "/" not in workload.bs
