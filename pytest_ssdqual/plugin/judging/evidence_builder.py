"""Builds the stored evidence of measurements and verdicts: figures, drives, curves and published values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace

from pytest_ssdqual.qual.detect.outliers import of_others
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.lots.lot import LotVerdict
from pytest_ssdqual.qual.measured.judgeable import Judgeable, LeftOutDrive, Subject
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.sweep import Curve, PredictedRun, SeveralMeasured, Sweep
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import TIMES_PER_HOUR, Claim, Direction, Published, Scope
from pytest_ssdqual.qual.spec.protocol_rules import VerdictRule
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.validity.attribution import SLOW
from pytest_ssdqual.qual.verdict import estimators, multiplicity
from pytest_ssdqual.qual.verdict.multiplicity import ALONE, ErrorControl
from pytest_ssdqual.qual.verdict.verdict import BaselineReference, Verdict
from pytest_ssdqual.qual.workload.rounds import RoundsResult
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence import evidence, figures, lots
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Figures, Finding, Part
from pytest_ssdqual.report.evidence.multiplicity import P_VALUE

#: An array beside its prediction is shown with the other measurements of one workload.
_ABOUT = {Scope.PREDICTED: About.RUN}


@frozen
class EvidenceBuilder:
    """Builds the evidence of one test; its fields are what all evidence of the test shares."""

    #: Name of the protocol, for sentences.
    protocol: str
    #: The data sheet whose published values stand beside the measured ones.
    beside: Spec
    #: The spec with the allowed rate of rare events; None: no such rate.
    promised: Spec | None = None
    #: Confidence of intervals, and the indifference zone.
    rule: VerdictRule = field(default_factory=VerdictRule)
    #: Family-wise error control of the run.
    family: ErrorControl = ALONE
    #: Name of the test's workload set or rounds.
    group: str = ""
    #: Returns the rounds whose cells the test judges.
    loop: Callable[[], RoundsResult] | None = None

    def of_verdicts(self, judged: Judgeable, verdicts: Sequence[Verdict], verdict: Verdict) -> Evidence:
        """Return the evidence of a verdict; on drives side by side ``verdict`` is the reported one."""
        found = evidence.of_verdict(verdict)
        alone = [_part(each) for each in verdicts if each.subject.drive]
        whole = self._whole(found, judged, alone, verdict.subject.drive, in_percent=verdict.reference is not None)
        if len({each.limit.bound for each in verdicts}) > 1:
            # Each drive has the limit of its own sheet.
            members = tuple(
                replace(part, figures={**part.figures, "limit": each.limit.bound})
                for part, each in zip(whole.members, verdicts, strict=False)
            )
            whole = replace(whole, members=members)
        more = figures.of_exceedance(verdict.slower) if verdict.slower else {}
        since = evidence.of_since(verdict.reference) if isinstance(verdict.reference, BaselineReference) else None
        relative_to = str(verdict.reference) if isinstance(verdict.reference, Workload) else ""
        found_figures = {**_p_value(verdict), **whole.figures, **more}
        return replace(whole, figures=found_figures, baseline=since, relative_to=relative_to)

    def of_lot(self, judged: Judgeable, verdict: LotVerdict) -> Evidence:
        """Return the evidence of a lot, with the plan and each drive of the sample."""
        found = evidence.of_verdict(verdict)
        return replace(
            found,
            about=About.LOT,
            group=verdict.of.value,
            unit_of_parts=verdict.drives[0].estimate.unit if verdict.drives else None,
            members=(*map(_part, verdict.drives), *map(_part_left_out, verdict.left_out)),
            figures=lots.figures(verdict),
            raw=judged.raw_files(),
            remarks=lots.remarks(verdict, max(verdict.plan.sample, len(judged.members()))),
        )

    def of_estimates(self, claim: Claim, judged: Judgeable, found: Sequence[tuple[Subject, Estimate]]) -> Evidence:
        """Return the evidence of a figure without a limit; of drives side by side that of the worst."""
        subject, estimate = worst(claim, found)
        at = [each for each, _ in found].index(subject)
        wider = multiplicity.of(lambda share: self.estimates(claim, judged, share)[at][1])
        seen = evidence.of_observation(claim, subject, estimate, wider)
        alone = [Part(each.drive, _value(one), Finding.OBSERVED) for each, one in found if each.drive]
        return self._whole(seen, judged, alone, subject.drive)

    def _whole(
        self, found: Evidence, judged: Judgeable, members: Sequence[Part], drive: str, *, in_percent: bool = False
    ) -> Evidence:
        claim, subject = Claim(found.claim), judged.subject
        if claim.scope is Scope.MEMBERS:
            members, drive = _alike(claim, judged), estimators.slowest_member(judged, claim)
        loop = self.loop() if self.loop else None
        return replace(
            found,
            about=_ABOUT.get(judged.kind) or About(judged.kind) if loop is None else About.LOOP,
            group=self.group,
            published=None if in_percent else self.published(claim, subject.geometry, subject.workload, drive),
            members=tuple(members) if len(members) > 1 else (),
            worst=drive if len(members) > 1 else "",
            points=self._points(judged) if isinstance(judged, Curve) or claim is Claim.SETTINGS_GAIN else (),
            figures={**_figures(judged, drive), **_standing_out(claim, judged)[0]},
            raw=judged.raw_files(),
            remarks=(
                *(determination(loop) if loop else self._remarks(claim, judged)),
                *left_out_visits(judged),
                *self._own_sheets(subject),
            ),
        )

    def _own_sheets(self, subject: Subject) -> tuple[str, ...]:
        """Return a remark if drives with different sheets were judged: each by its own, or an array by the slowest."""
        if self.promised is None or not (assignment := self.promised.assignment):
            return ()
        how = (
            "each drive is judged by its own sheet"
            if subject.geometry.is_side_by_side
            else "judged by the slowest of its members"
        )
        return (f"{how}: {assignment}",)

    def _remarks(self, claim: Claim, judged: Judgeable) -> tuple[str, ...]:
        """Return remarks on the verdict: a drive stands out, or an array of a sweep is too fast."""
        if one := _standing_out(claim, judged)[1]:
            return (one,)
        if claim not in (Claim.SCALING_SLOPE, Claim.SCALING_DEVIATION):
            return ()
        sweep = estimators.of_kind(claim, judged, Sweep)
        return estimators.of_scaling(sweep, ConfidenceLevel(self.rule.confidence)).warnings()

    def estimates(self, claim: Claim, judged: Judgeable, share: float = 1.0) -> list[tuple[Subject, Estimate]]:
        """Return the estimate, or one for each drive side by side; see ``estimators.estimate``."""
        subject = judged.subject
        per_hour = self.promised.times_per_hour(claim, subject.geometry, subject.workload) if self.promised else None
        sure = self.rule.confidence, share, per_hour or TIMES_PER_HOUR
        return [(about, estimators.estimate(claim, each, *sure)) for about, each in estimators.parts(claim, judged)]

    def published(self, claim: Claim, geometry: Geometry, workload: Workload, drive: str = "") -> Published | None:
        """Return the published value for exactly this claim, array and workload, by the sheet of ``drive``."""
        return self.beside.of(drive).published(claim, geometry, workload)

    def _points(self, judged: Judgeable) -> tuple[Part, ...]:
        """Return a part for each workload of a set or each array of a sweep, with its published values; per drive if
        drives are side by side.
        """
        several = judged if isinstance(judged, SeveralMeasured) else ()
        is_sweep = isinstance(judged, Sweep)
        return tuple(
            Part(
                str(each.geometry if is_sweep else each.workload),
                figures.of_point(each),
                published=tuple(
                    stated
                    for claim in (Claim.STEADY_IOPS, Claim.MEAN_LATENCY)
                    if (stated := self.published(claim, each.geometry, each.workload))
                ),
            )
            for each in several
        )


def worst(claim: Claim, found: Sequence[tuple[Subject, Estimate]]) -> tuple[Subject, Estimate]:
    """Return the estimate farthest on the bad side of the claim."""
    extreme = min if claim.direction is Direction.AT_LEAST else max
    return extreme(found, key=lambda each: each[1].value)


def determination(result: RoundsResult) -> Iterable[str]:
    """Yield a sentence on steady state for each tracked figure, of drives side by side that of the least steady, and
    one for each stimulus that repeats an earlier workload.
    """
    numbers = [index + 1 for index in result.window]
    rounds = f"rounds {numbers[0]} to {numbers[-1]} of {len(result.rounds)}" if numbers else ""
    drives: dict[tuple[str, str], list[tuple[str, SteadyState]]] = {}
    for entry, state in zip(result.determination(), result.steady, strict=True):
        tracked = str(entry["claim"]), str(entry["workload"])
        drives.setdefault(tracked, []).append((str(entry["member"]), state))
    for (name, workload), states in drives.items():
        drive, state = max(states, key=lambda each: (not each[1].reached, each[1].unsteadiness))
        which = f" of drive {drive}, the least steady of {len(states)}" if len(states) > 1 else ""
        claim = Claim(name)
        yield f"{claim.label} of {workload}{which}: {state.describe(claim.unit)}, {rounds}"
    yield from map(str, result.recoveries())


def left_out_visits(judged: Judgeable) -> Iterable[str]:
    """Yield a sentence for each measurement whose first visit is left out."""
    for measured in _measurements(judged):
        if measured.visited and measured.visited.left_out:
            yield f"{measured.subject}: the first visit is left out: {measured.visited.left_out}"


def _measurements(judged: Judgeable) -> tuple[Measured, ...]:
    if isinstance(judged, SeveralMeasured):
        return judged.measurements
    if isinstance(judged, PredictedRun):
        return (judged.measured,)
    return (judged,) if isinstance(judged, Measured) else ()


def _value(estimate: Estimate) -> Figures:
    return {"value": estimate.value, "low": evidence.finite(estimate.low), "high": evidence.finite(estimate.high)}


def _part(verdict: Verdict) -> Part:
    """Return the value and the outcome of one of several drives."""
    values = {**_value(verdict.estimate), **_p_value(verdict)}
    return Part(verdict.subject.drive, values, Finding(verdict.outcome.value))


def _part_left_out(drive: LeftOutDrive) -> Part:
    return Part(drive.serial, {}, Finding.FAIL if drive.failed else Finding.INCONCLUSIVE)


def _p_value(verdict: Verdict) -> Figures:
    return {} if verdict.p_value is None else {P_VALUE: verdict.p_value}


def _alike(claim: Claim, judged: Judgeable) -> list[Part]:
    """Return the figures that a claim about evenness compares: IOPS, or the slowest I/Os, of each drive."""
    name = "slowest_ns" if claim is Claim.LATENCY_SPREAD_BETWEEN_MEMBERS else "iops"
    return [Part(serial, {name: value}) for serial, value in estimators.alike(claim, judged).items()]


def _standing_out(claim: Claim, judged: Judgeable) -> tuple[Figures, str]:
    """Return the drive farthest from the others, for a claim about evenness, and a remark if it stands out.

    Drives within the scatter of a lot have no remark, however precisely they were measured.
    """
    if claim.scope is not Scope.MEMBERS:
        return {}, ""
    alike = estimators.alike(claim, judged)
    found, remark = lots.standing_out(alike)
    values = list(alike.values())
    shares = [min(one, others) / max(one, others, 1e-9) for one, others in zip(values, of_others(values), strict=True)]
    return found, remark if min(shares) < SLOW else ""


def _figures(judged: Judgeable, drive: str) -> Figures:
    """Return the figures; of drives side by side those of ``drive``."""
    return figures.of(next((each for each in judged.members() if each.drive == drive), judged))
