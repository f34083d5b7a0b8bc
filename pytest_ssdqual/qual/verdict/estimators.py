"""Maps each claim to the estimator that computes it from a measurement.

The tables ``ESTIMATORS``, ``OF_RARE`` and ``OF_CURVE`` together have one entry for each claim but those about lots;
``estimate`` is the only entry point that verdicts use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram, from_intended_starts
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.measured.judgeable import J, Judgeable, Subject
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured, RoundHistograms
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.measured.sweep import Curve, PredictedRun, Sweep
from pytest_ssdqual.qual.raid import scaling
from pytest_ssdqual.qual.raid.geometry import PROTOCOLS, Geometry
from pytest_ssdqual.qual.spec.claims import OF_GROWTH, OF_LATENCY, OF_PAIRS, TIMES_PER_HOUR, Claim, Scope
from pytest_ssdqual.qual.stats import curves, drive_counters, latency, spread, throughput
from pytest_ssdqual.qual.stats.estimate import (
    CONFIDENCE,
    USUAL,
    CannotJudge,
    ConfidenceLevel,
    Estimate,
    NotApplicable,
    ratio,
)
from pytest_ssdqual.qual.stats.intervals import Basis
from pytest_ssdqual.qual.stats.spread import RareEvents, SpellMaxima
from pytest_ssdqual.qual.stats.throughput import iops
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload.workload import Workload

#: Pace up to which the latencies of a replay are those of the trace.
KEPT_PACE = 1.05
#: Share of the time for which jobs at a rate may be busy. Those of a drive that cannot do the rate are busy all the
#: time: 0.97 at 2 % too little. At 99 % of what a drive of 64 jobs can do they are busy for 0.42 (simulated queues).
BUSY = 0.8
#: Claims that compare rates, which drives that were asked for the same rate keep alike.
OF_ANY_RATE = OF_GROWTH | {Claim.THROUGHPUT, Claim.MEMBER_SPREAD}
JudgedT = TypeVar("JudgedT")
#: Estimates a claim's figure from what it is judged on.
Estimator = Callable[[JudgedT, ConfidenceLevel], Estimate]


def estimate(
    claim: Claim,
    judged: Judgeable,
    confidence: float = CONFIDENCE,
    share: float = 1.0,
    per_hour: float = TIMES_PER_HOUR,
) -> Estimate:
    """Estimate the figure of ``claim``, with its interval, in the claim's unit.

    ``confidence`` is the stated two-sided confidence; after visits the interval is as wide as all planned looks
    together require. ``share`` is the part of the error rate that the interval may use. A claim about rare events
    is estimated at the level that is exceeded ``per_hour`` times an hour.

    The latency of a saturation is that of its response times.

    ``TooFew`` if there is too little evidence; ``NotApplicable`` if ``judged`` is not what the claim is judged on or
    does not fit (no pure reads for the bathtub, two levels in a sweep).
    """
    confidence_level = ConfidenceLevel(confidence, share)
    if isinstance(judged, Saturation) and claim in OF_LATENCY:
        judged = _response_times(judged)
    suited: Any = of_kind(claim, judged)
    rated = next((each for each in judged.subject.workloads if each.rate_iops), None)
    if rated and (claim.unit is Unit.IOPS or claim in OF_ANY_RATE or claim.scope in (Scope.PREDICTED, Scope.CURVE)):
        raise NotApplicable(f"{rated} asks for a rate, so its IOPS are no result: judge rate_kept, or a latency")
    if claim in OF_RARE:
        rare = OF_RARE[claim](RareEvents(suited, confidence_level, per_hour))
        return _unproved_if_late(rare, suited, confidence_level) if claim is Claim.MAX_LATENCY else rare
    if claim in OF_CURVE:
        return found_in(claim, suited, confidence_level).estimate
    return ESTIMATORS[claim](suited, confidence_level)


def _response_times(saturation: Saturation) -> Measured:
    """Return the response times; ``CannotJudge`` if fio's reports of them object.

    Of a whole saturation only the environment is checked, because its rate falls.
    """
    found = saturation.response_times()
    (run,) = found.runs
    if objections := checks.objections_in(checks.of_part(run, saturation.sample_s)):
        raise CannotJudge(f"the response times of {run.workload} are not valid: {'; '.join(objections)}")
    return found


#: The type that the claims of a scope are judged on; a lot is judged by its plan, not here.
KINDS: Mapping[Scope, type[Judgeable]] = {
    Scope.RUN: Measured,
    Scope.PREDICTED: PredictedRun,
    Scope.MEMBERS: Measured,
    Scope.SWEEP: Sweep,
    Scope.CURVE: Curve,
    Scope.SATURATION: Saturation,
    Scope.REBUILD: Rebuild,
}

_NEEDED = {
    Scope.RUN: "what was measured of one workload on one array or drive",
    Scope.PREDICTED: "what was measured of one workload on one array, and its members before it",
    Scope.MEMBERS: "what was measured of one workload on several drives side by side",
    Scope.LOT: "a sample of a lot",
    Scope.SWEEP: "what was measured of one workload on several widths of a level",
    Scope.CURVE: "what was measured of several workloads on one array or drive",
    Scope.SATURATION: "a saturation: writes from the purged state until settled",
    Scope.REBUILD: "a rebuild under load",
}


def of_kind(claim: Claim, judged: Judgeable, kind: type[J] | None = None) -> J:
    """Return ``judged`` if it is of the kind that the claim is judged on, else raise ``NotApplicable``.

    A saturation has response times, too, which the latency is judged on. ``kind`` is for the type checker: the type in
    ``KINDS``.
    """
    if isinstance(judged, Saturation) and claim in OF_LATENCY:
        return judged  # type: ignore[return-value]
    expected = kind or KINDS.get(claim.scope)
    if expected is None or not isinstance(judged, expected):
        raise NotApplicable(f"{claim.label} is judged on {_NEEDED[claim.scope]}, not on a {type(judged).__name__}")
    return judged  # type: ignore[return-value]


def parts(claim: Claim, judged: Judgeable) -> list[tuple[Subject, Judgeable]]:
    """Return what the claim is judged on: each drive side by side alone, unless the claim compares them."""
    alone: Sequence[Judgeable] = (judged,) if claim.scope is Scope.MEMBERS else judged.members()
    if claim in OF_PAIRS:
        alone = of_kind(claim, judged, Curve).of_drives()
    return [(replace(judged.subject, drive=each.drive), each) for each in alone]


#: The latencies of an interval that a figure is of; None for all.
LatenciesOf = Callable[[Interval], Iterable[LatencyHistogram]] | None


def _mean_latency(
    measured: Measured, confidence_level: ConfidenceLevel, of: LatenciesOf = None, *, is_of_all: bool = True
) -> Estimate:
    basis = Basis.of(measured, confidence_level)
    mean = _of_open_loop(measured, lambda rounds: latency.mean_latency(rounds, basis, is_of_all=is_of_all), of)
    return _unproved_if_late(mean, measured, confidence_level)


def _read_mean_latency(measured: Measured, confidence_level: ConfidenceLevel) -> Estimate:
    workload = measured.workload
    throughput.require(measured, workload.reads, "reads")
    return _mean_latency(measured, confidence_level, lambda each: (each.read_latency,), is_of_all=not workload.writes)


def _write_mean_latency(measured: Measured, confidence_level: ConfidenceLevel) -> Estimate:
    workload = measured.workload
    throughput.require(measured, workload.writes, "writes")
    return _mean_latency(measured, confidence_level, lambda each: (each.write_latency,), is_of_all=not workload.reads)


def _of_open_loop(
    measured: Measured, of_rounds: Callable[[RoundHistograms], Estimate], of: LatenciesOf = None
) -> Estimate:
    """Estimate a figure of latencies; of an open loop its interval holds those from the real and the intended starts.

    fio counts from the real start, which is never too long, and `from_intended_starts` adds what a job omits while one
    I/O is late. So a drive fails only if it is too slow by fio's own count, and passes only if it is fast enough by the
    other.
    """
    rounds = measured.round_latency(of)
    by_fio = of_rounds(rounds)
    gap_ns = measured.workload.job_gap_ns
    if not gap_ns:
        return by_fio
    corrected = of_rounds(tuple(from_intended_starts(rounds, gap_ns)))
    return replace(corrected, low=min(by_fio.low, corrected.low))


def _unproved_if_late(of_latency: Estimate, measured: Measured, confidence_level: ConfidenceLevel) -> Estimate:
    """Return the estimate, without an upper end if I/Os of an open loop began later and later.

    Until fio begins an I/O it has no latency, and no histogram shows how long it waited: nothing proves it to be fast.
    """
    workload = measured.workload
    late = ""
    if workload.replay and (pace := _replay_pace(measured, confidence_level).value) > KEPT_PACE:
        late = f"the replay took {pace:.2f} times as long as its trace, so I/Os began late"
    if workload.rate_iops and (busy := measured.latency.mean_ns / workload.job_gap_ns) > BUSY:
        late = f"fio's jobs were busy {busy:.0%} of the time, so I/Os began late"
    return replace(of_latency, high=math.inf, unbounded=late) if late else of_latency


def _quantile(q: float, of: LatenciesOf = None) -> Estimator[Measured]:
    def of_run(measured: Measured, confidence_level: ConfidenceLevel) -> Estimate:
        basis = Basis.of(measured, confidence_level)
        quantile = _of_open_loop(measured, lambda rounds: latency.quantile_of_rounds(rounds, q, basis), of)
        return _unproved_if_late(quantile, measured, confidence_level)

    return of_run


#: Claims about a percentile of the latencies, with the share of I/Os that are as fast.
QUANTILES = {
    Claim.P50_LATENCY: 0.5,
    Claim.P90_LATENCY: 0.9,
    Claim.P95_LATENCY: 0.95,
    Claim.P99_LATENCY: 0.99,
    Claim.P99_9_LATENCY: 0.999,
    Claim.P99_99_LATENCY: 0.9999,
    Claim.P99_999_LATENCY: 0.99999,
}


def _replay_pace(measured: Measured, confidence_level: ConfidenceLevel) -> Estimate:
    replay = measured.workload.replay
    if replay is None:
        raise NotApplicable(f"{Claim.REPLAY_PACE.label} is judged on the replay of a trace, not on {measured.workload}")
    paces = [replay.pace(run.seconds, run.ios) for run in measured.runs]
    bounds = Basis.of(measured, confidence_level).bounds(paces, [1.0] * len(paces))
    return Estimate(
        bounds.value, bounds.low, bounds.high, len(paces), Unit.RATIO, confidence=confidence_level.confidence
    )


#: Claims about rare events, with a promised rate.
OF_RARE: Mapping[Claim, Callable[[RareEvents], Estimate]] = {
    Claim.MAX_LATENCY: RareEvents.max_latency,
    Claim.LATENCY_SPREAD_OVER_TIME: RareEvents.over_time,
    Claim.WORST_SECOND: RareEvents.worst_second,
    Claim.SLOWEST_SECOND: RareEvents.slowest_second,
    Claim.FASTEST_SECOND: RareEvents.fastest_second,
    Claim.FASTEST_TO_SLOWEST_SECOND: RareEvents.fastest_to_slowest,
}


def _array_efficiency(run: PredictedRun, confidence_level: ConfidenceLevel) -> Estimate:
    """The prediction's interval is a bound that includes the model's error, so the confidence is the measurement's."""
    efficiency = ratio(iops(run.measured, confidence_level), run.predicted)
    return replace(efficiency, confidence=confidence_level.confidence)


