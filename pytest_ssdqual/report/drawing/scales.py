"""Scales of charts in the field's terms: units at the ticks, zero or decades, named places, time; and their ticks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.units import Unit, format_capacity, format_latency, format_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

#: Width of every figure.
WIDTH_IN = 6.2
#: What spans less than this is read better from zero than by decades.
LOG_FROM = 8.0
#: Between ticks, times a power of ten; matplotlib's own include 1.5, 3, 4, 6 and 8.
STEPS = (1, 2, 2.5, 5, 10)


def short(value: float) -> str:
    """Return a tick of three digits: ``950``, ``12k``, ``1.5M``."""
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{letter}"
    return f"{value:.3g}"


def tick(value: float, unit: Unit) -> str:
    if unit is Unit.NANOSECONDS:
        return format_latency(value) if value else "0"
    if unit in (Unit.IOPS, Unit.COUNT):
        return short(value)
    if unit is Unit.RATIO:
        return f"{value:.4g} ×"
    return format_value(value, unit).replace(".0 %", " %")


def from_zero(axes: Axes, unit: Unit, values: Sequence[float]) -> None:
    """Set a linear scale from 0 to a little above the maximum."""
    most = max((each for each in values if math.isfinite(each)), default=0.0)
    axes.set_ylim(0, most * 1.08 if most > 0 else 1.0)
    axes.locator_params(axis="y", nbins=6)
    label(axes.yaxis, unit)


def by_decades(axes: Axes, unit: Unit, values: Sequence[float]) -> None:
    """Set a log scale around all positive values, with ticks at 1, 2 and 5 if there are few decades."""
    found = [each for each in values if math.isfinite(each) and each > 0]
    if not found:
        from_zero(axes, unit, values)
        return
    low, high = min(found), max(found)
    # At least a factor of two from bottom to top, or noise would look like much.
    margin = max((high / low) ** 0.06, 1.12, (2 * low / high) ** 0.5)
    axes.set_ylim(low / margin, high * margin)
    axes.set_yscale("log")
    log_ticks(axes.yaxis, unit, low / margin, high * margin)


def log_ticks(axis: Axis, unit: Unit, low: float, high: float) -> None:
    """Label a log scale from ``low`` to ``high`` at powers of ten, and at 2 and 5 if there are few decades."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    decades = math.log10(high / low)
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.5 else (1.0,), numticks=12))
    if decades < 0.5:  # may hold none of these
        axis.set_major_locator(MaxNLocator(5, steps=STEPS))
    axis.set_minor_locator(NullLocator())
    label(axis, unit)


def suited(axes: Axes, unit: Unit, values: Sequence[float]) -> None:
    """Set a log scale if the values span several decades, else a linear one from zero."""
    if is_wide(values):
        by_decades(axes, unit, values)
    else:
        from_zero(axes, unit, values)


def is_wide(values: Sequence[float]) -> bool:
    """Return True if the small values would be invisible on a scale from zero."""
    found = [each for each in values if math.isfinite(each) and each > 0]
    return bool(found) and max(found) / min(found) >= LOG_FROM


def label(axis: Axis, unit: Unit) -> None:
    axis.set_major_formatter(lambda value, _: tick(value, unit))


def around(values: Sequence[float], unit: Unit) -> tuple[float, float]:
    """Return ends close around the values, not below zero."""
    margin = 5.0 if unit is Unit.CELSIUS else (max(values) - min(values)) * 0.15 or 1.0
    return max(0.0, min(values) - margin), max(values) + margin


def close(axes: Axes, unit: Unit, values: Sequence[float]) -> None:
    """Set a linear scale close around the values, where a tenth matters."""
    axes.set_ylim(around(values, unit))
    axes.locator_params(axis="y", nbins=6)
    label(axes.yaxis, unit)


def spread(axes: Axes, unit: Unit, values: Sequence[float]) -> None:
    """Set a linear scale from the lowest to the highest value."""
    axes.margins(y=0.15)
    axes.ticklabel_format(axis="y", useOffset=False, style="plain")


def capacities(axes: Axes, unit: Unit, values: Sequence[float]) -> None:
    """Set a linear scale of bytes from zero."""
    from_zero(axes, unit, values)
    axes.yaxis.set_major_formatter(lambda value, _: format_capacity(round(value)) if value else "0")


def counts(axes: Axes, unit: Unit, values: Sequence[float]) -> None:
    """Set a log scale from half a piece on, so that a single one is seen."""
    by_decades(axes, unit, [0.5, *values])
    axes.set_ylim(bottom=0.5)


class Scale(Protocol):
    """A scale along x or up the page."""

    @property
    def label(self) -> str: ...

    def apply(self, axes: Axes, values: Sequence[float]) -> None:
        """Set the scale of axes on which these values are drawn."""


