"""What was measured and judged → the evidence that is kept of it: figures, drives, curves, and what is published."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from pytest_ssdqual.qual.lots.lot import LotVerdict
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import TIMES_PER_HOUR, Claim, Direction, Scope
from pytest_ssdqual.qual.spec.datasheet import Published
from pytest_ssdqual.qual.spec.protocol import ArraySettings, VerdictRule
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.units import parse_size
from pytest_ssdqual.qual.verdict import estimators, multiplicity
from pytest_ssdqual.qual.verdict.baseline import BaselineReference
from pytest_ssdqual.qual.verdict.multiplicity import ALONE, ErrorControl
from pytest_ssdqual.qual.verdict.verdict import Subject, Verdict
from pytest_ssdqual.qual.workload.rounds import LoopResult
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence import evidence, figures
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Figure, Finding, Part
from pytest_ssdqual.report.evidence.multiplicity import P_VALUE
from pytest_ssdqual.report.view import lots

#: What a claim can be judged by.
Judged = Measured | Sequence[Measured] | Saturation | Rebuild


@dataclass(frozen=True, slots=True)
class FigurePlace:
    """What a figure is about, and where in a spec its promise is looked up."""

    subject: Subject
    geometry: Geometry
    workload: Workload

    @classmethod
    def of(cls, judged: Judged) -> FigurePlace:
        """Of a sweep its widest array, of a series its first workload, of a rebuild the load that ran meanwhile."""
        if isinstance(judged, Measured | Saturation):
            return cls(Subject((judged.geometry,), (judged.workload,)), judged.geometry, judged.workload)
        if isinstance(judged, Rebuild):
            workload = judged.foreground.workload
            return cls(Subject((judged.geometry,), (workload,)), judged.geometry, workload)
        geometries = tuple(dict.fromkeys(each.geometry for each in judged))
        workloads = tuple(dict.fromkeys(each.workload for each in judged))
        return cls(Subject(geometries, workloads), max(geometries), workloads[0])


@dataclass(frozen=True, slots=True)
class Account:
    """The circumstances of one test, which all of its evidence shares."""

    protocol: str
    acceptance: bool
    #: Whose published figures ours are read beside.
    beside: Spec
    #: Whose promises say how often a rare event may happen; None: that is not said.
    promised: Spec | None = None
    #: How sure intervals have to be.
    rule: VerdictRule = field(default_factory=VerdictRule)
    #: What is done about so many claims in one run.
    family: ErrorControl = ALONE
    #: Name of the test's series or loop.
    group: str = ""
    #: Of all arrays.
    chunk_bytes: int = parse_size(ArraySettings().chunk)
    #: The loop whose cells the test is about.
    loop: Callable[[], LoopResult] | None = None

    def of_verdicts(self, judged: Judged, verdicts: Sequence[Verdict], told: Verdict) -> Evidence:
        """Of one verdict, or of those on drives side by side of which ``told`` is the one to be told."""
        found = evidence.of_verdict(told, protocol=self.protocol, acceptance=self.acceptance)
        alone = [_part(each) for each in verdicts if each.subject.drive]
        whole = self._whole(found, judged, alone, told.subject.drive, in_percent=told.reference is not None)
        more = figures.of_exceedance(told.slower) if told.slower else ()
        since = evidence.of_since(told.reference) if isinstance(told.reference, BaselineReference) else None
        return replace(whole, figures=(*_p_value(told), *whole.figures, *more), baseline=since)

    def of_lot(self, judged: Measured, told: LotVerdict) -> Evidence:
        """Of a lot, with the plan and each drive of the sample."""
        found = evidence.of_verdict(told, protocol=self.protocol, acceptance=self.acceptance)
        return replace(
            found,
            about=About.LOT,
            group=told.of.value,
            members=tuple(map(_part, told.drives)),
            figures=lots.figures(told),
            raw=tuple(_raw(judged)),
            remarks=lots.remarks(told, len(judged.of_members())),
        )

    def of_estimates(self, claim: Claim, judged: Judged, found: Sequence[tuple[Subject, Estimate]]) -> Evidence:
        """Of a figure that nothing is promised of; of drives side by side that of the worst."""
        subject, told = worst(claim, found)
        at = [each for each, _ in found].index(subject)
        seen = evidence.of_observation(
            claim, subject, told, protocol=self.protocol, acceptance=self.acceptance,
            wider=multiplicity.of(lambda share: self.estimates(claim, judged, share)[at][1]),
        )  # fmt: skip
        alone = [Part(each.drive, _value(one), Finding.OBSERVED) for each, one in found if each.drive]
        return self._whole(seen, judged, alone, subject.drive)

    def _whole(
        self, found: Evidence, judged: Judged, members: Sequence[Part], drive: str, *, in_percent: bool = False
    ) -> Evidence:
        place, claim = FigurePlace.of(judged), Claim(found.claim)
        if claim.scope is Scope.MEMBERS and isinstance(judged, Measured):
            members, drive = _alike(claim, judged), estimators.slowest_member(judged, claim)
        loop = self.loop() if self.loop else None
        return replace(
            found,
            about=_about(claim, judged) if loop is None else About.LOOP,
            group=self.group,
            published=None if in_percent else self.published(claim, place.geometry, place.workload),
            members=tuple(members) if len(members) > 1 else (),
            worst=drive if len(members) > 1 else "",
            points=self._points(judged) if claim.scope is Scope.SERIES else (),
            figures=(*_figures(judged, drive), *_standing_out(claim, judged)[0]),
            raw=tuple(_raw(judged)),
            remarks=tuple(determination(loop)) if loop else self._remarks(claim, judged),
        )

    def _remarks(self, claim: Claim, judged: Judged) -> tuple[str, ...]:
        """What is told beside the verdict: that a drive stands out; of a sweep that its baseline is doubtful."""
        if one := _standing_out(claim, judged)[1]:
            return (one,)
        if claim not in (Claim.SCALING_SLOPE, Claim.SCALING_DEVIATION) or not isinstance(judged, Sequence):
            return ()
        return estimators.of_scaling(judged, ConfidenceLevel(self.rule.confidence)).warnings()

    def estimates(self, claim: Claim, judged: Judged, share: float = 1.0) -> list[tuple[Subject, Estimate]]:
        """The figure, or that of each drive side by side where it is one drive's; see ``judgement.estimate``."""
        place = FigurePlace.of(judged)
        per_hour = self.promised.times_per_hour(claim, place.geometry, place.workload) if self.promised else None
        whole, sure = place.subject, (self.rule.confidence, share, per_hour or TIMES_PER_HOUR)
        if not isinstance(judged, Measured | Saturation) or claim.scope is Scope.MEMBERS:
            return [(whole, estimators.estimate(claim, judged, *sure))]
        return [(_alone(whole, each), estimators.estimate(claim, each, *sure)) for each in judged.of_members()]

    def published(self, claim: Claim, geometry: Geometry, workload: Workload) -> Published | None:
        """What the sheet says of exactly this."""
        return self.beside.published(claim, geometry, workload)

    def _points(self, judged: Judged) -> tuple[Part, ...]:
        """Each workload of a series, with what is published of it. Of drives side by side per drive, as it is there."""
        if not isinstance(judged, Sequence):
            return ()
        return tuple(
            Part(
                str(each.workload),
                figures.of_point(each),
                published=tuple(
                    stated
                    for claim in (Claim.STEADY_IOPS, Claim.MEAN_LATENCY)
                    if (stated := self.published(claim, each.geometry, each.workload))
                ),
            )
            for each in judged
        )


