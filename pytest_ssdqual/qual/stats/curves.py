"""What several workloads on one array show together: the curve over mixes, over queue depths, the price of an offset.

All of it is about IOPS, each with its interval; intervals of ratios are propagated by their ends (``estimate.ratio``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_ssdqual.qual.stats.estimate import Estimate, NotApplicable, ratio
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload

#: By how much IOPS must grow with a doubling of the depth to be worth it. Of the published sweep of the Intel 910
#: (seeds E-R, E-W) this finds what its author says: reads gain until 128 outstanding, writes until 16, and what ten
#: times the latency brings beyond (+4 to 7 % a doubling) does not count.
KNEE_SHARE = 0.10


@dataclass(frozen=True, slots=True)
class Found:
    """A figure of a series, and the workloads that it was found at."""

    estimate: Estimate
    at: tuple[Workload, ...]


def bathtub(iops: Mapping[Workload, Estimate]) -> Found:
    """The worst mix of reads and writes against the straight line from pure writes to pure reads: IOPS over IOPS.

    At read share r the line is W + r (R - W). Flash does worse than that where reads wait behind writes (seed C-04,
    "bathtub"); above 1 there is no tub. ``NotApplicable`` unless there are pure reads, pure writes and a mix that
    differ in nothing else; independent streams have no fixed mix.
    """
    streams = [each for each in iops if each.has_streams]
    if streams:
        raise NotApplicable(f"{streams[0]} has no fixed mix to be put on the line between pure reads and pure writes")
    _require_alike(iops, "their mix of reads and writes", _without_mix)
    ends = {each.read_fraction: estimate for each, estimate in iops.items()}
    mixes = [each for each in iops if 0 < each.read_fraction < 1]
    if not mixes or 0.0 not in ends or 1.0 not in ends:
        raise NotApplicable(f"the line needs pure reads, pure writes and mixes between them, not only {_names(iops)}")
    found = [((each,), ratio(iops[each], _between(ends, each.read_fraction), Unit.RATIO)) for each in mixes]
    return _worst(min, found)


def unaligned(iops: Mapping[Workload, Estimate]) -> Found:
    """IOPS at offset 0 over those of the same workload shifted, of the pair that loses most; 1 is no penalty.

    ``at`` is that pair. (Seed C-05: a shifted write straddles two pages and both are read, changed and written.)
    ``NotApplicable`` if there is no pair.
    """
    pairs = [
        (replace(each, offset="0"), each) for each in iops if each.offset_bytes and replace(each, offset="0") in iops
    ]
    if not pairs:
        raise NotApplicable(f"a penalty needs a workload with an offset and the same without, not only {_names(iops)}")
    return _worst(max, [(pair, ratio(iops[pair[0]], iops[pair[1]], Unit.RATIO)) for pair in pairs])


def knee(iops: Mapping[Workload, Estimate], width: int, share: float = KNEE_SHARE) -> Found:
    """The deepest queue that was worth it, in I/Os outstanding at a target of ``width`` members (seeds E-01, E-02).

    A depth is worth it when its IOPS beat the best of all shallower ones by ``share`` per doubling of the depth
    between the two; the knee is the last such depth, or the shallowest of all if there is none. So a dip and the
    recovery from it count for nothing, and a slow creep beyond the knee does not move it.

    Low and high are the last depths that surely and possibly were worth it, by the intervals. If the deepest of all
    still may be, there is no upper end: IOPS were still growing. The knee is one of the depths that were measured;
    how finely they are spaced is not in the interval. ``NotApplicable`` below three depths.
    """
    points = _by_depth(iops, width)
    if len(points) < 3:
        raise NotApplicable(f"a knee needs at least 3 queue depths, there are {len(points)}: {_names(iops)}")
    sure = likely = possible = 0
    for index in range(1, len(points)):
        best = max(points[:index], key=lambda point: point[2].value)
        growth = ratio(points[index][2], best[2], Unit.RATIO)
        needed = (1 + share) ** math.log2(points[index][0] / best[0])
        sure = index if growth.low >= needed else sure
        likely = index if growth.value >= needed else likely
        possible = index if growth.high >= needed else possible
    high = math.inf if possible == len(points) - 1 else float(points[possible][0])
    n, confidence = min(each.n for each in iops.values()), _confidence(iops.values())
    estimate = Estimate(points[likely][0], points[sure][0], high, n, Unit.COUNT, confidence=confidence)
    return Found(estimate, (points[likely][1],))


def depth_gain(iops: Mapping[Workload, Estimate], width: int) -> Found:
    """IOPS at the deepest queue over those at the shallowest (seed A-27). ``NotApplicable`` below two depths."""
    points = _by_depth(iops, width)
    (_, shallowest, few), (_, deepest, many) = points[0], points[-1]
    return Found(ratio(many, few, Unit.RATIO), (shallowest, deepest))


def depth_dependence(iops: Mapping[Workload, Estimate], width: int) -> Found:
    """The most IOPS of all depths over the fewest; 1 is independent of depth (seeds A-09, D-05).

    ``at`` is the depths with the fewest and the most. ``NotApplicable`` below two depths.
    """
    points = [((workload,), estimate) for _, workload, estimate in _by_depth(iops, width)]
    fewest, most = _worst(min, points), _worst(max, points)
    found = ratio(most.estimate, fewest.estimate, Unit.RATIO)
    return Found(replace(found, low=max(1.0, found.low)), fewest.at + most.at)


def _worst(
    extreme: Callable[[Iterable[float]], float], found: Sequence[tuple[tuple[Workload, ...], Estimate]]
) -> Found:
    """The least (``min``) or greatest (``max``) of several; each end by itself, because any of them may be it."""
    value = extreme(each.value for _, each in found)
    at, worst = next(pair for pair in found if pair[1].value == value)
    low, high = extreme(each.low for _, each in found), extreme(each.high for _, each in found)
    estimates = [each for _, each in found]
    n, confidence = min(each.n for each in estimates), _confidence(estimates)
    return Found(Estimate(value, low, high, n, worst.unit, confidence=confidence), at)


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
    """Each depth with its workload, shallowest first."""
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
        raise NotApplicable(f"these differ in more than {but_for}: {_names(iops)}")


def _names(iops: Mapping[Workload, Estimate]) -> str:
    return ", ".join(map(str, iops)) or "none"
