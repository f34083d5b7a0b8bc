"""Evidence of a verdict: the record that a pytest report carries and JUnit, terminal, journal and pages read.

Records are plain JSON data. xdist carries nothing else: a dataclass on a report is a ``DumpError`` that ends the run.
Here are also the parts of the evidence: named figures, parts of a sweep or series, and the baseline of a ratio.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.records import LARGEST, HighEnd, from_plain, plain
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Published
from pytest_ssdqual.qual.stats.estimate import CONFIDENCE, format_interval
from pytest_ssdqual.qual.units import Unit, format_difference, format_range, format_value
from pytest_ssdqual.qual.validity.attribution import Cause
from pytest_ssdqual.qual.verdict import multiplicity
from pytest_ssdqual.qual.verdict.multiplicity import Widening

if TYPE_CHECKING:
    from pytest_ssdqual.qual.measured.judgeable import Subject
    from pytest_ssdqual.qual.stats.estimate import Estimate
    from pytest_ssdqual.qual.verdict.verdict import BaselineReference, Verdict

#: Numbers beside a verdict by their names, which end in the unit: ``mean_latency_ns``.
Figures = Mapping[str, int | float | None]
#: Name of the attribute of a ``TestReport``. xdist carries every attribute with a plain value.
ATTRIBUTE = "ssdqual"
#: Key of a failed verdict's line in the journal: its test was expected to fail (``pytest.mark.xfail``), and did.
EXPECTED = "xfail"
#: Beginning of the claims of the receiving inspection.
INSPECTED = "inspected_"
#: Keys of every line in the journal, and those of a verdict's line that are not about the evidence.
BESIDE = ("schema", "kind", "time", "writer", "since_last_s")
OF_TEST = ("test", "supersedes", EXPECTED)


@frozen
class Ends:
    """A figure and its interval in base units; an end is None if it is unbounded."""

    value: float | None
    low: float | None
    high: float | None


@frozen
class Earlier:
    """A baseline: its run and both figures."""

    #: Name of its run folder, and the digest of its records.
    run: str
    sha256: str
    unit: Unit
    now: Ends
    then: Ends


def of_since(since: BaselineReference) -> Earlier:
    """Return the record of a reference to a baseline."""
    now, then = (Ends(*map(finite, (each.value, each.low, each.high))) for each in (since.now, since.then))
    return Earlier(since.run, since.sha256, since.now.unit, now, then)


class Finding(StrEnum):
    """Outcome of a verdict, or an observation without a promise."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    BOUNDED = "bounded"
    OBSERVED = "observed"


@frozen
class Part:
    """A part of a figure: a drive by its serial number, a workload of a series by its id."""

    name: str
    figures: Figures = field(default_factory=dict)
    #: Outcome of a drive that was judged by itself.
    outcome: Finding | None = None
    #: Published figures of the part, of any quantity.
    published: tuple[Published, ...] = ()
    #: What a drive reported at the inspection, and its limit, as tables show them, and its device name.
    reading: str = ""
    bound: str = ""
    path: str = ""

    def stated(self, unit: Unit) -> Published | None:
        """Return the published figure in this unit."""
        return next((each for each in self.published if each.unit is unit), None)


def finite(value: float | None) -> float | None:
    """Return None for infinity and NaN, which JSON does not have, and for figures beyond ``records.LARGEST``."""
    return value if value is not None and abs(value) <= LARGEST else None


class About(StrEnum):
    """Kind of measurement of a verdict; decides in which section it is shown."""

    RUN = "run"
    SWEEP = "sweep"
    CURVE = "curve"
    LOOP = "loop"
    SATURATION = "saturation"
    REBUILD = "rebuild"
    #: The group is the claim of the drives.
    LOT = "lot"
    #: The group is the sentence of the search, the points are its workloads.
    SEARCH = "search"


