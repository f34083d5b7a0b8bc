"""Spread of a measurement: slowest I/Os over time, between arrays and between drives; slowest second; slowest drive.

Maxima of latency grow with the length of a run and the number of drives. So only maxima of spells of equal length are
compared, as ratios, and the worst of them is expressed as a return level (``latency.return_level``): what happens so
many times an hour, which does not depend on the time of observation. Neighbouring spells are not independent: the
logarithms of their maxima are pooled into ``POOLED`` means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import fmean, median, variance

from pytest_ssdqual.qual.detect.outliers import of_others
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.histogram import bucket_of
from pytest_ssdqual.qual.measured.run import Exposure, Measured
from pytest_ssdqual.qual.stats import latency
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate, NotApplicable, TooFew, student_t
from pytest_ssdqual.qual.stats.intervals import ROUNDS, Basis, Bounds
from pytest_ssdqual.qual.units import Unit, format_duration

#: Number of batches: few and long, so that neighbours are nearly independent (Schmeiser 1982: ten to thirty).
POOLED = 10

#: The upper end of fio's bucket of a latency, as a multiple of its middle.
BUCKET = 129 / 128

#: Relative difference below which two lengths are equal: no maximum shows it.
ALIKE = 0.01


@frozen
class SpellMaxima:
    """The slowest I/O of each spell of one array or drive."""

    maxima_ns: tuple[int, ...]
    #: Length of a spell.
    seconds: float
    basis: Basis = ROUNDS
    #: Number of batches of neighbours; cells of visits are their own.
    batches: int = POOLED

    @classmethod
    def of(cls, measured: Measured, confidence_level: ConfidenceLevel) -> SpellMaxima:
        """Read the maxima from a measurement; ``TooFew`` if a spell has no I/O."""
        spells = measured.spells
        if empty := sum(not each.max_ns for each in spells):
            raise TooFew(f"{empty} of {len(spells)} {_length(measured.spell_s)} have no I/O")
        basis = Basis.of(measured, confidence_level)
        batches = len(measured.runs) if measured.visited else POOLED
        return cls(tuple(each.max_ns for each in spells), measured.spell_s, basis, batches)

    @property
    def logs(self) -> list[float]:
        """Means of the logarithms of the maxima, in batches of neighbouring spells that are nearly independent."""
        size = max(1, len(self.maxima_ns) // self.batches)
        return [fmean(map(math.log, each)) for each in _groups(self.maxima_ns, size)]

    @property
    def typical_ns(self) -> float:
        """Geometric mean of the maxima, nanoseconds."""
        return math.exp(fmean(self.logs))

    def longer(self, times: int) -> SpellMaxima:
        """Return the maxima of spells that are ``times`` as long."""
        maxima = tuple(map(max, _groups(self.maxima_ns, times)))
        return SpellMaxima(maxima, self.seconds * times, self.basis, self.batches)


@frozen
class RareEvents:
    """What happens so many times an hour in one measurement: its slowest I/Os, its slowest and its fastest seconds."""

    measured: Measured
    confidence_level: ConfidenceLevel
    per_hour: float

    @property
    def level(self) -> float:
        return Basis.of(self.measured, self.confidence_level).level

    @property
    def exposure(self) -> Exposure | None:
        return self.measured.visited.exposure if self.measured.visited else None

    @property
    def halved(self) -> RareEvents:
        """The same with half of the error rate, as each part of a quotient has."""
        return replace(self, confidence_level=self.confidence_level.among(2))

    def max_latency(self) -> Estimate:
        """Latency that is exceeded, nanoseconds. ``TooFew`` without I/Os."""
        slowest_ns = [each.max_ns for each in self.measured.spells]
        if not any(slowest_ns):
            raise TooFew("a maximum latency needs I/Os, there are none")
        pool_ns = self.exposure.slowest_ns if self.exposure else ()
        level = self._with_exposure(self._slowest_ios(), latency.ends_of(slowest_ns)[1], latency.ends_of(pool_ns)[1])
        return self._estimate(level, Unit.NANOSECONDS, is_proved=math.isfinite(level.high))

    def over_time(self) -> Estimate:
        """Latency that is exceeded over the median of the spells' slowest I/Os: 1 is even.

        Numerator and denominator use half of the error rate each: the level by counts of spells, the median by order
        statistics. The upper end may come from the multiples of their own medians of all drives of the run
        (``latency.pooled_end``). ``TooFew`` below three spells, or if a spell has no I/O.
        """
        half = self.halved
        slowest = SpellMaxima.of(self.measured, half.confidence_level)
        if len(slowest.maxima_ns) < 3:
            raise TooFew(f"spread over time needs at least 3 spells, there are {len(slowest.maxima_ns)}")
        worst, usual = half._slowest_ios(), _median(slowest)
        ratio = Bounds(
            value=max(1.0, worst.value / usual.value),
            low=max(1.0, worst.low / usual.high),
            high=max(1.0, worst.high / usual.low),
        )
        # A multiple of a median is as uncertain as the median, and the bucket of the maximum.
        further = BUCKET * usual.value / usual.low
        own = [further * (each / usual.value) for each in slowest.maxima_ns]
        pool = [further * each for each in self.exposure.times_median] if self.exposure else []
        ratio = half._with_exposure(ratio, own, pool)
        estimate = half._estimate(ratio, Unit.RATIO, is_proved=math.isfinite(ratio.high))
        return replace(estimate, basis=f"{_length(slowest.seconds)}, {estimate.basis}")

    def worst_second(self) -> Estimate:
        """Rate of the slowest seconds of spells that is undercut, over the mean rate.

        1 is perfectly even (seed E-05: 600 of 1,228 MB/s, 0.49). An I/O at the edge of a second may have been counted
        in its neighbour. If fio reported less often than every second, a second may have been without any I/O.
        ``TooFew`` if nothing was transferred.
        """
        transferred = sum(run.bytes_per_s * run.seconds for run in self.measured.runs)
        if not transferred:
            raise TooFew("the worst second needs I/Os, there are none")
        mean = transferred / self.measured.seconds
        rate = self._slowest_seconds()
        return self._estimate(Bounds(rate.value / mean, rate.low / mean, rate.high / mean), Unit.RATIO)

    def slowest_second(self) -> Estimate:
        """Rate of the slowest seconds of spells that is undercut, bytes per second."""
        return self._estimate(self._slowest_seconds(), Unit.BYTES_PER_SECOND)

    def fastest_second(self) -> Estimate:
        """Rate of the fastest seconds of spells that is exceeded, bytes per second."""
        return self._estimate(self._fastest_seconds(), Unit.BYTES_PER_SECOND)

    def fastest_to_slowest(self) -> Estimate:
        """The fastest over the slowest second (seed E-05: 1,800 over 600 MB/s, "about three times").

        Numerator and denominator use half of the error rate each. ``TooFew`` if a second may have been without any I/O.
        """
        half = self.halved
        fastest, slowest = half._fastest_seconds(), half._slowest_seconds()
        if not slowest.value:
            raise TooFew("the slowest second may have had no I/O, so the fastest is no multiple of it")
        ends = Bounds(
            value=max(1.0, fastest.value / slowest.value),
            low=max(1.0, fastest.low / slowest.high),
            high=max(1.0, fastest.high / slowest.low) if slowest.low else math.inf,
        )
        return half._estimate(ends, Unit.RATIO)

    def _slowest_ios(self) -> Bounds:
        """Latency that is exceeded, nanoseconds; by the measurement's own spells only."""
        lows, highs = latency.ends_of([spell.max_ns for spell in self.measured.spells])
        level = self._level(lows, highs)
        return replace(level, low=max(0.0, level.low))

    def _slowest_seconds(self) -> Bounds:
        """Slower is worse, so the level of the negated rates is used."""
        spells, edge = self.measured.spells, self.measured.workload.largest_bytes
        found = self._level(
            [-(each.slowest_high + edge) for each in spells], [-max(0.0, each.slowest_low - edge) for each in spells]
        )
        low, value = (0.0 if math.isinf(each) else -each for each in (found.high, found.value))
        high = -found.low
        return Bounds(max(low, min(value, high)), low, high)

    def _fastest_seconds(self) -> Bounds:
        spells, edge = self.measured.spells, self.measured.workload.largest_bytes
        if not any(each.fastest_high for each in spells):
            raise TooFew("the fastest second needs I/Os, there are none")
        return self._level(
            [max(0.0, each.fastest_low - edge) for each in spells], [each.fastest_high + edge for each in spells]
        )

    def _level(self, lows: Sequence[float], highs: Sequence[float]) -> Bounds:
        return latency.return_level(lows, highs, self.measured.seconds, self.per_hour, self.level)

    def _with_exposure(self, found: Bounds, own: Sequence[float], pool: Sequence[float]) -> Bounds:
        """Return the level with the upper end that the exposure of all drives gives it, if it is less.

        ``own`` and ``pool``: see ``latency.pooled_end``; in the unit of ``found``.
        """
        exposure = self.exposure
        if exposure is None:
            return found
        width = self.measured.geometry.width - self.measured.geometry.missing
        drive_s = width * self.measured.seconds
        credited_s = min(exposure.drive_s / width, exposure.array_s)
        allowed = self.per_hour * credited_s / 3600
        share = min(1.0, drive_s / exposure.drive_s)
        high = min(found.high, latency.pooled_end(own, pool, share, exposure.spells, allowed, self.level))
        value = min(found.value, high)
        return Bounds(value, min(found.low, value), high)

    def _estimate(self, found: Bounds, unit: Unit, *, is_proved: bool = False) -> Estimate:
        """Return the estimate; unless its bad end is proved, with what that would take."""
        seconds, often = self.measured.seconds, f"{self.per_hour:g} times an hour"
        shortest = latency.shortest_s(self.per_hour, self.level)
        observed = f"{format_duration(shortest)} of observation, {format_duration(seconds)} were observed"
        is_short = seconds < shortest and not is_proved
        return Estimate(
            found.value,
            found.low,
            found.high,
            len(self.measured.spells),
            unit,
            confidence=self.confidence_level.confidence,
            basis=f"exceeded {often}",
            unbounded=f"what happens {often} takes {observed}" if is_short else "",
        )


