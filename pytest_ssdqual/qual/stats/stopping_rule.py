"""Whether a sequential measurement may end at a look: the stopping rule of product, forecast and benches.

It judges by the very code that the tests judge by afterwards, so that nothing is ended that a test then finds
undecided, and nothing goes on that it would have decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.spec.claims import OF_EXTREMES, Claim, Limit
from pytest_ssdqual.qual.spec.protocol import SequentialRule, VerdictRule
from pytest_ssdqual.qual.stats import group_sequential
from pytest_ssdqual.qual.stats.estimate import Estimate, NotApplicable, Sureness, TooFew
from pytest_ssdqual.qual.stats.throughput import iops
from pytest_ssdqual.qual.units import Unit, format_duration, format_value
from pytest_ssdqual.qual.verdict.multiplicity import ALONE, ErrorControl
from pytest_ssdqual.qual.verdict.verdict import Outcome, Verdict, judge_members


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether what is asked of a measurement is known; and, for people, how far it is known."""

    done: bool
    told: str = ""

    def __bool__(self) -> bool:
        return self.done


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of one measurement."""

    #: The claims that it decides by itself, each with its limit.
    limits: Mapping[Claim, Limit] = field(default_factory=dict)
    #: Whether its IOPS are wanted as precisely as the protocol says, because no limit says how precise they have to be.
    is_precise: bool = False
    #: Whether its extremes are wanted, for a claim that compares several measurements.
    is_observed: bool = False


def decide(
    measured: Measured,
    question: Question,
    looks: SequentialRule | None,
    rule: VerdictRule,
    family: ErrorControl = ALONE,
) -> Decision:
    """Whether the question is answered at this look, of which ``measured`` is the run so far.

    Of drives side by side all of them have to be clear.
    """
    told, open_ends = "", list[str]()
    for claim, limit in question.limits.items():
        try:
            verdicts = judge_members(claim, measured, limit, rule.confidence, rule.indifference_percent, family)
        except TooFew as error:
            open_ends.append(f"{claim.label}: {error}")
            continue
        except NotApplicable:
            continue  # time will not make it fit to be judged; the test says why
        told = told or _told(verdicts[0])
        open_ends += [_told(each) for each in verdicts if not each.is_settled]
        open_ends += [f"{_told(each)} (too early)" for each in verdicts if _is_too_early(each, measured, looks)]
    if looks and question.is_precise:
        known, precision = _precision(measured, looks, Sureness(rule.confidence))
        told = told or precision
        open_ends += [] if known else [precision]
    if question.is_observed or OF_EXTREMES & question.limits.keys():
        open_ends += _not_observed(measured, looks)
    return _decision(open_ends, told)


def _is_too_early(verdict: Verdict, measured: Measured, looks: SequentialRule | None) -> bool:
    """Whether a decided verdict may be that on a plateau; not at the last look, which has to do."""
    look = measured.look
    if looks is None or look is None or look.number == look.of or verdict.outcome is Outcome.INCONCLUSIVE:
        return False
    seconds = group_sequential.look_times(looks)[look.number - 1]
    return group_sequential.is_too_early(seconds, verdict.estimate.value, verdict.limit.bound, looks)


def _not_observed(measured: Measured, looks: SequentialRule | None) -> Iterator[str]:
    """Extremes are observed for the same time at least, however far from its limit anything else is."""
    look = measured.look
    if looks and look and look.number < look.of:
        seconds = group_sequential.look_times(looks)[look.number - 1]
        if seconds < looks.observe_s:
            yield f"slowest I/Os are observed for {format_duration(looks.observe_s)} at least"


def _decision(open_ends: list[str], told: str) -> Decision:
    if not open_ends:
        return Decision(done=True, told=told)
    others = len(open_ends) - 1
    return Decision(done=False, told=open_ends[0] + (f", and {others} more open" if others else ""))


def _precision(measured: Measured, rule: SequentialRule, sure: Sureness) -> tuple[bool, str]:
    """Whether the IOPS are known well enough; of drives side by side those of each."""
    found: list[Estimate] = []
    for each in measured.of_members():
        try:
            found.append(iops(each, sure))
        except TooFew as error:
            return False, f"IOPS: {error}"
    widest = max(found, key=_half_width_percent)
    half = _half_width_percent(widest)
    return half <= rule.precision_percent, f"{widest}, ±{half:.2g} % ({rule.precision_percent:g} % is wanted)"


def _half_width_percent(estimate: Estimate) -> float:
    return 50 * (estimate.high - estimate.low) / estimate.value if estimate.value else float("inf")


def _told(verdict: Verdict) -> str:
    unit = verdict.claim.unit if verdict.reference is None else Unit.PERCENT
    by = f" of drive {verdict.subject.drive}" if verdict.subject.drive else ""
    return f"{verdict.claim.label}{by} {verdict.estimate}, limit {format_value(verdict.limit.bound, unit)}"