def _times_one_drive(run: PredictedRun, confidence_level: ConfidenceLevel) -> Estimate:
    if run.one_drive is None:
        raise NotApplicable(
            f"one drive is compared under pure reads, or pure writes without parity, not under {run.measured.workload} "
            f"on {run.measured.geometry}"
        )
    found = ratio(iops(run.measured, confidence_level), run.one_drive, Unit.RATIO)
    return replace(found, confidence=confidence_level.confidence)


def _member_spread(measured: Measured, confidence_level: ConfidenceLevel) -> Estimate:
    members = _side_by_side(Claim.MEMBER_SPREAD, measured)
    together = [iops(each, confidence_level.among(len(members))) for each in members]
    return spread.between_members([iops(each, confidence_level) for each in members], together)


def _spread_between_members(measured: Measured, confidence_level: ConfidenceLevel) -> Estimate:
    members = _side_by_side(Claim.LATENCY_SPREAD_BETWEEN_MEMBERS, measured)
    return spread.between_drives([SpellMaxima.of(each, confidence_level) for each in members])


def alike(claim: Claim, judged: Judgeable) -> dict[str, float]:
    """Figure of each drive side by side, by serial number: IOPS, or the geometric mean of its spells' slowest I/Os in
    ns.

    ``NotApplicable`` for a single target.
    """
    members = {each.drive: each for each in _side_by_side(claim, of_kind(claim, judged, Measured))}
    if claim is Claim.LATENCY_SPREAD_BETWEEN_MEMBERS:
        return {serial: SpellMaxima.of(each, USUAL).typical_ns for serial, each in members.items()}
    return {serial: iops(each).value for serial, each in members.items()}