def of_writes(measured: Measured, confidence_level: ConfidenceLevel) -> Estimate:
    """Bytes written to the most written over those to the least written member: 1 is even wear (seed A-35).

    By the kernel's counters of the members, all repeats together; of random addresses, the number of writes of each
    member varies as of a Poisson process. Internal writes to the flash are known to the drives only.
    ``NotApplicable`` unless several members share the writes of an array; ``TooFew`` if they were not counted.
    """
    if measured.geometry.is_side_by_side or not measured.workload.writes:
        raise NotApplicable(f"members share writes in an array, not {measured.workload} on {measured.geometry}")
    writes, size = [0] * len(measured.runs[0].members), [0] * len(measured.runs[0].members)
    for run in measured.runs:
        counted = [drive.device.counted for drive in run.seen.drives] if run.seen else []
        if len(counted) != len(size) or any(each is None for each in counted):
            raise TooFew("the kernel did not count the writes of every member")
        for index, each in enumerate(counted):
            if each is not None:
                writes[index], size[index] = writes[index] + each.writes, size[index] + each.write_bytes
    if not min(size):
        raise TooFew("a member was not written to")
    most, least = max(size), min(size)
    half = math.sqrt(1 / writes[size.index(most)] + 1 / writes[size.index(least)])
    half *= student_t(Basis.of(measured, confidence_level).level, max(1, sum(writes) - 1))
    value = most / least
    return Estimate(
        value, max(1.0, value * math.exp(-half)), value * math.exp(half), len(size), Unit.RATIO,
        confidence=confidence_level.confidence,
    )  # fmt: skip


