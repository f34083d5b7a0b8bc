"""The record behind a verdict, as it rides on a pytest report: one shape for JUnit, terminal, journal and page.

The rule of the module: what leaves it is plain JSON data. xdist carries nothing else: a dataclass on a report
is a ``DumpError``, and the whole run is lost with it.

Pieces of evidence: named figures, and the several things that one verdict was made of; to JSON and back.

What a figure in per cent of a baseline was made of, as evidence keeps it; to JSON and back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.spec.datasheet import Published
from pytest_ssdqual.qual.stats.estimate import CONFIDENCE, format_interval
from pytest_ssdqual.qual.units import Unit, format_range, format_value
from pytest_ssdqual.qual.verdict import multiplicity
from pytest_ssdqual.qual.verdict.baseline import BaselineReference
from pytest_ssdqual.qual.verdict.multiplicity import Widening

if TYPE_CHECKING:
    from pytest_ssdqual.qual.spec.claims import Claim
    from pytest_ssdqual.qual.stats.estimate import Estimate
    from pytest_ssdqual.qual.verdict.verdict import Subject, Verdict


@dataclass(frozen=True, slots=True)
class Ends:
    """A figure and its interval, in base units; an end is None where it is unbounded."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Earlier:
    """The baseline, and both figures."""

    #: Name of its run folder, and the digest of its records.
    run: str
    sha256: str
    unit: Unit
    now: Ends
    then: Ends


def of_since(since: BaselineReference) -> Earlier:
    """What is kept of it."""
    now, then = (Ends(*map(finite, (each.value, each.low, each.high))) for each in (since.now, since.then))
    return Earlier(since.run, since.sha256, since.now.unit, now, then)


def record(earlier: Earlier) -> dict[str, object]:
    """Plain JSON data."""
    ends = {name: {"value": e.value, "low": e.low, "high": e.high} for name, e in _both(earlier)}
    return {"run": earlier.run, "sha256": earlier.sha256, "unit": earlier.unit.value, **ends}


def of_record(plain: object) -> Earlier:
    """The inverse; ``KeyError``, ``TypeError`` or ``ValueError`` if it is none."""
    found = mapping(plain)
    now, then = (_ends(mapping(found[name])) for name in ("now", "then"))
    return Earlier(str(found["run"]), str(found["sha256"]), Unit(str(found["unit"])), now, then)


def _both(earlier: Earlier) -> tuple[tuple[str, Ends], ...]:
    return ("now", earlier.now), ("then", earlier.then)


def _ends(plain: Mapping[str, object]) -> Ends:
    return Ends(number(plain["value"]), number(plain["low"]), number(plain["high"]))


