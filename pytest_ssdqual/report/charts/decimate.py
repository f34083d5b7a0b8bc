"""Long series made short without losing their peaks: least and most of every stretch; pure."""

from __future__ import annotations

from collections.abc import Sequence

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
