"""Which figure of what was measured each claim is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter

from pytest_ssdqual.qual import scaling, series, spread
from pytest_ssdqual.qual.claim import Claim, Scope
from pytest_ssdqual.qual.estimate import (
    Estimate,
    max_latency,
    mean_latency,
    mean_of_rounds,
    quantile_of_rounds,
    ratio,
)
from pytest_ssdqual.qual.measurement import Measured
from pytest_ssdqual.qual.rebuild import Rebuild
from pytest_ssdqual.qual.saturation import Saturation
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload import Workload

#: What a claim can be judged by: a run, several of different widths or workloads, a saturation, a rebuild.
Evidence = Measured | Sequence[Measured] | Saturation | Rebuild


def iops(measured: Measured) -> Estimate:
    """Steady-state IOPS: mean over the rounds of all repeats, with Student's interval of that mean."""
    return mean_of_rounds(measured.round_iops(), Unit.IOPS)


def estimate(claim: Claim | str, subject: Evidence) -> Estimate:
    """The figure that ``claim`` is about, with its interval, in the claim's unit.

    Raises ``TooFew`` (a ValueError) when there is too little evidence for it; TypeError when ``subject`` is not what
    the claim is judged on, and ValueError when it is but does not fit (no pure reads for the bathtub, two levels in
    a sweep): each a sentence. ValueError for a claim that does not exist.
    """
    claim = Claim(claim)
    if claim.scope in (Scope.RUN, Scope.MEMBERS) and isinstance(subject, Measured):
        return OF_MEMBERS[claim](subject) if claim.scope is Scope.MEMBERS else OF_RUN[claim](subject)
    if claim.scope is Scope.SATURATION and isinstance(subject, Saturation):
        return OF_SATURATION[claim](subject)
    if claim.scope is Scope.REBUILD and isinstance(subject, Rebuild):
        return OF_REBUILD[claim](subject)
    if claim.scope in (Scope.SWEEP, Scope.SERIES) and isinstance(subject, Sequence) and not isinstance(subject, str):
        if subject and all(isinstance(each, Measured) for each in subject):
            return OF_SWEEP[claim](subject) if claim.scope is Scope.SWEEP else found_in(claim, subject).estimate
        raise TypeError(f"{claim.label} is judged on {_NEEDED[claim.scope]}, not on {subject!r}")
    raise TypeError(f"{claim.label} is judged on {_NEEDED[claim.scope]}, not on a {type(subject).__name__}")


_NEEDED = {
    Scope.RUN: "what was measured of one workload on one array or drive",
    Scope.MEMBERS: "what was measured of one workload on several drives side by side",
    Scope.SWEEP: "what was measured of one workload on several widths of a level",
    Scope.SERIES: "what was measured of several workloads on one array or drive",
    Scope.SATURATION: "a saturation: writes from the purged state until settled",
    Scope.REBUILD: "a rebuild under load",
}


def _read_iops(measured: Measured) -> Estimate:
    _require(measured, measured.workload.reads, "reads")
    return mean_of_rounds(measured.round_rates(attrgetter("read_ios")), Unit.IOPS)


def _write_iops(measured: Measured) -> Estimate:
    _require(measured, measured.workload.writes, "writes")
    return mean_of_rounds(measured.round_rates(attrgetter("write_ios")), Unit.IOPS)


def _throughput(measured: Measured) -> Estimate:
    rates = measured.round_rates(lambda each: each.read_bytes + each.write_bytes)
    return mean_of_rounds(rates, Unit.BYTES_PER_SECOND)


def _read_mean_latency(measured: Measured) -> Estimate:
    _require(measured, measured.workload.reads, "reads")
    return mean_latency(measured.round_latency(lambda each: (each.read_latency,)))


def _write_mean_latency(measured: Measured) -> Estimate:
    _require(measured, measured.workload.writes, "writes")
    return mean_latency(measured.round_latency(lambda each: (each.write_latency,)))


def _require(measured: Measured, has_them: bool, direction: str) -> None:
    if not has_them:
        raise ValueError(f"{measured.workload} has no {direction} to be judged")


def _quantile(q: float) -> Callable[[Measured], Estimate]:
    return lambda measured: quantile_of_rounds(measured.round_latency(), q)


#: Claims about one array under one workload.
OF_RUN: Mapping[Claim, Callable[[Measured], Estimate]] = {
    Claim.STEADY_IOPS: iops,
    Claim.READ_IOPS: _read_iops,
    Claim.WRITE_IOPS: _write_iops,
    Claim.THROUGHPUT: _throughput,
    Claim.MEAN_LATENCY: lambda measured: mean_latency(measured.round_latency()),
    Claim.READ_MEAN_LATENCY: _read_mean_latency,
    Claim.WRITE_MEAN_LATENCY: _write_mean_latency,
    Claim.P50_LATENCY: _quantile(0.5),
    Claim.P90_LATENCY: _quantile(0.9),
    Claim.P95_LATENCY: _quantile(0.95),
    Claim.P99_LATENCY: _quantile(0.99),
    Claim.P99_9_LATENCY: _quantile(0.999),
    Claim.P99_99_LATENCY: _quantile(0.9999),
    Claim.P99_999_LATENCY: _quantile(0.99999),
    Claim.MAX_LATENCY: lambda measured: max_latency(measured.round_latency()),
    Claim.LATENCY_SPREAD_OVER_TIME: lambda measured: spread.over_time(measured.round_latency()),
    Claim.WORST_SECOND: lambda measured: spread.worst_second(measured.runs),
}


