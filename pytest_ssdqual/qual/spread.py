"""How even a measurement is: its slowest I/Os over time, between arrays and drives, its slowest second and drive.

Maxima of latency grow with the length of a run and the number of drives, so only maxima of rounds of equal length
are compared, and as ratios. The blocks of a sequential measurement are shorter than rounds and not independent of each
other: their maxima, or the logarithms of these, are pooled into ``POOLED`` rounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, median, variance

from pytest_ssdqual.qual.basis import ROUNDS, Basis
from pytest_ssdqual.qual.estimate import Estimate, TooFew, student_t
from pytest_ssdqual.qual.histogram import LatencyHistogram, bucket_of
from pytest_ssdqual.qual.interval import SHORTEST_RATE_S, Interval
from pytest_ssdqual.qual.measurement import Measured, Run
from pytest_ssdqual.qual.units import Unit, format_duration

#: Few and long, so that neighbours are nearly independent (batch means; Schmeiser 1982: ten to thirty of them).
POOLED = 10

#: Lengths that differ by less are equal: no maximum shows it.
ALIKE = 0.01


@dataclass(frozen=True, slots=True)
class Slowest:
    """The slowest I/O of each round of one array or drive."""

    maxima_ns: tuple[int, ...]
    #: Length of a round.
    seconds: float
    #: As many are pooled, if they are not independent.
    basis: Basis

    @classmethod
    def of(cls, measured: Measured, basis: Basis) -> Slowest:
        """``TooFew`` if a round has no I/O."""
        run = measured.runs[0]
        rounds = basis.settled(measured.round_latency())
        return cls(round_maxima_ns(rounds), run.window_s / run.rounds, basis)

    @property
    def size(self) -> int:
        """Rounds in one that is independent."""
        return max(1, len(self.maxima_ns) // POOLED) if self.basis.look else 1

    @property
    def logs(self) -> list[float]:
        """Of independent rounds, each the mean of the logarithms of the maxima pooled in it."""
        return [fmean(map(math.log, each)) for each in _groups(self.maxima_ns, self.size)]

    @property
    def typical_ns(self) -> float:
        """Geometric mean."""
        return math.exp(fmean(self.logs))

    def longer(self, times: int) -> Slowest:
        """The same in rounds that are ``times`` as long."""
        maxima = tuple(map(max, _groups(self.maxima_ns, times)))
        return Slowest(maxima, self.seconds * times, self.basis)


def round_maxima_ns(rounds: Sequence[LatencyHistogram]) -> tuple[int, ...]:
    """The slowest I/O of each round; ``TooFew`` if a round has none."""
    empty = sum(not each for each in rounds)
    if empty:
        raise TooFew(f"{empty} of {len(rounds)} rounds have no I/O, so no slowest one")
    return tuple(each.max_ns for each in rounds)


def over_time(slowest: Slowest) -> Estimate:
    """The largest of the rounds' slowest I/Os over the median one: 1 is perfectly even.

    A description of this very run: the interval is what fio's buckets leave open, not what another run
    would give, and rounds of another length would show another figure. ``TooFew`` below three rounds.
    """
    whole = slowest.longer(slowest.size)
    maxima = sorted(whole.maxima_ns)
    if len(maxima) < 3:
        raise TooFew(f"spread over time needs at least 3 rounds, there are {len(maxima)}")
    buckets = [bucket_of(each) for each in maxima]
    low = max(1.0, buckets[-1].low_ns / median(each.high_ns for each in buckets))
    high = math.inf if buckets[-1].is_last else buckets[-1].high_ns / median(each.low_ns for each in buckets)
    return Estimate(
        maxima[-1] / median(maxima), low, high, len(maxima), Unit.RATIO, is_reading=True, basis=_length(whole)
    )


def between(one: Slowest, other: Slowest) -> Estimate:
    """Geometric mean of the rounds' slowest I/Os of two arrays, the larger over the smaller: 1 is equal.

    Welch's t interval for the difference of mean logarithms, then folded, because which array is the
    slower one is not asked. If one was measured for longer than the other, so were its rounds: the shorter ones are
    then put together to the next whole multiples below and above, and the interval covers both. ``TooFew`` below two
    rounds each.
    """
    short, long = sorted((one, other), key=lambda each: each.seconds)
    times = long.seconds / short.seconds
    below, above = math.floor(times * (1 + ALIKE)), math.ceil(times * (1 - ALIKE))
    ends = {each: _welch(short.longer(each), long) for each in (below, above)}
    distance = ends[below if times - below <= above - times else above][0]
    low, high = min(each[1] for each in ends.values()), max(each[2] for each in ends.values())
    n = len(short.longer(below).logs) + len(long.logs)
    confidence = one.basis.sure.confidence
    value, low, high = map(math.exp, (distance, low, high))
    return Estimate(value, low, high, n, Unit.RATIO, confidence=confidence, basis=_length(long))


def _welch(one: Slowest, other: Slowest) -> tuple[float, float, float]:
    """Distance of the mean logarithms, and its interval."""
    logs = [one.logs, other.logs]
    if min(map(len, logs)) < 2:
        raise TooFew(
            f"spread between arrays needs at least 2 rounds of each, there are {min(map(len, logs))} as long as those "
            "of the other"
        )
    distance = abs(fmean(logs[0]) - fmean(logs[1]))
    shares = [variance(each) / len(each) for each in logs]
    half = math.sqrt(sum(shares))
    if half:
        # Welch-Satterthwaite, rounded down: never more degrees of freedom than there are.
        degrees = sum(shares) ** 2 / sum(share**2 / (len(each) - 1) for share, each in zip(shares, logs, strict=True))
        half *= student_t(max(one.basis.level, other.basis.level), max(1, int(degrees)))
    return distance, max(0.0, distance - half), distance + half


def between_drives(drives: Sequence[Slowest]) -> Estimate:
    """Geometric mean of the rounds' slowest I/Os of the drive where it is largest, over that where it is smallest.

    Of drives measured side by side, so their rounds are the same, and what stalls all of them at once (the host)
    cancels out: a randomised block design. All differences between drives are within q·s/√g of those measured, at once
    (Tukey 1953: q of the studentised range; s² the variance that neither drives nor rounds explain, with (d - 1)(g - 1)
    degrees of freedom; d drives, g rounds), and so is the largest. The figure itself is on the high side, because noise
    spreads equal drives, too. ValueError below two drives; ``TooFew`` below two rounds.
    """
    if len(drives) < 2:
        raise ValueError(f"the spread between several drives was asked for, there are {len(drives)}")
    logs, basis = [each.logs for each in drives], drives[0].basis
    rounds = min(map(len, logs))
    if rounds < 2:
        raise TooFew(f"spread between drives needs at least 2 rounds, there are {rounds}")
    means, degrees = list(map(fmean, logs)), (len(drives) - 1) * (rounds - 1)
    # What is common to a round is its mean over the drives.
    common = [fmean(of_round) for of_round in zip(*logs, strict=True)]
    squares = math.fsum(
        (each - mean - shared + fmean(means)) ** 2
        for of_drive, mean in zip(logs, means, strict=True)
        for each, shared in zip(of_drive, common, strict=True)
    )
    distance, half = max(means) - min(means), math.sqrt(squares / degrees / rounds)
    if half:
        half *= studentized_range(basis.level, len(drives), degrees)
    low, high = math.exp(max(0.0, distance - half)), math.exp(distance + half)
    n, sure = sum(map(len, logs)), basis.sure.confidence
    return Estimate(math.exp(distance), low, high, n, Unit.RATIO, confidence=sure, basis=_length(drives[0]))


@lru_cache(maxsize=256)
def studentized_range(confidence: float, groups: int, degrees: int) -> float:
    """Quantile of the studentised range. It takes a part of a second to compute."""
    from scipy.stats import studentized_range as distribution

    return float(distribution.ppf(confidence, groups, degrees))


def worst_second(runs: Sequence[Run], basis: Basis = ROUNDS) -> Estimate:
    """Bytes per second of the slowest second of all windows over those of the whole: 1 is perfectly even.

    A description of this very run (seed E-05: 600 of 1,228 MB/s, 0.49): its interval is only that the I/O at either
    edge of that second may have been counted in its neighbour. A second is fio's status interval. ``n`` counts
    seconds. ``TooFew`` if nothing was transferred.
    """
    counted = [interval for run in runs for interval in _settled(run, basis)]
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


def between_members(iops: Sequence[Estimate], together: Sequence[Estimate] | None = None) -> Estimate:
    """IOPS of the slowest drive over those of the median one (of two: their mean): 1 is equal, and the most.

    The median, so that one bad drive does not move what it is held against. Intervals are propagated by their ends:
    the lowest low end over the median high end, and the other way round. That all drives are fast enough takes no
    correction for their number; that one is too slow does, because any of them may seem so by chance: its end is
    taken from ``together``, intervals that hold at once for all. ValueError below two drives; ``TooFew`` if the
    median drive did nothing.
    """
    if len(iops) < 2:
        raise ValueError(f"the slowest of several drives was asked for, there are {len(iops)}")
    if min(median(each.value for each in iops), median(each.high for each in iops)) <= 0:
        raise TooFew("the median drive did no I/O")
    value = min(each.value for each in iops) / median(each.value for each in iops)
    low = max(0.0, min(each.low for each in iops)) / median(each.high for each in iops)
    together = together or iops
    typical = median(each.low for each in together)
    high = min(1.0, min(each.high for each in together) / typical) if typical > 0 else 1.0
    return Estimate(
        value, low, high, min(each.n for each in iops), Unit.RATIO, confidence=min(each.confidence for each in iops)
    )


def _settled(run: Run, basis: Basis) -> Sequence[Interval]:
    """What was counted, without the blocks of a look that are warm-up still."""
    counted = run.counted
    if not basis.look or not counted:
        return counted
    begin_s = counted[0].start_s + basis.look.head * run.window_s / run.rounds
    return [each for each in counted if (each.start_s + each.end_s) / 2 >= begin_s]


def _groups(values: Sequence[int], size: int) -> list[Sequence[int]]:
    """Neighbours in groups of ``size``; what does not divide is left off at the beginning."""
    return [values[at : at + size] for at in range(len(values) % size, len(values), size)]


def _length(slowest: Slowest) -> str:
    return f"rounds of {format_duration(slowest.seconds)}"
