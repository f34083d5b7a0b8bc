"""The record behind a verdict, as it rides on a pytest report: one shape for JUnit, terminal, journal and page.

The rule of the module: what leaves it is plain JSON data. xdist carries nothing else: a dataclass on a report
is a ``DumpError``, and the whole run is lost with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.claim import Direction
from pytest_ssdqual.qual.units import Unit, format_range, format_value
from pytest_ssdqual.qual.verdict import Outcome

if TYPE_CHECKING:
    from pytest_ssdqual.qual.measurement import Measured
    from pytest_ssdqual.qual.steady import SteadyState
    from pytest_ssdqual.qual.verdict import Verdict

#: Name of the attribute of a ``TestReport``. xdist hands on every attribute whose value is plain.
ATTRIBUTE = "ssdqual"


@dataclass(frozen=True, slots=True)
class Figure:
    """One more number worth keeping beside a verdict; the unit is in the name: ``mean_latency_ns``."""

    name: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """A verdict and what it rests on. Numbers are in base units (``unit``)."""

    #: By its name in specs, not as an enum: records of a newer version must stay readable.
    claim: str
    geometries: tuple[str, ...]
    workloads: tuple[str, ...]
    value: float
    #: The interval; None where it is unbounded.
    low: float | None
    high: float | None
    n: int
    unit: Unit
    limit: float
    direction: Direction
    #: Where the limit comes from.
    source: str
    outcome: Outcome
    margin_percent: float
    sentence: str
    protocol: str
    #: Whether the protocol may decide about a product.
    acceptance: bool
    figures: tuple[Figure, ...] = ()
    #: Names of raw files in the run folder.
    raw: tuple[str, ...] = ()

    def to_record(self) -> dict[str, object]:
        """Plain JSON data; ``from_record`` reads it back."""
        return {
            "claim": self.claim,
            "geometries": list(self.geometries),
            "workloads": list(self.workloads),
            "estimate": {
                "value": _finite(self.value),
                "low": self.low,
                "high": self.high,
                "n": self.n,
                "unit": self.unit.value,
            },
            "limit": {
                "direction": self.direction.value,
                "bound": self.limit,
                "unit": self.unit.value,
                "source": self.source,
            },
            "outcome": self.outcome.value,
            "margin_percent": _finite(self.margin_percent),
            "sentence": self.sentence,
            "protocol": self.protocol,
            "acceptance": self.acceptance,
            "figures": {figure.name: _finite(figure.value) for figure in self.figures},
            "raw": list(self.raw),
        }

    @property
    def measured(self) -> str:
        """``812 µs``."""
        return format_value(self.value, self.unit)

    @property
    def interval(self) -> str:
        """``805…818 µs``."""
        low = -math.inf if self.low is None else self.low
        return format_range(low, math.inf if self.high is None else self.high, self.unit)

    @property
    def bound(self) -> str:
        """``≤ 500 µs``."""
        return f"{'≤' if self.direction is Direction.AT_MOST else '≥'} {format_value(self.limit, self.unit)}"


def of_verdict(
    verdict: Verdict,
    *,
    protocol: str,
    acceptance: bool,
    figures: Iterable[Figure] = (),
    raw: Iterable[str] = (),
) -> Evidence:
    """What is kept of a verdict."""
    low, high = (_finite(end) for end in (verdict.estimate.low, verdict.estimate.high))
    return Evidence(
        claim=verdict.claim.value,
        geometries=tuple(map(str, verdict.subject.geometries)),
        workloads=tuple(map(str, verdict.subject.workloads)),
        value=verdict.estimate.value,
        low=low,
        high=high,
        n=verdict.estimate.n,
        unit=verdict.estimate.unit,
        limit=verdict.limit.bound,
        direction=verdict.limit.direction,
        source=verdict.limit.source,
        outcome=verdict.outcome,
        margin_percent=verdict.margin_percent,
        sentence=repr(verdict),
        protocol=protocol,
        acceptance=acceptance,
        figures=tuple(figures),
        raw=tuple(raw),
    )


def from_record(record: Mapping[str, object]) -> Evidence:
    """The inverse of ``to_record``; keys it does not know are ignored. ``ValueError`` if one is missing or wrong."""
    try:
        estimate, limit = _mapping(record["estimate"]), _mapping(record["limit"])
        return Evidence(
            claim=str(record["claim"]),
            geometries=_texts(record["geometries"]),
            workloads=_texts(record["workloads"]),
            value=_unbounded(estimate["value"]),
            low=_number(estimate["low"]),
            high=_number(estimate["high"]),
            n=int(_unbounded(estimate["n"])),
            unit=Unit(str(estimate["unit"])),
            limit=_unbounded(limit["bound"]),
            direction=Direction(str(limit["direction"])),
            source=str(limit["source"]),
            outcome=Outcome(str(record["outcome"])),
            margin_percent=_unbounded(record["margin_percent"]),
            sentence=str(record["sentence"]),
            protocol=str(record["protocol"]),
            acceptance=record["acceptance"] is True,
            figures=tuple(Figure(name, _number(value)) for name, value in _mapping(record["figures"]).items()),
            raw=_texts(record["raw"]),
        )
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"this is no evidence of ours: {error!r}") from error


def attach(report: object, evidence: Iterable[Evidence]) -> None:
    """Let a ``TestReport`` carry evidence to the controller."""
    setattr(report, ATTRIBUTE, [each.to_record() for each in evidence])


def carried_by(report: object) -> tuple[Evidence, ...]:
    """What ``attach`` put there, here or in another process; empty for any other report."""
    return tuple(from_record(record) for record in getattr(report, ATTRIBUTE, ()))


def figures_of(measured: Measured) -> tuple[Figure, ...]:
    """What makes a measurement believable, and what people ask for next to any claim about it."""
    latency = measured.latency
    mean_ns = latency.mean_ns if latency else None
    asked = measured.geometry.width * measured.workload.qd_per_drive
    outstanding = measured.iops * mean_ns / 1e9 if mean_ns is not None else None
    busy = [run.cpu_busy for run in measured.runs if run.cpu_busy is not None]
    return (
        Figure("iops", measured.iops),
        Figure("ios", sum(run.ios for run in measured.runs)),
        Figure("counted_s", sum(run.seconds for run in measured.runs)),
        Figure("mean_latency_ns", mean_ns),
        Figure("max_latency_ns", latency.max_ns if latency else None),
        # Little's law: IOPS × mean latency, of the queue depth asked for.
        Figure("littles_law_percent", None if outstanding is None else 100 * outstanding / asked),
        Figure("cpu_busy_percent", 100 * max(busy) if busy else None),
    )


def figures_of_steady(state: SteadyState) -> tuple[Figure, ...]:
    """How steady a window was, in percent of its average, as the rule's limits are given."""
    per_cent = 100 / state.average if state.average else math.nan
    return (
        Figure("steady_rounds", len(state.values)),
        Figure("steady_range_percent", state.range_measured * per_cent),
        Figure("steady_slope_percent", state.slope_excursion * per_cent),
    )


def _finite(value: float | None) -> float | None:
    """JSON has neither infinity nor NaN."""
    return value if value is not None and math.isfinite(value) else None


def _number(value: object) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise TypeError(f"{value!r} is not a number")
    return value


def _unbounded(value: object) -> float:
    number = _number(value)
    return math.inf if number is None else number


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is not a mapping")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{value!r} is not a list")
    return tuple(map(str, value))
