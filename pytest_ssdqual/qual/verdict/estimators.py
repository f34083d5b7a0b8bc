"""Maps each claim to the estimator that computes it from a measurement.

The tables ``OF_RUN``, ``OF_MEMBERS``, ``OF_SWEEP``, ``OF_SERIES``, ``OF_SATURATION`` and ``OF_REBUILD`` have one entry
for each claim of their scope; ``estimate`` is the only entry point that verdicts use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.raid import scaling
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import TIMES_PER_HOUR, Claim, Scope
from pytest_ssdqual.qual.stats import curves, latency, spread, throughput
from pytest_ssdqual.qual.stats.batch_means import Basis
from pytest_ssdqual.qual.stats.estimate import CONFIDENCE, USUAL, ConfidenceLevel, Estimate, NotApplicable, ratio
from pytest_ssdqual.qual.stats.throughput import iops
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload

#: Measurements that a claim can be judged on: one, several of different widths or workloads, a saturation, a rebuild.
Evidence = Measured | Sequence[Measured] | Saturation | Rebuild


def estimate(
    claim: Claim | str,
    subject: Evidence,
    confidence: float = CONFIDENCE,
    share: float = 1.0,
    per_hour: float = TIMES_PER_HOUR,
) -> Estimate:
    """Estimate the figure of ``claim``, with its interval, in the claim's unit.

    ``confidence`` is the stated two-sided confidence; at a look of a sequential measurement the interval is as wide as
    its boundary requires. ``share`` is the part of the error rate that the interval may use. A claim about rare events
    is estimated at the level that is exceeded ``per_hour`` times an hour.

    ``TooFew`` if there is too little evidence; ``NotApplicable`` if ``subject`` is not what the claim is judged on or
    does not fit (no pure reads for the bathtub, two levels in a sweep). ValueError for a claim that does not exist.
    """
    claim, confidence_level = Claim(claim), ConfidenceLevel(confidence, share)
    if claim in OF_RARE and isinstance(subject, Measured):
        return OF_RARE[claim](subject, confidence_level, per_hour)
    if claim.scope in (Scope.RUN, Scope.MEMBERS) and isinstance(subject, Measured):
        return (
            OF_MEMBERS[claim](subject, confidence_level)
            if claim.scope is Scope.MEMBERS
            else OF_RUN[claim](subject, confidence_level)
        )
    if claim.scope is Scope.SATURATION and isinstance(subject, Saturation):
        return OF_SATURATION[claim](subject, confidence_level)
    if claim.scope is Scope.REBUILD and isinstance(subject, Rebuild):
        return OF_REBUILD[claim](subject)
    if claim.scope in (Scope.SWEEP, Scope.SERIES) and isinstance(subject, Sequence) and not isinstance(subject, str):
        if subject and all(isinstance(each, Measured) for each in subject):
            if claim.scope is Scope.SWEEP:
                return OF_SWEEP[claim](subject, confidence_level)
            return found_in(claim, subject, confidence_level).estimate
        raise NotApplicable(f"{claim.label} is judged on {_NEEDED[claim.scope]}, not on {subject!r}")
    raise NotApplicable(f"{claim.label} is judged on {_NEEDED[claim.scope]}, not on a {type(subject).__name__}")


_NEEDED = {
    Scope.RUN: "what was measured of one workload on one array or drive",
    Scope.MEMBERS: "what was measured of one workload on several drives side by side",
    Scope.LOT: "a sample of a lot",
    Scope.SWEEP: "what was measured of one workload on several widths of a level",
    Scope.SERIES: "what was measured of several workloads on one array or drive",
    Scope.SATURATION: "a saturation: writes from the purged state until settled",
    Scope.REBUILD: "a rebuild under load",
}


def _mean_latency(measured: Measured, confidence_level: ConfidenceLevel) -> Estimate:
    return latency.mean_latency(measured.round_latency(), Basis.of(measured, confidence_level))


def _read_mean_latency(measured: Measured, confidence_level: ConfidenceLevel) -> Estimate:
    throughput.require(measured, measured.workload.reads, "reads")
    rounds = measured.round_latency(lambda each: (each.read_latency,))
    return latency.mean_latency(rounds, Basis.of(measured, confidence_level))


def _write_mean_latency(measured: Measured, confidence_level: ConfidenceLevel) -> Estimate:
    throughput.require(measured, measured.workload.writes, "writes")
    rounds = measured.round_latency(lambda each: (each.write_latency,))
    return latency.mean_latency(rounds, Basis.of(measured, confidence_level))


def _quantile(q: float) -> Callable[[Measured, ConfidenceLevel], Estimate]:
    return lambda measured, confidence_level: latency.quantile_of_rounds(
        measured.round_latency(), q, Basis.whole(measured, confidence_level)
    )


#: Claims about one array under one workload.
OF_RUN: Mapping[Claim, Callable[[Measured, ConfidenceLevel], Estimate]] = {
    Claim.STEADY_IOPS: iops,
    Claim.READ_IOPS: throughput.read_iops,
    Claim.WRITE_IOPS: throughput.write_iops,
    Claim.THROUGHPUT: throughput.throughput,
    Claim.MEAN_LATENCY: _mean_latency,
    Claim.READ_MEAN_LATENCY: _read_mean_latency,
    Claim.WRITE_MEAN_LATENCY: _write_mean_latency,
    Claim.P50_LATENCY: _quantile(0.5),
    Claim.P90_LATENCY: _quantile(0.9),
    Claim.P95_LATENCY: _quantile(0.95),
    Claim.P99_LATENCY: _quantile(0.99),
    Claim.P99_9_LATENCY: _quantile(0.999),
    Claim.P99_99_LATENCY: _quantile(0.9999),
    Claim.P99_999_LATENCY: _quantile(0.99999),
}

#: Claims about rare events, with a promised rate.
OF_RARE: Mapping[Claim, Callable[[Measured, ConfidenceLevel, float], Estimate]] = {
    Claim.MAX_LATENCY: spread.max_latency,
    Claim.LATENCY_SPREAD_OVER_TIME: spread.over_time,
    Claim.WORST_SECOND: spread.worst_second,
}


def _member_spread(measured: Measured, confidence_level: ConfidenceLevel) -> Estimate:
    members = _side_by_side(Claim.MEMBER_SPREAD, measured)
    together = [iops(each, confidence_level.among(len(members))) for each in members]
    return spread.between_members([iops(each, confidence_level) for each in members], together)


def _spread_between_members(measured: Measured, confidence_level: ConfidenceLevel) -> Estimate:
    members = _side_by_side(Claim.LATENCY_SPREAD_BETWEEN_MEMBERS, measured)
    return spread.between_drives([spread.SpellMaxima.of(each, confidence_level) for each in members])


def alike(claim: Claim | str, measured: Measured) -> dict[str, float]:
    """Figure of each drive side by side, by serial number: IOPS, or the geometric mean of its spells' slowest I/Os in
    ns.

    ``NotApplicable`` for a single target.
    """
    claim = Claim(claim)
    members = {each.runs[0].members[0]: each for each in _side_by_side(claim, measured)}
    if claim is Claim.LATENCY_SPREAD_BETWEEN_MEMBERS:
        return {serial: spread.SpellMaxima.of(each, USUAL).typical_ns for serial, each in members.items()}
    return {serial: iops(each).value for serial, each in members.items()}


def slowest_member(measured: Measured, claim: Claim | str = Claim.MEMBER_SPREAD) -> str:
    """Serial number of the worst drive side by side: fewest IOPS, or slowest I/Os if the claim is about these.

    ``NotApplicable`` unless the drives are side by side.
    """
    of_each = alike(claim, measured)
    extreme = max if claim == Claim.LATENCY_SPREAD_BETWEEN_MEMBERS else min
    return extreme(of_each, key=of_each.__getitem__)


def _side_by_side(claim: Claim, measured: Measured) -> tuple[Measured, ...]:
    members = measured.of_members()
    if len(members) < 2:
        raise NotApplicable(f"{claim.label} is judged on several drives side by side, not on {measured.geometry}")
    return members


#: Claims about drives side by side.
OF_MEMBERS: Mapping[Claim, Callable[[Measured, ConfidenceLevel], Estimate]] = {
    Claim.MEMBER_SPREAD: _member_spread,
    Claim.LATENCY_SPREAD_BETWEEN_MEMBERS: _spread_between_members,
}


def of_scaling(sweep: Sequence[Measured], confidence_level: ConfidenceLevel = USUAL) -> scaling.Scaling:
    """Scaling of IOPS over the widths of a sweep; see ``scaling.fit``.

    ``NotApplicable`` also for sequential writes with parity: whole stripes cost less than the small writes of the
    level's cost model.
    """
    ordered = _ordered(sweep)
    workload, geometry = ordered[0].workload, ordered[0].geometry
    if geometry.has_parity and workload.writes and not workload.is_random:
        raise NotApplicable(f"no cost model for {workload} on {geometry.level}: it writes whole stripes")
    repeats = {each.geometry: [run.iops for run in each.runs] for each in ordered}

    def of_each(confidence_level: ConfidenceLevel) -> dict[Geometry, Estimate]:
        alone = {each.geometry: iops(each, confidence_level) for each in ordered}
        return scaling.with_repeats(alone, repeats, max(Basis.of(each, confidence_level).level for each in ordered))

    return scaling.fit(
        of_each(confidence_level), workload.read_fraction, of_each(confidence_level.among(len(ordered) - 1))
    )


def _ordered(sweep: Sequence[Measured]) -> list[Measured]:
    """The sweep, narrowest first; ``NotApplicable`` unless it is one workload on several widths of one level."""
    ordered = sorted(sweep, key=lambda each: each.geometry)
    shapes = {(each.geometry.level, each.geometry.missing, each.geometry.rebuilding) for each in ordered}
    widths = {each.geometry for each in ordered}
    if len({each.workload for each in ordered}) > 1 or len(shapes) > 1 or len(widths) < max(2, len(ordered)):
        found = ", ".join(f"{each.geometry} {each.workload}" for each in ordered)
        raise NotApplicable(f"a sweep is one workload on at least 2 widths of one level, each once, not {found}")
    return ordered


def _spread_between_widths(sweep: Sequence[Measured], confidence_level: ConfidenceLevel) -> Estimate:
    ordered = _ordered(sweep)
    return spread.between(
        spread.SpellMaxima.of(ordered[0], confidence_level), spread.SpellMaxima.of(ordered[-1], confidence_level)
    )


def _growth_between_widths(sweep: Sequence[Measured], confidence_level: ConfidenceLevel) -> Estimate:
    ordered = _ordered(sweep)
    return ratio(_mean_latency(ordered[-1], confidence_level), _mean_latency(ordered[0], confidence_level), Unit.RATIO)


#: Claims about all widths of a level under one workload.
OF_SWEEP: Mapping[Claim, Callable[[Sequence[Measured], ConfidenceLevel], Estimate]] = {
    Claim.SCALING_SLOPE: lambda sweep, confidence_level: of_scaling(sweep, confidence_level).slope,
    Claim.SCALING_DEVIATION: lambda sweep, confidence_level: of_scaling(sweep, confidence_level).deviation,
    Claim.LATENCY_SPREAD_BETWEEN_WIDTHS: _spread_between_widths,
    Claim.LATENCY_GROWTH_BETWEEN_WIDTHS: _growth_between_widths,
}

#: Claims about several workloads on one array: functions of their IOPS and of the number of members of one target.
OF_SERIES: Mapping[Claim, Callable[[Mapping[Workload, Estimate], int], curves.CurveFigure]] = {
    Claim.BATHTUB_DEPTH: lambda curve, width: curves.bathtub(curve),
    Claim.UNALIGNED_PENALTY: lambda curve, width: curves.unaligned(curve),
    Claim.QD_KNEE: curves.knee,
    Claim.QD_GAIN: curves.depth_gain,
    Claim.QD_DEPENDENCE: curves.depth_dependence,
}


def found_in(
    claim: Claim | str, measured: Sequence[Measured], confidence_level: ConfidenceLevel = USUAL
) -> curves.CurveFigure:
    """Estimate a claim about a series, with the workloads at which it was found (the worst mix, the knee, …).

    ``NotApplicable`` unless these are different workloads on one array. A queue depth is that of one target: for drives
    side by side it is a drive's, though the IOPS are those of all.
    """
    geometries = {each.geometry for each in measured}
    curve = {each.workload: iops(each, confidence_level) for each in measured}
    if len(geometries) != 1 or len(curve) < len(measured):
        found = ", ".join(f"{each.geometry} {each.workload}" for each in measured) or "none"
        raise NotApplicable(f"a series is different workloads on one array, not {found}")
    geometry = geometries.pop()
    return OF_SERIES[Claim(claim)](curve, 1 if geometry.is_side_by_side else geometry.width)


#: Claims about writes from the purged state.
OF_SATURATION: Mapping[Claim, Callable[[Saturation, ConfidenceLevel], Estimate]] = {
    Claim.FRESH_IOPS: lambda found, confidence_level: found.fresh_iops(confidence_level),
    Claim.SETTLED_IOPS: lambda found, confidence_level: found.settle(confidence_level).iops,
    Claim.FRESH_TO_STEADY: lambda found, confidence_level: ratio(
        found.fresh_iops(confidence_level), found.settle(confidence_level).iops, Unit.RATIO
    ),
    Claim.CLIFF_AFTER: lambda found, confidence_level: found.cliff_after(),
}

#: Claims about a rebuild under load.
OF_REBUILD: Mapping[Claim, Callable[[Rebuild], Estimate]] = {
    Claim.REBUILD_RATE: lambda found: found.rate(),
    Claim.REBUILD_TIME: lambda found: found.time(),
}
