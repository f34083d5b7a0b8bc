"""The fixture ``ssd_sla``: judges measurements by the promises of the spec."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NoReturn

import pytest

from pytest_ssdqual.plugin.judging import left_out
from pytest_ssdqual.plugin.judging.attributor import Attributor
from pytest_ssdqual.plugin.judging.chain import Chain, ChainedLimit
from pytest_ssdqual.plugin.judging.evidence_builder import EvidenceBuilder, worst
from pytest_ssdqual.plugin.judging.siblings import Siblings
from pytest_ssdqual.plugin.plan import applicability, marks, needs
from pytest_ssdqual.plugin.plan.needs import SubjectOfTest
from pytest_ssdqual.plugin.stash import RUN, keep_evidence
from pytest_ssdqual.qual.explore.search import WorkloadSearch
from pytest_ssdqual.qual.measured.judgeable import Judgeable, LeftOutDrive, Subject, describe_left_out
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.sweep import PredictedRun, Sweep
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import spec as specs
from pytest_ssdqual.qual.spec.claims import OF_ARRAYS, OF_GROWTH, Claim, Direction, Limit, Scope
from pytest_ssdqual.qual.spec.promises import Relation
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.stats.drive_counters import unknown
from pytest_ssdqual.qual.stats.estimate import CannotJudge, Estimate, NotApplicable, TooFew, ratio
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.validity.attribution import Cause, Culprit
from pytest_ssdqual.qual.verdict import estimators
from pytest_ssdqual.qual.verdict import ratio as comparison
from pytest_ssdqual.qual.verdict import verdict as verdicts
from pytest_ssdqual.qual.verdict.verdict import BaselineReference, Outcome, Verdict
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.compare.baseline import Baseline, Missing
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement

Measure = Callable[[Geometry, Workload], Measured]
#: What is judged in per cent of which reference, and its percentage.
Ratio = tuple[Subject, Workload | BaselineReference, Estimate]


class Inconclusive(InvalidMeasurement):
    """The confidence interval contains the limit: neither pass nor fail, and never green."""


@dataclass(slots=True, eq=False, repr=False)
class Sla:
    """Judges measurements by the promises of the spec, and records all evidence."""

    spec: Spec
    #: The report of an inconclusive verdict: ``error`` or ``skip``.
    inconclusive: str
    builder: EvidenceBuilder
    keep: Callable[[Evidence], None]
    #: Measures the reference of a promise that compares with another workload.
    measure: Measure
    #: The earlier run that promises may be in per cent of.
    baseline: Baseline | None = None
    #: The claims that the test declares.
    promised: Collection[Claim] = ()
    #: These find causes of broken promises, of arrays and of drives side by side.
    attributor: Attributor | None = None
    siblings: Siblings | None = None
    #: Finds the drives side by side that a measurement is without.
    left_out: Callable[[Judgeable], Sequence[LeftOutDrive]] = lambda judged: ()
    #: Returns why a measurement ended before it was decided, or nothing.
    ended: Callable[[Judgeable], str] = lambda judged: ""
    #: Returns why the result is not the test's own.
    foreign: Callable[[Subject], str] = lambda judged: ""
    #: Has the limits of arrays by their members; None if the bare drives are not measured.
    chain: Chain | None = None

    @classmethod
    def of(cls, request: pytest.FixtureRequest) -> Sla:
        """Return the judge of the test that requests the fixture."""
        run, about = request.config.stash[RUN], needs.subject(request.node)
        found, rounds, sheet = run.qualification, about.rounds, marks.published(request.node)

        def reference(geometry: Geometry, workload: Workload) -> Measured:
            """Measure the reference of a promise: a cell of the test's own rounds, if they have it."""
            campaign = run.begun_campaign()
            if rounds and workload in rounds.measured:
                return campaign.cell(geometry, rounds, workload)
            return campaign.measure(geometry, workload)

        builder = EvidenceBuilder(
            protocol=found.protocol.name,
            beside=specs.load(sheet) if sheet else found.spec,
            promised=found.spec,
            rule=found.protocol.verdict,
            family=run.family,
            group=str(rounds or about.series or ""),
            loop=(lambda: request.getfixturevalue("ssd_rounds")) if rounds else None,
        )
        return cls(
            found.spec, found.settings.inconclusive, builder,
            partial(keep_evidence, request.node), reference, found.baseline,
            marks.promised(request.node),
            run.attributor,
            Siblings(run.begun_campaign),
            lambda judged: left_out.find(judged, found.bay.drives, run.failures, run.failed_in),
            run.budget.why if run.budget else lambda judged: "",
            partial(_not_its_own, about),
            run.chain,
        )  # fmt: skip

    def judge(self, what: str | Judgeable, judged: Judgeable | None = None, /) -> Verdict:
        """Judge a run, a sweep, a workload set, a saturation or a rebuild.

        ``judge(ssd_run)`` judges the claim of the test's mark ``ssd_promise``, ``judge("p99_latency", ssd_run)`` one of
        several claims. Drives side by side are judged one by one; the result is the worst verdict, and names all drives
        that fail, and those that were left out because they died or never settled. Without a limit in the spec, the
        figure is recorded and the test is skipped.

        So it is for a bounded verdict. Raises ``Inconclusive`` (a JUnit ``<error>``) for an inconclusive verdict,
        ``InvalidMeasurement`` for a measurement that cannot be judged.
        """
        wanted, judged = self.asked(what, judged)
        lost = self.left_out(judged)
        if wanted.scope is Scope.MEMBERS and len(judged.members()) < 2:
            if lost:
                why = describe_left_out(lost, judged.subject.geometry.width)
                raise InvalidMeasurement(f"{wanted.label} of {judged.subject} cannot be judged: {why}")
            target = judged.subject.geometry
            applicability.skip(
                f"{wanted.label}: needs --ssd-arrays=drive with several drives; {target} is a single target"
            )
        found = self._attributed(self.verdicts(wanted, judged), judged)
        verdict = verdicts.naming_all(verdicts.worst(found), found)
        if wanted.scope is Scope.MEMBERS and (verdict.cause is None or verdict.cause.culprit.is_drive):
            slowest = estimators.slowest_member(judged, wanted)
            verdict = verdicts.with_remark(verdict, f"the slowest is drive {slowest}")
        ended = self.ended(judged) if verdict.outcome is Outcome.INCONCLUSIVE else ""
        if ended:
            verdict = verdicts.with_remark(verdict, ended)
        verdict = left_out.without(verdict, lost)
        if verdict.outcome is Outcome.BOUNDED and len(self.promised) > 1:
            # The skip of a bounded promise would leave the other claims of the test without a verdict.
            verdict = replace(verdict, outcome=Outcome.INCONCLUSIVE)
        self.publish(verdict, self.builder.of_verdicts(judged, found, verdict), ended)
        return verdict

    def asked(self, first: str | Judgeable, second: Judgeable | None) -> tuple[Claim, Judgeable]:
        """Return the claim and the result to judge.

        ``pytest.UsageError`` for a claim that the test does not declare, or that is judged on another kind of result,
        and for a result of another array or workload than the test's own.
        """
        claim, judged = self._named(first, second)
        if hasattr(judged, "subject") and (why := self.foreign(judged.subject)):
            raise pytest.UsageError(why)
        if claim in OF_ARRAYS and judged.subject.geometry.is_side_by_side:
            applicability.skip(f"{claim.label}: needs an array; {judged.subject.geometry} has no members")
        if claim is Claim.WRITE_AMPLIFICATION and isinstance(judged, Measured) and (why := unknown(judged)):
            pytest.skip(f"{claim.label} of {judged.subject}: {why}")
        if claim.scope is Scope.PREDICTED and isinstance(judged, Measured):
            if no_law := self.spec.no_law(claim, (judged.geometry,), judged.workload):
                pytest.skip(f"{claim.label}: {no_law}")
            target, judged = judged.geometry, self._predicted(judged)
            if claim is Claim.TIMES_ONE_DRIVE and judged.one_drive is None:
                load = judged.measured.workload
                applicability.skip(
                    f"{claim.label}: under {load} the members of {target} have another mix than one drive"
                )
        if claim in OF_GROWTH and isinstance(judged, Sweep) and self.attributor:
            judged = self.attributor.expected(judged)
        try:
            return claim, estimators.of_kind(claim, judged)
        except NotApplicable as error:
            raise pytest.UsageError(str(error)) from error

    def _predicted(self, measured: Measured) -> PredictedRun:
        """Return the run beside its prediction; ``InvalidMeasurement`` if there is none."""
        where = f"{measured.geometry} {measured.workload} cannot be predicted"
        if self.attributor is None:
            pytest.skip(f"{where}: the bare drives are not measured (ssd_members = false)")
        try:
            return self.attributor.predicted_run(measured)
        except NotApplicable as error:
            raise InvalidMeasurement(f"{where}: {error}") from error

    def _attributed(self, found: tuple[Verdict, ...], judged: Judgeable) -> tuple[Verdict, ...]:
        """Return the verdicts, failed ones with their cause if one can be named; that of siblings is one for all."""
        if judged.subject.geometry.is_side_by_side:
            shared = self.siblings.cause(found, judged) if self.siblings else None
            # A path excuses only the drives that it names, and a verdict about all of them.
            excused = {"", *shared.drives} if shared and shared.culprit is Culprit.PATH and shared.drives else None
            return tuple(
                self._with_cause(each, shared) if excused is None or each.subject.drive in excused else each
                for each in found
            )
        if self.attributor is None:
            return found
        of_array = self.attributor
        return tuple(
            self._with_cause(each, of_array.cause(each, judged)) if each.outcome is Outcome.FAIL else each
            for each in found
        )

    def _with_cause(self, verdict: Verdict, cause: Cause | None) -> Verdict:
        if verdict.outcome is not Outcome.FAIL or cause is None:
            return verdict
        subject = verdict.subject
        accountable = self.spec.subject(verdict.claim, subject.geometry, subject.workload)
        return verdicts.attributed(verdict, cause, accountable)

    def _named(self, first: str | Judgeable, second: Judgeable | None) -> tuple[Claim, Judgeable]:
        declared = ", ".join(sorted(self.promised)) or "nothing"
        if not isinstance(first, str):
            if len(self.promised) != 1:
                raise pytest.UsageError(f"the test declares {declared}: name one of them, as in judge(claim, ssd_run)")
            return next(iter(self.promised)), first
        if first not in self.promised:
            raise pytest.UsageError(
                f"the test judges {first}, but its mark ssd_promise names {declared}; "
                f'add @pytest.mark.ssd_promise("{first}")'
            )
        if second is None:
            raise pytest.UsageError(f"judge({first!r}) lacks the measurement: write judge({first!r}, ssd_run)")
        return Claim(first), second

    def verdicts(self, claim: Claim, judged: Judgeable) -> tuple[Verdict, ...]:
        """Return the verdict, or one for each drive side by side; skips the test and raises as ``judge``."""
        subject = judged.subject
        place = subject.geometry, subject.workload
        limit = self.spec.limit(claim, *place)
        relation = self.spec.relation(claim, *place)
        why = ""
        try:
            if limit is not None:
                return self._by_limit(claim, judged, limit)
            if chained := self._chained(claim, judged):
                found = self._by_limit(claim, judged, chained.limit)
                found = tuple(verdicts.with_remark(verdict, chained.reference) for verdict in found)
                return tuple(_in_doubt(verdict, chained.doubt) for verdict in found)
            if relation is not None and relation.reference:
                return self._by_relation(claim, judged, relation, relation.reference)
            if relation is not None:
                return self._by_baseline(claim, judged, relation)
        except Missing as error:
            why = str(error)
        except CannotJudge as error:
            raise InvalidMeasurement(f"{claim.label} of {subject} cannot be judged: {error}") from error
        no_limit = self.spec.why_no_limit(claim, *place)
        # A promise that needs a baseline, or the members of an array, and has none of them here.
        has_limit = bool(why) or (isinstance(judged, Measured) and self.spec.chained(claim, *place) is not None)
        return self._observe(claim, judged, f"{no_limit}; {why}" if why else no_limit, has_limit=has_limit)

    def _chained(self, claim: Claim, judged: Judgeable) -> ChainedLimit | None:
        """Return the limit of a measured array by its members; cells of rounds have none."""
        if self.chain is None or self.builder.loop or not isinstance(judged, Measured):
            return None
        members = judged.runs[0].members[: judged.geometry.width - judged.geometry.missing]
        return self.chain.limit(claim, judged.geometry, judged.workload, members)

    def _by_limit(self, claim: Claim, judged: Judgeable, limit: Limit) -> tuple[Verdict, ...]:
        """Judge by a limit in numbers; skips the test if it has none here, or if too little was measured for it."""
        subject = judged.subject
        if no_law := self.spec.no_law(claim, subject.geometries, subject.workload):
            self._observe(claim, judged, no_law)
        rule = self.builder.rule
        found = verdicts.judge_all(
            claim, judged, limit, rule.confidence, rule.indifference_percent, self.builder.family
        )
        if not found:
            self._without_limit(claim, judged, limit)
        # A fixed protocol is too short for such a promise; a stopping rule would have measured longer.
        if not judged.has_stopping_rule and all(verdict.is_unseen for verdict in found):
            short = f"the protocol {self.builder.protocol} is too short for this promise"
            self._observe(claim, judged, f"{short}: {found[0].estimate.unbounded}", has_limit=True)
        return found

    def _without_limit(self, claim: Claim, judged: Judgeable, limit: Limit) -> NoReturn:
        """Raise ``InvalidMeasurement`` if the drives with a limit were left out; skip the test if there is none."""
        subject = judged.subject
        if lost := [each for each in self.left_out(judged) if limit.of(each.serial)]:
            why = describe_left_out(lost, subject.geometry.width)
            raise InvalidMeasurement(
                f"{claim.label} of {subject} cannot be judged: {why}, and the others have no limit"
            )
        self._observe(claim, judged, self.spec.why_no_limit(claim, subject.geometry, subject.workload))

    def publish(self, verdict: Verdict | WorkloadSearch, evidence: Evidence, ended: str = "") -> None:
        """Record the evidence; skip the test for a bounded verdict, skip it or raise ``Inconclusive`` for an
        inconclusive one.

        What a budget has ``ended`` is never skipped: a run without its verdicts is not green.
        """
        self.keep(evidence)
        if verdict.outcome is Outcome.BOUNDED:
            pytest.skip(repr(verdict))
        if verdict.outcome is Outcome.INCONCLUSIVE:
            is_blamed = isinstance(verdict, Verdict) and verdict.cause is not None
            if self.inconclusive == "skip" and not is_blamed and not ended:
                pytest.skip(repr(verdict))
            raise Inconclusive(repr(verdict))

    def _by_relation(self, claim: Claim, judged: Judgeable, relation: Relation, other: Workload) -> tuple[Verdict, ...]:
        """Judge in per cent of another workload; each drive is compared with itself."""
        reference = self.measure(judged.subject.geometry, other)

        def ratios(share: float) -> list[Ratio]:
            own, others = (self.builder.estimates(claim, each, share) for each in (judged, reference))
            of_drive = {subject.drive: other for subject, other in others}
            if missing := [subject.drive for subject, _ in own if subject.drive not in of_drive]:
                raise NotApplicable(f"{other} was not measured on drive {missing[0]}")
            return [(subject, other, ratio(found, of_drive[subject.drive])) for subject, found in own]

        return self._by_ratios(claim, ratios, relation)

    def _by_baseline(self, claim: Claim, judged: Judgeable, promise: Relation) -> tuple[Verdict, ...]:
        """Judge in per cent of the baseline: each drive against itself, or against the median drive of other drives."""
        baseline, builder = self.baseline, self.builder
        if baseline is None:
            raise Missing("there is no baseline: name the earlier run with --ssd-baseline=RUN")
        like = baseline.like(judged, builder.loop() if builder.loop else None)

        def ratios(share: float) -> list[Ratio]:
            now, then = (builder.estimates(claim, each, share) for each in (judged, like))
            pairs = [(subject, own, *_counterpart(subject, then, claim.direction)) for subject, own in now]
            named = baseline.name, baseline.sha256
            return [
                (subject, BaselineReference(*named, own, other, drive), comparison.ratio(own, other, unit=Unit.PERCENT))
                for subject, own, other, drive in pairs
            ]

        return self._by_ratios(claim, ratios, promise)

    def _by_ratios(
        self, claim: Claim, ratios: Callable[[float], list[Ratio]], promise: Relation
    ) -> tuple[Verdict, ...]:
        """Judge each drive by its ratio to a reference; ``ratios`` returns those of all with a share of the error."""
        limit = Limit(promise.direction, promise.percent, Unit.PERCENT, f"{promise.source}: {promise}")
        margin = self.builder.rule.indifference_percent

        def of_drive(index: int, found: Ratio) -> Verdict:
            subject, reference, estimate = found

            def again(share: float) -> Estimate:
                return ratios(share)[index][2]

            alone = verdicts.judge(claim, subject, estimate, limit, margin, reference)
            return replace(verdicts.in_family(alone, again, self.builder.family), again=again)

        return tuple(of_drive(index, each) for index, each in enumerate(ratios(1.0)))

    def _observe(self, claim: Claim, judged: Judgeable, why: str, *, has_limit: bool = False) -> NoReturn:
        """Record the figure, and skip the test with the figure and the reason.

        ``has_limit``: there is a limit, by which this measurement cannot be judged.
        """
        try:
            found = self.builder.estimates(claim, judged)
        except TooFew as error:
            pytest.skip(f"{why}, and the figure cannot be measured: {error}")
        except CannotJudge as error:
            raise InvalidMeasurement(f"{claim.label} of {judged.subject} cannot be judged: {error}") from error
        if lost := describe_left_out(self.left_out(judged), judged.subject.geometry.width):
            why = f"{why}; {lost}"
        self.keep(replace(self.builder.of_estimates(claim, judged, found), is_unjudged=has_limit))
        subject, estimate = worst(claim, found)
        by = f" by drive {subject.drive}" if subject.drive else ""
        pytest.skip(f"measured {estimate}{by}; {why}")


