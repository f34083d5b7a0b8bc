"""An estimate held against a limit: pass, fail, or not decided."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.raid import scaling as bend
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import OF_RARE_EVENTS, TIMES_PER_HOUR, Claim, Direction, Limit, Scope
from pytest_ssdqual.qual.stats import latency
from pytest_ssdqual.qual.stats.estimate import CONFIDENCE, ConfidenceLevel, Estimate, format_confidence
from pytest_ssdqual.qual.stats.latency import Exceedance
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.qual.verdict import estimators
from pytest_ssdqual.qual.verdict.baseline import BaselineReference
from pytest_ssdqual.qual.verdict.multiplicity import ALONE, ErrorControl, p_value
from pytest_ssdqual.qual.workload.workload import Workload

#: Number of drives in a sentence, and of characters of a serial; the evidence has all serials in full.
MOST_NAMED, NAME_CHARACTERS = 8, 40


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
    #: Of a relation: the workload, or the earlier run, whose figure is the 100 % of estimate and limit.
    reference: Workload | BaselineReference | None = None
    #: An interval within this of the limit is as good as on it; of the protocol.
    indifference_percent: float = 0.0
    #: Of a maximum latency: how often I/Os were slower than the limit, and what that proves.
    slower: Exceedance | None = None
    #: What brought it about, where that is known; one remark without a full stop.
    because: str = ""
    #: Of a failure: the least one-minus-confidence at which it would still be one, two-sided; None of a reading.
    p_value: float | None = None
    #: Why a failure is not told as one, among the claims that are judged together; part of a sentence.
    held_back: str = ""
    #: Gives the estimate for a share of the error rate, where that is kept for whoever compares it later.
    again: Callable[[float], Estimate] | None = field(default=None, compare=False)

    def __bool__(self) -> bool:
        return self.outcome is Outcome.PASS

    def __repr__(self) -> str:
        of = f" of {self.reference}" if self.reference else ""
        limit = format_value(self.limit.bound, self.limit.unit)
        ending = "; ".join(map(str, filter(None, (self._ending(), self.slower, self.because))))
        return f"{self.claim.label} of {self.subject}: {self.estimate}{of}, limit {limit}: {ending}"

    @property
    def margin_percent(self) -> float:
        """How far the estimate is on the good side of the limit, in percent of the limit; negative on the bad."""
        distance = self.estimate.value - self.limit.bound
        if self.limit.direction is Direction.AT_MOST:
            distance = -distance
        return 100 * distance / self.limit.bound

    @property
    def is_settled(self) -> bool:
        """Whether measuring for longer is pointless: it is decided, or told well enough, or a fact about this run."""
        return self.outcome is not Outcome.INCONCLUSIVE or self.estimate.is_reading or self.is_on_limit

    @property
    def is_unseen(self) -> bool:
        """Whether it is about rare events that were observed for too short a time to decide, whatever happened."""
        undecided = self.outcome is Outcome.INCONCLUSIVE and self.claim in OF_RARE_EVENTS
        return undecided and bool(self.estimate.unbounded)

    @property
    def is_on_limit(self) -> bool:
        """Whether the whole interval is within the indifference margin on either side of the limit."""
        margin = self.limit.bound * self.indifference_percent / 100
        return self.limit.bound - margin <= self.estimate.low and self.estimate.high <= self.limit.bound + margin

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
        """Plain data in base units, for JSON; ``drive``, ``reference``, ``slower``, ``because`` where there is one."""
        only = {
            "drive": self.subject.drive,
            "reference": str(self.reference or ""),
            "slower": self.slower and self.slower.to_record(),
            "because": self.because,
            "p_value": self.p_value,
            "held_back": self.held_back,
        }
        return {
            "claim": self.claim.value,
            "geometries": [str(each) for each in self.subject.geometries],
            "workloads": [str(each) for each in self.subject.workloads],
            "estimate": self.estimate.to_record(),
            "limit": self.limit.to_record(),
            "outcome": self.outcome.value,
            "margin_percent": self.margin_percent,
            "indifference_percent": self.indifference_percent,
            "is_settled": self.is_settled,
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
        if self.held_back:
            return f"INCONCLUSIVE, {self.held_back}"
        if self.estimate.unbounded:
            return f"INCONCLUSIVE, {self.estimate.unbounded}"
        if self.is_on_limit:
            margin = f"{self.indifference_percent:g} %"
            return f"INCONCLUSIVE, surely within {margin} of the limit: closer than the protocol wants to know"
        longer = self.times_longer
        if longer is None or longer > 1000:
            return "INCONCLUSIVE, on the limit itself"
        return f"INCONCLUSIVE, about {max(longer, 1.1):.2g} times the measuring time would decide"


def judge(
    claim: Claim | str, subject: Subject, estimate: Estimate, limit: Limit, indifference_percent: float = 0.0
) -> Verdict:
    """Pass when the whole interval is on the good side, fail when all of it is on the bad, else inconclusive.

    The limit itself is good. ValueError when estimate and limit are not in the claim's unit.
    """
    claim = Claim(claim)
    if not claim.unit is estimate.unit is limit.unit:
        raise ValueError(f"{claim} is in {claim.unit}, the estimate in {estimate.unit}, the limit in {limit.unit}")
    outcome = _outcome(estimate, limit)
    return Verdict(claim, subject, estimate, limit, outcome, indifference_percent=indifference_percent)


def judge_relation(
    claim: Claim | str,
    subject: Subject,
    reference: Workload | BaselineReference,
    estimate: Estimate,
    limit: Limit,
    indifference_percent: float = 0.0,
) -> Verdict:
    """As ``judge``, of a figure in per cent of the same figure of the workload ``reference`` on the same array, or of
    the same workload in an earlier run.

    ``estimate`` is that of ``estimate.ratio``, or of ``comparison.ratio``. ValueError unless it and the limit are in
    per cent.
    """
    if not Unit.PERCENT is estimate.unit is limit.unit:
        raise ValueError(f"a relation is in {Unit.PERCENT}, the estimate in {estimate.unit}, the limit in {limit.unit}")
    outcome = _outcome(estimate, limit)
    return Verdict(Claim(claim), subject, estimate, limit, outcome, reference, indifference_percent)


def judge_members(
    claim: Claim | str,
    measured: Measured | Saturation,
    limit: Limit,
    confidence: float = CONFIDENCE,
    indifference_percent: float = 0.0,
    family: ErrorControl = ALONE,
) -> tuple[Verdict, ...]:
    """One verdict for each drive side by side, in the order of the members, or the only one on an array.

    A claim about their likeness has one verdict about all of them. ``confidence`` is that of ``judgement.estimate``,
    and so is what is raised; for ``family`` see ``in_family``.
    """
    claim = Claim(claim)
    whole = Subject((measured.geometry,), (measured.workload,))
    verdicts = []
    for each in (measured,) if claim.scope is Scope.MEMBERS else measured.of_members():
        serials = (each.runs[0] if isinstance(each, Measured) else each.run).members
        about = replace(whole, drive=serials[0]) if each.geometry.is_side_by_side and len(serials) == 1 else whole
        again = partial(estimators.estimate, claim, each, confidence, per_hour=limit.times_per_hour or TIMES_PER_HOUR)
        told = in_family(judge(claim, about, again(), limit, indifference_percent), again, family)
        if claim is Claim.MAX_LATENCY and isinstance(each, Measured):
            told = replace(told, slower=latency.slower_than(limit.bound, each, ConfidenceLevel(confidence)))
        verdicts.append(told)
    return tuple(verdicts)


def judge_sweep(
    claim: Claim | str,
    sweep: Sequence[Measured],
    limit: Limit,
    confidence: float = CONFIDENCE,
    indifference_percent: float = 0.0,
    family: ErrorControl = ALONE,
) -> Verdict:
    """The verdict on several widths of a level; of their scaling, unless it is good, with the width where it bends.

    Raises what ``judgement.estimate`` raises; for ``family`` see ``in_family``.
    """
    claim, ordered = Claim(claim), sorted(sweep, key=lambda each: each.geometry)
    subject = Subject(tuple(each.geometry for each in ordered), tuple({each.workload: None for each in ordered}))
    again = partial(estimators.estimate, claim, ordered, confidence)
    told = in_family(judge(claim, subject, again(), limit, indifference_percent), again, family)
    least = {Claim.SCALING_SLOPE: limit.bound, Claim.SCALING_DEVIATION: 1 - limit.bound / 100}.get(claim)
    if told or least is None:
        return told
    scaling = estimators.of_scaling(ordered, ConfidenceLevel(confidence))
    return replace(told, because=bend.told(ordered, scaling, least))


def in_family(verdict: Verdict, again: Callable[[float], Estimate], family: ErrorControl) -> Verdict:
    """A failure with its p-value; held back, as inconclusive, unless it stands up to all claims judged with it.

    ``again`` gives the estimate if only this share of the error rate may be spent on its interval. What passed is left
    alone, see ``qual.verdict.multiplicity``; so is a reading, which makes no statistical error.
    """
    if verdict.outcome is not Outcome.FAIL or verdict.estimate.is_reading:
        return verdict

    def is_broken(share: float) -> bool:
        return _outcome(again(share), verdict.limit) is Outcome.FAIL

    confidence = verdict.estimate.confidence
    found = replace(verdict, p_value=p_value(is_broken, confidence))
    if not family.is_corrected or is_broken(family.share):
        return found
    over = f"the family-wise {format_confidence(confidence)} over {family.claims:,} claims"
    return replace(found, outcome=Outcome.INCONCLUSIVE, held_back=f"fails alone, but not at {over}")


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The one to be told: a failed one before an undecided one before a kept one, then the least margin.

    ValueError if there is none.
    """
    order = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)
    return min(verdicts, key=lambda each: (order.index(each.outcome), each.margin_percent))


