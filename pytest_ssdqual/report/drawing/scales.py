"""Scales of charts in the field's terms: units at the ticks, zero or decades, named places, time; and their ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.units import Unit, format_latency, format_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

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
        return f"{value:.3g} ×"
    return format_value(value, unit).replace(".0 %", " %")


def from_zero(axes: Axes, unit: Unit, values: Sequence[float]) -> None:
    """Set a linear scale from 0 to a little above the maximum."""
    from matplotlib.ticker import MaxNLocator

    most = max((each for each in values if math.isfinite(each)), default=0.0)
    axes.set_ylim(0, most * 1.08 if most > 0 else 1.0)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=STEPS))
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
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

    decades = math.log10(high / low)
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.5 else (1.0,), numticks=12))
    if decades < 0.5:  # may hold none of these
        axis.set_major_locator(MaxNLocator(5, steps=STEPS))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
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
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value, unit)))


def places(axes: Axes, words: Sequence[str], margin: float = 0.5, *, steep: bool = False) -> None:
    """Put named places at 0, 1, 2, … along x."""
    axes.set_xticks(range(len(words)), words, rotation=30 if steep else 0, ha="right" if steep else "center")
    axes.set_xlim(-margin, len(words) - 1 + margin)
    axes.grid(visible=False, axis="x")


def seconds(axes: Axes, last_s: float) -> str:
    """Set a time axis from zero; return the unit for the label."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    unit, length = next(
        (u, n) for u, n, until in (("s", 1, 300), ("min", 60, 10_800), ("h", 3600, math.inf)) if last_s < until
    )
    axes.set_xlim(0, max(last_s, 1e-9))
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 3, 5, 6, 10]))
    if unit != "s":
        step = next(
            each
            for each in (1, 2, 5, 10, 15, 20, 30, 60, 120, 240, 480, 1440)
            if last_s / length / each <= 9 or each == 1440
        )
        axes.set_xticks([at * length for at in range(0, int(last_s / length) + 1, step)])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / length:.3g}"))
    return unit
