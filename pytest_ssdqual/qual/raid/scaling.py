"""Scaling of IOPS over the widths of a level, by its cost model, not by N; and where it bends.

A RAID 5 of eight that writes twice as fast as one of three is perfect, not a quarter short: what
counts are IOPS per effective drive (N/P, ``geometry.effective_drives``). All widths have the same
weight, and none is a baseline: each is compared with the mean of the others, and the slope is that
of a line through all of them. So one width that is too fast does not break what the others do.

Intervals are combined by the method of variance estimates recovery (Zou & Donner 2008): of a sum of
independent figures, the lower end is its value less the root of the squared distances of their
lower ends, and the upper one likewise. They need not be symmetric.

`describe_bend` names the width that is out of line, and the likely cause: host CPU, a drive,
unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median
from types import MappingProxyType

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.environment import DriveEnvironment
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.raid.geometry import Geometry, effective_drives
from pytest_ssdqual.qual.raid.law import chunks_read
from pytest_ssdqual.qual.stats.estimate import Estimate, NotApplicable, student_t
from pytest_ssdqual.qual.units import Unit

#: Reason why a width is not compared (``chunks_read``).
OTHER_WAY = "md reads other chunks for its small writes"
#: Efficiency above which a width was probably measured too high.
SUPERLINEAR = 1.05
#: Ratio of the most effective drives to the fewest from which a slope can be told. Mirrors that
#: write have the same at every width.
LEAST_GROWTH = 1.5


@frozen
class ScalingPoint:
    """One array of the sweep."""

    geometry: Geometry
    iops: Estimate
    #: Drives' worth of host I/O, by the cost model or by the prediction at this depth.
    effective_drives: float
    #: IOPS per effective drive over the mean of those of the other widths.
    efficiency: Estimate

    @property
    def per_drive(self) -> Estimate:
        return self.iops.times(1 / self.effective_drives)


@frozen
class Scaling:
    """A sweep over widths of one level, narrowest first."""

    points: tuple[ScalingPoint, ...]
    #: IOPS per added effective drive over IOPS per effective drive; 1 is linear.
    slope: Estimate
    #: Shortfall of the worst array, in per cent of the mean of the others; negative if none falls
    #: short.
    deviation: Estimate
    #: The array with the worst deviation.
    worst: Geometry
    #: Widths for whose small writes md reads other chunks, so that no line is known without a prediction.
    left_out: tuple[Geometry, ...] = ()

    @property
    def too_fast(self) -> ScalingPoint | None:
        """The array that is faster than the median of the others, if these are alike.

        Their range is less than half of its lead; of two arrays it is unknown which is out of line.
        """
        for index, point in enumerate(self.points if len(self.points) > 2 else ()):
            rest = (*self.points[:index], *self.points[index + 1 :])
            others = [each.per_drive.value for each in rest]
            middle = median(others)
            lead = point.per_drive.value - middle
            if lead > (SUPERLINEAR - 1) * middle and max(others) - min(others) < lead / 2:
                return point
        return None

    def warnings(self) -> tuple[str, ...]:
        """Return sentences about arrays that are not compared, and one that is surely too fast.

        That was probably not settled. It breaks no promise, but the others are compared with it.
        """
        point = self.too_fast
        sentences = [f"{geometry} is not compared: {OTHER_WAY}" for geometry in self.left_out]
        if point and point.efficiency.low > SUPERLINEAR:
            sentences.append(f"{point.geometry} does {_compared(point)}: it was probably measured too high")
        return tuple(sentences)


def _compared(point: ScalingPoint) -> str:
    return f"{point.efficiency.value:.3g} times what the other widths do per effective drive"


def fit(
    iops: Mapping[Geometry, Estimate],
    read_fraction: float,
    together: Mapping[Geometry, Estimate] | None = None,
    expected: Mapping[Geometry, float] = MappingProxyType({}),
) -> Scaling:
    """Fit the scaling of a sweep: IOPS of each width of one level under the same workload per drive.

    "All widths keep up" needs no correction for their number (an intersection-union test), so ``deviation.high`` is the
    worst of the single ones. "One falls short" does, because any of them may seem to by chance: ``deviation.low`` comes
    from ``together``, estimates that hold simultaneously for all widths (Bonferroni; the first step of Holm's, which
    decides about "some width"). Without ``together`` there is no correction.

    ``expected`` is what arrays of equal drives do at this depth, by prediction. Without it the line is that of the cost
    model, and only widths are compared for whose small writes md reads the same chunks (``alike``).

    A single run of each width shows the variation of IOPS within it, not that of rebuilding the array, other members or
    another fill; see ``with_repeats``. Widths whose intervals reach zero give no upper bound.
    ``NotApplicable`` with fewer than two widths, several levels or states (healthy, degraded), or if
    all but one do nothing.
    """
    widths = sorted(iops)
    if len(widths) < 2 or len({(each.level, each.missing, each.rebuilding) for each in widths}) > 1:
        names = ", ".join(map(str, widths)) or "none"
        raise NotApplicable(f"scaling needs at least 2 widths of one level, not {names}")
    drives = {width: effective_drives(width, read_fraction) for width in widths}
    if expected.keys() >= set(widths):
        first = drives[widths[0]] / expected[widths[0]]
        drives = {width: first * expected[width] for width in widths}
        compared = widths
    else:
        compared = alike(widths, read_fraction)
    points, simultaneous = (
        _points({width: rates[width] for width in compared}, drives) for rates in (iops, together or iops)
    )
    worst = min(points, key=lambda point: point.efficiency.value)
    left_out = tuple(width for width in widths if width not in compared)
    return Scaling(points, _slope(points), _deviation(worst, points, simultaneous), worst.geometry, left_out)


def _deviation(worst: ScalingPoint, points: Sequence[ScalingPoint], simultaneous: Sequence[ScalingPoint]) -> Estimate:
    """Return how far the worst width falls short, in per cent; see ``fit``."""
    return Estimate(
        value=100 * (1 - worst.efficiency.value),
        low=100 * (1 - min(point.efficiency.high for point in simultaneous)),
        high=100 * (1 - min(point.efficiency.low for point in points)),
        n=min(point.iops.n for point in points),
        unit=Unit.PERCENT,
        confidence=worst.efficiency.confidence,
    )


def alike(widths: Sequence[Geometry], read_fraction: float) -> list[Geometry]:
    """Return the widths whose members do the same I/O for a small write, the most that there are; all if no two do."""
    ways: dict[int, list[Geometry]] = {}
    for width in widths:
        ways.setdefault(chunks_read(width) if read_fraction < 1 else 0, []).append(width)
    most = max(ways.values(), key=len)
    return most if len(most) > 1 else list(widths)


def with_repeats(
    iops: Mapping[Geometry, Estimate], repeats: Mapping[Geometry, Sequence[float]], level: float
) -> dict[Geometry, Estimate]:
    """Widen estimates to the variation between their repeats.

    If widths were measured more than once, the variance between repeats is pooled over all of them on the log scale:
    Σ(r - 1) degrees of freedom, s·t/√r either way. Narrower estimates get this interval. ``level`` is two-sided.
    Unchanged without repeats; widths with a repeat without I/O are left out.
    """
    logs = {each: [math.log(one) for one in repeats[each]] for each in iops if min(repeats[each]) > 0}
    degrees = sum(len(each) - 1 for each in logs.values())
    if not degrees:
        return dict(iops)
    squares = math.fsum((one - fmean(each)) ** 2 for each in logs.values() for one in each)
    half = student_t(level, degrees) * math.sqrt(squares / degrees)
    found = dict(iops)
    for geometry, each in logs.items():
        estimate, factor = iops[geometry], math.exp(half / math.sqrt(len(each)))
        low, high = min(estimate.low, estimate.value / factor), max(estimate.high, estimate.value * factor)
        found[geometry] = replace(estimate, low=low, high=high)
    return found


def _points(iops: Mapping[Geometry, Estimate], drives_of: Mapping[Geometry, float]) -> tuple[ScalingPoint, ...]:
    widths = sorted(iops)
    rates = [iops[width].times(1 / drives_of[width]) for width in widths]
    points = []
    for index, width in enumerate(widths):
        efficiency = _over_mean(rates[index], [*rates[:index], *rates[index + 1 :]])
        points.append(ScalingPoint(width, iops[width], drives_of[width], efficiency))
    return tuple(points)


def _over_mean(one: Estimate, others: Sequence[Estimate]) -> Estimate:
    """Return an estimate over the mean of several, all independent; distances are of logarithms.

    ``NotApplicable`` if these do nothing.
    """
    mean = fmean(each.value for each in others)
    if mean <= 0:
        raise NotApplicable("there is nothing to compare with: the other widths do no I/O")
    down = math.hypot(*(each.value - each.low for each in others)) / len(others)
    up = math.hypot(*(each.high - each.value for each in others)) / len(others)
    fastest = math.log1p(up / mean)
    slowest = -math.log1p(-down / mean) if down < mean else math.inf
    value = one.value / mean
    low, high = 0.0, math.inf
    if one.low > 0:
        low = value * math.exp(-math.hypot(math.log(one.value / one.low), fastest))
    if math.isfinite(slowest):
        rise = math.log(one.high / one.value) if value else 0.0
        high = value * math.exp(math.hypot(rise, slowest)) if value else one.high / (mean - down)
    n = min(one.n, *(each.n for each in others))
    confidence = min(one.confidence, *(each.confidence for each in others))
    return Estimate(value, low, high, n, Unit.RATIO, confidence=confidence)


def _slope(points: Sequence[ScalingPoint]) -> Estimate:
    """Return the slope of IOPS over effective drives x, in IOPS per effective drive.

    Least squares with an intercept and weights 1/x², as errors are alike relative to IOPS: a line
    of y, the IOPS per effective drive, over z = 1/x, whose end at z = 0 is the slope. With the mean
    of y, the slope of a line through the origin with the same weights, it is a linear combination
    of the widths' y over another; its interval is that of the combination with the derivatives.

    Where effective drives hardly grow (``LEAST_GROWTH``), the efficiency of the widest array.
    """
    drives = [point.effective_drives for point in points]
    if max(drives) < LEAST_GROWTH * min(drives):
        return points[-1].efficiency
    rates = [point.per_drive for point in points]
    inverse = [1 / each for each in drives]
    middle, mean = fmean(inverse), fmean(rate.value for rate in rates)
    power = math.fsum((each - middle) ** 2 for each in inverse)
    ends = [1 / len(points) - middle * (each - middle) / power for each in inverse]
    value = math.fsum(end * rate.value for end, rate in zip(ends, rates, strict=True)) / mean
    derivatives = [(end - value / len(points)) / mean for end in ends]
    down = [
        each * (rate.value - rate.low if each > 0 else rate.value - rate.high)
        for each, rate in zip(derivatives, rates, strict=True)
    ]
    up = [
        each * (rate.high - rate.value if each > 0 else rate.low - rate.value)
        for each, rate in zip(derivatives, rates, strict=True)
    ]
    return Estimate(
        value,
        value - math.hypot(*down),
        value + math.hypot(*up),
        min(point.iops.n for point in points),
        Unit.RATIO,
        confidence=min(point.iops.confidence for point in points),
    )


#: Share of busy CPU time from which the host is a possible cause.
CPU_BUSY = 0.80

#: Share of one CPU in the kernel from which md's thread or interrupts are a possible cause, even if other CPUs are
#: idle.
KERNEL_BUSY = 0.95

#: Growth beyond the bend, as a share of what the drives would add, below which a shared resource is saturated.
FLAT = 0.25

#: Most new drives at one width that are named as a possible cause.
SUSPECTS = 3


def describe_bend(sweep: Sequence[Measured], found: Scaling, least: float) -> str:
    """Remark that names the width that is out of line, and the likely cause; "" if none is.

    That is the only width that is too fast, else the narrowest whose interval is below ``least`` of
    the mean of all narrower ones, else the narrowest whose value is, else the worst. Causes, in
    this order: the host if its CPUs were busy; a drive that was too warm or badly connected; a resource
    that all drives share if wider arrays do no more; the drives that were new at that width, if
    every wider array, which has them too, is also below.
    """
    if found.too_fast:
        return _out_of_line(found.too_fast)
    first, is_sure = _bend(found.points, least)
    if first is None:
        slowest = next(point for point in found.points if point.geometry == found.worst)
        return _out_of_line(slowest) if slowest.efficiency.value < least else ""
    before = [point.per_drive for point in found.points if point.geometry < first.geometry]
    wider = [point for point in found.points if point.geometry > first.geometry]
    runs = next(each.runs for each in sweep if each.geometry == first.geometry)
    narrower = [run for each in sweep if each.geometry < first.geometry for run in each.runs]
    new = sorted(_serials(runs) - _serials(narrower))
    lasts = all(_over_mean(point.per_drive, before).value < least for point in wider)
    if cause := next(_causes(runs, new), ""):
        by = f": {cause}"
    elif wider and _is_flat(first, wider[-1]):
        by = ", and wider arrays do no more: something that all drives share is the bottleneck"
    elif new and len(new) <= SUSPECTS and lasts:
        by = f", the first with {'drive' if len(new) == 1 else 'drives'} {' and '.join(new)}"
    else:
        by = "; the cause is unknown"
    return f"the bend {'begins' if is_sure else 'seems to begin'} at {first.geometry}{by}"


def _out_of_line(point: ScalingPoint) -> str:
    return f"{point.geometry} is out of line: it does {_compared(point)}"


def _serials(runs: Sequence[Run]) -> set[str]:
    return {serial for run in runs for serial in run.members}


def _bend(points: Sequence[ScalingPoint], least: float) -> tuple[ScalingPoint | None, bool]:
    """Return the narrowest width below ``least`` of all narrower ones, and whether it surely is."""
    falls = [
        (point, _over_mean(point.per_drive, [each.per_drive for each in points[:index]]))
        for index, point in enumerate(points)
        if index
    ]
    surely = [point for point, share in falls if share.high < least]
    bent = surely or [point for point, share in falls if share.value < least]
    return (bent[0] if bent else None), bool(surely)


def _causes(runs: Sequence[Run], new: Sequence[str]) -> Iterator[str]:
    """Possible causes from the environment, most likely first."""
    environments = [run.seen for run in runs if run.seen]
    cpus = [each.cpu for each in environments if each.cpu]
    if cpus and (busy := max(cpu.busy for cpu in cpus)) >= CPU_BUSY:
        yield f"the host's CPU was {busy:.0%} busy there"
    if cpus and (busiest := max(cpu.busiest_in_kernel for cpu in cpus)) >= KERNEL_BUSY:
        yield f"one of the host's CPUs was {busiest:.0%} busy there, in the kernel"
    for drive in (drive for each in environments for drive in each.drives):
        yield from _drive(drive, new)


def _drive(drive: DriveEnvironment, new: Sequence[str]) -> Iterator[str]:
    heat, link = drive.heat, drive.link
    if heat.too_warm or heat.too_warm_s or heat.events:
        yield f"drive {drive.name} was too warm there"
    if drive.name in new and link and link.share < 1:
        yield f"drive {drive.name} is connected by {link.describe()}"


def _is_flat(first: ScalingPoint, widest: ScalingPoint) -> bool:
    grown = widest.iops.value - first.iops.value
    return grown < FLAT * first.iops.value * (widest.effective_drives / first.effective_drives - 1)
