"""How even a measurement is: its slowest I/Os over time and between arrays, its slowest second, its slowest drive.

Maxima of latency grow with the length of a run and the number of drives, so only maxima of rounds of equal length
are compared, and as ratios.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median, variance

from pytest_ssdqual.qual.estimate import CONFIDENCE, Estimate, TooFew, student_t
from pytest_ssdqual.qual.histogram import LatencyHistogram, bucket_of
from pytest_ssdqual.qual.measurement import SHORTEST_RATE_S, Run
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
    return Estimate(maxima[-1] / median(maxima), low, high, len(maxima), Unit.RATIO, is_reading=True)


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


def worst_second(runs: Sequence[Run]) -> Estimate:
    """Bytes per second of the slowest second of all windows over those of the whole: 1 is perfectly even.

    A description of this very run (seed E-05: 600 of 1,228 MB/s, 0.49): its interval is only that the I/O at either
    edge of that second may have been counted in its neighbour. A second is fio's status interval. ``n`` counts
    seconds. ``TooFew`` if nothing was transferred.
    """
    counted = [interval for run in runs for interval in run.counted]
    seconds = sum(each.seconds for each in counted)
    total = sum(each.read_bytes + each.write_bytes for each in counted)
    if not total:
        raise TooFew("the worst second needs I/Os, there are none")
    # fio's first and last reports may cover a few milliseconds, whose rate says nothing.
    whole = [each for each in counted if each.seconds >= SHORTEST_RATE_S] or counted
    slowest = min(each.slowest_bytes_per_s for each in whole)
    mean, edge = total / seconds, runs[0].workload.largest_bytes
    low, high = max(0.0, slowest - edge) / mean, (slowest + edge) / mean
    return Estimate(slowest / mean, low, high, round(seconds), Unit.RATIO, is_reading=True)


def between_members(iops: Sequence[Estimate]) -> Estimate:
    """IOPS of the slowest drive over those of the median one (of two: their mean): 1 is equal, and the most.

    The median, so that one bad drive does not move what it is held against. Intervals are propagated by their ends:
    the lowest low end over the median high end, and the other way round. ValueError below two drives; ``TooFew`` if
    the median drive did nothing.
    """
    if len(iops) < 2:
        raise ValueError(f"the slowest of several drives was asked for, there are {len(iops)}")
    if min(median(each.value for each in iops), median(each.high for each in iops)) <= 0:
        raise TooFew("the median drive did no I/O")
    value = min(each.value for each in iops) / median(each.value for each in iops)
    low = max(0.0, min(each.low for each in iops)) / median(each.high for each in iops)
    typical = median(each.low for each in iops)
    high = min(1.0, min(each.high for each in iops) / typical) if typical > 0 else 1.0
    return Estimate(value, low, high, min(each.n for each in iops), Unit.RATIO)
