"""Ratios with their intervals, a row for each figure, on a logarithmic scale around 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.drawing.palette import INK, LIMIT, MARKERS, colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Intervals are cut at this multiple of the range of the ratios, as an unbounded one would hide all others.
BEYOND = 1.5
#: The finest steps of the axis first; so many of them are labelled at most.
STEPS, MOST_TICKS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0), 9


@dataclass(frozen=True, slots=True)
class DrawnRatio:
    """A ratio with its interval."""

    #: Position: the ordinal of its row, which several ratios of a row are spread around.
    y: float
    value: float
    low: float
    high: float
    #: Text at the point.
    words: str


@dataclass(frozen=True, slots=True)
class RatioSeries:
    """Ratios of one kind, with an entry in the legend."""

    name: str
    #: Ordinal of colour and marker.
    index: int
    ratios: Sequence[DrawnRatio]
    is_hollow: bool = False


@dataclass(frozen=True, slots=True)
class RatioLook:
    """Labels and sizes of a chart."""

    axis: str
    row_in: float
    #: Room for the names of the rows, and maximum length of one.
    label_in: float
    name_characters: int
    line_width: float
    marker_size: float
    #: Whether 1 is the limit of every row.
    is_limit: bool = False


def svg(key: str, title: str, caption: str, names: Sequence[str], series: Sequence[RatioSeries],
        look: RatioLook) -> str:  # fmt: skip
    """Return the chart; ``names`` are those of the rows from top to bottom."""
    with drawing():
        plate = Plate.of(max(1.2, look.row_in * len(names) + 0.7))
        axes = plate.axes(look.axis, "")
        box = axes.get_position(original=True)
        left = look.label_in / plate.figure.get_size_inches()[0]
        axes.set_position((left, box.y0, box.x1 - left, box.height))
        if look.is_limit:
            plate.entry(axes.axvline(1.0, color=LIMIT, linestyle=(0, (6, 2)), linewidth=1.4), "promised")
        else:
            axes.axvline(1.0, color=INK, linewidth=1.0)
        ends = limits([each for one in series for each in one.ratios])
        for each in series:
            _draw(plate, axes, each, look, ends)
        axes.set_xscale("log")
        axes.set_xlim(ends)
        axes.set_xticks(marked := ticks(*ends), [f"{each:g}" for each in marked])
        axes.set_xticks([], minor=True)
        axes.set_yticks(range(len(names)), [_short(each, look.name_characters) for each in names])
        axes.set_ylim(len(names) - 0.4, -0.6)
        return plate.svg(key, title, caption)


def _draw(plate: Plate, axes: Axes, series: RatioSeries, look: RatioLook, ends: tuple[float, float]) -> None:
    if not series.ratios:
        return
    ys = [each.y for each in series.ratios]
    lows, highs = (
        [max(each.low, ends[0]) for each in series.ratios],
        [min(each.high, ends[1]) for each in series.ratios],
    )
    tint = colour(series.index)
    axes.hlines(ys, lows, highs, colors=tint, linewidth=look.line_width)
    (drawn,) = axes.plot(
        [each.value for each in series.ratios], ys, linestyle="", marker=MARKERS[series.index], color=tint,
        markerfacecolor="none" if series.is_hollow else tint, markersize=look.marker_size,
    )  # fmt: skip
    plate.add_tooltips(drawn, [each.words for each in series.ratios])
    plate.entry(drawn, safe_text.line(series.name, 40))


def limits(ratios: Sequence[DrawnRatio]) -> tuple[float, float]:
    """Return limits of the axis that contain 1, all ratios, and intervals up to ``BEYOND``."""
    values = [1.0, *(each.value for each in ratios)]
    low, high = min(values), max(values)
    beyond = (high / low) ** BEYOND * 1.05
    ends = [(max(each.low, low / beyond), min(each.high, high * beyond)) for each in ratios]
    low, high = min([low, *(each[0] for each in ends)]), max([high, *(each[1] for each in ends)])
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
