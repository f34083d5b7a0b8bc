"""How evenly the slowest I/Os are spread: over time in one array, and between arrays.

Maxima grow with the length of a run and the number of drives, so only maxima of rounds of equal length
are compared, and as ratios.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median, variance

from pytest_ssdqual.qual.estimate import CONFIDENCE, Estimate, TooFew, student_t
from pytest_ssdqual.qual.histogram import LatencyHistogram, bucket_of
from pytest_ssdqual.qual.units import Unit


def round_maxima_ns(rounds: Sequence[LatencyHistogram]) -> tuple[int, ...]:
    """The slowest I/O of each round; ``TooFew`` if a round has none."""
    empty = sum(not each for each in rounds)
    if empty:
        raise TooFew(f"{empty} of {len(rounds)} rounds have no I/O, so no slowest one")
    return tuple(each.max_ns for each in rounds)


def over_time(rounds: Sequence[LatencyHistogram]) -> Estimate:
    """The largest of the rounds' slowest I/Os over the median one: 1 is perfectly even.

    A description of this very run: the interval is what fio's buckets leave open, not what another run
    would give. ``TooFew`` below three rounds.
    """
    maxima = sorted(round_maxima_ns(rounds))
    if len(maxima) < 3:
        raise TooFew(f"spread over time needs at least 3 rounds, there are {len(maxima)}")
    buckets = [bucket_of(each) for each in maxima]
    low = max(1.0, buckets[-1].low_ns / median(each.high_ns for each in buckets))
    high = math.inf if buckets[-1].is_last else buckets[-1].high_ns / median(each.low_ns for each in buckets)
    return Estimate(maxima[-1] / median(maxima), low, high, len(maxima), Unit.RATIO)


def between(
    one: Sequence[LatencyHistogram], other: Sequence[LatencyHistogram], confidence: float = CONFIDENCE
) -> Estimate:
    """Geometric mean of the rounds' slowest I/Os of two arrays, the larger over the smaller: 1 is equal.

    Welch's t interval for the difference of mean logarithms, then folded, because which array is the
    slower one is not asked. The rounds of both must be equally long. ``TooFew`` below two rounds each.
    """
    logs = [[math.log(each) for each in round_maxima_ns(rounds)] for rounds in (one, other)]
    if min(map(len, logs)) < 2:
        raise TooFew(f"spread between arrays needs at least 2 rounds of each, there are {min(map(len, logs))}")
    distance = abs(fmean(logs[0]) - fmean(logs[1]))
    shares = [variance(each) / len(each) for each in logs]
    half = math.sqrt(sum(shares))
    if half:
        # Welch-Satterthwaite, rounded down: never more degrees of freedom than there are.
        degrees = sum(shares) ** 2 / sum(share**2 / (len(each) - 1) for share, each in zip(shares, logs, strict=True))
        half *= student_t(confidence, max(1, int(degrees)))
    low, high = math.exp(max(0.0, distance - half)), math.exp(distance + half)
    return Estimate(math.exp(distance), low, high, sum(map(len, logs)), Unit.RATIO)