def slowest_member(judged: Judgeable, claim: Claim) -> str:
    """Serial number of the worst drive side by side: fewest IOPS, or slowest I/Os if the claim is about these.

    ``NotApplicable`` unless the drives are side by side.
    """
    of_each = alike(claim, judged)
    extreme = max if claim is Claim.LATENCY_SPREAD_BETWEEN_MEMBERS else min
    return extreme(of_each, key=of_each.__getitem__)


def _side_by_side(claim: Claim, measured: Measured) -> tuple[Measured, ...]:
    members = measured.members()
    if len(members) < 2:
        raise NotApplicable(f"{claim.label} is judged on several drives side by side, not on {measured.geometry}")
    return members


def of_scaling(sweep: Sweep, confidence_level: ConfidenceLevel = USUAL) -> scaling.Scaling:
    """Scaling of IOPS over the widths of a sweep; see ``scaling.fit``.

    ``NotApplicable`` also for sequential writes with parity: whole stripes cost less than the small writes of the
    level's cost model.
    """
    ordered = _of_widths(sweep)
    workload, geometry = ordered[0].workload, ordered[0].geometry
    if geometry.has_parity and workload.writes and not workload.is_random:
        raise NotApplicable(f"no cost model for {workload} on {geometry.level}: it writes whole stripes")
    # Cells are parts of one measurement, whose scatter is in its interval.
    repeats = {each.geometry: [each.iops] if each.visited else [run.iops for run in each.runs] for each in ordered}

    def of_each(confidence_level: ConfidenceLevel) -> dict[Geometry, Estimate]:
        alone = {each.geometry: iops(each, confidence_level, has_own_repeats=False) for each in ordered}
        level = max(Basis.of(each, confidence_level).level for each in ordered)
        return scaling.with_repeats(alone, repeats, level)

    return scaling.fit(
        of_each(confidence_level),
        workload.read_fraction,
        of_each(confidence_level.among(len(ordered))),
        expected=sweep.expected,
    )