def worst(claim: Claim, found: Sequence[tuple[Subject, Estimate]]) -> tuple[Subject, Estimate]:
    """The one farthest on the bad side, where a limit would be."""
    extreme = min if claim.direction is Direction.AT_LEAST else max
    return extreme(found, key=lambda each: each[1].value)


def determination(result: LoopResult) -> Iterable[str]:
    """How a loop became steady: a sentence for each thing tracked; of drives side by side that of the least steady."""
    numbers = [index + 1 for index in result.window]
    rounds = f"rounds {numbers[0]} to {numbers[-1]} of {len(result.rounds)}"
    drives: dict[tuple[str, str], list[tuple[str, SteadyState]]] = {}
    for entry, state in zip(result.determination(), result.steady, strict=True):
        tracked = str(entry["claim"]), str(entry["workload"])
        drives.setdefault(tracked, []).append((str(entry["member"]), state))
    for (name, workload), states in drives.items():
        drive, state = max(states, key=lambda each: (not each[1].reached, each[1].unsteadiness))
        which = f" of drive {drive}, the least steady of {len(states)}" if len(states) > 1 else ""
        claim = Claim(name)
        yield f"{claim.label} of {workload}{which}: {state.describe(claim.unit)}, {rounds}"


def _alone(whole: Subject, judged: Measured | Saturation) -> Subject:
    members = (judged.runs[0] if isinstance(judged, Measured) else judged.run).members
    side_by_side = judged.geometry.is_side_by_side and len(members) == 1
    return replace(whole, drive=members[0]) if side_by_side else whole


