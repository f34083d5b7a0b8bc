"""Scaling of IOPS over the widths of a level, relative to the level's cost model rather than to N; and where it bends.

The narrowest array sets the line: its IOPS per effective drive (N/P, ``geometry.effective_drives``). A RAID 5 of eight
that writes twice as fast as one of three is therefore perfect, not a quarter short.

Intervals are combined by the method of variance estimates recovery (Zou & Donner 2008): of a difference of logarithms d
= log X_N - log X_0 the lower end is d - √((x_N - l_N)² + (u_0 - x_0)²), and the upper one likewise. They need not be
symmetric, and the baseline's error, which all widths share, is in each comparison once.

`describe_bend` names the width at which scaling falls below a limit, and the likely cause: host CPU, a drive, unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from types import MappingProxyType

from pytest_ssdqual.qual.measured.environment import DriveEnvironment
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.raid.geometry import Geometry, effective_drives
from pytest_ssdqual.qual.stats.estimate import Estimate, NotApplicable, student_t
from pytest_ssdqual.qual.units import Unit

#: Efficiency above which the narrowest array was probably measured too low.
SUPERLINEAR = 1.05


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """One array of the sweep."""

    geometry: Geometry
    iops: Estimate
    #: Drives' worth of host I/O, by the cost model or by the prediction at this depth.
    effective_drives: float
    #: IOPS per effective drive over that of the narrowest array; 1 by definition for that one.
    efficiency: Estimate
    #: Upper end of the efficiency, of intervals that hold simultaneously for all widths.
    ceiling: float


@dataclass(frozen=True, slots=True)
class Scaling:
    """A sweep over widths of one level, narrowest first."""

    points: tuple[ScalingPoint, ...]
    #: Least-squares line through the origin of efficiency over effective drives; 1 is linear.
    slope: Estimate
    #: Shortfall of the worst array, in per cent of the line; negative if all are above.
    deviation: Estimate
    #: The array with the worst deviation.
    worst: Geometry

    def warnings(self) -> tuple[str, ...]:
        """One sentence for each array whose interval is above linear, which makes the baseline doubtful without
        breaking a promise.
        """
        return tuple(
            f"{point.geometry} does {point.efficiency} of what {self.points[0].geometry} does per effective drive: "
            "better than linear, so the narrowest array was probably measured too low"
            for point in self.points
            if point.efficiency.low > SUPERLINEAR
        )


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
    model, for drives that are always busy. At low depth drives are delays, and arrays grow with N, not with N/P.

    A single run of each width shows the variation of IOPS within it, not that of rebuilding the array, other members or
    another fill; see ``with_repeats``. A baseline whose interval reaches zero gives no upper bound. ``NotApplicable``
    with fewer than two widths, several levels or states (healthy, degraded), or a baseline that is zero.
    """
    widths = sorted(iops)
    if len(widths) < 2 or len({(each.level, each.missing, each.rebuilding) for each in widths}) > 1:
        found = ", ".join(map(str, widths)) or "none"
        raise NotApplicable(f"scaling needs at least 2 widths of one level, not {found}")
    drives = {each: effective_drives(each, read_fraction) for each in widths}
    if expected.keys() >= set(widths):
        first = drives[widths[0]] / expected[widths[0]]
        drives = {each: first * expected[each] for each in widths}
    points, simultaneous = _points(iops, drives), _points(together or iops, drives)
    worst = min(points[1:], key=lambda point: point.efficiency.value)
    deviation = Estimate(
        value=100 * (1 - worst.efficiency.value),
        low=100 * (1 - min(point.ceiling for point in simultaneous[1:])),
        high=100 * (1 - min(point.efficiency.low for point in points[1:])),
        n=min(point.iops.n for point in points),
        unit=Unit.PERCENT,
        confidence=worst.efficiency.confidence,
    )
    bounded = (replace(point, ceiling=each.ceiling) for point, each in zip(points, simultaneous, strict=True))
    return Scaling(tuple(bounded), _slope(points), deviation, worst.geometry)


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
    first = widths[0]
    baseline, unit_drives = iops[first], drives_of[first]
    if baseline.value <= 0:
        raise NotApplicable(f"{first} is no baseline: {baseline}")
    none = Estimate(1.0, 1.0, 1.0, baseline.n, Unit.RATIO, confidence=baseline.confidence)
    points = [ScalingPoint(first, baseline, unit_drives, none, 1.0)]
    for geometry in widths[1:]:
        drives = drives_of[geometry]
        found, share = _quotient(iops[geometry], baseline), unit_drives / drives
        efficiency = replace(found, value=found.value * share, low=found.low * share, high=found.high * share)
        points.append(ScalingPoint(geometry, iops[geometry], drives, efficiency, efficiency.high))
    return tuple(points)