@frozen
class Values:
    """Figures of a unit, up the page."""

    label: str
    unit: Unit = Unit.COUNT
    fit: Callable[[Axes, Unit, Sequence[float]], None] = suited

    def apply(self, axes: Axes, values: Sequence[float]) -> None:
        self.fit(axes, self.unit, [value for value in values if math.isfinite(value)])


@frozen
class Rows:
    """Named rows from top to bottom, with room for their names at the left."""

    names: Sequence[str]
    label: str = ""
    room_in: float = 0.0

    def apply(self, axes: Axes, values: Sequence[float]) -> None:
        axes.set_yticks(range(len(self.names)), self.names)
        axes.set_ylim(len(self.names) - 0.4, -0.6)
        if self.room_in:
            box, left = axes.get_position(original=True), self.room_in / WIDTH_IN
            axes.set_position((left, box.y0, box.x1 - left, box.height))


@frozen
class Numbers:
    """Numbers along x between ends or around the values, with ticks at given ones or at round ones."""

    label: str
    ends: tuple[float, float] | None = None
    ticks: Sequence[float] = ()
    unit: Unit = Unit.COUNT
    is_whole: bool = False

    def apply(self, axes: Axes, values: Sequence[float]) -> None:
        axes.set_xlim(self.ends)  # without ends as they are
        axes.locator_params(axis="x", nbins=8, integer=self.is_whole)
        if self.ticks:
            axes.set_xticks(self.ticks)
        label(axes.xaxis, self.unit)


@frozen
class Places:
    """Named places at 0, 1, 2, … along x."""

    label: str
    words: Sequence[str]
    is_steep: bool = False

    def apply(self, axes: Axes, values: Sequence[float]) -> None:
        rotation, side = (30, "right") if self.is_steep else (0, "center")
        axes.set_xticks(range(len(self.words)), self.words, rotation=rotation, ha=side)
        axes.set_xlim(-0.5, len(self.words) - 0.5)
        axes.grid(visible=False, axis="x")


@frozen
class Depths:
    """Powers of two along x, with a tick at each depth."""

    label: str
    depths: Sequence[float]

    def apply(self, axes: Axes, values: Sequence[float]) -> None:
        from matplotlib.ticker import NullLocator

        axes.set_xlim(min(self.depths) / 1.25, max(self.depths) * 1.25)
        axes.set_xscale("log", base=2)
        axes.set_xticks(self.depths, [f"{depth:,.0f}" for depth in self.depths])
        axes.xaxis.set_minor_locator(NullLocator())


@frozen
class Decades:
    """A log scale along x, between ends or around the values."""

    label: str
    unit: Unit
    ends: tuple[float, float] | None = None
    #: True for ratios that are shown as changes in per cent.
    is_change: bool = False

    def apply(self, axes: Axes, values: Sequence[float]) -> None:
        axes.set_xscale("log")
        axes.set_xlim(self.ends)
        log_ticks(axes.xaxis, self.unit, *axes.get_xlim())
        if self.is_change:
            axes.xaxis.set_major_formatter(lambda value, _: change(value))


def change(ratio: float) -> str:
    """Return a ratio as a change: ``+20 %``, ``-5 %``, ``0 %``, ``+9,900 %``."""
    percent = round(100 * (ratio - 1), 6)
    if not percent:
        return "0 %"
    return f"{percent:+,.0f} %" if percent >= 1000 else f"{percent:+.3g} %"


@frozen
class Seconds:
    """Time from zero, in seconds, minutes or hours; the label names the unit."""

    label: str = "time"
    #: End of the scale, at least.
    last_s: float = 0.0

    def apply(self, axes: Axes, values: Sequence[float]) -> None:
        last_s = max([*values, self.last_s, 1e-9])
        unit, length = next(
            (u, n) for u, n, until in (("s", 1, 300), ("min", 60, 10_800), ("h", 3600, math.inf)) if last_s < until
        )
        axes.set_xlabel(f"{self.label}, {unit}" if self.label else "")
        axes.set_xlim(0, last_s)
        axes.locator_params(axis="x", nbins=8, steps=[1, 2, 3, 5, 6, 10])
        if unit != "s":
            steps = (1, 2, 5, 10, 15, 20, 30, 60, 120, 240, 480, 1440)
            step = next((step for step in steps if last_s / length / step <= 9), steps[-1])
            axes.set_xticks([at * length for at in range(0, int(last_s / length) + 1, step)])
        axes.xaxis.set_major_formatter(lambda value, _: f"{value / length:.3g}")


@frozen
class Dates:
    """Days as matplotlib counts them, along x."""

    label: str = ""

    def apply(self, axes: Axes, values: Sequence[float]) -> None:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        # A single run, or the runs of one day, in half a day to either side: matplotlib would show years.
        margin = max(0.5, 0.04 * (max(values) - min(values)))
        axes.set_xlim(min(values) - margin, max(values) + margin)


def day(time: datetime) -> float:
    """Return a time as ``Dates`` counts."""
    from matplotlib.dates import date2num

    return float(date2num(time))  # type: ignore[no-untyped-call]