def _value(estimate: Estimate) -> tuple[Figure, ...]:
    return (Figure("value", estimate.value),)


def _part(verdict: Verdict) -> Part:
    """What one of several drives did, and what came of it."""
    values = (*_value(verdict.estimate), *_p_value(verdict))
    return Part(verdict.subject.drive, values, Finding(verdict.outcome.value))


def _p_value(verdict: Verdict) -> tuple[Figure, ...]:
    return () if verdict.p_value is None else (Figure(P_VALUE, verdict.p_value),)


def _alike(claim: Claim, measured: Measured) -> list[Part]:
    """What a claim about the drives' likeness is made of: the IOPS, or the slowest I/Os, of each."""
    name = "slowest_ns" if claim is Claim.LATENCY_SPREAD_BETWEEN_MEMBERS else "iops"
    return [Part(serial, (Figure(name, value),)) for serial, value in estimators.alike(claim, measured).items()]


def _standing_out(claim: Claim, judged: Judged) -> tuple[tuple[Figure, ...], str]:
    """Of a claim about the drives' likeness: the one that is farthest from the others, and a sentence if need be."""
    if claim.scope is not Scope.MEMBERS or not isinstance(judged, Measured):
        return (), ""
    return lots.standing_out(estimators.alike(claim, judged))


def _about(claim: Claim, judged: Judged) -> About:
    if isinstance(judged, Measured):
        return About.RUN
    if isinstance(judged, Saturation):
        return About.SATURATION
    if isinstance(judged, Rebuild):
        return About.REBUILD
    return About.SERIES if claim.scope is Scope.SERIES else About.SWEEP


def _figures(judged: Judged, drive: str) -> tuple[Figure, ...]:
    """Of drives side by side those of the one that is told."""
    if isinstance(judged, Measured):
        return figures.of_measured(next((each for each in judged.of_members() if _serial(each) == drive), judged))
    if isinstance(judged, Saturation):
        alone = (each for each in judged.of_members() if each.run.members == (drive,))
        return figures.of_saturation(next(alone, judged))
    if isinstance(judged, Rebuild):
        return figures.of_rebuild(judged)
    return ()


def _serial(measured: Measured) -> str:
    members = measured.runs[0].members
    return members[0] if len(members) == 1 else ""


def _raw(judged: Judged) -> Iterable[str]:
    if isinstance(judged, Saturation):
        return (judged.run.raw,)
    several = (judged.foreground,) if isinstance(judged, Rebuild) else judged
    runs = several.runs if isinstance(several, Measured) else [run for each in several for run in each.runs]
    return dict.fromkeys(run.raw for run in runs)
