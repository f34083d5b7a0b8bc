"""When the product's drift test ends the conditioning of drives, from their rates alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drive_kinds import Series

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.stats.drift import SKEWED_CAPACITIES, WrittenSeries

NOTHING = LatencyHistogram.from_bins({})


@dataclass(frozen=True, slots=True)
class Conditioned:
    """The end of the conditioning of drives side by side."""

    seconds: float
    #: Written to the drive that wrote least.
    capacities: float
    settled: bool


def until_settled(
    bytes_per_s: Sequence[Series],
    report_s: float,
    capacity_bytes: int,
    protocol: Protocol,
    *,
    is_skewed: bool = False,
) -> Conditioned:
    """Write in the protocol's steps until all drives pass, or until its limit; one row for each drive."""
    least = max(protocol.precondition.capacities, SKEWED_CAPACITIES if is_skewed else 0.0)
    drives = [WrittenSeries(capacity_bytes) for _ in bytes_per_s]
    settled = [False] * len(drives)
    per_step, reports = max(1, round(protocol.precondition.step_s / report_s)), len(bytes_per_s[0])
    for begin in range(0, reports, per_step):
        for drive, rates in zip(drives, bytes_per_s, strict=True):
            drive.add(_reports(rates[begin : begin + per_step], report_s))
        seconds, capacities = (begin + per_step) * report_s, min(each.capacities for each in drives)
        if capacities < least:
            continue
        for number, drive in enumerate(drives):
            drift = drive.drift(protocol.precondition.drift_percent, was_settled=settled[number])
            settled[number] = drift is not None and drift.settled
        if all(settled) or capacities >= protocol.precondition.limit_capacities:
            return Conditioned(seconds, capacities, all(settled))
    return Conditioned(reports * report_s, min(each.capacities for each in drives), settled=False)


def _reports(rates: Series, report_s: float) -> list[Interval]:
    written = [round(rate * report_s) for rate in rates.tolist()]
    return [Interval(0.0, report_s, 0, 0, 0, each, NOTHING, NOTHING) for each in written]
