"""Verdict: an estimate compared with a limit; pass, fail or inconclusive.

Pass when the whole interval is on the good side of the limit, fail when all of it is on the bad side, else
inconclusive. A failure among many claims is held back unless it survives the correction of `multiplicity`. A limit may
be a percentage of what an earlier run (the baseline) measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.judgeable import Judgeable, Subject
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.qual.raid import scaling as bend
from pytest_ssdqual.qual.spec.claims import (
    OF_GROWTH,
    OF_RARE_EVENTS,
    TIMES_PER_HOUR,
    Accountable,
    Claim,
    Direction,
    Limit,
)
from pytest_ssdqual.qual.stats import latency
from pytest_ssdqual.qual.stats.estimate import CONFIDENCE, ConfidenceLevel, Estimate, format_confidence
from pytest_ssdqual.qual.stats.latency import Exceedance
from pytest_ssdqual.qual.units import Unit, format_difference, format_value
from pytest_ssdqual.qual.validity.attribution import Cause
from pytest_ssdqual.qual.verdict import estimators
from pytest_ssdqual.qual.verdict.multiplicity import ALONE, ErrorControl, p_value
from pytest_ssdqual.qual.workload.workload import Workload

#: Part of the sentence of a broken promise that the drives did not break.
NOT_THE_BOUND = "the drives are not the bottleneck: the limit is missed"
#: Drives named in a sentence, and characters of a serial there; the evidence has all serials in full.
MOST_NAMED, NAME_CHARACTERS = 8, 40


@frozen
class BaselineReference:
    """The two figures behind a percentage of the baseline: this run's, and the baseline's that is the 100 %."""

    #: Name of the baseline's run folder.
    run: str
    #: Checksum of its ``records.jsonl``.
    sha256: str
    now: Estimate
    then: Estimate
    #: Serial number of the baseline's drive, if it is not the verdict's.
    drive: str = ""

    def __str__(self) -> str:
        """Text that follows the percentage in a sentence."""
        by = f" by its median drive {self.drive}" if self.drive else ""
        return f"the baseline, {self.now} now against {self.then} in run {self.run}{by}"


class Outcome(StrEnum):
    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    #: Missed because something above the drives is the bottleneck, proven by a ceiling; the drives can do more.
    BOUNDED = "bounded"

    @classmethod
    def of(cls, *, good: bool, bad: bool) -> Outcome:
        """Return what is certain; inconclusive if neither is."""
        if good:
            return cls.PASS
        return cls.FAIL if bad else cls.INCONCLUSIVE


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """Result of judging one claim. True if it passed; its ``repr`` is the sentence that a test failure shows.

    False does not mean failed: it may be inconclusive, see ``outcome``.
    """

    claim: Claim
    subject: Subject
    estimate: Estimate
    limit: Limit
    outcome: Outcome
    #: For a relation, the workload or the earlier run whose figure is the 100 % of estimate and limit.
    reference: Workload | BaselineReference | None = None
    #: The protocol's indifference margin: an interval within it on both sides of the limit counts as on the limit.
    indifference_percent: float = 0.0
    #: For a maximum latency, how often I/Os were slower than the limit, and the interval of that rate.
    slower: Exceedance | None = None
    #: Cause, if known; one remark without a full stop.
    because: str = ""
    #: For a failure, the least 1 - confidence at which it would still be one, two-sided; None for a reading.
    p_value: float | None = None
    #: Reason why a failure is reported as inconclusive among the claims that are judged together; part of a sentence.
    held_back: str = ""
    #: The attributed cause of a broken promise.
    cause: Cause | None = None
    #: Computes the estimate for a share of the error rate, for the widenings that the record stores.
    again: Callable[[float], Estimate] | None = field(default=None, compare=False)

    def __bool__(self) -> bool:
        return self.outcome is Outcome.PASS

    def __repr__(self) -> str:
        of = f" of {self.reference}" if self.reference else ""
        limit = format_value(self.limit.bound, self.limit.unit)
        ending = "; ".join(map(str, filter(None, (self._ending(), self.slower, self.because, self.cause))))
        return f"{self.claim.label} of {self.subject}: {self.estimate}{of}, limit {limit}: {ending}"

    @property
    def margin_percent(self) -> float:
        """Distance of the estimate from the limit, in per cent of the limit; negative on the bad side."""
        distance = self.estimate.value - self.limit.bound
        if self.limit.direction is Direction.AT_MOST:
            distance = -distance
        return 100 * distance / self.limit.bound

    @property
    def margin(self) -> str:
        """Distance of the estimate from the limit without its sign: ``25.3 %``, ``3.0 percentage points``."""
        return format_difference(self.estimate.value, self.limit.bound, self.limit.unit)

    @property
    def is_settled(self) -> bool:
        """Return whether measuring for longer is pointless: decided, within the indifference margin, or a single
        reading.
        """
        return self.outcome is not Outcome.INCONCLUSIVE or self.estimate.is_reading or self.is_on_limit

    @property
    def is_unseen(self) -> bool:
        """Return whether it is inconclusive about rare events because the observation was too short to decide."""
        undecided = self.outcome is Outcome.INCONCLUSIVE and self.claim in OF_RARE_EVENTS
        return undecided and bool(self.estimate.unbounded)

    @property
    def is_on_limit(self) -> bool:
        """Return whether the whole interval is within the indifference margin on either side of the limit."""
        margin = self.limit.bound * self.indifference_percent / 100
        return self.limit.bound - margin <= self.estimate.low and self.estimate.high <= self.limit.bound + margin

    @property
    def times_longer(self) -> float | None:
        """Factor on the amount of evidence that would decide, if the estimate stayed; None if no amount would.

        The interval shrinks with the square root of the number of rounds, unless it is the resolution of a reading.
        """
        if self.estimate.is_reading:
            return None
        distance = abs(self.estimate.value - self.limit.bound)
        towards = self.estimate.high if self.limit.bound > self.estimate.value else self.estimate.low
        return (abs(towards - self.estimate.value) / distance) ** 2 if distance else None

    def _ending(self) -> str:
        if self.held_back:
            return f"{self.outcome.upper()}, {self.held_back}"
        if self.outcome is not Outcome.INCONCLUSIVE:
            return f"{self.outcome.upper()} by {self.margin}"
        if self.estimate.is_reading:
            end = self.estimate.high if self.limit.bound > self.estimate.value else self.estimate.low
            return f"INCONCLUSIVE, {'closer than' if math.isfinite(end) else 'beyond what'} could be measured"
        if self.estimate.unbounded:
            return f"INCONCLUSIVE, {self.estimate.unbounded}"
        if self.is_on_limit:
            margin = f"{self.indifference_percent:g} %"
            return f"INCONCLUSIVE, within {margin} of the limit, the indifference margin of the protocol"
        longer = self.times_longer
        if longer is None or longer > 1000:
            return "INCONCLUSIVE, on the limit itself"
        times = f"{longer:.0f}" if longer >= 10 else f"{max(longer, 1.1):.2g}"
        return f"INCONCLUSIVE, about {times} times the measuring time would decide"


def judge(
    claim: Claim,
    subject: Subject,
    estimate: Estimate,
    limit: Limit,
    indifference_percent: float = 0.0,
    reference: Workload | BaselineReference | None = None,
) -> Verdict:
    """Compare an estimate with a limit: pass, fail or inconclusive; a figure on the limit is good.

    Both are in the claim's unit, or in per cent of a ``reference``: another workload on the same array, or the same
    workload in an earlier run (``estimate.ratio``, ``qual.verdict.ratio.ratio``). ValueError if they are not.
    """
    unit = Unit.PERCENT if reference else claim.unit
    if not unit is estimate.unit is limit.unit:
        raise ValueError(f"{claim} is in {unit}, the estimate in {estimate.unit}, the limit in {limit.unit}")
    return Verdict(claim, subject, estimate, limit, _outcome(estimate, limit), reference, indifference_percent)


def judge_all(
    claim: Claim,
    judged: Judgeable,
    limit: Limit,
    confidence: float = CONFIDENCE,
    indifference_percent: float = 0.0,
    family: ErrorControl = ALONE,
) -> tuple[Verdict, ...]:
    """Judge a claim: one verdict for each drive side by side, in the order of the members, or one.

    A drive whose own sheet has no limit has no verdict. A claim that compares the drives has one verdict about all of
    them; a scaling verdict that is not a pass names the width where it bends. For ``confidence`` and the exceptions see
    ``estimators.estimate``, for ``family`` see ``in_family``.
    """
    verdicts = []
    for subject, each in estimators.parts(claim, judged):
        bound = limit.of(subject.drive)
        if bound is None:
            continue
        again = partial(estimators.estimate, claim, each, confidence, per_hour=bound.times_per_hour or TIMES_PER_HOUR)
        verdict = in_family(judge(claim, subject, again(), bound, indifference_percent), again, family)
        verdicts.append(replace(_explained(verdict, each, ConfidenceLevel(confidence)), again=again))
    return tuple(verdicts)


def _explained(verdict: Verdict, judged: Any, confidence_level: ConfidenceLevel) -> Verdict:  # noqa: ANN401
    """Return the verdict; of a maximum with how often I/Os were slower, of a broken growth with its bend."""
    bound = verdict.limit.bound
    if verdict.claim is Claim.MAX_LATENCY:
        return replace(verdict, slower=latency.slower_than(bound, judged, confidence_level))
    if verdict or verdict.claim not in OF_GROWTH:
        return verdict
    least = bound if verdict.claim is Claim.SCALING_SLOPE else 1 - bound / 100
    scaling = estimators.of_scaling(judged, confidence_level)
    return replace(verdict, because=bend.describe_bend(judged.measurements, scaling, least))


def in_family(verdict: Verdict, again: Callable[[float], Estimate], family: ErrorControl) -> Verdict:
    """Add the p-value to a failure, and report it as inconclusive unless it survives the correction for its family.

    ``again`` computes the estimate for a share of the error rate. Passes need no correction (see
    ``qual.verdict.multiplicity``), nor does a reading, which has no statistical error.
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
    """Return the verdict to report: failed before inconclusive before bounded before passed, then the least margin.

    ValueError if there is none.
    """
    order = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.BOUNDED, Outcome.PASS)
    return min(verdicts, key=lambda each: (order.index(each.outcome), each.margin_percent))