def _median(slowest: SpellMaxima) -> Bounds:
    """Median of the spells' slowest I/Os, nanoseconds; interval by order statistics, at the resolution of fio's
    buckets.
    """
    from scipy.stats import binom

    maxima = sorted(slowest.maxima_ns)
    # Order statistic that bounds the median at the basis' confidence (binomial).
    beyond = max(0, int(binom.ppf((1 - slowest.basis.level) / 2, len(maxima), 0.5)) - 1)
    low, high = bucket_of(maxima[beyond]), bucket_of(maxima[len(maxima) - 1 - beyond])
    return Bounds(float(median(maxima)), float(low.low_ns), float(high.high_ns))


def between(one: SpellMaxima, other: SpellMaxima) -> Estimate:
    """Geometric mean of the slowest I/Os of two arrays, the larger over the smaller: 1 is equal.

    Welch's t interval of the difference of mean logarithms, folded, because either array may be the slower one. If one
    was measured for longer, its spells are longer; the shorter ones are then joined to the next whole multiples below
    and above, and the interval covers both. ``TooFew`` below two rounds each.
    """
    short, long = sorted((one, other), key=lambda each: each.seconds)
    times = long.seconds / short.seconds
    below, above = math.floor(times * (1 + ALIKE)), math.ceil(times * (1 - ALIKE))
    ends = {each: _welch(short.longer(each), long) for each in (below, above)}
    distance = ends[below if times - below <= above - times else above][0]
    low, high = min(each[1] for each in ends.values()), max(each[2] for each in ends.values())
    n = len(short.longer(below).logs) + len(long.logs)
    confidence = one.basis.confidence_level.confidence
    value, low, high = map(math.exp, (distance, low, high))
    return Estimate(value, low, high, n, Unit.RATIO, confidence=confidence, basis=_length(long.seconds))


