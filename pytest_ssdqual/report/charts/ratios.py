"""The form of a spread: ratios with their intervals, a row for each figure, on a logarithmic scale around 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.drawing.palette import colour
from pytest_ssdqual.report.drawing.plot import PROMISED, RULE, AnyMark, Line, Panel, Point, stretches, upright
from pytest_ssdqual.report.drawing.scales import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Intervals are cut at this multiple of the range of the ratios, as an unbounded one would hide all others.
BEYOND = 1.5
#: The finest steps of the axis first; so many of them are labelled at most.
STEPS, MOST_TICKS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0), 9
#: Width of a character of a row's name, on average.
CHARACTER_IN = 0.072


@dataclass(frozen=True, slots=True)
class Ratios:
    """Ratios by decades along x."""

    label: str
    ends: tuple[float, float]

    def apply(self, axes: Axes, values: Sequence[float]) -> None:
        marked = ticks(*self.ends)
        axes.set_xscale("log")
        axes.set_xlim(self.ends)
        axes.set_xticks(marked, [f"{tick:g}" for tick in marked])
        axes.set_xticks([], minor=True)


def spread(names: Sequence[str], lines: Sequence[Line], axis: str, room_in: float, *, is_limit: bool = False) -> Panel:
    """Return the panel of ratios: the x of a point with its interval, the y is the ordinal of its row, or near it.

    ``room_in`` is that of the names, ``is_limit`` says that 1 is the limit of every row.
    """
    ends = limits([point for line in lines for point in line.points])
    marks: list[AnyMark] = [upright(1.0, "promised" if is_limit else "", PROMISED if is_limit else RULE)]
    for line in lines:
        cut = [(*_cut(point, *ends), point.y) for point in line.points]
        marks.append(stretches(cut, style={"color": colour(line.index), "linewidth": 1.2}))
    for line in lines:
        dots = [replace(point, interval=None) for point in line.points]
        marks.append(replace(line, points=dots, style={"linestyle": "", "markersize": 4, **line.style}))
    shown = [_short(name, int(room_in / CHARACTER_IN)) for name in names]
    return Panel(Ratios(axis, ends), Rows(shown, room_in=room_in), marks)


def _cut(point: Point, low: float, high: float) -> tuple[float, float]:
    begin, end = point.interval or (point.x, point.x)
    return max(begin, low), min(end, high)


def limits(ratios: Sequence[Point]) -> tuple[float, float]:
    """Return limits of the axis that contain 1, all ratios, and intervals up to ``BEYOND``."""
    values = [1.0, *(ratio.x for ratio in ratios)]
    low, high = min(values), max(values)
    beyond = (high / low) ** BEYOND * 1.05
    ends = [_cut(ratio, low / beyond, high * beyond) for ratio in ratios]
    low, high = min([low, *(begin for begin, _ in ends)]), max([high, *(end for _, end in ends)])
    edge = max(1.002, (high / low) ** 0.04)
    return low / edge, high * edge


def ticks(left: float, right: float) -> list[float]:
    """Return round ratios including 1: evenly spaced, or 1, 2 and 5 times powers of ten for a wide range."""
    for step in STEPS:
        if right / left < 5 and (right - left) / step <= MOST_TICKS:
            return [each * step for each in range(math.ceil(left / step), math.floor(right / step) + 1)]
    found: list[float] = []
    exponents = range(math.floor(math.log10(left)), math.ceil(math.log10(right)) + 1)
    for digits in ((1, 2, 5), (1,)):
        found = [digit * 10.0**exponent for exponent in exponents for digit in digits]
        found = [each for each in found if left <= each <= right]
        if len(found) <= MOST_TICKS:
            break
    # An extreme range has hundreds of powers of ten: those that fit.
    return sorted({1.0, *found[:: max(1, math.ceil(len(found) / MOST_TICKS))]})


def _short(name: str, most: int) -> str:
    shown = safe_text.line(name, 200)
    return shown if len(shown) <= most else f"{shown[: most - 1].rstrip('… ')}…"
