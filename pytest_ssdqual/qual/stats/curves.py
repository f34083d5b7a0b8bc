"""Figures of several workloads on one array: mixes of reads and writes, queue depths, the cost of an offset.

All are made of IOPS estimates; intervals of ratios combine the ends (``estimate.ratio``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.stats.estimate import Estimate, NotApplicable, ratio
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload

#: Growth of IOPS per doubling of the depth from which a deeper queue counts as a gain. In the published sweep of the
#: Intel 910 (seeds E-R, E-W) this finds its author's conclusion: reads gain until 128 outstanding, writes until 16; +4
#: to 7 % a doubling at ten times the latency is no gain.
KNEE_SHARE = 0.10
#: Shares of reads of a balanced mix (seed B-07).
BALANCED = (0.35, 0.65)

#: Growth of the mean latency per doubling of the depth above which it rises with the depth: √2 is half-way, on a log
#: scale, from constant (the depth is served in parallel) to proportional (I/Os only wait longer).
LATENCY_GROWTH = math.sqrt(2)


@frozen
class CurveFigure:
    """A figure of a series, and the workloads at which it was found."""

    estimate: Estimate
    at: tuple[Workload, ...]


def mix_rise(iops: Mapping[Workload, Estimate]) -> CurveFigure:
    """Greatest ratio of the IOPS of a mix to those of the next one with more reads; at most 1 is a monotone fall.

    Pure writes are left out: the published curve falls from pure reads to 5 % reads and rises a little at the end
    (seed B-04). ``at`` is that pair. ``NotApplicable`` unless at least two workloads with reads differ in their mix
    alone.
    """
    _require_fixed_mixes(iops)
    falling = sorted((each for each in iops if each.reads), key=lambda each: -each.read_fraction)
    if len(falling) < 2:
        raise NotApplicable(f"a rise needs at least 2 mixes with reads, not only {_names(iops)}")
    steps = [((more, fewer), ratio(iops[fewer], iops[more], Unit.RATIO)) for more, fewer in pairwise(falling)]
    return _worst(max, steps)


def balanced_gain(iops: Mapping[Workload, Estimate]) -> CurveFigure:
    """IOPS of the best mix of 35 to 65 % reads over the best of all other mixes, pure ones included (seed B-07).

    All transfers have one size, so it is the ratio of bandwidths, too; above 1 a balanced mix has the most. ``at`` is
    the pair. ``NotApplicable`` without a mix on either side.
    """
    _require_fixed_mixes(iops)
    least, most = BALANCED
    inside = {each: found for each, found in iops.items() if least <= each.read_fraction <= most}
    outside = {each: found for each, found in iops.items() if each not in inside}
    if not inside or not outside:
        raise NotApplicable(f"a gain needs mixes of 35 to 65 % reads and others, not only {_names(iops)}")
    best, other = (_worst(max, [((each,), found) for each, found in side.items()]) for side in (inside, outside))
    return CurveFigure(ratio(best.estimate, other.estimate, Unit.RATIO), best.at + other.at)


def bathtub(iops: Mapping[Workload, Estimate]) -> CurveFigure:
    """IOPS of the worst mix of reads and writes over the straight line from pure writes to pure reads.

    At read share r the line is W + r (R - W). Flash falls below it where reads wait behind writes (seed C-04,
    "bathtub"); above 1 there is no tub. ``NotApplicable`` unless there are pure reads, pure writes and a mix that
    differ in nothing else; independent streams have no fixed mix.
    """
    _require_fixed_mixes(iops)
    ends = {each.read_fraction: estimate for each, estimate in iops.items()}
    mixes = [each for each in iops if 0 < each.read_fraction < 1]
    if not mixes or 0.0 not in ends or 1.0 not in ends:
        raise NotApplicable(f"the line needs pure reads, pure writes and mixes between them, not only {_names(iops)}")
    found = [((each,), ratio(iops[each], _between(ends, each.read_fraction), Unit.RATIO)) for each in mixes]
    return _worst(min, found)


def unaligned(iops: Mapping[Workload, Estimate]) -> CurveFigure:
    """IOPS at offset 0 over those of the same workload shifted, for the pair that loses most; 1 is no penalty.

    ``at`` is that pair. A shifted write straddles two pages, and both are read, changed and written (seed C-05).
    ``NotApplicable`` without such a pair.
    """
    pairs = [
        (replace(each, offset="0"), each) for each in iops if each.offset_bytes and replace(each, offset="0") in iops
    ]
    if not pairs:
        raise NotApplicable(f"a penalty needs a workload with an offset and the same without, not only {_names(iops)}")
    return _worst(max, [(pair, ratio(iops[pair[0]], iops[pair[1]], Unit.RATIO)) for pair in pairs])


def neighbour(figures: Mapping[Workload, Estimate]) -> CurveFigure:
    """Figure of reads beside writes over that of the same reads alone; ``at`` is alone, and beside.

    ``figures`` are of the reads, such as their p99 latency. ``NotApplicable`` unless there is one such pair.
    """
    return _of_pair(figures, {each: replace(each, beside="") for each in figures if each.beside})


def spared(iops: Mapping[Workload, Estimate]) -> CurveFigure:
    """IOPS on a part of the range over those on all of it; ``at`` is the whole, and the part.

    ``NotApplicable`` unless there is one such pair.
    """
    return _of_pair(iops, {each: replace(each, region_percent=100) for each in iops if each.region_percent < 100})


def _of_pair(figures: Mapping[Workload, Estimate], usual: Mapping[Workload, Workload]) -> CurveFigure:
    if len(usual) != 1 or not set(usual.values()) <= set(figures):
        raise NotApplicable(f"a workload is compared with the same as usual, and these are {_names(figures)}")
    ((other, reference),) = usual.items()
    return CurveFigure(ratio(figures[other], figures[reference], Unit.RATIO), (reference, other))


def knee(iops: Mapping[Workload, Estimate], width: int) -> CurveFigure:
    """Deepest queue that still gained IOPS, in I/Os outstanding at a target of ``width`` members (seeds E-01, E-02).

    A depth gains if its IOPS exceed the best of all shallower ones by ``KNEE_SHARE`` per doubling of the depth between
    the two. The knee is the last such depth, or the shallowest if there is none: a dip and the recovery from it count
    for nothing, and slow growth beyond the knee does not move it.

    Low and high are the last depths that gained at the low and high ends of the intervals. If the deepest may have
    gained, there is no upper end: IOPS were still growing. The knee is one of the measured depths; their spacing is not
    in the interval. ``NotApplicable`` below three depths.
    """
    points = _for_a_knee(iops, width)
    certain = likely = possible = 0
    for index in range(1, len(points)):
        best = max(points[:index], key=lambda point: point[2].value)
        growth = ratio(points[index][2], best[2], Unit.RATIO)
        needed = (1 + KNEE_SHARE) ** math.log2(points[index][0] / best[0])
        certain = index if growth.low >= needed else certain
        likely = index if growth.value >= needed else likely
        possible = index if growth.high >= needed else possible
    high = math.inf if possible == len(points) - 1 else float(points[possible][0])
    return _knee(points, likely, certain, high)


def latency_knee(latencies: Mapping[Workload, Estimate], width: int) -> CurveFigure:
    """Deepest queue before the mean latency rises sharply, in I/Os outstanding at a target of ``width`` members.

    Latency rises sharply if it grows by more than ``LATENCY_GROWTH`` per doubling of the depth (seed A-37: "beyond
    queue depth 8"). The knee is the last depth before the first such step. Low and high are those of the steps that may
    be and that certainly are sharp; without a certain one there is no upper end. ``NotApplicable`` below three depths.
    """
    points = _for_a_knee(latencies, width)
    steps = [
        (ratio(deeper[2], shallower[2], Unit.RATIO), LATENCY_GROWTH ** math.log2(deeper[0] / shallower[0]))
        for shallower, deeper in pairwise(points)
    ]

    def first(is_sharp: Sequence[bool]) -> int:
        return list(is_sharp).index(True) if any(is_sharp) else len(points) - 1

    possible = first([growth.high > allowed for growth, allowed in steps])
    likely = first([growth.value > allowed for growth, allowed in steps])
    certain = [growth.low > allowed for growth, allowed in steps]
    high = float(points[first(certain)][0]) if any(certain) else math.inf
    return _knee(points, likely, possible, high)


def _for_a_knee(figures: Mapping[Workload, Estimate], width: int) -> list[tuple[int, Workload, Estimate]]:
    points = _by_depth(figures, width)
    if len(points) < 3:
        raise NotApplicable(f"a knee needs at least 3 queue depths, there are {len(points)}: {_names(figures)}")
    return points


def _knee(points: Sequence[tuple[int, Workload, Estimate]], likely: int, low: int, high: float) -> CurveFigure:
    """Return the point ``likely``; the low end is that of the point ``low``."""
    estimates = [estimate for _, _, estimate in points]
    n, confidence = min(each.n for each in estimates), _confidence(estimates)
    estimate = Estimate(points[likely][0], points[low][0], high, n, Unit.COUNT, confidence=confidence)
    return CurveFigure(estimate, (points[likely][1],))


def depth_gain(iops: Mapping[Workload, Estimate], width: int) -> CurveFigure:
    """IOPS at the deepest queue over those at the shallowest (seed A-27). ``NotApplicable`` below two depths."""
    points = _by_depth(iops, width)
    (_, shallowest, few), (_, deepest, many) = points[0], points[-1]
    return CurveFigure(ratio(many, few, Unit.RATIO), (shallowest, deepest))


def depth_dependence(iops: Mapping[Workload, Estimate], width: int) -> CurveFigure:
    """Most IOPS of all depths over the fewest; 1 is independent of depth (seeds A-09, D-05).

    ``at`` holds the depths with the fewest and the most. ``NotApplicable`` below two depths.
    """
    points = [((workload,), estimate) for _, workload, estimate in _by_depth(iops, width)]
    fewest, most = _worst(min, points), _worst(max, points)
    found = ratio(most.estimate, fewest.estimate, Unit.RATIO)
    return CurveFigure(replace(found, low=max(1.0, found.low)), fewest.at + most.at)


def _worst(
    extreme: Callable[[Iterable[float]], float], found: Sequence[tuple[tuple[Workload, ...], Estimate]]
) -> CurveFigure:
    """Least (``min``) or greatest (``max``) of several estimates; each end separately, as any of them may be it."""
    value = extreme(each.value for _, each in found)
    at, worst = next(pair for pair in found if pair[1].value == value)
    low, high = extreme(each.low for _, each in found), extreme(each.high for _, each in found)
    estimates = [each for _, each in found]
    n, confidence = min(each.n for each in estimates), _confidence(estimates)
    return CurveFigure(Estimate(value, low, high, n, worst.unit, confidence=confidence), at)


def _between(ends: Mapping[float, Estimate], read_share: float) -> Estimate:
    writes, reads = ends[0.0], ends[1.0]

    def line(write_iops: float, read_iops: float) -> float:
        return (1 - read_share) * write_iops + read_share * read_iops

    return Estimate(
        line(writes.value, reads.value),
        line(writes.low, reads.low),
        line(writes.high, reads.high),
        min(writes.n, reads.n),
        Unit.IOPS,
        confidence=_confidence(ends.values()),
    )


def _confidence(estimates: Iterable[Estimate]) -> float:
    return min(each.confidence for each in estimates)


def _by_depth(iops: Mapping[Workload, Estimate], width: int) -> list[tuple[int, Workload, Estimate]]:
    """Each depth with its workload and IOPS, shallowest first."""
    _require_alike(iops, "their queue depth", _without_depth)
    depths = {each.outstanding(width): each for each in iops}
    if len(depths) < max(2, len(iops)):
        raise NotApplicable(f"at least 2 different queue depths are needed, each once, not {_names(iops)}")
    return [(depth, depths[depth], iops[depths[depth]]) for depth in sorted(depths)]


def _without_mix(workload: Workload) -> Workload:
    return replace(workload, rw="randread" if workload.is_random else "read", read_percent=None, name="any")


def _without_depth(workload: Workload) -> Workload:
    return replace(workload, qd_per_drive=1, threads=None, name="any")


def _require_alike(iops: Mapping[Workload, Estimate], but_for: str, stripped: Callable[[Workload], Workload]) -> None:
    if len({stripped(each) for each in iops}) > 1:
        raise NotApplicable(f"these workloads differ in more than {but_for}: {_names(iops)}")


def _require_fixed_mixes(iops: Mapping[Workload, Estimate]) -> None:
    if streams := [each for each in iops if each.has_streams]:
        raise NotApplicable(f"{streams[0]} has no fixed mix to be put on the line between pure reads and pure writes")
    _require_alike(iops, "their mix of reads and writes", _without_mix)


def _names(iops: Mapping[Workload, Estimate]) -> str:
    return ", ".join(map(str, iops)) or "none"
