"""Which figure of what was measured each claim is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pytest_ssdqual.qual import scaling, spread
from pytest_ssdqual.qual.claim import Claim
from pytest_ssdqual.qual.estimate import Estimate, mean_of_rounds, quantile_of_rounds
from pytest_ssdqual.qual.measurement import Measured
from pytest_ssdqual.qual.units import Unit


def iops(measured: Measured) -> Estimate:
    """Steady-state IOPS: mean over the rounds of all repeats, with Student's interval of that mean."""
    return mean_of_rounds(measured.round_iops(), Unit.IOPS)


#: Claims about one array under one workload.
OF_RUN: Mapping[Claim, Callable[[Measured], Estimate]] = {
    Claim.STEADY_IOPS: iops,
    Claim.P99_LATENCY: lambda measured: quantile_of_rounds(measured.round_latency(), 0.99),
    Claim.LATENCY_SPREAD_OVER_TIME: lambda measured: spread.over_time(measured.round_latency()),
}


def of_scaling(sweep: Sequence[Measured]) -> scaling.Scaling:
    """How IOPS grow over the widths of a sweep; see ``scaling.fit``."""
    read_fraction = sweep[0].workload.read_fraction
    return scaling.fit({each.geometry: iops(each) for each in sweep}, read_fraction)


def _between_widths(sweep: Sequence[Measured]) -> Estimate:
    ordered = sorted(sweep, key=lambda each: each.geometry)
    return spread.between(ordered[0].round_latency(), ordered[-1].round_latency())


#: Claims about all widths of a level under one workload.
OF_SWEEP: Mapping[Claim, Callable[[Sequence[Measured]], Estimate]] = {
    Claim.SCALING_SLOPE: lambda sweep: of_scaling(sweep).slope,
    Claim.SCALING_DEVIATION: lambda sweep: of_scaling(sweep).deviation,
    Claim.LATENCY_SPREAD_BETWEEN_WIDTHS: _between_widths,
}