def _member_spread(measured: Measured) -> Estimate:
    return spread.between_members([iops(each) for each in _side_by_side(measured)])


def slowest_member(measured: Measured) -> str:
    """Serial number of the drive with the fewest IOPS, of several side by side; ValueError if they are not."""
    return min(_side_by_side(measured), key=lambda each: each.iops).runs[0].members[0]


def _side_by_side(measured: Measured) -> tuple[Measured, ...]:
    members = measured.of_members()
    if len(members) < 2:
        label = Claim.MEMBER_SPREAD.label
        raise ValueError(f"{label} is judged on several drives side by side, not on {measured.geometry}")
    return members


#: Claims about drives side by side.
OF_MEMBERS: Mapping[Claim, Callable[[Measured], Estimate]] = {Claim.MEMBER_SPREAD: _member_spread}


def of_scaling(sweep: Sequence[Measured]) -> scaling.Scaling:
    """How IOPS grow over the widths of a sweep; see ``scaling.fit``.

    ValueError also for sequential writes with parity: whole stripes cost less than the small writes that the law of
    the level counts.
    """
    ordered = _ordered(sweep)
    workload, geometry = ordered[0].workload, ordered[0].geometry
    if geometry.has_parity and workload.writes and not workload.is_random:
        raise ValueError(f"no law says how {workload} grows with the drives of a {geometry.level}: it writes stripes")
    return scaling.fit({each.geometry: iops(each) for each in ordered}, workload.read_fraction)


def _ordered(sweep: Sequence[Measured]) -> list[Measured]:
    """Narrowest first; ValueError unless it is one workload on several widths of one level."""
    ordered = sorted(sweep, key=lambda each: each.geometry)
    shapes = {(each.geometry.level, each.geometry.missing, each.geometry.rebuilding) for each in ordered}
    widths = {each.geometry for each in ordered}
    if len({each.workload for each in ordered}) > 1 or len(shapes) > 1 or len(widths) < max(2, len(ordered)):
        found = ", ".join(f"{each.geometry} {each.workload}" for each in ordered)
        raise ValueError(f"a sweep is one workload on at least 2 widths of one level, each once, not {found}")
    return ordered


def _spread_between_widths(sweep: Sequence[Measured]) -> Estimate:
    ordered = _ordered(sweep)
    return spread.between(ordered[0].round_latency(), ordered[-1].round_latency())


def _growth_between_widths(sweep: Sequence[Measured]) -> Estimate:
    ordered = _ordered(sweep)
    narrowest, widest = (mean_latency(each.round_latency()) for each in (ordered[0], ordered[-1]))
    return ratio(widest, narrowest, Unit.RATIO)


#: Claims about all widths of a level under one workload.
OF_SWEEP: Mapping[Claim, Callable[[Sequence[Measured]], Estimate]] = {
    Claim.SCALING_SLOPE: lambda sweep: of_scaling(sweep).slope,
    Claim.SCALING_DEVIATION: lambda sweep: of_scaling(sweep).deviation,
    Claim.LATENCY_SPREAD_BETWEEN_WIDTHS: _spread_between_widths,
    Claim.LATENCY_GROWTH_BETWEEN_WIDTHS: _growth_between_widths,
}

#: Claims about several workloads on one array: of their IOPS and the number of members that one target has.
OF_SERIES: Mapping[Claim, Callable[[Mapping[Workload, Estimate], int], series.Found]] = {
    Claim.BATHTUB_DEPTH: lambda curve, width: series.bathtub(curve),
    Claim.UNALIGNED_PENALTY: lambda curve, width: series.unaligned(curve),
    Claim.QD_KNEE: series.knee,
    Claim.QD_GAIN: series.depth_gain,
    Claim.QD_DEPENDENCE: series.depth_dependence,
}


def found_in(claim: Claim | str, measured: Sequence[Measured]) -> series.Found:
    """The figure of a claim about a series, and the workloads it was found at (the worst mix, the knee, …).

    ValueError unless these are different workloads on one array. The depth of a queue is that of one target: of drives
    side by side it is a drive's, though the IOPS are those of all.
    """
    geometries = {each.geometry for each in measured}
    curve = {each.workload: iops(each) for each in measured}
    if len(geometries) != 1 or len(curve) < len(measured):
        found = ", ".join(f"{each.geometry} {each.workload}" for each in measured) or "none"
        raise ValueError(f"a series is different workloads on one array, not {found}")
    geometry = geometries.pop()
    return OF_SERIES[Claim(claim)](curve, 1 if geometry.is_side_by_side else geometry.width)


#: Claims about writes from the purged state.
OF_SATURATION: Mapping[Claim, Callable[[Saturation], Estimate]] = {
    Claim.FRESH_IOPS: lambda found: found.fresh,
    Claim.SETTLED_IOPS: lambda found: found.settle().iops,
    Claim.FRESH_TO_STEADY: lambda found: ratio(found.fresh, found.settle().iops, Unit.RATIO),
    Claim.CLIFF_AFTER: lambda found: found.cliff_after(),
}

#: Claims about a rebuild under load.
OF_REBUILD: Mapping[Claim, Callable[[Rebuild], Estimate]] = {
    Claim.REBUILD_RATE: lambda found: found.rate(),
    Claim.REBUILD_TIME: lambda found: found.time(),
}
