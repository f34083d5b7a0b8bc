"""Figures over their course: time, rounds, volume. A series is thinned without loss of peaks, dips and gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

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
from pytest_ssdqual.report.drawing.plot import Line, Point, Style, interrupted


@dataclass(frozen=True, slots=True)
class DrawnCourse:
    """A figure over its course, such as that of one drive."""

    #: Name in the table and at the points; empty if the table has a single series.
    name: str
    points: Sequence[Pair]
    #: Entry of the legend.
    legend: str = ""


@dataclass(frozen=True, slots=True)
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
