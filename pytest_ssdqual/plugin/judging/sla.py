"""``ssd_sla``: the promises of the spec, as a test asks for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import pytest

from pytest_ssdqual.plugin.judging import evidence_builder as account
from pytest_ssdqual.plugin.judging.evidence_builder import Account, FigurePlace, Judged
from pytest_ssdqual.qual.explore.search import WorkloadSearch
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.raid import scaling
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Claim, Limit, Scope
from pytest_ssdqual.qual.spec.promises import Relation
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.stats.estimate import CannotJudge, Estimate, NotApplicable, TooFew, ratio
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict import estimators
from pytest_ssdqual.qual.verdict import ratio as comparison
from pytest_ssdqual.qual.verdict import verdict as verdicts
from pytest_ssdqual.qual.verdict.baseline import BaselineLimit, BaselineReference
from pytest_ssdqual.qual.verdict.verdict import Outcome, Subject, Verdict
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.compare.baseline import Baseline, Missing
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement

#: Claims about how an array grows, by the law of its level.
LAWFUL = (Claim.SCALING_SLOPE, Claim.SCALING_DEVIATION)
Measure = Callable[[Geometry, Workload], Measured]


class Inconclusive(InvalidMeasurement):
    """The interval straddles the limit: neither kept nor broken, and never green."""


class Sla:
    """Judges what was measured by the promises of the spec, and remembers everything as evidence."""

    def __init__(
        self,
        spec: Spec,
        inconclusive: str,
        circumstances: Account,
        note: Callable[[Evidence], None],
        measure: Measure,
        baseline: Baseline | None = None,
        promised: Collection[Claim] = (),
    ) -> None:
        """``inconclusive`` says what becomes of an undecided verdict: ``error`` or ``skip``.

        ``measure`` gives what a promise compares with, if that is another workload; ``baseline`` is the earlier run
        that promises may be in per cent of. ``promised`` is what the test has declared to judge.
        """
        self._spec = spec
        self._inconclusive = inconclusive
        self.account = circumstances
        self._note = note
        self._measure = measure
        self._baseline = baseline
        self._promised = frozenset(promised)

    def judge(self, what: str | Judged, judged: Judged | None = None, /) -> Verdict:
        """The verdict about a run, a sweep, a workload set, a saturation or a rebuild: ``judge(ssd_run)`` on the claim
        that the test's mark ``ssd_promise`` names, ``judge("p99_latency", ssd_run)`` on one of several.

        Drives side by side are judged one by one; the verdict is the worst of theirs, and names all that break the
        promise. Where the
        spec promises nothing of the kind, the figure is noted and the test skipped. Raises ``Inconclusive`` (a JUnit
        ``<error>``) when the evidence decides neither way, ``InvalidMeasurement`` when there is too little of it.
        """
        wanted, judged = self.asked(what, judged)
        if isinstance(judged, Sequence):
            judged = sorted(judged, key=lambda each: each.geometry)
        if wanted.scope is Scope.MEMBERS and isinstance(judged, Measured) and len(judged.of_members()) < 2:
            pytest.skip(f"{wanted.label}: needs several drives side by side, {judged.geometry} is none of that")
        found = self.verdicts(wanted, judged)
        told = verdicts.naming_all(verdicts.worst(found), found)
        if wanted.scope is Scope.MEMBERS and isinstance(judged, Measured):
            slowest = estimators.slowest_member(judged, wanted)
            told = verdicts.with_remark(told, f"the slowest is drive {slowest}")
        self.tell(told, self.account.of_verdicts(judged, found, told))
        return told

    def asked(self, first: str | Judged, second: Judged | None) -> tuple[Claim, Judged]:
        """What is to be judged, and on what; ``pytest.UsageError`` unless the test has declared that."""
        declared = ", ".join(sorted(self._promised)) or "nothing"
        if not isinstance(first, str):
            if len(self._promised) != 1:
                raise pytest.UsageError(f"the test declares {declared}: say which of them, as in judge(claim, ssd_run)")
            return next(iter(self._promised)), first
        if first not in self._promised:
            raise pytest.UsageError(
                f"{first} is judged, but the mark ssd_promise of the test names {declared}: measurements are planned "
                f'by that; add @pytest.mark.ssd_promise("{first}")'
            )
        if second is None:
            raise pytest.UsageError(f"judge({first!r}) does not say what was measured: judge({first!r}, ssd_run)")
        return Claim(first), second

    def verdicts(self, claim: Claim, judged: Judged) -> tuple[Verdict, ...]:
        """One, or one for each drive side by side; skips the test and raises as ``judge``."""
        place = FigurePlace.of(judged)
        limit = self._spec.limit(claim, place.geometry, place.workload)
        relation = self._spec.relation(claim, place.geometry, place.workload)
        of_baseline = self._spec.of_baseline(claim, place.geometry, place.workload)
        why = ""
        try:
            if limit is not None:
                self._require_law(claim, place)
                found = self._by_limit(claim, judged, limit)
                # Of a sequential protocol it is the measurement that was too short, of a fixed one the protocol itself.
                if isinstance(judged, Measured) and judged.look is None and all(each.is_unseen for each in found):
                    short = f"the protocol {self.account.protocol} is too short for this promise"
                    self._observe(claim, judged, place, f"{short}: {found[0].estimate.unbounded}")
                return found
            if relation is not None and isinstance(judged, Measured):
                return self._by_relation(claim, judged, place, relation)
            if of_baseline is not None:
                return self._by_baseline(claim, judged, of_baseline)
        except Missing as error:
            why = str(error)
        except CannotJudge as error:
            raise InvalidMeasurement(f"{claim.label} of {place.subject} cannot be judged: {error}") from error
        no_limit = self._spec.why_no_limit(claim, place.geometry, place.workload)
        return self._observe(claim, judged, place, f"{no_limit}; {why}" if why else no_limit)

    def _require_law(self, claim: Claim, place: FigurePlace) -> None:
        """``NotApplicable`` where growth is promised that the law of the level says nothing about."""
        if claim in LAWFUL and (why := scaling.objection(place.geometry, place.workload, self.account.chunk_bytes)):
            raise NotApplicable(why)

    def tell(self, told: Verdict | WorkloadSearch, evidence: Evidence) -> None:
        """Note the evidence; what is undecided ends the test."""
        self._note(evidence)
        if told.outcome is Outcome.INCONCLUSIVE:
            if self._inconclusive == "skip":
                pytest.skip(repr(told))
            raise Inconclusive(repr(told))

    def _by_limit(self, claim: Claim, judged: Judged, limit: Limit) -> tuple[Verdict, ...]:
        """Drives side by side are judged one by one."""
        rule, family = self.account.rule, self.account.family
        if isinstance(judged, Measured | Saturation):
            told = verdicts.judge_members(claim, judged, limit, rule.confidence, rule.indifference_percent, family)
            # In the order of the members, as the estimates are.
            return tuple(replace(each, again=partial(self._again, claim, judged, at)) for at, each in enumerate(told))
        again = partial(self._again, claim, judged, 0)
        if claim.scope is Scope.SWEEP and isinstance(judged, Sequence):
            of_sweep = verdicts.judge_sweep(claim, judged, limit, rule.confidence, rule.indifference_percent, family)
            return (replace(of_sweep, again=again),)
        ((subject, estimate),) = self.account.estimates(claim, judged)
        alone = verdicts.judge(claim, subject, estimate, limit, rule.indifference_percent)
        return (replace(verdicts.in_family(alone, again, family), again=again),)

    def _again(self, claim: Claim, judged: Judged, index: int, share: float) -> Estimate:
        """The estimate, or that of one of several drives, if only this share of the error rate may be spent on it."""
        return self.account.estimates(claim, judged, share)[index][1]

    def _by_relation(
        self, claim: Claim, judged: Measured, place: FigurePlace, relation: Relation
    ) -> tuple[Verdict, ...]:
        """Of drives side by side each is held against itself."""
        reference = self._measure(place.geometry, relation.reference)
        limit = Limit(relation.direction, relation.percent, Unit.PERCENT, f"{relation.source}: {relation}")
        margin = self.account.rule.indifference_percent

        def ratios(share: float = 1.0) -> list[tuple[Subject, Estimate]]:
            both = (self.account.estimates(claim, each, share) for each in (judged, reference))
            return [(subject, ratio(own, other)) for (subject, own), (_, other) in zip(*both, strict=True)]

        def of_drive(index: int, subject: Subject, found: Estimate) -> Verdict:
            alone = verdicts.judge_relation(claim, subject, relation.reference, found, limit, margin)
            again = partial(_ratio_of, ratios, index)
            return replace(verdicts.in_family(alone, again, self.account.family), again=again)

        return tuple(of_drive(index, *each) for index, each in enumerate(ratios()))

    def _by_baseline(self, claim: Claim, judged: Judged, promise: BaselineLimit) -> tuple[Verdict, ...]:
        """Each drive against itself, or against the median one of a baseline of other drives."""
        baseline, account = self._baseline, self.account
        if baseline is None:
            raise Missing("no baseline is given: --ssd-baseline=RUN names the earlier run")
        like: Any = baseline.like(judged, account.loop() if account.loop else None)
        limit = Limit(promise.direction, promise.percent, Unit.PERCENT, f"{promise.source}: {promise}")

        def both(share: float = 1.0) -> list[tuple[Subject, Estimate, BaselineReference]]:
            now, then = (account.estimates(claim, each, share) for each in (judged, like))
            pairs = [(subject, own, *_counterpart(subject, then)) for subject, own in now]
            named = baseline.name, baseline.sha256
            return [
                (subject, comparison.ratio(own, other, unit=Unit.PERCENT), BaselineReference(*named, own, other, drive))
                for subject, own, other, drive in pairs
            ]

        def of_drive(index: int, subject: Subject, found: Estimate, since: BaselineReference) -> Verdict:
            margin = account.rule.indifference_percent
            alone = verdicts.judge_relation(claim, subject, since, found, limit, margin)
            again = partial(_ratio_of, both, index)
            return replace(verdicts.in_family(alone, again, account.family), again=again)

        return tuple(of_drive(index, *each) for index, each in enumerate(both()))

    def _observe(self, claim: Claim, judged: Judged, place: FigurePlace, why: str) -> NoReturn:
        """Note the figure, and skip the test with it and the reason."""
        try:
            found = self.account.estimates(claim, judged)
        except TooFew as error:
            pytest.skip(f"{why}, and it cannot be told: {error}")
        except CannotJudge as error:
            raise InvalidMeasurement(f"{claim.label} of {place.subject} cannot be judged: {error}") from error
        self._note(self.account.of_estimates(claim, judged, found))
        subject, told = account.worst(claim, found)
        by = f" by drive {subject.drive}" if subject.drive else ""
        pytest.skip(f"measured {told}{by}; {why}")


def _ratio_of(several: Callable[[float], Sequence[tuple[Any, ...]]], index: int, share: float) -> Estimate:
    found: Estimate = several(share)[index][1]
    return found


def _counterpart(subject: Subject, then: Sequence[tuple[Subject, Estimate]]) -> tuple[Estimate, str]:
    """Of the baseline: what this drive did, or else the median one, and then its serial number."""
    for earlier, found in then:
        if earlier.drive == subject.drive:
            return found, ""
    ordered = sorted(then, key=lambda each: each[1].value)
    middle, found = ordered[len(ordered) // 2]
    return found, middle.drive