class Finding(StrEnum):
    """What came of it: a verdict's outcome, or just a figure, because nothing was promised."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    OBSERVED = "observed"


@dataclass(frozen=True, slots=True)
class Figure:
    """One more number worth keeping beside a verdict; the unit is in the name: ``mean_latency_ns``."""

    name: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Part:
    """One of several that a figure was made of: a drive by its serial number, a workload of a series by its id."""

    name: str
    figures: tuple[Figure, ...] = ()
    #: Of a drive: what came of it, judged by itself.
    outcome: Finding | None = None
    #: What is published of it, of whatever quantity.
    published: tuple[Published, ...] = ()

    def figure(self, name: str) -> float | None:
        return next((each.value for each in self.figures if each.name == name), None)

    def stated(self, unit: Unit) -> Published | None:
        """What is published of it in this unit."""
        return next((each for each in self.published if each.unit is unit), None)


def finite(value: float | None) -> float | None:
    """JSON has neither infinity nor NaN."""
    return value if value is not None and math.isfinite(value) else None


def number(value: object) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise TypeError(f"{value!r} is not a number")
    return value


def unbounded(value: object) -> float:
    found = number(value)
    return math.inf if found is None else found


def mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is not a mapping")
    return value


def listed(value: object) -> Sequence[object]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{value!r} is not a list")
    return value


def texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, listed(value)))


def figures_record(figures: Iterable[Figure]) -> dict[str, float | None]:
    return {figure.name: finite(figure.value) for figure in figures}


def figures_of_record(plain: object) -> tuple[Figure, ...]:
    return tuple(Figure(name, number(value)) for name, value in mapping(plain).items())


def published_record(published: Published) -> dict[str, object]:
    return {
        "value": published.value,
        "unit": published.unit.value,
        "source": published.source,
        "approximate": published.approximate,
    }


def published_of_record(plain: object) -> Published:
    found = mapping(plain)
    value, unit = unbounded(found["value"]), Unit(str(found["unit"]))
    return Published(value, unit, str(found["source"]), found["approximate"] is True)


def part_record(part: Part) -> dict[str, object]:
    return {
        "name": part.name,
        "figures": figures_record(part.figures),
        "outcome": part.outcome and part.outcome.value,
        "published": [published_record(each) for each in part.published],
    }


def part_of_record(plain: object) -> Part:
    found = mapping(plain)
    return Part(
        name=str(found["name"]),
        figures=figures_of_record(found["figures"]),
        outcome=None if found["outcome"] is None else Finding(str(found["outcome"])),
        published=tuple(map(published_of_record, listed(found["published"]))),
    )


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
                "value": finite(self.value),
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
            "margin_percent": finite(self.margin_percent),
            "sentence": self.sentence,
            "protocol": self.protocol,
            "acceptance": self.acceptance,
            "figures": figures_record(self.figures),
            "raw": list(self.raw),
            "about": self.about.value,
            "group": self.group,
            "published": self.published and published_record(self.published),
            "members": [part_record(each) for each in self.members],
            "worst": self.worst,
            "points": [part_record(each) for each in self.points],
            "remarks": list(self.remarks),
            "baseline": self.baseline and record(self.baseline),
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
    low, high = (finite(end) for end in (verdict.estimate.low, verdict.estimate.high))
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
        low=finite(estimate.low),
        high=finite(estimate.high),
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
        estimate, limit = mapping(record["estimate"]), mapping(record["limit"])
        outcome, unit = Finding(str(record["outcome"])), Unit(str(estimate["unit"]))
        promised = outcome is not Finding.OBSERVED
        return Evidence(
            claim=str(record["claim"]),
            geometries=texts(record["geometries"]),
            workloads=texts(record["workloads"]),
            value=unbounded(estimate["value"]),
            low=number(estimate["low"]),
            high=number(estimate["high"]),
            n=int(unbounded(estimate["n"])),
            unit=unit,
            limit=unbounded(limit["bound"]) if promised else None,
            direction=Direction(str(limit["direction"])),
            source=str(limit["source"]),
            outcome=outcome,
            margin_percent=unbounded(record["margin_percent"]) if promised else None,
            sentence=str(record["sentence"]),
            protocol=str(record["protocol"]),
            acceptance=record["acceptance"] is True,
            figures=figures_of_record(record["figures"]),
            raw=texts(record["raw"]),
            about=About(str(record["about"])),
            group=str(record["group"]),
            published=None if record["published"] is None else published_of_record(record["published"]),
            members=tuple(map(part_of_record, listed(record["members"]))),
            worst=str(record["worst"]),
            points=tuple(map(part_of_record, listed(record["points"]))),
            remarks=texts(record["remarks"]),
            confidence=unbounded(estimate["confidence"]),
            is_reading=estimate["is_reading"] is True,
            basis=str(estimate["basis"]),
            baseline=of_record(record["baseline"]) if record["baseline"] else None,
            wider=multiplicity.of_record(estimate["wider"]),
        )
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"this is no evidence of ours: {error!r}") from error


def attach(report: object, evidence: Iterable[Evidence]) -> None:
    """Let a ``TestReport`` carry evidence to the controller."""
    setattr(report, ATTRIBUTE, [each.to_record() for each in evidence])


def carried_by(report: object) -> tuple[Evidence, ...]:
    """What ``attach`` put there, here or in another process; empty for any other report."""
    return tuple(from_record(record) for record in getattr(report, ATTRIBUTE, ()))
