"""The one measurement that breaks a promise, also of promises about a sweep, a curve, a saturation or a rebuild."""

from __future__ import annotations

import math

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.judgeable import Judgeable
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.measured.sweep import Curve, PredictedRun, Sweep
from pytest_ssdqual.qual.spec.claims import OF_PAIRS, TIMES_PER_HOUR, Claim, Direction
from pytest_ssdqual.qual.stats.curves import KNEE_SHARE
from pytest_ssdqual.qual.stats.estimate import USUAL, ConfidenceLevel
from pytest_ssdqual.qual.stats.spread import SpellMaxima
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict import estimators
from pytest_ssdqual.qual.verdict.verdict import Verdict

#: Claims about one run whose limit follows from its IOPS.
OF_RATE = (Claim.STEADY_IOPS, Claim.READ_IOPS, Claim.WRITE_IOPS, Claim.THROUGHPUT, Claim.MEAN_LATENCY)
#: Mean latencies of one kind of I/O; of a workload that has no other they follow from IOPS, too.
OF_KIND = (Claim.READ_MEAN_LATENCY, Claim.WRITE_MEAN_LATENCY)
#: Claims about the change from the purged state to the steady one. What is above the drives limits both states alike:
#: it can hide such a change, and never cause it.
OF_TWO_STATES = (Claim.FRESH_TO_STEADY, Claim.CLIFF_AFTER)
QUANTILES = estimators.QUANTILES


@frozen
class BrokenLatency:
    """A latency of one measurement, and the limit that it breaks."""

    claim: Claim
    measured_ns: float
    limit_ns: float
    #: For a maximum, the times an hour that it may be exceeded.
    times_per_hour: float


@frozen
class BrokenPoint:
    """One measurement to be explained."""

    measured: Measured
    #: IOPS at which the promise would just hold; None if it does not follow from IOPS.
    needed_iops: float | None = None
    #: None if the promise is not about a latency of one run.
    latency: BrokenLatency | None = None
    #: Reason why no prediction applies; empty if one may.
    unpredictable: str = ""


def of_verdict(verdict: Verdict, judged: Judgeable) -> BrokenPoint | None:
    """Return the measurement that breaks a promise about one array; None if only the drives can have broken it, or none
    was measured.
    """
    if isinstance(judged, PredictedRun):
        return BrokenPoint(judged.measured, judged.measured.iops * _missing(verdict))
    if isinstance(judged, Measured):
        return _of_run(verdict, judged)
    if isinstance(judged, Sweep):
        return _of_sweep(verdict, judged)
    if isinstance(judged, Curve):
        return _of_curve(verdict, judged)
    if isinstance(judged, Saturation):
        if verdict.claim in OF_TWO_STATES:
            return None
        return BrokenPoint(Measured((judged.run,)), unpredictable="no curve says what drives do before they are steady")
    if isinstance(judged, Rebuild):
        return BrokenPoint(judged.foreground)
    return None


def _missing(verdict: Verdict) -> float:
    """Factor on the rate at which the promise would just hold."""
    found, bound = verdict.estimate.value, verdict.limit.bound
    if found <= 0:
        return 1.0
    return bound / found if verdict.limit.direction is Direction.AT_LEAST else found / bound


def _of_run(verdict: Verdict, measured: Measured) -> BrokenPoint:
    claim, workload = verdict.claim, measured.workload
    if claim in OF_RATE or (claim in OF_KIND and workload.read_fraction in (0, 1)):
        return BrokenPoint(measured, measured.iops * _missing(verdict))
    if claim is not Claim.MAX_LATENCY and claim not in (*OF_KIND, *QUANTILES):
        return BrokenPoint(measured)
    per_hour = verdict.limit.times_per_hour or TIMES_PER_HOUR
    found = verdict.estimate
    if found.unit is not Unit.NANOSECONDS:  # in per cent of another measurement
        found = estimators.estimate(claim, measured, per_hour=per_hour)
    return BrokenPoint(measured, latency=BrokenLatency(claim, found.value, found.value / _missing(verdict), per_hour))


def _of_sweep(verdict: Verdict, sweep: Sweep) -> BrokenPoint | None:
    if len(sweep) < 2:
        return None
    if verdict.claim is Claim.LATENCY_GROWTH_BETWEEN_WIDTHS:
        return BrokenPoint(sweep[-1], sweep[-1].iops * _missing(verdict))
    if verdict.claim is Claim.LATENCY_SPREAD_BETWEEN_WIDTHS:
        return BrokenPoint(max((sweep[0], sweep[-1]), key=lambda each: SpellMaxima.of(each, USUAL).typical_ns))
    scaling = estimators.of_scaling(sweep, ConfidenceLevel())
    worst = next(each for each in scaling.points if each.geometry == scaling.worst)
    measured = next(each for each in sweep if each.geometry == scaling.worst)
    bound = verdict.limit.bound
    # The slope reaches its limit when the worst width does about this share of what the others do per drive. The slope
    # itself falls faster than the rate of that width: 0.61 of the others is a slope of 0.49.
    share = 1 - bound / 100 if verdict.claim is Claim.SCALING_DEVIATION else bound
    needed = share / max(1e-9, worst.efficiency.value)
    # A slope just below its limit is one of efficiencies above it.
    return BrokenPoint(measured, measured.iops * (needed if needed > 1 else _missing(verdict)))


def _of_curve(verdict: Verdict, curve: Curve) -> BrokenPoint:
    """Return the mix, depth or offset with too few IOPS: the last of those at which the figure was found."""
    by_workload = {each.workload: each for each in curve}
    at = estimators.found_in(verdict.claim, curve).at
    if verdict.claim in (Claim.QD_LATENCY_KNEE, *OF_PAIRS):
        return BrokenPoint(by_workload[at[-1]])
    if verdict.claim is Claim.QD_KNEE:
        knee = by_workload[at[0]]
        width = knee.geometry.width
        deeper = [each for each in curve if each.workload.outstanding(width) > knee.workload.outstanding(width)]
        if not deeper:
            return BrokenPoint(knee)
        first = min(deeper, key=lambda each: each.workload.outstanding(width))
        times = first.workload.outstanding(width) / knee.workload.outstanding(width)
        return BrokenPoint(first, knee.iops * (1 + KNEE_SHARE) ** math.log2(times))
    # ``at`` has the fewest IOPS first for the dependence on depth, and last for all others.
    measured = by_workload[at[0] if verdict.claim is Claim.QD_DEPENDENCE else at[-1]]
    return BrokenPoint(measured, measured.iops * _missing(verdict))