def _not_its_own(about: SubjectOfTest, judged: Subject) -> str:
    """Return why a test may not judge this, which its own fixtures have not measured; empty if it may.

    A result that a test keeps for another one would be judged twice, and the other's own never, with two verdicts.
    """
    cells = about.rounds.measured if about.rounds else ()
    pairs = (
        (list(map(_at_rest, about.geometries)), list(map(_at_rest, judged.geometries))),
        (about.workloads or cells, judged.workloads),
    )
    for own, found in pairs:
        foreign = [each for each in found if each not in own]
        if own and foreign:
            judged_and_own = f"the test judges a result of {named(foreign, 1)}, but its parameter is {named(own, 3)}"
            return f"{judged_and_own}: judge what its own fixtures measured"
    return ""


def _at_rest(geometry: Geometry) -> Geometry:
    """The load during a rebuild is that of the same array."""
    return replace(geometry, rebuilding=False)


def _in_doubt(verdict: Verdict, doubt: str) -> Verdict:
    """Return the verdict; a pass is inconclusive if it is not known whether the drives meet their sheet."""
    if not doubt or verdict.outcome is not Outcome.PASS:
        return verdict
    held_back = f"the array keeps up with its drives, of which it is not known whether they meet their sheet: {doubt}"
    return replace(verdict, outcome=Outcome.INCONCLUSIVE, held_back=held_back)


def _counterpart(
    subject: Subject, then: Sequence[tuple[Subject, Estimate]], direction: Direction
) -> tuple[Estimate, str]:
    """Return the baseline's estimate of this drive, or of its median drive with the serial number.

    Of an even number it is the better one of the two in the middle: with the other one of two drives, the worst, a
    promise would be easy.
    """
    for earlier, found in then:
        if earlier.drive == subject.drive:
            return found, ""
    ordered = sorted(then, key=lambda each: each[1].value)
    middle, found = ordered[(len(ordered) - (direction is Direction.AT_MOST)) // 2]
    return found, middle.drive