def _settings_gain(sweep: Sweep, confidence_level: ConfidenceLevel) -> Estimate:
    """Best IOPS of all settings over those of the protocol's, which are among them: at least 1.

    Each interval takes its share of the error rate, because the best one is chosen among all.
    """
    shapes = {replace(each, tuning=PROTOCOLS) for each in sweep.subject.geometries}
    shared = confidence_level.among(len(sweep))
    rates = {each.geometry.tuning: iops(each, shared) for each in sweep}
    if len(shapes) > 1 or len(sweep.subject.workloads) > 1 or PROTOCOLS not in rates or len(rates) < 2:
        raise NotApplicable("settings are compared on one array under one workload, with those of the protocol")
    best = max(rates, key=lambda tuning: rates[tuning].value)
    gain = ratio(rates[best], rates[PROTOCOLS], Unit.RATIO)
    return replace(gain, basis=f"best: {str(best).removeprefix('-') or 'as the protocol'}")


def _of_widths(sweep: Sweep) -> Sweep:
    """Return the sweep; ``NotApplicable`` unless it is one workload on several widths of one level."""
    shapes = {(each.level, each.missing, each.rebuilding, each.tuning) for each in sweep.subject.geometries}
    widths, loads = sweep.subject.geometries, sweep.subject.workloads
    if len(loads) > 1 or len(shapes) > 1 or len(widths) < max(2, len(sweep)):
        found = ", ".join(f"{each.geometry} {each.workload}" for each in sweep)
        raise NotApplicable(f"a sweep is one workload on at least 2 widths of one level, each once, not {found}")
    return sweep


