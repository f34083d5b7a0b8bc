"""A chart of a page, and long series shortened for it, without loss of peaks, dips and gaps."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.view.tables import Table

#: Of a curve as wide as a page: one stretch takes two points of the drawing's width.
MOST_POINTS = 500


def extremes(xs: Sequence[float], ys: Sequence[float], most: int = MOST_POINTS) -> tuple[list[float], list[float]]:
    """Return at most ``most`` points in order: the first, the last, and the lowest and highest of every stretch.

    Stretches have equally many points. Averages, or every n-th point, would hide the one stall of a day that a curve
    of maxima is to show. ValueError below 4.
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
    """Yield the gaps of a series in even steps: the last point before and the first one after."""
    usual = median(later - earlier for earlier, later in pairwise(xs)) if len(xs) > 1 else 0.0
    return [(earlier, later) for earlier, later in pairwise(xs) if later - earlier > 1.5 * usual]


def parted(xs: Sequence[float], ys: Sequence[float],
           missing: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:  # fmt: skip
    """Return the series with NaN in each gap, where matplotlib interrupts the line."""
    between, found = sorted(missing), list[tuple[float, float]]()
    for index, (x, y) in enumerate(zip(xs, ys, strict=True)):
        if index and any(xs[index - 1] <= begin and end <= x for begin, end in between):
            found.append(((xs[index - 1] + x) / 2, math.nan))
        found.append((x, y))
    return [x for x, _ in found], [y for _, y in found]


def over_places(places: Sequence[int], xs: Sequence[float], ys: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return a series over named places, such as numbers of drives, interrupted where it skips one."""
    found = list(zip(places, xs, strict=True))
    return parted(xs, ys, [(a[1], b[1]) for a, b in pairwise(found) if b[0] > a[0] + 1])


#: Rows beyond this are condensed: a table is read by people, the numbers of every second are in the run folder.
MOST_ROWS = 60


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of a page."""

    #: Unique in a page, an HTML id.
    key: str
    #: What is to be seen.
    title: str
    #: One or two sentences: what, unit, limit, published, how to read.
    caption: str
    #: ``<svg …>`` fit for inlining: ids begin with ``key``, colours are ``currentColor`` and the palette's variables.
    svg: str
    #: Every number that is drawn; long series are condensed, and the caption says so.
    table: Table
    #: Array or level, for grouping: ``raid5x4``, ``raid5``, ``drivex8``.
    geometry: str = ""

    @property
    def level(self) -> str:
        return self.geometry.partition("x")[0]


def slug(*parts: str) -> str:
    """Return an HTML id: ``widths-raid5-randread-4k``."""
    return re.sub(r"[^a-z0-9]+", "-", " ".join(parts).lower()).strip("-")


def printable(text: object, most: int = 60) -> str:
    """Return foreign text as a label: printable, short, and without instructions for matplotlib.

    A label that begins with an underscore is left out of legends (``matplotlib.legend``).
    """
    shown = safe_text.line(str(text), most)
    return f" {shown}" if shown.startswith("_") else shown


def sentence(text: str) -> str:
    """Return the text with a capital and a full stop; empty for an empty text. ``capitalize`` would write ``iops``."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def condensed(rows: Sequence[tuple[float, float]], among: int = 1) -> list[tuple[float, float]]:
    """Return at most ``MOST_ROWS`` of one or several series, with their peaks and dips."""
    kept = extremes([each[0] for each in rows], [each[1] for each in rows], max(4, MOST_ROWS // among))
    return list(zip(*kept, strict=True))


def condensing(count: int) -> str:
    """Return a sentence for the caption if the table has fewer rows than points were drawn; else empty."""
    return f" The table has the peaks and dips of {count:,} points." if count > MOST_ROWS else ""
