"""Where a series falls from one level to a lower one: a change point that single stalls and spikes do not move."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heappushpop

#: Values that a level must last for before and after the fall, one outlier included: fewer are a hiccup. Fast phases
#: can be short; what comes after has to be a level.
SHORTEST_BEFORE, SHORTEST_AFTER = 3, 5
#: How many times the mean scatter around either level a fall must be. Noise that jumps between two levels can be cut
#: so that it seems to fall by twice its scatter; a steady decline of any depth falls by four times.
CLEAR = 3.0


@dataclass(frozen=True, slots=True)
class Fall:
    """The cut that divides a series best into a higher and a lower level."""

    #: Of the first value of the lower level.
    index: int
    #: The higher level over the lower one.
    factor: float
    #: Whether the fall stands out of the scatter around both levels; else it may be noise, or a slow decline in it.
    is_clear: bool


def find(values: Sequence[float], least: float) -> Fall | None:
    """The fall of a series by more than a factor of ``least``; None if there is none.

    The series is cut in two where the sum of absolute deviations of the logarithms from the two medians is least. If
    the fall there is not clear, it is still told when the last third of the series lies that much below the first.
    """
    if len(values) < SHORTEST_BEFORE + SHORTEST_AFTER or max(values) <= 0:
        return None
    # Nothing at all is far down, but a finite way.
    least_seen = max(values) / 1e4
    logs = [math.log(max(each, least_seen)) for each in values]
    heads, tails = _levels(logs), _levels(logs[::-1])[::-1]
    cuts = [
        (heads[index - 1][1] + tails[index][1], index)
        for index in range(SHORTEST_BEFORE, len(logs) - SHORTEST_AFTER + 1)
        if heads[index - 1][0] - tails[index][0] > math.log(least)
    ]
    if not cuts:
        return None
    _, index = min(cuts)
    (upper, above), (lower, below) = heads[index - 1], tails[index]
    is_clear = upper - lower > CLEAR * max(above / index, below / (len(logs) - index))
    # Some cut through plain noise always finds a fall at one of its ends.
    third = len(logs) // 3
    declines = heads[third - 1][0] - tails[-third][0] > math.log(least)
    return Fall(index, math.exp(upper - lower), is_clear) if is_clear or declines else None


def _levels(values: Sequence[float]) -> list[tuple[float, float]]:
    """Of the values up to each: their median, and the sum of their absolute deviations from it.

    Two heaps hold the lower half (negated) and the upper half, so that a day of seconds takes no time.
    """
    lower: list[float] = []
    upper: list[float] = []
    lower_sum = upper_sum = 0.0
    found = []
    for value in values:
        highest = -heappushpop(lower, -value)
        lower_sum += value - highest
        heappush(upper, highest)
        upper_sum += highest
        if len(upper) > len(lower):
            lowest = heappop(upper)
            upper_sum -= lowest
            heappush(lower, -lowest)
            lower_sum += lowest
        middle = -lower[0] if len(lower) > len(upper) else (upper[0] - lower[0]) / 2
        found.append((middle, upper_sum - lower_sum + middle * (len(lower) - len(upper))))
    return found
