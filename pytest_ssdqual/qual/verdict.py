"""An estimate held against a limit: pass, fail, or not decided."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from pytest_ssdqual.qual import judgement
from pytest_ssdqual.qual.claim import Claim, Direction, Limit
from pytest_ssdqual.qual.estimate import Estimate
from pytest_ssdqual.qual.geometry import Geometry
from pytest_ssdqual.qual.measurement import Measured
from pytest_ssdqual.qual.saturation import Saturation
from pytest_ssdqual.qual.units import Unit, format_range, format_value
from pytest_ssdqual.qual.workload import Workload


class Outcome(StrEnum):
    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Subject:
    """What a verdict is about: one array under one workload, or a sweep of them; or one drive of several."""

    geometries: tuple[Geometry, ...]
    workloads: tuple[Workload, ...]
    #: Serial number, when only this one of the drives side by side is meant.
    drive: str = ""

    def __post_init__(self) -> None:
        if not self.geometries or not self.workloads:
            raise ValueError("a verdict needs an array and a workload")

    def __str__(self) -> str:
        arrays = _span(self.geometries)
        return f"{f'drive {self.drive} ({arrays})' if self.drive else arrays} {_span(self.workloads)}"


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """True when the promise was kept; its ``repr`` is the sentence that a test failure shows.

    Not true is not the same as failed: ask ``outcome``.
    """

    claim: Claim
    subject: Subject
    estimate: Estimate
    limit: Limit
    outcome: Outcome
    #: Of a relation: the workload whose figure is the 100 % of estimate and limit.
    reference: Workload | None = None

    def __bool__(self) -> bool:
        return self.outcome is Outcome.PASS

    def __repr__(self) -> str:
        estimate, unit = self.estimate, self.limit.unit
        found = f"{format_value(estimate.value, unit)} ({format_range(estimate.low, estimate.high, unit)})"
        of = f" of {self.reference}" if self.reference else ""
        limit = format_value(self.limit.bound, unit)
        return f"{self.claim.label} of {self.subject}: {found}{of}, limit {limit}: {self._ending()}"

    @property
    def margin_percent(self) -> float:
        """How far the estimate is on the good side of the limit, in percent of the limit; negative on the bad."""
        distance = self.estimate.value - self.limit.bound
        if self.limit.direction is Direction.AT_MOST:
            distance = -distance
        return 100 * distance / self.limit.bound

    @property
    def times_longer(self) -> float | None:
        """About how many times the evidence would decide, if the estimate stayed; None when nothing would.

        The interval shrinks with the square root of the number of rounds, unless it is only that of the reading.
        """
        if self.estimate.is_reading:
            return None
        distance = abs(self.estimate.value - self.limit.bound)
        towards = self.estimate.high if self.limit.bound > self.estimate.value else self.estimate.low
        return (abs(towards - self.estimate.value) / distance) ** 2 if distance else None

    def to_record(self) -> dict[str, object]:
        """Plain data in base units, for JSON; ``drive`` and ``reference`` only where there is one."""
        only = {"drive": self.subject.drive, "reference": str(self.reference or "")}
        return {
            "claim": self.claim.value,
            "geometries": [str(each) for each in self.subject.geometries],
            "workloads": [str(each) for each in self.subject.workloads],
            "estimate": self.estimate.to_record(),
            "limit": self.limit.to_record(),
            "outcome": self.outcome.value,
            "margin_percent": self.margin_percent,
            "sentence": repr(self),
            **{name: value for name, value in only.items() if value},
        }

    def _ending(self) -> str:
        if self.outcome is Outcome.PASS:
            return f"PASS by {abs(self.margin_percent):.1f} %"
        if self.outcome is Outcome.FAIL:
            return f"FAIL by {abs(self.margin_percent):.1f} %"
        if self.estimate.is_reading:
            end = self.estimate.high if self.limit.bound > self.estimate.value else self.estimate.low
            return f"INCONCLUSIVE, {'closer than' if math.isfinite(end) else 'beyond what'} could be measured"
        longer = self.times_longer
        if longer is None or longer > 1000:
            return "INCONCLUSIVE, on the limit itself"
        return f"INCONCLUSIVE, about {max(longer, 1.1):.2g} times the measuring time would decide"


def judge(claim: Claim | str, subject: Subject, estimate: Estimate, limit: Limit) -> Verdict:
    """Pass when the whole interval is on the good side, fail when all of it is on the bad, else inconclusive.

    The limit itself is good. ValueError when estimate and limit are not in the claim's unit.
    """
    claim = Claim(claim)
    if not claim.unit is estimate.unit is limit.unit:
        raise ValueError(f"{claim} is in {claim.unit}, the estimate in {estimate.unit}, the limit in {limit.unit}")
    return Verdict(claim, subject, estimate, limit, _outcome(estimate, limit))


def judge_relation(
    claim: Claim | str, subject: Subject, reference: Workload, estimate: Estimate, limit: Limit
) -> Verdict:
    """As ``judge``, of a figure in per cent of the same figure of the workload ``reference`` on the same array.

    ``estimate`` is that of ``estimate.ratio``. ValueError unless it and the limit are in per cent.
    """
    if not Unit.PERCENT is estimate.unit is limit.unit:
        raise ValueError(f"a relation is in {Unit.PERCENT}, the estimate in {estimate.unit}, the limit in {limit.unit}")
    return Verdict(Claim(claim), subject, estimate, limit, _outcome(estimate, limit), reference)


def judge_members(claim: Claim | str, measured: Measured | Saturation, limit: Limit) -> tuple[Verdict, ...]:
    """One verdict for each drive side by side, in the order of the members, or the only one on an array.

    Raises what ``judgement.estimate`` raises.
    """
    whole = Subject((measured.geometry,), (measured.workload,))
    verdicts = []
    for each in measured.of_members():
        serials = (each.runs[0] if isinstance(each, Measured) else each.run).members
        about = replace(whole, drive=serials[0]) if each.geometry.is_side_by_side and len(serials) == 1 else whole
        verdicts.append(judge(claim, about, judgement.estimate(claim, each), limit))
    return tuple(verdicts)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The one to be told: a failed one before an undecided one before a kept one, then the least margin.

    ValueError if there is none.
    """
    order = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)
    return min(verdicts, key=lambda each: (order.index(each.outcome), each.margin_percent))


def _outcome(estimate: Estimate, limit: Limit) -> Outcome:
    if limit.direction is Direction.AT_LEAST:
        kept, broken = estimate.low >= limit.bound, estimate.high < limit.bound
    else:
        kept, broken = estimate.high <= limit.bound, estimate.low > limit.bound
    return Outcome.PASS if kept else Outcome.FAIL if broken else Outcome.INCONCLUSIVE


def _span(each: tuple[object, ...]) -> str:
    """The thing itself, or the first and the last of many: the sentence has to stay short."""
    return str(each[0]) if len(each) == 1 else f"{each[0]}…{each[-1]}"
