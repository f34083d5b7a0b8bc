"""The form of a spread: ratios with their intervals, a row for each figure, on a logarithmic scale around 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.drawing.figure import colour
from pytest_ssdqual.report.drawing.plot import PROMISED, RULE, AnyMark, Line, Panel, Point, stretches, upright
from pytest_ssdqual.report.drawing.scales import Decades, Rows

#: Intervals are cut at this multiple of the range of the ratios, as an unbounded one would hide all others.
BEYOND = 1.5
#: End of a name that stays when it is cut: there are serial numbers and workloads.
TAIL = 8
#: Width of a character of a row's name, on average.
CHARACTER_IN = 0.072


def spread(names: Sequence[str], lines: Sequence[Line], axis: str, room_in: float, *, is_limit: bool = False) -> Panel:
    """Return the panel of ratios: the x of a point with its interval, the y is the ordinal of its row, or near it.

    ``room_in`` is that of the names. With ``is_limit`` 1 is the limit of every row, else what a change begins from.
    """
    ends = limits([point for line in lines for point in line.points])
    marks: list[AnyMark] = [upright(1.0, "promised" if is_limit else "", PROMISED if is_limit else RULE)]
    for line in lines:
        cut = [(*_cut(point, *ends), point.y) for point in line.points]
        marks.append(stretches(cut, style={"color": line.style.get("color", colour(line.index)), "linewidth": 1.2}))
    for line in lines:
        dots = [replace(point, interval=None) for point in line.points]
        marks.append(replace(line, points=dots, style={"linestyle": "", "markersize": 4, **line.style}))
    shown = [_short(name, int(room_in / CHARACTER_IN)) for name in names]
    return Panel(Decades(axis, Unit.RATIO, ends, is_change=not is_limit), Rows(shown, room_in=room_in), marks)


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


def _short(name: str, most: int) -> str:
    shown = safe_text.line(name, 200)
    return shown if len(shown) <= most else f"{shown[: most - TAIL - 1].rstrip('… ')}…{shown[-TAIL:]}"
