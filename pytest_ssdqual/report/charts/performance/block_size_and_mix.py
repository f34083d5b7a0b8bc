"""IOPS, bandwidth and latency by transfer size and mix, and server profiles: lines, maps, radars, growth."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.units import Unit, format_size, format_value
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts.data import Notes, per_drive
from pytest_ssdqual.report.drawing.chart import printable, sentence, slug
from pytest_ssdqual.report.drawing.figure import DASHES, SERIES
from pytest_ssdqual.report.drawing.plot import (
    DOTTED,
    Chart,
    Line,
    Mark,
    Panel,
    Point,
    Radar,
    lines_of,
    over_places,
    tile,
)
from pytest_ssdqual.report.drawing.scales import Numbers, Places, Rows, Values, from_zero, short, tick
from pytest_ssdqual.report.evidence.evidence import About, Finding
from pytest_ssdqual.report.view.grid import shared
from pytest_ssdqual.report.view.tables import Table, parsed

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
#: Figures of cells, and the cells that failed, by array and by what they have in common.
Found = dict[tuple[str, str], tuple[dict[Cell, float], set[Cell]]]


@frozen
class Matrix:
    """IOPS or a latency by size in bytes and per cent of reads, of random accesses that are otherwise equal."""

    geometry: str
    #: ``4 threads × QD 32``, or the name of the loop.
    how: str
    cells: Mapping[Cell, float]
    failed: Collection[Cell]
    claim: str

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
            cells, failed = found.setdefault((array, _how(noted.workload)), ({}, set()))
            cells[cell] = noted.rate
            if any(verdict.outcome is Finding.FAIL for verdict in notes.verdicts(CLAIM, array, str(noted.workload))):
                failed.add(cell)
    yield from sorted(_large(found, CLAIM), key=lambda matrix: -len(matrix.cells))


def latency_matrices(notes: Notes) -> Iterator[Matrix]:
    """Yield the matrices of mean and maximum latency of loops."""
    for claim in LATENCIES:
        yield from _large(_of_loops(notes, claim), claim)


def _of_loops(notes: Notes, claim: str) -> Found:
    found: Found = {}
    for evidence in notes.of_claims(claim):
        workload = parsed(evidence.workload)
        if evidence.about is About.LOOP and workload and _is_plain(workload):
            cells, failed = found.setdefault((evidence.geometry, evidence.group), ({}, set()))
            cells[_cell(workload)] = evidence.value
            if evidence.outcome is Finding.FAIL:
                failed.add(_cell(workload))
    return found


def _large(found: Found, claim: str) -> Iterator[Matrix]:
    made = (Matrix(*place, *cells, claim) for place, cells in found.items())
    return (matrix for matrix in made if matrix.is_one)


def lines(matrix: Matrix, unit: Unit = Unit.IOPS) -> Chart:
    """Draw IOPS or bandwidth over the size, a line for each mix."""
    what, prefix, limited = "IOPS", "blocks", "falls in step with the size"
    if unit is Unit.BYTES_PER_SECOND:
        what, prefix, limited = "bandwidth", "bandwidth", "is level"
    key, title = matrix.named(prefix, f"{what} by block size")
    places = range(len(matrix.sizes))
    series = {}
    for mix in matrix.mixes:
        cells = [(place, (size, mix)) for place, size in enumerate(matrix.sizes) if (size, mix) in matrix.cells]
        points = [matrix.point(place, cell, unit) for place, cell in cells]
        series[mix_label(mix)] = over_places(points, places)
    caption = f"Each line is one mix of reads/writes in per cent. Where a line {limited}, bandwidth is the limit."
    across = Places("block size, bytes", [format_size(size) for size in matrix.sizes])
    return Chart(
        key, title, caption, Panel(across, Values(what, unit), lines_of(series)), matrix.table(unit), matrix.geometry
    )


def heat_map(matrix: Matrix) -> Chart:
    """Draw a cell for each size and mix, darker for more IOPS or a longer latency, on a logarithmic scale."""
    figure = LATENCIES.get(matrix.claim, "IOPS")
    key, title = matrix.named(f"map-{figure}", f"{figure} by block size and mix")
    sizes, mixes = matrix.sizes[::-1], matrix.mixes
    tiles = [Mark("grid", [False])]
    for cell, value in matrix.cells.items():
        at, share = (mixes.index(cell[1]), sizes.index(cell[0])), _share(value, list(matrix.cells.values()))
        tiles += tile(*at, tick(value, matrix.unit), share, is_framed=cell in matrix.failed)
    scale = f"logarithmic, over a factor of at least {LEAST_SPAN:g}"
    caption = (
        f"{sentence(figure)[:-1]} of every size and mix; the stronger the tint, the more ({scale})."
        f"{' Framed cells failed.' if matrix.failed else ''}"
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


def _is_plain(workload: Workload) -> bool:
    """Return True for random aligned accesses of one size to all addresses, which differ in size and mix only."""
    is_of_one_size = not workload.name and "/" not in workload.bs and not workload.has_streams
    is_aligned_random = workload.is_random and workload.random_percent == 100 and workload.offset == "0"
    return is_of_one_size and is_aligned_random and workload.is_usual


#: Fewer spokes show no area.
FEWEST_SPOKES = 3
MOST_ARRAYS = 5
#: Fewer profiles, or widths, are no comparison of growth.
FEWEST_PROFILES = 2


def profile_radars(notes: Notes) -> Iterator[Chart]:
    """Yield a chart of the profiles of each set of arrays, at the deepest common queue."""
    measured: dict[tuple[int, Geometry], dict[str, float]] = {}
    for noted in notes.measured:
        if noted.workload.name and not noted.geometry.missing:
            measured.setdefault((noted.workload.qd_per_drive, noted.geometry), {})[noted.workload.name] = noted.rate
    sets: dict[tuple[tuple[str, ...], int], list[Geometry]] = {}
    for (depth, array), named in measured.items():
        if len(named) >= FEWEST_SPOKES:
            sets.setdefault((tuple(sorted(named)), depth), []).append(array)
    drawn_names: set[tuple[str, ...]] = set()
    for (names, depth), arrays in sorted(sets.items(), key=lambda item: (-len(item[1]), -item[0][1])):
        if names not in drawn_names:
            drawn_names.add(names)
            yield _profile_radar(
                depth, names, {array: measured[depth, array] for array in sorted(arrays)[-MOST_ARRAYS:]}
            )


def _profile_radar(depth: int, names: Sequence[str], rates: Mapping[Geometry, Mapping[str, float]]) -> Chart:
    """Draw a ring for each array, a spoke for each profile."""
    most = {name: max(of_array[name] for of_array in rates.values()) for name in names}
    rings = {
        str(array): [
            Point(
                0,
                100 * of_array[name] / most[name] if most[name] else 0.0,
                words=f"{array} {name}: {format_value(of_array[name], Unit.IOPS)}",
            )
            for name in names
        ]
        for array, of_array in rates.items()
    }
    spokes = [f"{printable(name)}\n{short(most[name])} IOPS" for name in names]
    rows = [
        (name, *(format_value(of_array[name], Unit.IOPS) for of_array in (*rates.values(), most))) for name in names
    ]
    table = Table(("profile", *rings, "the most"), tuple(rows))
    caption = "Each spoke is one mix of sizes, reads and writes; its end is the most IOPS that any of these arrays did."
    title = f"Server profiles at QD {depth} per drive on {', '.join(rings)}"
    key, level = slug("profiles", *rings, depth), shared(array.level.value for array in rates)
    return Chart(key, title, caption, Radar(spokes, lines_of(rings)), table, level, 3.6)


def growths(notes: Notes) -> Iterator[Chart]:
    """Yield a chart of the profiles of each level, at the deepest queue that at least two have on several widths."""
    measured: dict[tuple[RaidLevel, int], dict[str, dict[int, float]]] = {}
    for noted in notes.measured:
        geometry = noted.geometry
        if noted.workload.name and noted.rate and not geometry.missing and not geometry.is_side_by_side:
            named = measured.setdefault((geometry.level, noted.workload.qd_per_drive), {})
            named.setdefault(str(noted.workload).rpartition("_")[0], {})[geometry.width] = noted.rate
    levels: set[RaidLevel] = set()
    for (level, depth), named in sorted(measured.items(), key=lambda item: -item[0][1]):
        several = {name: iops for name, iops in named.items() if len(iops) >= FEWEST_PROFILES}
        if len(several) >= FEWEST_PROFILES and level not in levels:
            levels.add(level)
            yield _growth(level, depth, dict(list(several.items())[: len(SERIES)]))


def _growth(level: RaidLevel, depth: int, profiles: Mapping[str, Mapping[int, float]]) -> Chart:
    """Draw a line for each profile relative to its narrowest array, and the growth in proportion to the drives."""
    widths = sorted({width for iops in profiles.values() for width in iops})
    straight = Line([Point(width, width / widths[0]) for width in widths], name="in proportion", style=DOTTED)
    series, rows = {}, []
    for name, iops in profiles.items():
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
    key = slug("profile-growth", level.value, depth)
    title = f"{level.value}: growth of server profiles over drives, QD {depth} per drive"
    scale = Values(f"IOPS over those of {widths[0]} drives", Unit.RATIO, from_zero)
    panel = Panel(Numbers("drives", ticks=widths), scale, [straight, *lines_of(series)])
    table = Table(("profile", *(f"{width} drives" for width in widths)), tuple(rows))
    return Chart(key, title, caption, panel, table, level.value)
