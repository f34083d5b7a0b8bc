"""Stopping rule of a sequential measurement: decides whether a look may be the last.

The product, the forecast and the benches call `decide`. It uses the code that judges afterwards, so a measurement never
ends on a verdict that the test then finds undecided, and never continues past one that the test would accept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.spec.claims import OF_EXTREMES, Claim, Limit
from pytest_ssdqual.qual.spec.protocol import SequentialRule, VerdictRule
from pytest_ssdqual.qual.stats import group_sequential
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate, NotApplicable, TooFew
from pytest_ssdqual.qual.stats.throughput import iops
from pytest_ssdqual.qual.units import Unit, format_duration, format_value
from pytest_ssdqual.qual.verdict.multiplicity import ALONE, ErrorControl
from pytest_ssdqual.qual.verdict.verdict import Outcome, Verdict, judge_members


@dataclass(frozen=True, slots=True)
class Decision:
    """Result of the stopping rule: done or not, and a sentence about what is known so far."""

    done: bool
    sentence: str = ""

    def __bool__(self) -> bool:
        return self.done


@dataclass(frozen=True, slots=True)
class Question:
    """The claims that one measurement has to decide, and the precision asked of it."""

    #: Claims that this measurement decides alone, each with its limit.
    limits: Mapping[Claim, Limit] = field(default_factory=dict)
    #: The protocol's precision applies to its IOPS, because no limit says how precise they have to be.
    is_precise: bool = False
    #: Its extremes are needed, for a claim that compares several measurements.
    is_observed: bool = False


def decide(
    measured: Measured,
    question: Question,
    looks: SequentialRule | None,
    rule: VerdictRule,
    family: ErrorControl = ALONE,
) -> Decision:
    """Decide whether ``measured``, the run up to this look, answers the question; for drives side by side, of every
    drive.
    """
    sentence, undecided = "", list[str]()
    for claim, limit in question.limits.items():
        try:
            verdicts = judge_members(claim, measured, limit, rule.confidence, rule.indifference_percent, family)
        except TooFew as error:
            undecided.append(f"{claim.label}: {error}")
            continue
        except NotApplicable:
            continue  # more time does not help; the test reports the reason
        sentence = sentence or _sentence(verdicts[0])
        undecided += [_sentence(verdict) for verdict in verdicts if not verdict.is_settled]
        undecided += [
            f"{_sentence(verdict)} (too early)" for verdict in verdicts if _is_too_early(verdict, measured, looks)
        ]
    if looks and question.is_precise:
        known, precision = _precision(measured, looks, ConfidenceLevel(rule.confidence))
        sentence = sentence or precision
        undecided += [] if known else [precision]
    if question.is_observed or OF_EXTREMES & question.limits.keys():
        undecided += _not_observed(measured, looks)
    return _decision(undecided, sentence)


def _is_too_early(verdict: Verdict, measured: Measured, looks: SequentialRule | None) -> bool:
    """Return whether a decided verdict may be that of a plateau; never at the last look."""
    look = measured.look
    if looks is None or look is None or look.number == look.of or verdict.outcome is Outcome.INCONCLUSIVE:
        return False
    seconds = group_sequential.look_times(looks)[look.number - 1]
    return group_sequential.is_too_early(seconds, verdict.estimate.value, verdict.limit.bound, looks)


def _not_observed(measured: Measured, looks: SequentialRule | None) -> Iterator[str]:
    """Yield a sentence while extremes were observed for less than ``observe_s``, however clear other figures are."""
    look = measured.look
    if looks and look and look.number < look.of:
        seconds = group_sequential.look_times(looks)[look.number - 1]
        if seconds < looks.observe_s:
            yield f"slowest I/Os are observed for {format_duration(looks.observe_s)} at least"


def _decision(undecided: list[str], sentence: str) -> Decision:
    if not undecided:
        return Decision(done=True, sentence=sentence)
    others = len(undecided) - 1
    return Decision(done=False, sentence=undecided[0] + (f", and {others} more undecided" if others else ""))


def _precision(measured: Measured, rule: SequentialRule, confidence_level: ConfidenceLevel) -> tuple[bool, str]:
    """Return whether the IOPS are known to the protocol's precision, of every drive side by side, and a sentence."""
    rates: list[Estimate] = []
    for member in measured.of_members():
        try:
            rates.append(iops(member, confidence_level))
        except TooFew as error:
            return False, f"IOPS: {error}"
    widest = max(rates, key=_half_width_percent)
    half = _half_width_percent(widest)
    return half <= rule.precision_percent, f"{widest}, ±{half:.2g} % ({rule.precision_percent:g} % is wanted)"


def _half_width_percent(estimate: Estimate) -> float:
    return 50 * (estimate.high - estimate.low) / estimate.value if estimate.value else float("inf")


def _sentence(verdict: Verdict) -> str:
    unit = verdict.claim.unit if verdict.reference is None else Unit.PERCENT
    by = f" of drive {verdict.subject.drive}" if verdict.subject.drive else ""
    return f"{verdict.claim.label}{by} {verdict.estimate}, limit {format_value(verdict.limit.bound, unit)}"