@frozen
class Evidence:
    """A verdict, or an observation without a promise, with its measurement. Numbers are in base units."""

    #: Name in specs.
    claim: str
    geometries: tuple[str, ...]
    workloads: tuple[str, ...]
    value: HighEnd
    #: Ends of the interval; None if unbounded.
    low: float | None
    high: float | None
    n: int
    unit: Unit
    #: None if nothing is promised.
    limit: float | None
    direction: Direction
    #: Source of the limit.
    source: str
    outcome: Finding
    margin_percent: float | None
    sentence: str
    #: Name of the run's protocol; empty until the run keeps the evidence.
    protocol: str = ""
    #: True if the protocol may decide about a product.
    acceptance: bool = False
    figures: Figures = field(default_factory=dict)
    #: Names of raw files in the run folder.
    raw: tuple[str, ...] = ()
    about: About = About.RUN
    #: Name of the series or of the loop.
    group: str = ""
    published: Published | None = None
    #: Drives side by side; the value is that of the drive ``worst``.
    members: tuple[Part, ...] = ()
    worst: str = ""
    #: Workloads of a series.
    points: tuple[Part, ...] = ()
    #: Sentences about the whole group, such as the steady state of a loop.
    remarks: tuple[str, ...] = ()
    #: Two-sided confidence; of a measurement in visits that of all looks together.
    confidence: float = CONFIDENCE
    #: True if the interval is only the resolution of a reading.
    is_reading: bool = False
    #: Condition of the figure: ``rounds of 2 min``.
    basis: str = ""
    #: The attributed cause of a broken promise.
    cause: Cause | None = None
    #: Baseline of a figure in per cent of it.
    baseline: Earlier | None = None
    #: Intervals for shares of the error rate, for later comparisons of many figures.
    wider: tuple[Widening, ...] = ()
    #: Id of the workload whose quantity is 100 % of a figure that is relative to it.
    relative_to: str = ""
    #: Of a lot, whose value counts drives: the unit of the drives' figures.
    unit_of_parts: Unit | None = None
    #: An observation for which there is a limit, by which this measurement cannot be judged.
    is_unjudged: bool = False

    def __post_init__(self) -> None:
        # An interval for a small share of the error rate may span a hundred decades, which no record holds.
        for name in ("low", "high", "margin_percent"):
            object.__setattr__(self, name, finite(getattr(self, name)))
        if self.limit is not None and self.margin_percent is None:  # infinite, which JSON does not have
            object.__setattr__(self, "margin_percent", math.inf)
        # Readers interpolate between shares in this order.
        ordered = sorted(self.wider, key=lambda each: each.share, reverse=True)
        object.__setattr__(self, "wider", tuple(map(_recordable, ordered)))

    @property
    def identity(self) -> tuple[object, ...]:
        """Key of the subject: a lot has a verdict for each group, but the group of a search is its result."""
        group = "" if self.about is About.SEARCH else self.group
        return self.claim, self.geometries, self.workloads, group

    @property
    def geometry(self) -> str:
        """The array, of several the first; empty without one."""
        return next(iter(self.geometries), "")

    @property
    def workload(self) -> str:
        return next(iter(self.workloads), "")

    @property
    def is_promised(self) -> bool:
        return self.limit is not None

    @property
    def is_inspection(self) -> bool:
        """True for a check of the inspection."""
        return self.claim.startswith(INSPECTED)

    @property
    def is_broken(self) -> bool:
        """Return whether the limit is certainly missed, by the drives or by what was found to be the cause."""
        if self.outcome is Finding.INCONCLUSIVE:
            return self.cause is not None
        return self.outcome in (Finding.FAIL, Finding.BOUNDED)

    @property
    def percent_of(self) -> str:
        """What is 100 % of a relative figure: percentages of two things are not compared."""
        if self.baseline:
            return f"the baseline {self.baseline.run} ({self.baseline.sha256[:12]})"
        return self.relative_to

    @property
    def measured(self) -> str:
        """``812 µs``."""
        return format_value(self.value, self.unit)

    @property
    def interval(self) -> str:
        """``805…818 µs``."""
        return format_range(*self.ends, self.unit)

    @property
    def interval_in_full(self) -> str:
        """``95 % CI 805…818 µs``, ``37…39 ms as read``."""
        return format_interval(
            *self.ends, self.unit, is_reading=self.is_reading, confidence=self.confidence, basis=self.basis,
        )  # fmt: skip

    @property
    def ends(self) -> tuple[float, float]:
        """Ends of the interval, infinite if unbounded."""
        return -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high

    @property
    def bound(self) -> str:
        """``≤ 500 µs``; empty if nothing is promised."""
        if self.limit is None:
            return ""
        return f"{'≤' if self.direction is Direction.AT_MOST else '≥'} {format_value(self.limit, self.unit)}"

    @property
    def margin(self) -> str:
        """Signed distance from the limit, ``+25.3 %``; empty if nothing is promised."""
        if self.limit is None or self.margin_percent is None:
            return ""
        if self.value == self.limit:
            return "0"
        sign = "-" if self.margin_percent < 0 else "+"
        return sign + format_difference(self.value, self.limit, self.unit).replace("percentage points", "points")

    @property
    def times_published(self) -> float | None:
        """Measured figure over published figure."""
        return self.value / self.published.value if self.published and self.published.value else None