def _welch(one: SpellMaxima, other: SpellMaxima) -> tuple[float, float, float]:
    """Distance of the mean logarithms, and the low and high end of its interval."""
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
        # Welch-Satterthwaite degrees of freedom, rounded down.
        degrees = sum(shares) ** 2 / sum(share**2 / (len(each) - 1) for share, each in zip(shares, logs, strict=True))
        half *= student_t(max(one.basis.level, other.basis.level), max(1, int(degrees)))
    return distance, max(0.0, distance - half), distance + half


def between_drives(drives: Sequence[SpellMaxima]) -> Estimate:
    """Geometric mean of the slowest I/Os of the drive where it is largest, over that of the drive where it is smallest.

    The drives are measured side by side in the same rounds, so a stall of the host cancels out: a randomised block
    design. All differences between drives are within q·s/√g of those measured, simultaneously (Tukey 1953: q of the
    studentised range; s² the variance that neither drives nor rounds explain, with (d - 1)(g - 1) degrees of freedom; d
    drives, g rounds), hence also the largest. The figure is biased upwards, because noise spreads equal drives.
    ``NotApplicable`` below two drives; ``TooFew`` below two rounds.
    """
    if len(drives) < 2:
        raise NotApplicable(f"spread between drives needs at least 2 drives, there are {len(drives)}")
    logs, basis = [each.logs for each in drives], drives[0].basis
    rounds = min(map(len, logs))
    if rounds < 2:
        raise TooFew(f"spread between drives needs at least 2 rounds, there are {rounds}")
    means, degrees = list(map(fmean, logs)), (len(drives) - 1) * (rounds - 1)
    # The effect of a round is its mean over the drives.
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
    n, confidence = sum(map(len, logs)), basis.confidence_level.confidence
    return Estimate(
        math.exp(distance), low, high, n, Unit.RATIO, confidence=confidence, basis=_length(drives[0].seconds)
    )


@lru_cache(maxsize=256)
def studentized_range(confidence: float, groups: int, degrees: int) -> float:
    """Quantile of the studentised range; computing it takes a fraction of a second."""
    from scipy.stats import studentized_range as distribution

    return float(distribution.ppf(confidence, groups, degrees))


def between_members(iops: Sequence[Estimate], together: Sequence[Estimate] | None = None) -> Estimate:
    """IOPS of the slowest drive over the median of the others (of two: the other): 1 is equal, and the maximum.

    The median, because one bad drive does not move it, and of the others, because the median of a few contains the bad
    one. The interval combines the ends: of each drive its low end over the others' high ends, and the reverse, and of
    these the lowest. "All drives are fast enough" needs no correction for their number. "One is too slow" does, because
    any drive may seem so by chance: the high end comes from ``together``, intervals that hold simultaneously.
    ``NotApplicable`` below two drives; ``TooFew`` if the median of the others did no I/O.
    """
    if len(iops) < 2:
        raise NotApplicable(f"the slowest drive needs at least 2 drives, there are {len(iops)}")
    values, highs = [each.value for each in iops], [each.high for each in iops]
    if min(median(values), median(highs)) <= 0:
        raise TooFew("the median drive did no I/O")
    together = together or iops
    value = _least_of_others(values, values)
    low = _least_of_others([max(0.0, each.low) for each in iops], highs)
    high = min(1.0, _least_of_others([each.high for each in together], [each.low for each in together]))
    return Estimate(
        value, low, high, min(each.n for each in iops), Unit.RATIO, confidence=min(each.confidence for each in iops)
    )


def _least_of_others(values: Sequence[float], beside: Sequence[float]) -> float:
    """Return the least of the values over the median of ``beside`` of all others."""
    return min(one / others if others > 0 else math.inf for one, others in zip(values, of_others(beside), strict=True))


def _groups(values: Sequence[int], size: int) -> list[Sequence[int]]:
    """Neighbouring values in groups of ``size``; an incomplete group at the beginning is left out."""
    return [values[at : at + size] for at in range(len(values) % size, len(values), size)]


def _length(seconds: float) -> str:
    return f"spells of {format_duration(seconds)}"
