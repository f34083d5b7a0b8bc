"""IOPS and bytes per second of a measurement, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter

from pytest_ssdqual.qual.measured.run import Interval, Measured
from pytest_ssdqual.qual.stats.batch_means import Basis
from pytest_ssdqual.qual.stats.estimate import USUAL, Estimate, NotApplicable, Sureness, mean_of_rounds
from pytest_ssdqual.qual.units import Unit


def iops(measured: Measured, sure: Sureness = USUAL) -> Estimate:
    """Reads and writes, steady state: mean over the rounds of all repeats, or over the blocks of a look."""
    return _rate(measured, attrgetter("ios"), Unit.IOPS, sure)


def read_iops(measured: Measured, sure: Sureness = USUAL) -> Estimate:
    """``NotApplicable`` if the workload has no reads."""
    require(measured, measured.workload.reads, "reads")
    return _rate(measured, attrgetter("read_ios"), Unit.IOPS, sure)


def write_iops(measured: Measured, sure: Sureness = USUAL) -> Estimate:
    """``NotApplicable`` if the workload has no writes."""
    require(measured, measured.workload.writes, "writes")
    return _rate(measured, attrgetter("write_ios"), Unit.IOPS, sure)


def throughput(measured: Measured, sure: Sureness = USUAL) -> Estimate:
    """Reads and writes."""
    return _rate(measured, lambda each: each.read_bytes + each.write_bytes, Unit.BYTES_PER_SECOND, sure)


def require(measured: Measured, has_them: bool, direction: str) -> None:
    """``NotApplicable`` unless the workload has I/Os of the direction."""
    if not has_them:
        raise NotApplicable(f"{measured.workload} has no {direction} to be judged")


def _rate(measured: Measured, count: Callable[[Interval], int], unit: Unit, sure: Sureness) -> Estimate:
    rates = measured.round_rates(count)
    if not measured.look:
        run = measured.runs[0]
        least = run.workload.largest_bytes if unit is Unit.BYTES_PER_SECOND else 1
        return of_rounds(rates, run.window_s / run.rounds, unit, sure, least)
    basis = Basis.of(measured, sure)
    length_s = basis.seconds / len(rates)
    found = basis.bounds([rate * length_s for rate in rates], [length_s] * len(rates))
    n = len(basis.settled(rates))
    return Estimate(found.value, found.low, found.high, n, unit, confidence=sure.confidence)


def of_rounds(rates: Sequence[float], round_s: float, unit: Unit, sure: Sureness = USUAL, least: float = 1) -> Estimate:
    """Mean of the rates of rounds of this length, in which no less than ``least`` (an I/O, or its bytes) is counted.

    An I/O at either edge of a round may have been counted in its neighbour, so rounds that were counted alike need not
    have been alike: their scatter is taken for that of counting at least, which at two edges has a variance of a sixth.
    """
    return mean_of_rounds(rates, unit, sure, least / round_s / math.sqrt(6))
