"""Change point: where a series falls from one level to a lower one, robust against single stalls and spikes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush, heappushpop
from itertools import pairwise
from statistics import fmean, median

from pytest_ssdqual.qual.frozen import frozen

#: Fewest values of the levels before and after the fall, one outlier included. Fast phases can be short; what follows
#: has to be a level.
SHORTEST_BEFORE, SHORTEST_AFTER = 3, 5
#: Least fall, in multiples of the mean scatter around either level. Noise that jumps between two levels can be cut so
#: that it seems to fall by twice its scatter; a steady decline of any depth falls by four times.
CLEAR = 3.0
#: Decline allowed within a level, from its first third to its last, as a share of the following fall (logarithms). A
#: steady decline has two thirds at any cut, plateaus of a simulated drive with 3 % of noise 0.05.
LEVEL = 1 / 3


@frozen
class Fall:
    """The cut that best divides a series into a higher and a lower level."""

    #: Index of the first value of the lower level.
    index: int
    #: The higher level over the lower one.
    factor: float
    #: True if the fall exceeds the scatter around both levels; else it may be noise, or a slow decline.
    is_clear: bool
    #: True if the part before it is a level; else it declined from its beginning.
    is_from_level: bool
    #: True if the scatter between neighbours is too large for the fall to be clear; else an unclear fall is a slow
    #: decline.
    is_in_scatter: bool


def first_fall(values: Sequence[float], least: float) -> Fall | None:
    """End of the first level of a series: its earliest clear fall from a level.

    If there is none: a clear fall that is not from a level, else one that is not clear. None if the series does not
    fall.

    One cut does not describe a fall to several levels or into a long decline: a page-mapped drive with 7 % of
    over-provisioning falls by a third when its flash is full, and by four fifths of the rest in the four capacities
    after that. So ``find`` is applied again to the part before its cut, until nothing falls there. In the noise of a
    level it finds a fall as seldom as in pure noise. A decline that begins without a step and is slow against the level
    before it (by a third in as many values) is reported as not from a level.
    """
    falls = list(_falls(values, least))
    clear = [fall for fall in falls if fall.is_clear]
    ends = [fall for fall in clear if fall.is_from_level]
    return ends[-1] if ends else next(iter(clear or falls), None)


def _falls(values: Sequence[float], least: float) -> Iterator[Fall]:
    """Falls of the series and then of ever shorter beginnings of it; the last is the most accurate."""
    fall = find(values, least)
    while fall:
        yield fall
        end = fall.index
        before = find(values[:end], least)
        is_first = before is None or not before.is_clear
        if is_first and (later := find(values[end:], least)):
            # Of several levels behind the cut, the nearest one locates it best and shows whether it is clear.
            values = values[: end + later.index]
            fall = find(values, least)
        else:
            values, fall = values[:end], before


def find(values: Sequence[float], least: float) -> Fall | None:
    """The fall of a series by more than a factor of ``least``; None if there is none.

    The series is cut where the sum of absolute deviations of the logarithms from the two medians is least. A fall that
    is not clear is still reported if the last third of the series lies that much below the first.
    """
    if len(values) < SHORTEST_BEFORE + SHORTEST_AFTER or max(values) <= 0:
        return None
    # A value of zero becomes a finite, low one.
    floor = max(values) / 1e4
    logs = [math.log(max(each, floor)) for each in values]
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
    # In pure noise some cut always shows a fall at one of its ends.
    third = len(logs) // 3
    declines = heads[third - 1][0] - tails[-third][0] > math.log(least)
    if not is_clear and not declines:
        return None
    third = index // 3
    inner = heads[third - 1][0] - median(logs[index - third : index])
    # Independent neighbours differ by √2 times the deviation of each.
    scatter = fmean(abs(one - other) for one, other in pairwise(logs)) / math.sqrt(2)
    fall = upper - lower
    return Fall(index, math.exp(fall), is_clear, inner <= LEVEL * fall, fall <= CLEAR * scatter)


def _levels(values: Sequence[float]) -> list[tuple[float, float]]:
    """Median of the values up to each, and the sum of their absolute deviations from it.

    Two heaps hold the lower half (negated) and the upper half, so a day of seconds takes O(n log n).
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