def naming_all(told: Verdict, verdicts: Sequence[Verdict]) -> Verdict:
    """Return ``told`` with the serials of all drives of the same outcome, the worst first, unless it is a pass."""
    of_drives = [each for each in verdicts if each.subject.drive]
    alike = sorted((each for each in of_drives if each.outcome is told.outcome), key=lambda each: each.margin_percent)
    if told or len(alike) < 2:
        return told
    names = [safe_text.line(each.subject.drive, NAME_CHARACTERS) for each in alike[:MOST_NAMED]]
    more = f" and {len(alike) - MOST_NAMED} more" if len(alike) > MOST_NAMED else ""
    how = "break it" if told.outcome is Outcome.FAIL else "are undecided"
    return with_remark(told, f"{len(alike)} of {len(of_drives)} drives {how}: {', '.join(names)}{more}")


def with_remark(told: Verdict, remark: str) -> Verdict:
    """Return the verdict with one more remark at the end of its sentence."""
    return replace(told, because="; ".join(filter(None, (told.because, remark))))


def _outcome(estimate: Estimate, limit: Limit) -> Outcome:
    if limit.direction is Direction.AT_LEAST:
        kept, broken = estimate.low >= limit.bound, estimate.high < limit.bound
    else:
        kept, broken = estimate.high <= limit.bound, estimate.low > limit.bound
    return Outcome.PASS if kept else Outcome.FAIL if broken else Outcome.INCONCLUSIVE


def _span(each: tuple[object, ...]) -> str:
    """The thing itself, or the first and the last of many: the sentence has to stay short."""
    return str(each[0]) if len(each) == 1 else f"{each[0]}…{each[-1]}"