def naming_all(verdict: Verdict, verdicts: Sequence[Verdict]) -> Verdict:
    """Return ``verdict`` with the serials of all drives of the same outcome, the worst first, unless it is a pass."""
    of_drives = [each for each in verdicts if each.subject.drive]
    alike = sorted(
        (each for each in of_drives if each.outcome is verdict.outcome), key=lambda each: each.margin_percent
    )
    if verdict or len(alike) < 2:
        return verdict
    names = [safe_text.line(each.subject.drive, NAME_CHARACTERS) for each in alike]
    how = "break it" if verdict.outcome is Outcome.FAIL else f"are {verdict.outcome}"
    return with_remark(verdict, f"{len(alike)} of {len(of_drives)} drives {how}: {named(names, MOST_NAMED)}")


def attributed(verdict: Verdict, cause: Cause, accountable: Accountable) -> Verdict:
    """Return a failed verdict with its cause.

    A failure that is to blame drives only, and that drives did not cause, becomes inconclusive about them, or bounded
    if a measured ceiling proves the cause. Without any evidence nothing is taken back.
    """
    found = replace(verdict, cause=cause)
    if accountable is Accountable.SYSTEM or not cause.culprit.acquits_drives:
        return found
    outcome = Outcome.BOUNDED if cause.is_proven else Outcome.INCONCLUSIVE
    return replace(found, outcome=outcome, held_back=f"{NOT_THE_BOUND} by {verdict.margin}")


def with_remark(verdict: Verdict, remark: str) -> Verdict:
    """Return the verdict with one more remark at the end of its sentence."""
    return replace(verdict, because="; ".join(filter(None, (verdict.because, remark))))


def _outcome(estimate: Estimate, limit: Limit) -> Outcome:
    if limit.direction is Direction.AT_LEAST:
        good, bad = estimate.low >= limit.bound, estimate.high < limit.bound
    else:
        good, bad = estimate.high <= limit.bound, estimate.low > limit.bound
    return Outcome.of(good=good, bad=bad)
