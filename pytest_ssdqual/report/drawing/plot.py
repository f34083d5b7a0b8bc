"""A chart as data: points, marks and courses on axes; scales, legend, table and the texts of points follow from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.report.drawing.chart import (
    MOST_POINTS,
    MOST_ROWS,
    Pair,
    condensed,
    condensing,
    extremes,
    gaps,
    printable,
)
from pytest_ssdqual.report.drawing.figure import (
    BAD,
    BAND,
    DASHES,
    GOOD,
    INK,
    LIMIT,
    MARKERS,
    OPEN,
    PUBLISHED,
    Plate,
    colour,
    drawing,
)
from pytest_ssdqual.report.drawing.scales import Scale
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.view.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pytest_ssdqual.qual.spec.claims import Published


#: Markup of a table's cell.
CELL_BYTES = 10
Ends = tuple[float, float]
#: Where it begins, where it ends, and the value.
Stretch = tuple[float, float, float]
#: Properties as matplotlib names them.
Style = Mapping[str, Any]
PROMISED: Style = {"color": LIMIT, "linestyle": (0, (6, 2)), "linewidth": 1.4}
#: A limit of a part of the axes.
PART: Style = {"color": LIMIT, "linewidth": 1.6}
STATED: Style = {"color": PUBLISHED, "linestyle": "-.", "linewidth": 1.2}
DIAMOND: Style = {
    "color": PUBLISHED, "linestyle": "", "marker": "D", "markersize": 5, "markerfacecolor": "none", "zorder": 5,
    "clip_on": False,
}  # fmt: skip
#: A line of the model or a mark of it, beside measured series.
RULE: Style = {"color": INK, "linestyle": "-", "linewidth": 1.0}
DOTTED: Style = {**RULE, "linestyle": ":"}
KNEE: Style = {"color": INK, "linestyle": (0, (1.5, 2)), "linewidth": 1.2}
THIN: Style = {"linewidth": 1.0}
HOLLOW: Style = {**THIN, "markerfacecolor": "none"}
#: Dots of outcomes, in the hues that tables of pages have for them.
OUTCOMES: Mapping[Finding, Style] = {
    Finding.PASS: {"color": GOOD, "marker": "o"},
    Finding.FAIL: {"color": BAD, "marker": "s"},
    Finding.INCONCLUSIVE: {"color": OPEN, "marker": "D"},
    Finding.BOUNDED: {"color": OPEN, "marker": "v"},
    Finding.OBSERVED: {**HOLLOW, "color": BAND, "marker": "o"},
}


@frozen
class Point:
    """A figure at its place, with its interval; NaN interrupts a line."""

    x: float
    y: float
    #: Row of the table. Its cells are also shown under the pointer.
    row: tuple[str, ...] = ()
    interval: Ends | None = None
    #: Shown under the pointer instead.
    words: str = ""

    @property
    def text(self) -> str:
        return self.words or ", ".join(filter(None, self.row))


@frozen
class PointSeries:
    """Points with their intervals, and an entry in the legend."""

    points: Sequence[Point]
    #: Ordinal of colour, dash and marker.
    index: int = 0
    name: str = ""
    #: What differs from the usual look; a colour stands for another series than one of the palette.
    style: Style = field(default_factory=dict)

    @property
    def values(self) -> Iterator[float]:
        """What the scale has to hold."""
        for point in self.points:
            yield point.y
            yield from point.interval or ()

    @property
    def places(self) -> tuple[list[float], list[float]]:
        return [point.x for point in self.points], [point.y for point in self.points]

    def _draw_intervals(self, axes: Axes, tint: str) -> None:
        """Draw intervals as vertical lines with caps."""
        known = [(point.x, *point.interval) for point in self.points if point.interval]
        if known:
            xs, lows, highs = zip(*known, strict=True)
            axes.vlines(xs, lows, highs, colors=tint, linewidth=0.9)
            for ends in (lows, highs):
                axes.plot(xs, ends, linestyle="", marker="_", markersize=4, color=tint, markeredgewidth=0.9)


@frozen
class Line(PointSeries):
    """Points joined in order, unless the style says otherwise."""

    def draw(self, plate: Plate, axes: Axes) -> None:
        if not self.points:
            return
        tint = self.style.get("color", colour(self.index))
        self._draw_intervals(axes, tint)
        usual = {
            "color": tint, "linestyle": DASHES[self.index % len(DASHES)], "linewidth": 1.5, "markerfacecolor": tint,
            "marker": "" if "color" in self.style else MARKERS[self.index % len(MARKERS)],
        }  # fmt: skip
        (artist,) = axes.plot(*self.places, **{**usual, **self.style})
        plate.add_tooltips(artist, [point.text for point in self.points if point.text])
        plate.entry(artist, self.name)


def lines_of(series: Mapping[str, Sequence[Point]], style: Style | None = None) -> list[Line]:
    """Return a line for each series, by its name in the legend."""
    return [Line(points, index, name, style or {}) for index, (name, points) in enumerate(series.items())]


@frozen
class Bars(PointSeries):
    """A bar for each point, with a light fill on which limits and intervals stay visible."""

    width: float = 0.66

    def draw(self, plate: Plate, axes: Axes) -> None:
        tint = colour(self.index)
        usual = {"color": (tint, 0.25), "edgecolor": tint, "linewidth": 1.0}
        bars = axes.bar(*self.places, self.width, **{**usual, **self.style})
        for bar, point in zip(bars, self.points, strict=True):
            plate.add_tooltips(bar, [point.text])
            plate.entry(bar, self.name)
        self._draw_intervals(axes, INK)


@frozen
class Mark:
    """What one method of matplotlib's axes draws beside the series."""

    method: str
    places: Sequence[Any]
    name: str = ""
    style: Style = field(default_factory=dict)
    #: What the scale has to hold.
    values: Sequence[float] = ()
    words: str = ""

    def draw(self, plate: Plate, axes: Axes) -> None:
        artist = getattr(axes, self.method)(*self.places, **self.style)
        plate.add_tooltips(artist, [self.words] if self.words else [])
        plate.entry(artist, self.name)


