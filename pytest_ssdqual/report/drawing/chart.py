"""A chart of a page, and long series shortened for it, without loss of peaks, dips and gaps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from pytest_ssdqual.qual import safe_text

#: A place along x and the value there.
Pair = tuple[float, float]
#: Of a curve as wide as a page: one stretch takes two points of the drawing's width.
MOST_POINTS = 500


def extremes(points: Sequence[Pair], most: int = MOST_POINTS) -> list[Pair]:
    """Return at most ``most`` points in order: the first, the last, and the lowest and highest of every stretch.

    Stretches have equally many points. Averages, or every n-th point, would hide the one stall of a day that a curve
    of maxima is to show. ValueError below 4.
    """
    if most < 4:
        raise ValueError(f"fewer than 4 points cannot keep a series' ends and extremes, not {most}")
    if len(points) <= most:
        return list(points)
    stretches = (most - 2) // 2
    kept = {0, len(points) - 1}
    for index in range(stretches):
        stretch = range(index * len(points) // stretches, (index + 1) * len(points) // stretches)
        kept |= {find(stretch, key=lambda place: points[place][1]) for find in (min, max)}
    return [points[index] for index in sorted(kept)]


def gaps(points: Sequence[Pair]) -> list[Pair]:
    """Return the gaps of a series in even steps: the last x before and the first one after."""
    steps = [(before, after) for (before, _), (after, _) in pairwise(points)]
    usual = median(after - before for before, after in steps) if steps else 0.0
    return [(before, after) for before, after in steps if after - before > 1.5 * usual]


#: Rows beyond this are condensed: a table is read by people, the numbers of every second are in the run folder.
MOST_ROWS = 60


def slug(*parts: object) -> str:
    """Return an HTML id: ``widths-raid5-randread-4k``."""
    return re.sub(r"[^a-z0-9]+", "-", " ".join(map(str, parts)).lower()).strip("-")


def printable(text: object, most: int = 60) -> str:
    """Return foreign text as a label: printable, short, and without instructions for matplotlib.

    A label that begins with an underscore is left out of legends (``matplotlib.legend``).
    """
    shown = safe_text.line(str(text), most)
    return f" {shown}" if shown.startswith("_") else shown


def sentence(text: str) -> str:
    """Return the text with a capital and a full stop; empty for an empty text. ``capitalize`` would write ``iops``."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def condensed(points: Sequence[Pair], among: int = 1) -> list[Pair]:
    """Return at most ``MOST_ROWS`` of one or several series, with their peaks and dips."""
    return extremes(points, max(4, MOST_ROWS // among))


def condensing(count: int) -> str:
    """Return a sentence for the caption if the table has fewer rows than points were drawn; else empty."""
    return f" The table has the peaks and dips of {count:,} points." if count > MOST_ROWS else ""
