"""IOPS, bandwidth and latency by transfer size and mix, as lines and as maps; and the bathtub curve over mixes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_ssdqual.qual.units import Unit, format_size, format_value
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts.data import Notes
from pytest_ssdqual.report.charts.performance.queue_depth import DepthCurve, interval_words, intervals
from pytest_ssdqual.report.drawing import scales
from pytest_ssdqual.report.drawing.chart import Chart, over_places, sentence, slug
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.drawing.palette import INK, LIMIT, SERIES, colour
from pytest_ssdqual.report.evidence.evidence import About, Finding, Part
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.view.tables import Table

#: Sizes and mixes that make a map; fewer are a curve.
FEWEST = 3
#: From the palest to the strongest tint of a map, at least: noise must not look like a landscape.
LEAST_SPAN = 4.0
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

    def value(self, cell: Cell, unit: Unit) -> float:
        """Figure of a cell, or from its IOPS the bytes per second: all its transfers have one size."""
        return self.cells[cell] * (cell[0] if unit is Unit.BYTES_PER_SECOND else 1)

    @property
    def is_one(self) -> bool:
        return len(self.sizes) >= FEWEST and len(self.mixes) >= FEWEST


def matrices(notes: Notes) -> Iterator[Matrix]:
    """Yield the matrices of IOPS of loops, then of single measurements, the largest first."""
    found = _of_loops(notes, CLAIM)
    for noted in notes.measured:
        if not noted.geometry.missing and _is_plain(noted.workload):
            array, name = str(noted.geometry), str(noted.workload)
            cells, judged = found.setdefault((array, _how(noted.workload)), ({}, {}))
            cells[_cell(noted.workload)] = noted.rate
            judged.update({_cell(noted.workload): each for each in notes.verdicts(CLAIM, array, name)})
    yield from sorted(_large(found, CLAIM), key=lambda each: -len(each.cells))


def latency_matrices(notes: Notes) -> Iterator[Matrix]:
    """Yield the matrices of mean and maximum latency of loops."""
    for claim in LATENCIES:
        yield from _large(_of_loops(notes, claim), claim)


def _of_loops(notes: Notes, claim: str) -> Found:
    found: Found = {}
    for each in notes.of_claims(claim):
        evidence = each.evidence
        if evidence.about is About.LOOP and (work := _workload(evidence.workloads[0])):
            cells, judged = found.setdefault((evidence.geometries[0], evidence.group), ({}, {}))
            cells[_cell(work)], judged[_cell(work)] = evidence.value, each
    return found


def _large(found: Found, claim: str) -> Iterator[Matrix]:
    made = (Matrix(array, how, cells, judged, claim) for (array, how), (cells, judged) in found.items())
    yield from (each for each in made if each.is_one)


def lines(matrix: Matrix) -> Chart:
    """Draw IOPS over the size, a line for each mix."""
    key, title = named("blocks", matrix, "IOPS by block size")
    words = "Where a line falls in step with the size, bandwidth is the limit."
    return _lines(matrix, Unit.IOPS, key, title, words)


def bandwidth_lines(matrix: Matrix) -> Chart:
    """Draw bandwidth over the size, a line for each mix."""
    key, title = named("bandwidth", matrix, "bandwidth by block size")
    words = "Where a line is level, bandwidth is the limit."
    return _lines(matrix, Unit.BYTES_PER_SECOND, key, title, words)


def _lines(matrix: Matrix, unit: Unit, key: str, title: str, words: str) -> Chart:
    with drawing():
        plate = Plate.of()
        axes = plate.axes("block size, bytes", "IOPS" if unit is Unit.IOPS else "bandwidth")
        for index, mix in enumerate(matrix.mixes):
            found = [(place, size) for place, size in enumerate(matrix.sizes) if (size, mix) in matrix.cells]
            ys = [matrix.value((size, mix), unit) for _, size in found]
            tooltips = [
                f"{format_size(size)}, {mix_label(mix)}: {format_value(y, unit)}"
                for (_, size), y in zip(found, ys, strict=True)
            ]
            places = [place for place, _ in found]
            plate.line(axes, *over_places(places, places, ys), index, mix_label(mix), tooltips=tooltips)
        scales.suited(axes, unit, [matrix.value(cell, unit) for cell in matrix.cells])
        scales.places(axes, [format_size(size) for size in matrix.sizes])
        svg = plate.svg(key, title, f"{len(matrix.mixes)} mixes of reads and writes over {len(matrix.sizes)} sizes.")
    caption = f"Each line is one mix of reads/writes in per cent. {words}"
    return Chart(key, title, caption, svg, table(matrix, unit), matrix.geometry)


def heat_map(matrix: Matrix) -> Chart:
    """Draw a cell for each size and mix, darker for more IOPS or a longer latency, on a logarithmic scale."""
    figure = LATENCIES.get(matrix.claim, "IOPS")
    key, title = named(f"map-{figure}", matrix, f"{figure} by block size and mix")
    sizes, mixes = matrix.sizes[::-1], matrix.mixes
    with drawing():
        plate = Plate.of(0.62 + 0.3 * len(sizes))
        axes = plate.axes("reads/writes, %", "block size, bytes")
        for cell, value in matrix.cells.items():
            at = mixes.index(cell[1]), sizes.index(cell[0])
            _fill(plate, matrix, cell, at, _share(value, list(matrix.cells.values())))
        scales.places(axes, [mix_label(mix) for mix in mixes])
        axes.set_yticks(range(len(sizes)), [format_size(size) for size in sizes])
        axes.set_ylim(len(sizes) - 0.5, -0.5)
        axes.grid(visible=False)
        svg = plate.svg(key, title, f"{len(matrix.cells)} cells with {figure}.")
    broken = sum(each.evidence.outcome is Finding.FAIL for each in matrix.judged.values())
    framed = " Framed cells failed." if broken else ""
    scale = f"logarithmic, over a factor of at least {LEAST_SPAN:g}"
    caption = f"{sentence(figure)[:-1]} of every size and mix; the stronger the tint, the more ({scale}).{framed}"
    return Chart(key, title, caption, svg, table(matrix, matrix.unit), matrix.geometry)


def _fill(plate: Plate, matrix: Matrix, cell: Cell, at: tuple[int, int], share: float) -> None:
    from matplotlib.patches import Rectangle

    axes, value = plate.figure.axes[0], matrix.cells[cell]
    failed = (each := matrix.judged.get(cell)) is not None and each.evidence.outcome is Finding.FAIL
    # At most so much tint that ink can be read on it, on light and on dark paper.
    axes.add_patch(
        Rectangle((at[0] - 0.49, at[1] - 0.47), 0.98, 0.94, color=SERIES[0], alpha=0.08 + 0.47 * share, linewidth=0)
    )
    if failed:
        axes.add_patch(Rectangle((at[0] - 0.47, at[1] - 0.44), 0.94, 0.88, fill=False, edgecolor=LIMIT, linewidth=1.4))
    axes.text(at[0], at[1], scales.tick(value, matrix.unit), ha="center", va="center", color=INK, fontsize=8.5)


def _share(value: float, values: Sequence[float]) -> float:
    """Return the position between minimum and maximum, 0…1, on a logarithmic scale with a minimum span."""
    found = [each for each in values if each > 0]
    if value <= 0 or not found:
        return 0.0
    return max(0.0, 1 - math.log(max(found) / value) / math.log(max(max(found) / min(found), LEAST_SPAN)))


def table(matrix: Matrix, unit: Unit = Unit.IOPS) -> Table:
    """Table of a matrix: a row for each size, a column for each mix."""
    rows = []
    for size in matrix.sizes:
        cells = [(size, mix) for mix in matrix.mixes]
        shown = [format_value(matrix.value(each, unit), unit) if each in matrix.cells else "" for each in cells]
        rows.append((format_size(size), *shown))
    return Table(("block size", *(mix_label(mix) for mix in matrix.mixes)), tuple(rows))


def named(prefix: str, matrix: Matrix, what: str) -> tuple[str, str]:
    """Key and title of a chart of the matrix."""
    is_average = matrix.geometry.startswith("drive") and matrix.claim not in LATENCIES
    level = f"{matrix.geometry}, per drive" if is_average else matrix.geometry
    return slug(prefix, matrix.geometry, matrix.how), f"{level}: {what}, {matrix.how}"


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
        found = Workload.parse(name)
    except ValueError:
        return None
    return found if _is_plain(found) else None


def _is_plain(workload: Workload) -> bool:
    """Return True for random aligned accesses of one size to all addresses, which differ in size and mix only."""
    same = replace(workload, name="") if "/" not in workload.bs else workload
    plain = same.is_usual and same.is_random and same.random_percent == 100 and same.offset == "0"
    return plain and not same.has_streams and not workload.name and "/" not in workload.bs


BATHTUB_CLAIM = "bathtub_depth"


def shares(curve: DepthCurve) -> list[tuple[float, Part, float]]:
    """Return per cent of reads, point and IOPS, pure reads first; empty if a name has no mix."""
    found = []
    for point in curve.points:
        try:
            workload = Workload.parse(point.name)
        except ValueError:
            return []
        iops = point.figures.get("iops")
        if workload.has_streams or iops is None:
            return []
        found.append((100 * workload.read_fraction, point, iops))
    return sorted(found, key=lambda each: -each[0])


def is_by_mix(curve: DepthCurve) -> bool:
    """Return True for a series from pure reads to pure writes."""
    found = shares(curve)
    mixes = [share for share, _, _ in found]
    return len(set(mixes)) == len(mixes) >= 3 and mixes[0] == 100 and mixes[-1] == 0


def chart(notes: Notes, curve: DepthCurve, prefix: str = "mixes") -> Chart:
    """Draw the curve, the straight line between its ends, and the limit."""
    found = shares(curve)
    xs, ys = [share for share, _, _ in found], [iops for _, _, iops in found]
    line = [ys[-1] + (ys[0] - ys[-1]) * x / 100 for x in xs]
    judged = curve.of_claim(BATHTUB_CLAIM)
    evidence = judged.evidence if judged else None
    key = slug(prefix, curve.geometry, curve.group)
    deepest = f", at worst {evidence.measured} of the line" if evidence else ""
    title = f"{curve.geometry}{curve.per}: mixes of reads and writes, {curve.group}{deepest}"
    with drawing():
        plate = Plate.of()
        axes = plate.axes("reads, %", "IOPS")
        (straight,) = axes.plot(xs, line, color=INK, linewidth=1.0, linestyle=":")
        plate.entry(straight, "line from pure reads to pure writes")
        if evidence and evidence.limit is not None:
            least = [evidence.limit * y for y in line]
            (bound,) = axes.plot(xs, least, color=LIMIT, linestyle=(0, (6, 2)), linewidth=1.4)
            plate.entry(bound, f"promised: {evidence.bound} of it")
        ends = intervals(notes, curve, [point for _, point, _ in found])
        plate.whiskers(axes, xs, ends, colour(0))
        tooltips = [f"{x:.0f} % reads: {format_value(y, Unit.IOPS)}" for x, y in zip(xs, ys, strict=True)]
        plate.line(axes, xs, ys, 0, "IOPS", tooltips=tooltips)
        shown = plate.published(axes, [(x, each) for x, point, _ in found if (each := point.stated(Unit.IOPS))])
        scales.from_zero(axes, Unit.IOPS, [*ys, *(e[1] for e in ends if e), *shown])
        axes.set_xlim(103, -3)
        axes.set_xticks(xs)
        svg = plate.svg(key, title, f"IOPS of {len(xs)} mixes from pure reads to pure writes.")
    caption = f"From pure reads (left) to pure writes. {sentence(evidence.sentence) if evidence else ''}".rstrip()
    table = _mix_table(found, line, ends)
    return Chart(key, title, caption, svg, table, curve.geometry)


def _mix_table(found: Sequence[tuple[float, Part, float]], line: Sequence[float],
           ends: Sequence[tuple[float, float] | None]) -> Table:  # fmt: skip
    rows = tuple(
        (point.name, f"{share:.0f} %", format_value(iops, Unit.IOPS), interval_words(end),
         format_value(straight, Unit.IOPS),
         "; ".join(str(each) for each in point.published))
        for (share, point, iops), straight, end in zip(found, line, ends, strict=True)
    )  # fmt: skip
    return Table(("workload", "reads", "IOPS", "95 % interval", "the line", "published"), rows)