def _spread_between_widths(sweep: Sweep, confidence_level: ConfidenceLevel) -> Estimate:
    ordered = _of_widths(sweep)
    return spread.between(SpellMaxima.of(ordered[0], confidence_level), SpellMaxima.of(ordered[-1], confidence_level))


def _growth_between_widths(sweep: Sweep, confidence_level: ConfidenceLevel) -> Estimate:
    ordered = _of_widths(sweep)
    return ratio(_mean_latency(ordered[-1], confidence_level), _mean_latency(ordered[0], confidence_level), Unit.RATIO)


#: Figures that a claim about several workloads is a function of, where they are not IOPS.
NOT_OF_IOPS: Mapping[Claim, Estimator[Measured]] = {
    Claim.QD_LATENCY_KNEE: _mean_latency,
    Claim.NEIGHBOUR_P99: _quantile(0.99, lambda each: (each.read_latency,)),
    Claim.NEIGHBOUR_IOPS: throughput.read_iops,
}

#: Claims about several workloads on one array: functions of their IOPS, or of ``NOT_OF_IOPS``, and of the number of
#: members of one target.
OF_CURVE: Mapping[Claim, Callable[[Mapping[Workload, Estimate], int], curves.CurveFigure]] = {
    Claim.BATHTUB_DEPTH: lambda curve, width: curves.bathtub(curve),
    Claim.MIX_RISE: lambda curve, width: curves.mix_rise(curve),
    Claim.BALANCED_GAIN: lambda curve, width: curves.balanced_gain(curve),
    Claim.UNALIGNED_PENALTY: lambda curve, width: curves.unaligned(curve),
    Claim.NEIGHBOUR_P99: lambda curve, width: curves.neighbour(curve),
    Claim.NEIGHBOUR_IOPS: lambda curve, width: curves.neighbour(curve),
    Claim.SPARE_GAIN: lambda curve, width: curves.spared(curve),
    Claim.QD_KNEE: curves.knee,
    Claim.QD_LATENCY_KNEE: curves.latency_knee,
    Claim.QD_GAIN: curves.depth_gain,
    Claim.QD_DEPENDENCE: curves.depth_dependence,
}


