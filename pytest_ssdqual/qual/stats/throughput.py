"""IOPS and bytes per second of a measurement, with their confidence intervals.

An interval covers how a rate scatters on drives with the history that they have. Another fill moves the rate itself.
Measured on real drives: the public data of SSD-iq (Haas et al., VLDB 2025, github.com/gabriel-haas/ssdiq-pub) have one
enterprise NVMe drive of 1.92 TB twice under uniform random 4-KiB writes, 120,555 IOPS after a sequential and 117,749
after a shuffled fill: 2.4 %. Without any fill it is 8 % for uniform writes and more for skewed ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter

from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.stats.estimate import (
    USUAL,
    ConfidenceLevel,
    Estimate,
    NotApplicable,
    mean_of_rounds,
)
from pytest_ssdqual.qual.stats.intervals import Basis, of_repeats
from pytest_ssdqual.qual.units import Unit

#: Difference of the steady rates of one drive after another fill or history, per cent, from … to ….
REPEATABILITY_PERCENT = (2, 3)

#: Claims about steady rates.
STEADY_RATES = frozenset({Claim.STEADY_IOPS, Claim.READ_IOPS, Claim.WRITE_IOPS, Claim.THROUGHPUT, Claim.SETTLED_IOPS})


def iops(measured: Measured, confidence_level: ConfidenceLevel = USUAL, *, has_own_repeats: bool = True) -> Estimate:
    """IOPS of reads and writes: mean over the rounds of all repeats, or over all cells.

    ``has_own_repeats`` is False if the scatter between repeats is pooled over several measurements instead.
    """
    return _rate(measured, attrgetter("ios"), Unit.IOPS, confidence_level, has_own_repeats=has_own_repeats)


def read_iops(measured: Measured, confidence_level: ConfidenceLevel = USUAL) -> Estimate:
    """IOPS of reads; ``NotApplicable`` if the workload has none."""
    require(measured, measured.workload.reads, "reads")
    return _rate(measured, attrgetter("read_ios"), Unit.IOPS, confidence_level)


def write_iops(measured: Measured, confidence_level: ConfidenceLevel = USUAL) -> Estimate:
    """IOPS of writes; ``NotApplicable`` if the workload has none."""
    require(measured, measured.workload.writes, "writes")
    return _rate(measured, attrgetter("write_ios"), Unit.IOPS, confidence_level)


def throughput(measured: Measured, confidence_level: ConfidenceLevel = USUAL) -> Estimate:
    """Bytes per second of reads and writes."""
    return _rate(
        measured, lambda interval: interval.read_bytes + interval.write_bytes, Unit.BYTES_PER_SECOND, confidence_level
    )


def rate_kept(measured: Measured, confidence_level: ConfidenceLevel = USUAL) -> Estimate:
    """IOPS in per cent of the rate that was asked for; ``NotApplicable`` for a workload without one."""
    asked = measured.runs[0].asked_iops
    if not asked:
        raise NotApplicable(f"{measured.workload} asks for no rate")
    return replace(iops(measured, confidence_level).times(100 / asked), unit=Unit.PERCENT)


def require(measured: Measured, has_them: bool, direction: str) -> None:
    """Raise ``NotApplicable`` unless the workload has I/Os of the direction."""
    if not has_them:
        raise NotApplicable(f"{measured.workload} has no {direction}")


def _rate(
    measured: Measured,
    count: Callable[[Interval], int],
    unit: Unit,
    confidence_level: ConfidenceLevel,
    *,
    has_own_repeats: bool = True,
) -> Estimate:
    rates = measured.round_rates(count)
    if not measured.visited:
        run = measured.runs[0]
        least = run.workload.largest_bytes if unit is Unit.BYTES_PER_SECOND else 1
        found = of_rounds(rates, run.window_s / run.rounds, unit, confidence_level, least)
        return _of_repeats(found, rates, len(measured.runs), confidence_level) if has_own_repeats else found
    basis = Basis.of(measured, confidence_level)
    mean = basis.bounds(rates, [1.0] * len(rates), are_rates=True)
    confidence = confidence_level.confidence
    return Estimate(mean.value, mean.low, mean.high, len(rates), unit, confidence=confidence)


def _of_repeats(found: Estimate, rates: Sequence[float], repeats: int, confidence_level: ConfidenceLevel) -> Estimate:
    """Return the estimate; of repeats that differ with their scatter (``intervals.of_repeats``)."""
    scatter = of_repeats(rates, repeats)
    if scatter is None:
        return found
    half = scatter.half_width(confidence_level.level(), len(rates))
    low, high = min(found.low, found.value - half), max(found.high, found.value + half)
    return replace(found, low=low, high=high)


def of_rounds(
    rates: Sequence[float], round_s: float, unit: Unit, confidence_level: ConfidenceLevel = USUAL, least: float = 1
) -> Estimate:
    """Mean of the rates of rounds of ``round_s`` seconds, counted in units of at least ``least`` (an I/O, or its
    bytes).

    An I/O at the edge of a round may have been counted in its neighbour, so equal counts do not mean equal rounds. The
    standard deviation is at least that of counting: at two edges the variance is 1/6 of ``least`` squared.
    """
    return mean_of_rounds(rates, unit, confidence_level, least / round_s / math.sqrt(6))


def repeatability() -> str:
    """Return the sentence that stands once beside all intervals of steady rates."""
    low, high = REPEATABILITY_PERCENT
    moves = f"Another fill or history of the drives moves a steady rate by {low} to {high} %"
    return f"{moves}, which the interval of one run does not contain."