def level(y: float, name: str, style: Style = PROMISED) -> Mark:
    """Return a value across the axes."""
    return Mark("axhline", [y], name, style, [y])


def upright(x: float, name: str, style: Style = KNEE) -> Mark:
    """Return a place along x, from bottom to top."""
    return Mark("axvline", [x], name, style)


def stretches(places: Sequence[Stretch], name: str = "", style: Style = PART, words: str = "") -> Mark:
    """Return values over parts of the axes."""
    begins, ends, ys = ([place[at] for place in places] for at in range(3))
    return Mark("hlines", [ys, begins, ends], name if places else "", style, ys, words)


def band(xs: Sequence[float], lows: Sequence[float], highs: Sequence[float], name: str) -> Mark:
    """Return a range of values, such as the allowed one, over places along x."""
    style = {"color": BAND, "alpha": 0.2, "linewidth": 0}
    return Mark("fill_between", [xs, lows, highs], name, style, [*lows, *highs])


def shade(begin: float, end: float) -> Mark:
    """Return a part of x from bottom to top, such as the rounds that count."""
    return Mark("axvspan", [begin, end], style={"color": BAND, "alpha": 0.12, "linewidth": 0})


def worded(point: Point, words: str, offset: Ends = (0, 3), side: str = "center") -> Mark:
    """Return a word beside a point, so many points of the page to the right and above."""
    return Mark("annotate", [words, (point.x, point.y), offset], style={"textcoords": "offset points", "ha": side})


def tile(x: int, y: int, words: str, share: float, *, is_framed: bool) -> list[Mark]:
    """Return a cell of a map with its word; ``share`` is the strength of its tint, 0…1."""
    # At most so much tint that ink can be read on it, on light and on dark paper.
    tint = {"color": colour(0), "alpha": 0.08 + 0.47 * share, "linewidth": 0}
    cell = Mark("barh", [y, 0.98, 0.94, x - 0.49], style=tint)
    frame = Mark("barh", [y, 0.94, 0.88, x - 0.47], style={"fill": False, "edgecolor": LIMIT, "linewidth": 1.4})
    text = Mark("text", [x, y, words], style={"ha": "center", "va": "center", "fontsize": 8.5})
    return [cell, frame, text] if is_framed else [cell, text]


AnyMark = Line | Bars | Mark


@frozen
class Panel:
    """Axes with their marks, and marks that have a scale of their own at the right."""

    across: Scale
    upward: Scale
    marks: Sequence[AnyMark]
    right: Scale | None = None
    right_marks: Sequence[AnyMark] = ()

    def draw(self, plate: Plate, rows: int, row: int) -> None:
        axes = plate.axes(self.across.label, self.upward.label, rows=rows, row=row, right=bool(self.right))
        _draw(plate, axes, self.upward, self.marks)
        if self.right:
            _draw(plate, plate.second(axes, self.right.label), self.right, self.right_marks)
        self.across.apply(axes, [point.x for point in self.points])

    @property
    def points(self) -> list[Point]:
        return [point for mark in self.marks if isinstance(mark, PointSeries) for point in mark.points]

    @property
    def title(self) -> str:
        """The axes and the number of points, for screen readers."""
        labels = [scale.label for scale in (self.upward, self.right) if scale and scale.label]
        return f"{' and '.join(labels)} by {self.across.label or 'name'}: {len(self.points)} points"


