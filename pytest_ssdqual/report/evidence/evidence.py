"""The record behind a verdict, as it rides on a pytest report: one shape for JUnit, terminal, journal and page.

The rule of the module: what leaves it is plain JSON data. xdist carries nothing else: a dataclass on a report
is a ``DumpError``, and the whole run is lost with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.spec.datasheet import Published
from pytest_ssdqual.qual.stats.estimate import CONFIDENCE, format_interval
from pytest_ssdqual.qual.units import Unit, format_range, format_value
from pytest_ssdqual.qual.verdict import multiplicity
from pytest_ssdqual.qual.verdict.multiplicity import Widening
from pytest_ssdqual.report.evidence import earlier, part
from pytest_ssdqual.report.evidence.earlier import Earlier
from pytest_ssdqual.report.evidence.part import Figure, Finding, Part

if TYPE_CHECKING:
    from pytest_ssdqual.qual.spec.claims import Claim
    from pytest_ssdqual.qual.stats.estimate import Estimate
    from pytest_ssdqual.qual.verdict.verdict import Subject, Verdict

#: Name of the attribute of a ``TestReport``. xdist hands on every attribute whose value is plain.
ATTRIBUTE = "ssdqual"


class About(StrEnum):
    """What was measured for it; decides where it is shown."""

    RUN = "run"
    SWEEP = "sweep"
    SERIES = "series"
    LOOP = "loop"
    SATURATION = "saturation"
    REBUILD = "rebuild"
    #: Its group is the claim that the drives were judged by.
    LOT = "lot"
    #: Its group is how much was searched and what came of it, its points are the workloads.
    SEARCH = "search"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A verdict, or a figure of which nothing is promised, and what it rests on. Numbers are in base units."""

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
    #: None if nothing is promised.
    limit: float | None
    direction: Direction
    #: Where the limit comes from.
    source: str
    outcome: Finding
    margin_percent: float | None
    sentence: str
    protocol: str
    #: Whether the protocol may decide about a product.
    acceptance: bool
    figures: tuple[Figure, ...] = ()
    #: Names of raw files in the run folder.
    raw: tuple[str, ...] = ()
    about: About = About.RUN
    #: Name of the series or of the loop that it is about.
    group: str = ""
    published: Published | None = None
    #: Of drives side by side: each of them; the value is that of the one called ``worst``.
    members: tuple[Part, ...] = ()
    worst: str = ""
    #: Of a series: each workload.
    points: tuple[Part, ...] = ()
    #: Sentences that belong to its group as a whole, such as how a loop became steady.
    remarks: tuple[str, ...] = ()
    #: Of the interval, two-sided; of a sequential measurement that of all looks together.
    confidence: float = CONFIDENCE
    #: The interval is only what the reading leaves open.
    is_reading: bool = False
    #: What the figure depends on and does not say by itself: ``rounds of 2 min``.
    basis: str = ""
    #: Of a figure in per cent of a baseline: what it was made of.
    baseline: Earlier | None = None
    #: The interval for shares of its error rate, for whoever compares it among many others later.
    wider: tuple[Widening, ...] = ()

    def to_record(self) -> dict[str, object]:
        """Plain JSON data; ``from_record`` reads it back."""
        return {
            "claim": self.claim,
            "geometries": list(self.geometries),
            "workloads": list(self.workloads),
            "estimate": {
                "value": part.finite(self.value),
                "low": self.low,
                "high": self.high,
                "n": self.n,
                "unit": self.unit.value,
                "confidence": self.confidence,
                "is_reading": self.is_reading,
                "basis": self.basis,
                "wider": multiplicity.record(self.wider),
            },
            "limit": {
                "direction": self.direction.value,
                "bound": self.limit,
                "unit": self.unit.value,
                "source": self.source,
            },
            "outcome": self.outcome.value,
            "margin_percent": part.finite(self.margin_percent),
            "sentence": self.sentence,
            "protocol": self.protocol,
            "acceptance": self.acceptance,
            "figures": part.figures_record(self.figures),
            "raw": list(self.raw),
            "about": self.about.value,
            "group": self.group,
            "published": self.published and part.published_record(self.published),
            "members": [part.part_record(each) for each in self.members],
            "worst": self.worst,
            "points": [part.part_record(each) for each in self.points],
            "remarks": list(self.remarks),
            "baseline": self.baseline and earlier.record(self.baseline),
        }

    @property
    def is_promised(self) -> bool:
        return self.limit is not None

    @property
    def measured(self) -> str:
        """``812 µs``."""
        return format_value(self.value, self.unit)

    @property
    def interval(self) -> str:
        """``805…818 µs``."""
        return format_range(*self._ends, self.unit)

    @property
    def interval_in_full(self) -> str:
        """``95 % CI 805…818 µs``, ``37…39 ms as read``."""
        return format_interval(
            *self._ends, self.unit, is_reading=self.is_reading, confidence=self.confidence, basis=self.basis
        )

    @property
    def _ends(self) -> tuple[float, float]:
        return -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high

    @property
    def bound(self) -> str:
        """``≤ 500 µs``; nothing if nothing is promised."""
        if self.limit is None:
            return ""
        return f"{'≤' if self.direction is Direction.AT_MOST else '≥'} {format_value(self.limit, self.unit)}"

    @property
    def times_published(self) -> float | None:
        """Ours over what is published."""
        return self.value / self.published.value if self.published and self.published.value else None


