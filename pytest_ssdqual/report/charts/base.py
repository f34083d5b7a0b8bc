"""Axes in the field's terms: IOPS in thousands, latencies from ns to s; logarithmic where that is right.

Colours of charts: names in the picture, values in the page's style sheet, for light and dark paper.

The series began as Okabe and Ito's set for all kinds of colour vision (2008), of which orange, sky blue and yellow have
too little contrast on white (2.2, 2.3 and 1.3 to 1), blue and black on dark. These are shades of the same hues, moved
until each has at least 3 to 1 on its paper (WCAG 2.1, 1.4.11) and any two of them, limit, published figure and ink
included, differ by at least 17 in CIELAB, also to those who lack one kind of cone (Machado, Oliveira, Fernandes 2009).
Series differ in dash and marker besides.

What a chart is when it is done: a picture that fits into a page, what it says, and its numbers as a table.

Series as they are drawn: long ones made short without losing peaks, and parted where points are missing; pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.units import Unit, format_latency, format_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


#: Of a curve as wide as a page: one stretch takes two points of the drawing's width.
MOST_POINTS = 500


def extremes(xs: Sequence[float], ys: Sequence[float], most: int = MOST_POINTS) -> tuple[list[float], list[float]]:
    """At most ``most`` of the points, in order: the first, the last, and the lowest and highest of every stretch.

    Stretches have equally many points. Averages, or every n-th point, would hide the one stall of a day that a curve
    of maxima is looked at for. ValueError below 4.
    """
    if most < 4:
        raise ValueError(f"fewer than 4 points cannot keep a series' ends and extremes, not {most}")
    if len(xs) != len(ys):
        raise ValueError(f"{len(xs)} places and {len(ys)} values are no series")
    if len(xs) <= most:
        return list(xs), list(ys)
    stretches = (most - 2) // 2
    kept = {0, len(xs) - 1}
    for index in range(stretches):
        stretch = range(index * len(xs) // stretches, (index + 1) * len(xs) // stretches)
        kept |= {min(stretch, key=ys.__getitem__), max(stretch, key=ys.__getitem__)}
    return [xs[index] for index in sorted(kept)], [ys[index] for index in sorted(kept)]


def gaps(xs: Sequence[float]) -> list[tuple[float, float]]:
    """Where a series in even steps has none: from the last point before to the first one after."""
    usual = median(later - earlier for earlier, later in pairwise(xs)) if len(xs) > 1 else 0.0
    return [(earlier, later) for earlier, later in pairwise(xs) if later - earlier > 1.5 * usual]


def parted(xs: Sequence[float], ys: Sequence[float],
           missing: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:  # fmt: skip
    """The same with a point that is none in each gap, so that no line leads over it; matplotlib leaves NaN out."""
    between, found = sorted(missing), list[tuple[float, float]]()
    for index, (x, y) in enumerate(zip(xs, ys, strict=True)):
        if index and any(xs[index - 1] <= begin and end <= x for begin, end in between):
            found.append(((xs[index - 1] + x) / 2, math.nan))
        found.append((x, y))
    return [x for x, _ in found], [y for _, y in found]


def over_places(places: Sequence[int], xs: Sequence[float], ys: Sequence[float]) -> tuple[list[float], list[float]]:
    """A series over named places, such as numbers of drives, parted where it skips one of them."""
    found = list(zip(places, xs, strict=True))
    return parted(xs, ys, [(a[1], b[1]) for a, b in pairwise(found) if b[0] > a[0] + 1])


#: What spans less than this is read better from zero than by decades.
LOG_FROM = 8.0
#: Between ticks, times a power of ten; matplotlib's own include 1.5, 3, 4, 6 and 8.
STEPS = (1, 2, 2.5, 5, 10)


def short(value: float) -> str:
    """``950``, ``12k``, ``1.5M``: a tick, three digits."""
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
    """A linear scale from 0 to a little more than all of them."""
    from matplotlib.ticker import MaxNLocator

    most = max((each for each in values if math.isfinite(each)), default=0.0)
    axes.set_ylim(0, most * 1.08 if most > 0 else 1.0)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=STEPS))
    label(axes.yaxis, unit)


def by_decades(axes: Axes, unit: Unit, values: Sequence[float]) -> None:
    """A log scale around all of them that are above zero; ticks at 1, 2 and 5 where there are few decades."""
    from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

    found = [each for each in values if math.isfinite(each) and each > 0]
    if not found:
        from_zero(axes, unit, values)
        return
    low, high = min(found), max(found)
    # At least a factor of two from bottom to top, or noise would look like much.
    margin = max((high / low) ** 0.06, 1.12, (2 * low / high) ** 0.5)
    axes.set_ylim(low / margin, high * margin)
    axes.set_yscale("log")
    decades = math.log10(high / low) + 2 * math.log10(margin)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.5 else (1.0,), numticks=12))
    if decades < 0.5:  # may hold none of these
        from matplotlib.ticker import MaxNLocator

        axes.yaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())
    label(axes.yaxis, unit)


def suited(axes: Axes, unit: Unit, values: Sequence[float]) -> None:
    """By decades if they span several, from zero otherwise."""
    if is_wide(values):
        by_decades(axes, unit, values)
    else:
        from_zero(axes, unit, values)


def is_wide(values: Sequence[float]) -> bool:
    """Whether they span so much that the small ones would not be seen from zero."""
    found = [each for each in values if math.isfinite(each) and each > 0]
    return bool(found) and max(found) / min(found) >= LOG_FROM


def label(axis: Axis, unit: Unit) -> None:
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value, unit)))


def places(axes: Axes, words: Sequence[str], margin: float = 0.5, *, steep: bool = False) -> None:
    """Named places at 0, 1, 2, … along x."""
    axes.set_xticks(range(len(words)), words, rotation=30 if steep else 0, ha="right" if steep else "center")
    axes.set_xlim(-margin, len(words) - 1 + margin)
    axes.grid(visible=False, axis="x")


def seconds(axes: Axes, last_s: float) -> str:
    """Time along x from zero; returns the unit for the label."""
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


#: By the names of CSS custom properties, without the dashes.
LIGHT: Mapping[str, str] = {
    "s1": "#0a4d92",
    "s2": "#cd620c",
    "s3": "#008450",
    "s4": "#b7789a",
    "s5": "#744102",
    "s6": "#398ee0",
    "s7": "#352600",
    "s8": "#494759",
    "limit": "#db1045",
    "published": "#6e42d0",
    "band": "#6f7d8c",
}
DARK: Mapping[str, str] = {
    "s1": "#68b2fc",
    "s2": "#d16819",
    "s3": "#2c847b",
    "s4": "#cb6eb7",
    "s5": "#f0b43c",
    "s6": "#abd1f7",
    "s7": "#efd887",
    "s8": "#b0b0b2",
    "limit": "#ff5558",
    "published": "#8b77ff",
    "band": "#93a1b0",
}
PAPER_LIGHT, PAPER_DARK = "#ffffff", "#14181d"

#: What matplotlib draws with, and what becomes of it. Each stands for nothing else, so none can be missed.
INK, LIMIT, PUBLISHED, BAND = "#010101", "#0100a1", "#0100a2", "#0100a3"
SERIES = tuple(f"#0100f{index}" for index in range(1, 9))
VARIABLES: Mapping[str, str] = {
    INK: "currentColor",
    LIMIT: "var(--limit)",
    PUBLISHED: "var(--published)",
    BAND: "var(--band)",
    **{colour: f"var(--s{index})" for index, colour in enumerate(SERIES, start=1)},
}
#: Besides the colour, for those who do not see it and for print.
DASHES: tuple[str | tuple[float, tuple[float, ...]], ...] = (
    "-",
    (0, (5, 1.6)),
    (0, (1.2, 1.4)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (3, 1)),
    (0, (8, 2)),
    (0, (2, 2)),
    (0, (9, 1.5, 1.2, 1.5, 1.2, 1.5)),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def colour(index: int) -> str:
    """Of the n-th series, as matplotlib is told it; the ninth looks like the first."""
    return SERIES[index % len(SERIES)]


def style_sheet() -> str:
    """The custom properties for a page: light, dark where that is preferred, and light again on paper."""
    light = "".join(f"--{name}:{value};" for name, value in LIGHT.items())
    dark = "".join(f"--{name}:{value};" for name, value in DARK.items())
    return f":root{{{light}}}\n@media screen and (prefers-color-scheme: dark){{:root{{{dark}}}}}\n"


#: Rows beyond this are condensed: a table is read by people, the numbers of every second are in the run folder.
MOST_ROWS = 60


@dataclass(frozen=True, slots=True)
class ChartTable:
    """The numbers behind a chart, as text with units."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """One picture of a page."""

    #: Unique in a page, an HTML id.
    key: str
    #: What is to be seen.
    title: str
    #: One or two sentences: what, unit, limit, published, how to read.
    caption: str
    #: ``<svg …>`` fit for inlining: ids begin with ``key``, colours are ``currentColor`` and the palette's variables.
    svg: str
    #: Every number that is drawn; long series are condensed, and the caption says so.
    table: ChartTable
    #: Ids of the tests whose promises it shows.
    tests: tuple[str, ...] = ()
    #: For grouping: ``raid5``, ``drive``, …
    geometry: str = ""


def slug(*parts: str) -> str:
    """An HTML id of these: ``widths-raid5-randread-4k``."""
    return re.sub(r"[^a-z0-9]+", "-", " ".join(parts).lower()).strip("-")


def said(text: object, most: int = 60) -> str:
    """Text from outside, for a label: printable, short, and nothing that matplotlib takes for an instruction.

    A label that begins with an underscore is left out of legends (``matplotlib.legend``).
    """
    shown = safe_text.line(str(text), most)
    return f" {shown}" if shown.startswith("_") else shown


def sentence(text: str) -> str:
    """With a capital and a full stop; nothing of nothing. ``capitalize`` would write ``iops``."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def condensed(rows: Sequence[tuple[float, float]], among: int = 1) -> list[tuple[float, float]]:
    """Not more than ``MOST_ROWS`` of a series, or of so many series together, their peaks and dips among them."""
    kept = extremes([each[0] for each in rows], [each[1] for each in rows], max(4, MOST_ROWS // among))
    return list(zip(*kept, strict=True))


def condensing(count: int) -> str:
    """What a caption says of a table that has fewer rows than points were drawn; nothing if it has all."""
    return f" The table has the peaks and dips of {count:,} points." if count > MOST_ROWS else ""