def _draw(plate: Plate, axes: Axes, scale: Scale, marks: Sequence[AnyMark]) -> None:
    for mark in marks:
        mark.draw(plate, axes)
    scale.apply(axes, [value for mark in marks for value in mark.values])


@frozen
class Radar:
    """A spoke for each name, whose end is 100 %, and a closed line for each series, a point on each spoke."""

    names: Sequence[str]
    rings: Sequence[Line]

    @property
    def points(self) -> list[Point]:
        return [point for ring in self.rings for point in ring.points]

    @property
    def title(self) -> str:
        return f"{len(self.rings)} rings over {len(self.names)} spokes"

    def draw(self, plate: Plate, rows: int, row: int) -> None:
        axes = plate.figure.add_axes((0.2, 0.13, 0.6, 0.74), projection="polar")
        turns = [2 * math.pi * index / len(self.names) for index in range(len(self.names))]
        for ring in self.rings:
            points = [replace(point, x=turn) for point, turn in zip(ring.points, turns, strict=True)]
            axes.fill(turns, ring.places[1], color=colour(ring.index), alpha=0.4 / len(self.rings), linewidth=0)
            replace(ring, points=[*points, points[0]]).draw(plate, axes)
        axes.set_xticks(turns, self.names)
        axes.tick_params(axis="x", pad=9)
        axes.set_rlabel_position(180 / len(turns))  # type: ignore[attr-defined]
        axes.set_ylim(0, 105)
        axes.set_yticks([25, 50, 75, 100], ["", "50 %", "", "100 %"])
        for text, turn in zip(axes.get_xticklabels(), turns, strict=True):
            side = math.cos(turn)
            if abs(side) < 0.2:
                text.set_horizontalalignment("center")
            else:
                text.set_horizontalalignment("left" if side > 0 else "right")
        axes.spines["polar"].set_visible(False)


@dataclass(frozen=True)
class Chart:
    """A chart of a page, drawn when its ``svg`` is read. ``cached_property`` needs a ``__dict__``, hence no slots."""

    #: Unique in a page, an HTML id.
    key: str
    #: What is to be seen.
    title: str
    #: One or two sentences: what, unit, limit, published, how to read.
    caption: str
    #: Axes from top to bottom.
    panels: Panel | Radar | tuple[Panel, ...]
    #: Every number that is drawn; long series are condensed, and the caption says so.
    table: Table
    #: Array or level, for grouping: ``raid5x4``, ``raid5``, ``drivex8``.
    geometry: str = ""
    height_in: float = 3.3

    @property
    def level(self) -> str:
        return self.geometry.partition("x")[0]

    @cached_property
    def svg(self) -> str:
        """``<svg …>`` for inlining; ids begin with ``key``, colours are ``currentColor`` and the palette's."""
        panels = self.panels if isinstance(self.panels, tuple) else (self.panels,)
        with drawing():
            plate = Plate.of(self.height_in)
            for row, panel in enumerate(panels):
                panel.draw(plate, len(panels), row)
            return plate.svg(self.key, self.title, "; ".join(panel.title for panel in panels))


def table_of(columns: Sequence[str], panel: Panel) -> Table:
    """Return the table of the rows of all points, each once, in the order in which they are drawn."""
    rows = dict.fromkeys(point.row for point in panel.points if point.row)
    return Table(tuple(columns), tuple(rows))


def interrupted(points: Sequence[Point], gaps: Iterable[Ends]) -> list[Point]:
    """Return the points with one that interrupts the line in each gap."""
    missing = sorted(gaps)
    parted = list(points[:1])
    for before, point in pairwise(points):
        if any(before.x <= begin and end <= point.x for begin, end in missing):
            parted.append(Point((before.x + point.x) / 2, math.nan))
        parted.append(point)
    return parted


def over_places(points: Sequence[Point], places: Iterable[int]) -> list[Point]:
    """Return a series over named places, such as numbers of drives, interrupted where it skips one."""
    skipped = [
        (one.x, other.x)
        for one, other in pairwise(points)
        if any(round(one.x) < place < round(other.x) for place in places)
    ]
    return interrupted(points, skipped)


def stated(evidence: Evidence, unit: Unit, of: str = "") -> Iterator[Mark]:
    """Yield limit and published figure of a verdict if the axes have their unit."""
    if evidence.limit is not None and evidence.unit is unit:
        yield level(evidence.limit, f"promised{of}: {evidence.bound}")
    if evidence.published and evidence.published.unit is unit:
        yield level(evidence.published.value, f"published{of}: {evidence.published}", STATED)