def found_in(claim: Claim, curve: Curve, confidence_level: ConfidenceLevel = USUAL) -> curves.CurveFigure:
    """Estimate a claim about a curve, with the workloads at which it was found (the worst mix, the knee, …).

    ``NotApplicable`` unless these are different workloads on one array. A queue depth is that of one target: for drives
    side by side it is a drive's, though the IOPS are those of all.
    """
    if len(curve.subject.geometries) != 1 or len({each.workload for each in curve}) < len(curve):
        names = ", ".join(f"{each.geometry} {each.workload}" for each in curve)
        raise NotApplicable(f"a curve is different workloads on one array, not {names}")
    figure = _of_curve(claim, curve, confidence_level)
    if claim is not Claim.QD_DEPENDENCE:
        return figure
    # Among several depths the fastest is more likely to be a lucky one: only intervals that hold for all of them are
    # evidence for a difference.
    together = _of_curve(claim, curve, confidence_level.among(len(curve)))
    return replace(figure, estimate=replace(figure.estimate, low=together.estimate.low))


def _of_curve(claim: Claim, curve: Curve, confidence_level: ConfidenceLevel) -> curves.CurveFigure:
    figure = NOT_OF_IOPS.get(claim, iops)
    rates = {each.workload: figure(each, confidence_level) for each in curve}
    return OF_CURVE[claim](rates, curve.subject.geometry.target.width)


def _fresh_to_steady(saturation: Saturation, confidence_level: ConfidenceLevel) -> Estimate:
    return ratio(saturation.fresh_iops(confidence_level), saturation.settle(confidence_level).iops, Unit.RATIO)


#: All claims but those of ``OF_RARE`` and ``OF_CURVE``; each takes the type in ``KINDS`` of its scope.
ESTIMATORS: Mapping[Claim, Estimator[Any]] = {
    Claim.STEADY_IOPS: iops,
    Claim.READ_IOPS: throughput.read_iops,
    Claim.WRITE_IOPS: throughput.write_iops,
    Claim.RATE_KEPT: throughput.rate_kept,
    Claim.THROUGHPUT: throughput.throughput,
    Claim.MEAN_LATENCY: _mean_latency,
    Claim.READ_MEAN_LATENCY: _read_mean_latency,
    Claim.WRITE_MEAN_LATENCY: _write_mean_latency,
    **{claim: _quantile(q) for claim, q in QUANTILES.items()},
    Claim.REPLAY_PACE: _replay_pace,
    Claim.WRITE_SPREAD_BETWEEN_MEMBERS: spread.of_writes,
    Claim.SUSTAINED_TEMPERATURE: drive_counters.sustained_temperature,
    Claim.THROTTLED_TIME: drive_counters.throttled_time,
    Claim.WRITE_AMPLIFICATION: drive_counters.write_amplification,
    Claim.ARRAY_EFFICIENCY: _array_efficiency,
    Claim.TIMES_ONE_DRIVE: _times_one_drive,
    Claim.MEMBER_SPREAD: _member_spread,
    Claim.LATENCY_SPREAD_BETWEEN_MEMBERS: _spread_between_members,
    Claim.SCALING_SLOPE: lambda sweep, confidence_level: of_scaling(sweep, confidence_level).slope,
    Claim.SCALING_DEVIATION: lambda sweep, confidence_level: of_scaling(sweep, confidence_level).deviation,
    Claim.LATENCY_SPREAD_BETWEEN_WIDTHS: _spread_between_widths,
    Claim.LATENCY_GROWTH_BETWEEN_WIDTHS: _growth_between_widths,
    Claim.SETTINGS_GAIN: _settings_gain,
    Claim.FRESH_IOPS: Saturation.fresh_iops,
    Claim.SETTLED_IOPS: lambda saturation, confidence_level: saturation.settle(confidence_level).iops,
    Claim.FRESH_TO_STEADY: _fresh_to_steady,
    Claim.CLIFF_AFTER: lambda saturation, confidence_level: saturation.cliff_after(),
    Claim.REBUILD_RATE: lambda rebuild, confidence_level: rebuild.rate(),
    Claim.REBUILD_TIME: lambda rebuild, confidence_level: rebuild.time(),
}
