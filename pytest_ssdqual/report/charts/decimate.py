"""Series as they are drawn: long ones made short without losing peaks, and parted where points are missing; pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

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
