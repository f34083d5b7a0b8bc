"""Decides during a run which points are measured, and which are accepted by prediction.

Nothing is accepted before all measured points of its sweep agree with their predictions. A prediction can only pass: a
point or a sweep that it would fail or leave undecided is measured. A single disagreement has every point measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_ssdqual.plugin.judging.attributor import Attributor, PredictedArray
from pytest_ssdqual.plugin.plan import order
from pytest_ssdqual.plugin.plan.order import Steps
from pytest_ssdqual.plugin.plan.screened_points import (
    Point,
    ScalingTest,
    ScreenedSweep,
    ScreeningPlan,
    name_of,
)
from pytest_ssdqual.qual.measured.judgeable import Subject
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.sweep import Sweep
from pytest_ssdqual.qual.raid import screened, screening
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.raid.screened import ScreenedRun
from pytest_ssdqual.qual.raid.screening import Agreement
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import OF_GROWTH, Claim
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.stats.estimate import CannotJudge, ConfidenceLevel, Estimate
from pytest_ssdqual.qual.stats.group_sequential import Decision
from pytest_ssdqual.qual.stats.throughput import iops
from pytest_ssdqual.qual.verdict import estimators, verdict
from pytest_ssdqual.qual.verdict.verdict import Outcome, Verdict
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign import Campaign
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignPlan, CampaignStep, StepKind
from pytest_ssdqual.rig.machine.machine import RigError
from pytest_ssdqual.rig.measure.sequential_verdict import Enough


@dataclass(slots=True)
class PointScreening:
    """The screening of one bay's run."""

    plan: ScreeningPlan
    spec: Spec
    protocol: Protocol
    attributor: Attributor
    #: Writes a record to the journal.
    note: Callable[..., None]
    campaign: Campaign
    #: The plan of the run without the unmeasured points.
    steps: Steps = ()
    #: Names of the points that an earlier session chose, by sweep.
    recorded: Mapping[str, frozenset[str]] = field(default_factory=dict)
    _chosen: dict[str, tuple[Point, ...]] = field(default_factory=dict)
    #: By sweep; None if a point disagreed.
    _agreements: dict[str, Agreement | None] = field(default_factory=dict)
    #: Points of the sweep that are measured, by sweep.
    _measured: dict[str, dict[Point, None]] = field(default_factory=dict)

    def measure(self, geometry: Geometry, workload: Workload) -> Measured | ScreenedRun:
        """Return the measurement of a point, or its prediction if the agreement of its sweep stands for it."""
        point = geometry, workload
        sweep = self.plan.sweep_of(point)
        # Also before a point of the sample, whose test may come before those of wider arrays.
        agreement = self._agreement(sweep) if sweep else None
        if sweep is None or agreement is None or point in self._measured[sweep.name]:
            return self.campaign.measure(geometry, workload)
        return ScreenedRun(geometry, workload, self._judged(point), agreement)

    def sweep(self, geometries: Sequence[Geometry], workload: Workload) -> Sweep:
        """Return all widths under one workload, measured or predicted."""
        points = sorted(((each, workload) for each in geometries), key=self._place)
        found = [self.measure(*point) for point in points]
        measured = tuple(each for each in found if isinstance(each, Measured))
        predicted = {each.geometry: each.predicted for each in found if isinstance(each, ScreenedRun)}
        agreement = next((each.agreement for each in found if isinstance(each, ScreenedRun)), None)
        return Sweep(measured, predicted=predicted, agreement=agreement)

    def replan(self) -> CampaignPlan:
        """Return the plan with the points that the predictions choose; after the bare drives, before any array."""
        chosen = (CampaignStep(StepKind.MEASURED, *point) for each in self.plan.sweeps for point in self._choice(each))
        of_drives = self.protocol.conditions_drives
        return CampaignPlan.of(order.in_order([*self.steps, *chosen], of_drives=of_drives), self.protocol)

    def until_agreement(self, enough: Enough) -> Enough:
        """Return the stopping rule that also decides whether a measured point agrees with its prediction.

        It goes on while the interval contains a limit of the tolerance, unless it is as narrow as the protocol's
        precision.
        """

        def decide(measured: Measured) -> Decision:
            found = enough(measured)
            return (found and self._undecided(measured)) or found

        return decide

    def _undecided(self, measured: Measured) -> Decision | None:
        looks, predicted = self.protocol.sequential, self._known(measured.geometry, measured.workload)
        if looks is None or predicted is None:
            return None
        try:
            found = iops(measured, ConfidenceLevel(self.protocol.verdict.confidence))
        except CannotJudge:
            return None
        half_percent = 50 * (found.high - found.low) / found.value if found.value else 0.0
        tolerance = self.plan.rule.tolerance_percent
        if half_percent <= looks.precision_percent or screening.agrees(found, predicted, tolerance) is not None:
            return None
        return Decision(done=False, sentence=f"IOPS {found}, predicted {predicted.value:,.0f} ± {tolerance:g} %")

    def _known(self, geometry: Geometry, workload: Workload) -> Estimate | None:
        """Return a prediction that was made before: none is made while fio runs, as it may run on this machine."""
        is_screened = any((geometry, workload) in (*each.points, *each.measured) for each in self.plan.sweeps)
        return self._prediction((geometry, workload)) if is_screened and self._chosen else None

    def _prediction(self, point: Point) -> Estimate | None:
        found = self.attributor.predict(*point)
        return found.prediction.iops if isinstance(found, PredictedArray) else None

    def _judged(self, point: Point) -> Estimate:
        """Return the predicted IOPS with the interval that verdicts are judged by."""
        found = self._prediction(point)
        if found is None:
            raise RigError(f"{name_of(point)} has no prediction any more")
        return screening.with_tolerance(found, self.plan.rule.tolerance_percent)

    def _choice(self, sweep: ScreenedSweep) -> tuple[Point, ...]:
        """Return the points that are measured because of their predictions, and record them, once.

        These are all that would not surely pass, those with the smallest margins, and the extremes of each mix.
        """
        if sweep.name not in self._chosen:
            verdicts = {point: self._verdicts(point) for point in sweep.points}
            margins = {point: min(each.margin_percent for each in found) for point, found in verdicts.items() if found}
            unsure = (
                point
                for point, found in verdicts.items()
                if found is None or any(each.outcome is not Outcome.PASS for each in found)
            )
            worst = screening.smallest(margins, self.plan.rule.worst)
            # Of all points with a prediction; those that are measured in any case cost nothing more.
            known = {point: each for point in (*sweep.points, *sweep.measured) if (each := self._prediction(point))}
            extremes = [
                point
                for point in screening.extremes({point: each.value for point, each in known.items() if each.value})
                if point in sweep.points
            ]
            recorded = self.recorded.get(sweep.name)
            earlier = (point for point in sweep.points if name_of(point) in (recorded or ()))
            wanted = (*unsure, *worst, *extremes, *earlier)
            chosen = dict.fromkeys(point for point in wanted if point not in sweep.sample)
            self._chosen[sweep.name] = tuple(chosen)
            names = list(map(name_of, chosen))
            if recorded is None or not recorded.issuperset(names):
                shown = {name_of(point): round(margin, 3) for point, margin in margins.items()}
                self.note("screen_chosen", sweep=sweep.name, points=names, margins_percent=shown)
        return self._chosen[sweep.name]

    def _verdicts(self, point: Point) -> list[Verdict] | None:
        """Judge the promises about a point by its prediction; None if that is not possible."""
        predicted = self._prediction(point)
        if predicted is None:
            return None
        wide = screening.with_tolerance(predicted, self.plan.rule.tolerance_percent)
        found = []
        for claim in sorted(self.plan.claims.get(point, ())):
            limit = self.spec.limit(claim, *point)
            if limit is None:
                continue
            try:
                figure = screened.figure(claim, *point, wide)
            except CannotJudge:
                return None
            subject = Subject((point[0],), (point[1],))
            found.append(verdict.judge(claim, subject, figure, limit))
        return found

    def _agreement(self, sweep: ScreenedSweep) -> Agreement | None:
        """Return the agreement of all measured points of a sweep; None if one disagrees. Decided once, and recorded."""
        if sweep.name not in self._agreements:
            self.campaign.measure_members()
            wanted = self._measured[sweep.name] = dict.fromkeys((*sweep.sample, *sweep.measured, *self._choice(sweep)))
            self._agreements[sweep.name] = self._confirm(sweep, wanted)
        return self._agreements[sweep.name]

    def _confirm(self, sweep: ScreenedSweep, wanted: dict[Point, None]) -> Agreement | None:
        """Measure and compare; adds to ``wanted`` the widths of sweeps that predictions leave undecided."""
        compared: dict[Point, None] = {}
        while new := sorted((point for point in wanted if point not in compared), key=self._place):
            for point in new:
                compared[point] = None
                if reason := self._disagreement(point, is_drawn=point in sweep.sample):
                    self.note("screen_disagreed", sweep=sweep.name, point=name_of(point), reason=reason)
                    return None
            found = self._counted(sweep, wanted)
            wanted |= dict.fromkeys(self._of_undecided(sweep, found, wanted))
        found = self._counted(sweep, wanted)
        self.note(
            "screen_accepted", sweep=sweep.name, agreement=plain(found), most_outside=found.most_outside,
            sentence=found.evidence,
        )  # fmt: skip
        return found

    def _place(self, point: Point) -> tuple[int, int]:
        """Return the place in the plan: drives must not be used after they idled beside a narrower array."""
        return self.campaign.plan.place(CampaignStep(StepKind.MEASURED, *point))

    def _counted(self, sweep: ScreenedSweep, wanted: Mapping[Point, None]) -> Agreement:
        return Agreement(
            sweep.name,
            drawn_from=len(sweep.points),
            sampled=len(sweep.sample),
            measured=sum(self._prediction(point) is not None for point in wanted),
            screened=sum(point not in wanted for point in sweep.points),
            tolerance_percent=self.plan.rule.tolerance_percent,
            confidence=self.protocol.verdict.confidence,
        )

    def _disagreement(self, point: Point, *, is_drawn: bool) -> str:
        """Return why a measured point does not agree with its prediction; empty if it does.

        A point of the sample has to agree. Another one may have no prediction, or no measurement.
        """
        predicted, confidence_level = self._prediction(point), ConfidenceLevel(self.protocol.verdict.confidence)
        if predicted is None:
            return f"{name_of(point)} has no prediction" if is_drawn else ""
        try:
            found = iops(self.campaign.measure(*point), confidence_level)
        except (RigError, CannotJudge) as error:
            if getattr(error, "ends_run", False):
                raise
            return f"{name_of(point)} could not be compared: {error}"
        tolerance = self.plan.rule.tolerance_percent
        if screening.agrees(found, predicted, tolerance):
            return ""
        return f"{name_of(point)} has {found}, predicted {predicted.value:,.0f} IOPS ± {tolerance:g} %"

    def _of_undecided(self, sweep: ScreenedSweep, found: Agreement, wanted: Mapping[Point, None]) -> Iterator[Point]:
        """Yield the unmeasured widths of each sweep that would not surely pass with predictions for them."""
        for test in sweep.scalings:
            missing = [each for each in test.geometries if (each, test.workload) not in wanted]
            if missing and not self._surely_scales(test, found, missing):
                yield from ((each, test.workload) for each in missing)

    def _surely_scales(self, test: ScalingTest, found: Agreement, missing: Iterable[Geometry]) -> bool:
        predicted = {each: self._judged((each, test.workload)) for each in missing}
        place = max(test.geometries), test.workload
        try:
            measured = [self.campaign.measure(each, test.workload) for each in test.geometries if each not in predicted]
            sweep = self.attributor.expected(Sweep(tuple(measured), predicted=predicted, agreement=found))
            for claim in sorted(test.claims & OF_GROWTH):
                limit = self.spec.limit(claim, *place)
                if limit and not verdict.judge(claim, sweep.subject, self._estimate(claim, sweep), limit):
                    return False
        except (RigError, CannotJudge) as error:
            if getattr(error, "ends_run", False):
                raise
            return False
        return True

    def _estimate(self, claim: Claim, sweep: Sweep) -> Estimate:
        return estimators.estimate(claim, sweep, self.protocol.verdict.confidence)