def _recordable(widening: Widening) -> Widening:
    low, high = finite(widening.low), finite(widening.high)
    return Widening(widening.share, -math.inf if low is None else low, math.inf if high is None else high)


def of_verdict(verdict: Verdict) -> Evidence:
    """Return the evidence of a verdict."""
    limit = verdict.limit
    wider = multiplicity.of(verdict.again) if verdict.again else ()
    return replace(
        of_observation(verdict.claim, verdict.subject, verdict.estimate, wider), limit=limit.bound,
        direction=limit.direction, source=limit.source, outcome=Finding(verdict.outcome.value),
        margin_percent=verdict.margin_percent, sentence=repr(verdict), cause=verdict.cause,
    )  # fmt: skip


def of_observation(claim: Claim, subject: Subject, estimate: Estimate, wider: tuple[Widening, ...] = ()) -> Evidence:
    """Return the evidence of a figure without a promise."""
    return Evidence(
        claim=claim.value,
        geometries=tuple(map(str, subject.geometries)),
        workloads=tuple(map(str, subject.workloads)),
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        n=estimate.n,
        unit=estimate.unit,
        limit=None,
        direction=claim.direction,
        source="",
        outcome=Finding.OBSERVED,
        margin_percent=None,
        sentence=f"{claim.label} of {subject}: {estimate}",
        confidence=estimate.confidence,
        is_reading=estimate.is_reading,
        basis=estimate.basis,
        wider=wider,
    )


def of_facts(facts: Mapping[str, object]) -> Evidence:
    """Return the evidence of a verdict's line in the journal; ``ValueError`` if it is damaged."""
    found = from_plain(Evidence, {name: value for name, value in facts.items() if name not in (*BESIDE, *OF_TEST)})
    if (found.limit is None) != (found.outcome is Finding.OBSERVED):
        raise ValueError(f"this is no Evidence: outcome {found.outcome} with the limit {found.limit}")
    if not (0 < found.confidence < 1 and found.n >= 0):
        raise ValueError(f"this is no Evidence: confidence {found.confidence:g}, n {found.n}")
    return found


def attach(report: object, evidence: Iterable[Evidence]) -> None:
    """Attach evidence to a ``TestReport``, which xdist carries to the controller."""
    setattr(report, ATTRIBUTE, [plain(each) for each in evidence])


def carried_by(report: object) -> tuple[Evidence, ...]:
    """Return the evidence that ``attach`` put on a report, here or in another process; else empty."""
    return tuple(from_plain(Evidence, each) for each in getattr(report, ATTRIBUTE, ()))