def published(figures: Iterable[tuple[float, Published]], name: str = "published", style: Style | None = None) -> Line:
    """Return published figures as diamonds or in another style, each at its x."""
    points = [Point(x, figure.value, words=f"published: {figure}") for x, figure in figures]
    return Line(points, name=name, style={**DIAMOND, **(style or {})})


@frozen
class DrawnCourse:
    """A figure over its course, such as that of one drive."""

    #: Name in the table and at the points; empty if the table has a single series.
    name: str
    points: Sequence[Pair]
    #: Entry of the legend.
    legend: str = ""


@frozen
class Courses:
    """Courses of one unit on the same axes."""

    series: Sequence[DrawnCourse]
    unit: Unit
    #: Writes a place along x.
    place: Callable[[float], str]
    #: Points of a series beyond which markers would hide the line.
    most_marked: int = MOST_ROWS
    #: Points of a series beyond which it is thinned.
    most_points: int = MOST_POINTS
    #: Whether the steps are even, so that a longer one is a gap.
    is_even: bool = False

    def lines(self, indices: Sequence[int] = (), style: Style | None = None) -> list[Line]:
        """Return a line for each series; a gap interrupts it."""
        return [
            self._line(series, index, style or {})
            for index, series in zip(indices or range(len(self.series)), self.series, strict=True)
        ]

    def _line(self, series: DrawnCourse, index: int, style: Style) -> Line:
        shown = extremes(series.points, self.most_points)
        marked = {} if len(shown) <= self.most_marked else {"marker": ""}
        points = interrupted(self._points(series.name, shown), self._gaps(series))
        return Line(points, index, printable(series.legend), {**style, **marked})

    def _gaps(self, series: DrawnCourse) -> list[Pair]:
        return gaps(series.points) if self.is_even else []

    def _points(self, name: str, pairs: Iterable[Pair]) -> list[Point]:
        texts = (name,) if name else ()
        return [Point(x, y, (*texts, self.place(x), format_value(y, self.unit, 1))) for x, y in pairs]

    def rows(self, among: int = 1) -> tuple[tuple[str, ...], ...]:
        """Return the rows of the table, condensed to a part of the most rows for each of several series."""
        return tuple(
            point.row for series in self.series for point in self._points(series.name, condensed(series.points, among))
        )

    @property
    def remarks(self) -> str:
        """The end of the caption: what a gap is, and whether the table has all points."""
        stalls = " Where a line has a gap, no I/O completed or fio reported nothing."
        is_parted = any(self._gaps(series) for series in self.series)
        return (stalls if is_parted else "") + condensing(max(len(series.points) for series in self.series))


def over_time(series: Sequence[DrawnCourse], unit: Unit) -> Courses:
    """Return courses over seconds, in even steps."""
    return Courses(series, unit, lambda seconds: f"{seconds:,.1f} s", is_even=True)


@dataclass(slots=True)
class ChartRoom:
    """Bytes left for charts with their tables, and the charts that are already on the page."""

    left_bytes: int
    #: Where the numbers of missing charts are: ``the tables have``.
    numbers: str = "the tables have"
    keys: set[str] = field(default_factory=set)
    left_out: int = 0
    #: Why charts could not be drawn; empty if all could.
    complaint: str = ""

    def takes(self, chart: Chart) -> bool:
        """Draw the chart; return False, and count it as left out, if there is no room for it."""
        cells = [*chart.table.columns, *(cell for row in chart.table.rows for cell in row)]
        size = len(chart.svg.encode()) + sum(len(str(cell).encode()) + CELL_BYTES for cell in cells)
        if size > self.left_bytes:
            self.left_out += 1
            return False
        self.left_bytes -= size
        self.keys.add(chart.key)
        return True

    def taken(self, charts: Iterable[Chart]) -> tuple[Chart, ...]:
        """Draw the charts for which there is room, and return them; an error is noted, and ends it."""
        drawn: list[Chart] = []
        with self.guard():
            drawn += filter(self.takes, charts)
        return tuple(drawn)

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Note an error of a library that draws: the page is worth having without its charts."""
        try:
            yield
        except Exception as error:
            why = safe_text.line(f"{type(error).__name__}: {error}", 300)
            self.complaint = f"The charts could not be drawn ({why}); {self.numbers} their numbers."

    @property
    def note(self) -> str:
        """Why charts are missing; empty if none is."""
        if self.complaint or not self.left_out:
            return self.complaint
        charts = "chart is" if self.left_out == 1 else "charts are"
        return f"{self.left_out:,} more {charts} left out, to keep this page small; {self.numbers} their numbers."