def of_verdict(
    verdict: Verdict,
    *,
    protocol: str,
    acceptance: bool,
    figures: Iterable[Figure] = (),
    raw: Iterable[str] = (),
) -> Evidence:
    """What is kept of a verdict."""
    low, high = (part.finite(end) for end in (verdict.estimate.low, verdict.estimate.high))
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
        outcome=Finding(verdict.outcome.value),
        margin_percent=verdict.margin_percent,
        sentence=repr(verdict),
        protocol=protocol,
        acceptance=acceptance,
        figures=tuple(figures),
        raw=tuple(raw),
        confidence=verdict.estimate.confidence,
        is_reading=verdict.estimate.is_reading,
        basis=verdict.estimate.basis,
        wider=multiplicity.of(verdict.again) if verdict.again else (),
    )


def of_observation(
    claim: Claim,
    subject: Subject,
    estimate: Estimate,
    *,
    protocol: str,
    acceptance: bool,
    wider: tuple[Widening, ...] = (),
) -> Evidence:
    """What is kept of a figure that nothing is promised of."""
    return Evidence(
        claim=claim.value,
        geometries=tuple(map(str, subject.geometries)),
        workloads=tuple(map(str, subject.workloads)),
        value=estimate.value,
        low=part.finite(estimate.low),
        high=part.finite(estimate.high),
        n=estimate.n,
        unit=estimate.unit,
        limit=None,
        direction=claim.direction,
        source="",
        outcome=Finding.OBSERVED,
        margin_percent=None,
        sentence=f"{claim.label} of {subject}: {estimate}",
        protocol=protocol,
        acceptance=acceptance,
        confidence=estimate.confidence,
        is_reading=estimate.is_reading,
        basis=estimate.basis,
        wider=wider,
    )


def from_record(record: Mapping[str, object]) -> Evidence:
    """The inverse of ``to_record``; keys it does not know are ignored. ``ValueError`` if one is missing or wrong."""
    try:
        estimate, limit = part.mapping(record["estimate"]), part.mapping(record["limit"])
        outcome, unit = Finding(str(record["outcome"])), Unit(str(estimate["unit"]))
        promised = outcome is not Finding.OBSERVED
        return Evidence(
            claim=str(record["claim"]),
            geometries=part.texts(record["geometries"]),
            workloads=part.texts(record["workloads"]),
            value=part.unbounded(estimate["value"]),
            low=part.number(estimate["low"]),
            high=part.number(estimate["high"]),
            n=int(part.unbounded(estimate["n"])),
            unit=unit,
            limit=part.unbounded(limit["bound"]) if promised else None,
            direction=Direction(str(limit["direction"])),
            source=str(limit["source"]),
            outcome=outcome,
            margin_percent=part.unbounded(record["margin_percent"]) if promised else None,
            sentence=str(record["sentence"]),
            protocol=str(record["protocol"]),
            acceptance=record["acceptance"] is True,
            figures=part.figures_of_record(record["figures"]),
            raw=part.texts(record["raw"]),
            about=About(str(record["about"])),
            group=str(record["group"]),
            published=None if record["published"] is None else part.published_of_record(record["published"]),
            members=tuple(map(part.part_of_record, part.listed(record["members"]))),
            worst=str(record["worst"]),
            points=tuple(map(part.part_of_record, part.listed(record["points"]))),
            remarks=part.texts(record["remarks"]),
            # Older records are without.
            confidence=part.unbounded(estimate.get("confidence", CONFIDENCE)),
            is_reading=estimate.get("is_reading") is True,
            basis=str(estimate.get("basis", "")),
            baseline=earlier.of_record(record["baseline"]) if record.get("baseline") else None,
            wider=multiplicity.of_record(estimate.get("wider", [])),
        )
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"this is no evidence of ours: {error!r}") from error


def attach(report: object, evidence: Iterable[Evidence]) -> None:
    """Let a ``TestReport`` carry evidence to the controller."""
    setattr(report, ATTRIBUTE, [each.to_record() for each in evidence])


def carried_by(report: object) -> tuple[Evidence, ...]:
    """What ``attach`` put there, here or in another process; empty for any other report."""
    return tuple(from_record(record) for record in getattr(report, ATTRIBUTE, ()))