def _quotient(estimate: Estimate, reference: Estimate) -> Estimate:
    """Ratio of two independent estimates; ``reference.value`` above zero."""

    def steps(one: float, other: float) -> float:
        return math.log(one / other) if other > 0 else math.inf

    def end(factor: float, own: float, of_reference: float) -> float:
        return value * math.exp(factor * math.hypot(own, of_reference)) if value else 0.0

    value = estimate.value / reference.value
    up, down = steps(reference.high, reference.value), steps(reference.value, reference.low)
    low = end(-1, steps(estimate.value, estimate.low) if value else 0.0, up)
    high = math.inf
    if reference.low > 0:
        high = end(1, steps(estimate.high, estimate.value), down) if value else estimate.high / reference.low
    n, confidence = min(estimate.n, reference.n), min(estimate.confidence, reference.confidence)
    return Estimate(value, low, high, n, Unit.RATIO, confidence=confidence)


def _slope(points: Sequence[ScalingPoint]) -> Estimate:
    """Least-squares slope of y = efficiency × x against x, through the origin: Σxy/Σx², so wide arrays weigh most.

    With y of the narrowest equal to its x by definition, this is x_0²/Σx² + Σ a_N·X_N / X_0 with a_N = x_0·x_N/Σx²: a
    sum of independent figures over the baseline.
    """
    baseline, squares = points[0], sum(point.effective_drives**2 for point in points)
    shares = [(baseline.effective_drives * each.effective_drives / squares, each.iops) for each in points[1:]]
    value = sum(share * each.value for share, each in shares)
    wide = Estimate(
        value=value,
        low=value - math.hypot(*(share * (each.value - each.low) for share, each in shares)),
        high=value + math.hypot(*(share * (each.high - each.value) for share, each in shares)),
        n=min(point.iops.n for point in points),
        unit=Unit.IOPS,
        confidence=min(point.iops.confidence for point in points),
    )
    found, own = _quotient(wide, baseline.iops), baseline.effective_drives**2 / squares
    return replace(found, value=own + found.value, low=own + found.low, high=own + found.high)


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
    """Remark that names the width where efficiency falls below ``least``, and the likely cause; "" if none does.

    The width is the narrowest whose interval is below, else the narrowest whose value is. Causes, in this order: the
    host if its CPUs were busy; a drive that was too warm or badly connected; a resource that all drives share if wider
    arrays do no more; the drives that were new at that width, if every wider array, which has them too, is also below.
    """
    points = found.points[1:]
    surely = [point for point in points if point.ceiling < least]
    bent = surely or [point for point in points if point.efficiency.value < least]
    if not bent:
        return ""
    first, wider = bent[0], [point for point in points if point.geometry > bent[0].geometry]
    runs = next(each.runs for each in sweep if each.geometry == first.geometry)
    before = {serial for each in sweep if each.geometry < first.geometry for run in each.runs for serial in run.members}
    new = sorted({serial for run in runs for serial in run.members} - before)
    if cause := next(_causes(runs, new), ""):
        by = f": {cause}"
    elif wider and _is_flat(first, wider[-1]):
        by = ", and wider arrays do no more: something that all drives share is the bottleneck"
    elif new and len(new) <= SUSPECTS and all(point.efficiency.value < least for point in wider):
        by = f", the first with {'drive' if len(new) == 1 else 'drives'} {' and '.join(new)}"
    else:
        by = "; the cause is unknown"
    return f"the bend {'begins' if surely else 'seems to begin'} at {first.geometry}{by}"


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
