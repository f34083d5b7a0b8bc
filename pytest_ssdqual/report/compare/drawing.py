"""A history drawn: the figure of each run with its interval over time, and the page around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.compare import history_output
from pytest_ssdqual.report.compare.history import History, Point
from pytest_ssdqual.report.html import small_page
from pytest_ssdqual.report.html.small_page import Section, Table
from pytest_ssdqual.report.view.labels import label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pytest_ssdqual.report.charts.figure import Plate

#: What an axis counts in, and its name.
SCALES = {
    Unit.NANOSECONDS: (1e3, "µs"),
    Unit.BYTES_PER_SECOND: (1e6, "MB/s"),
    Unit.RATIO: (1.0, "times"),
    Unit.COUNT: (1.0, "I/Os"),
}


def svg(found: History) -> str:
    """As a file of its own."""
    return small_page.file(_drawn(found))


def page(found: History) -> str:
    """Self-contained HTML: what is shown, the drawing, the table."""
    rows = tuple(history_output.row(point, found.unit) for point in found.points)
    told = tuple(f"{each}." for each in history_output.sentences(found))
    head = ("run", *history_output.HEAD[1:-1], "remark")
    sections = [Section("Over time", (caption(found),), svg=_drawn(found)), Section("Runs", table=Table(head, rows))]
    return small_page.page(f"History: {found.name}", told, sections)


def caption(found: History) -> str:
    """What is drawn."""
    others = (
        " Hollow: another product or protocol than the last run's." if len(found.series) < len(found.points) else ""
    )
    return f"The figure of each run with its interval, by firmware.{others}"


def _drawn(found: History) -> str:
    from pytest_ssdqual.report.charts.figure import Plate, drawing

    factor, unit = SCALES.get(found.unit, (1.0, found.unit.value))
    with drawing():
        plate = Plate.of()
        axes = plate.axes("", f"{label(found.key.claim)}, {unit}")
        groups = dict.fromkeys((point.firmware, point.counts) for point in found.points)
        for index, (firmware, counts) in enumerate(groups):
            points = [each for each in found.points if (each.firmware, each.counts) == (firmware, counts)]
            points = [each for each in points if each.figure.estimate.unit is found.unit]
            _series(plate, axes, points, index, factor, firmware if counts else f"{firmware}, not counted")
        _step(plate, axes, found)
        _scale(axes)
        return plate.svg("history", found.name, caption(found))


def _series(plate: Plate, axes: Axes, points: Sequence[Point], index: int, factor: float, words: str) -> None:
    from pytest_ssdqual.report.charts.palette import MARKERS, colour

    if not points:
        return
    xs, estimates = [_x(each) for each in points], [each.figure.estimate for each in points]
    ends = [
        (each.low / factor, each.high / factor) if math.isfinite(each.low) and math.isfinite(each.high) else None
        for each in estimates
    ]
    plate.whiskers(axes, xs, ends, colour(index))
    (drawn,) = axes.plot(
        xs, [each.value / factor for each in estimates], linestyle="", color=colour(index),
        marker=MARKERS[index % len(MARKERS)], markerfacecolor=colour(index) if points[0].counts else "none",
    )  # fmt: skip
    plate.tell(drawn, [f"{point.run}: {point.figure.estimate}, firmware {point.firmware}" for point in points])
    plate.entry(drawn, f"firmware {words}")


def _step(plate: Plate, axes: Axes, found: History) -> None:
    """A line where the figure changed, if that is what is shown."""
    from pytest_ssdqual.report.charts.palette import INK

    drift = found.drift
    if drift.step and (drift.is_rather_step or not drift.trend):
        before, after = (_x(found.series[index]) for index in (drift.step.at - 1, drift.step.at))
        plate.entry(axes.axvline((before + after) / 2, color=INK, linestyle=(0, (2, 2)), linewidth=1.0), "changed here")


def _scale(axes: Axes) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=3, maxticks=8)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.ticklabel_format(axis="y", useOffset=False, style="plain")
    axes.margins(x=0.05, y=0.15)


def _x(point: Point) -> float:
    from matplotlib.dates import date2num

    return float(date2num(point.time))  # type: ignore[no-untyped-call]
