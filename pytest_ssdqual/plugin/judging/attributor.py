"""Finds the cause of a broken promise: predicts the array from its bare members, and collects the evidence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pytest_ssdqual.qual.measured.judgeable import Judgeable
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.measured.sweep import PredictedRun, Sweep
from pytest_ssdqual.qual.raid import member_curve, prediction
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.raid.law import Striping
from pytest_ssdqual.qual.raid.member_curve import CurvePoint, MemberCurve
from pytest_ssdqual.qual.raid.prediction import Prediction
from pytest_ssdqual.qual.spec.claims import OF_COUNTERS, Claim
from pytest_ssdqual.qual.stats.estimate import CannotJudge, ConfidenceLevel, Estimate, NotApplicable
from pytest_ssdqual.qual.stats.throughput import iops
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.validity import attribution, latency_attribution, shortfall
from pytest_ssdqual.qual.validity.attribution import Cause, Culprit
from pytest_ssdqual.qual.validity.shortfall import LatencyEvidence, Shortfall
from pytest_ssdqual.qual.verdict import broken_point
from pytest_ssdqual.qual.verdict.broken_point import OF_KIND, QUANTILES, BrokenLatency, BrokenPoint
from pytest_ssdqual.qual.verdict.verdict import Verdict
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign import Campaign
from pytest_ssdqual.rig.machine.machine import RigError


@dataclass(slots=True)
class PredictedArray:
    """The prediction of one measurement, with the curves that it was made from."""

    prediction: Prediction
    curves: tuple[MemberCurve, ...]
    read_fraction: float

    @property
    def depth(self) -> float:
        """I/Os outstanding at the busiest member, at least one."""
        return max(1.0, max(each.depth for each in self.prediction.members))

    def by(self, curves: Sequence[MemberCurve]) -> Prediction:
        """Predict the same array of members with these curves."""
        return prediction.predict(self.prediction.geometry, self.read_fraction, self.prediction.outstanding, curves)


@dataclass(slots=True)
class Attributor:
    """Attributes the shortfalls of one run; predictions are made once for each array and workload."""

    campaign: Callable[[], Campaign]
    striping: Striping
    _predicted: dict[tuple[Geometry, Workload, tuple[str, ...]], PredictedArray | str] = field(default_factory=dict)
    #: IOPS of arrays of equal drives, by the workload and the arrays of a sweep, each with its drives.
    _even_iops: dict[tuple[Workload, tuple[tuple[Geometry, tuple[str, ...]], ...]], dict[Geometry, float]] = field(
        default_factory=dict
    )

    def predicted_run(self, measured: Measured) -> PredictedRun:
        """Return the measurement beside its prediction; ``NotApplicable`` with the reason if there is none."""
        found = self._of(measured)
        if isinstance(found, str):
            raise NotApplicable(found)
        return PredictedRun(measured, found.prediction.iops, _one_drive(found, measured.workload))

    def expected(self, sweep: Sweep) -> Sweep:
        """Return the sweep with what arrays of equal drives do: every member like the median of all drives."""
        workload = sweep.subject.workload
        found = {each.geometry: self._of(each) for each in sweep}
        arrays = {geometry: each for geometry, each in found.items() if not isinstance(each, str)}
        if len(arrays) < len(found):
            return sweep
        # Looks ask again and again while fio runs, perhaps on this machine: a prediction takes a tenth of a second.
        drives = {geometry: tuple(curve.drive for curve in each.curves) for geometry, each in arrays.items()}
        key = workload, tuple(sorted(drives.items()))
        if key not in self._even_iops:
            curves = [curve for each in arrays.values() for curve in each.curves]
            self._even_iops[key] = {geometry: _even(each, curves).iops.value for geometry, each in arrays.items()}
        return replace(sweep, expected=self._even_iops[key])

    def cause(self, verdict: Verdict, judged: Judgeable) -> Cause | None:
        """Return the cause of a broken promise; None if it is not about one array.

        Without a prediction only positive evidence counts: a busy host, another program, a drive that stands out.
        """
        if judged.subject.geometry.is_side_by_side or verdict.claim in OF_COUNTERS:
            return None
        if verdict.claim is Claim.SETTINGS_GAIN:
            # Equal drives under other settings do more: the measurement itself is the proof.
            return Cause(
                Culprit.MD,
                f"with other settings it does more ({verdict.estimate.basis})",
                is_proven=True,
                confidence=1.0,
            )
        point = broken_point.of_verdict(verdict, judged)
        if point is None:
            return None
        found = point.unpredictable or self._of(point.measured)
        collected = self._shortfall(point, found)
        return latency_attribution.attribute(collected) if point.latency else attribution.attribute(collected)

    def _shortfall(self, point: BrokenPoint, found: PredictedArray | str) -> Shortfall:
        measured, needed = point.measured, point.needed_iops
        run, estimate = _typical(measured), _estimate(measured)
        if isinstance(found, str):
            asked = LatencyEvidence(point.latency.measured_ns, point.latency.limit_ns) if point.latency else None
            return replace(shortfall.of_run(run, estimate, needed, None), why_not=found, latency=asked)
        together = self._together()
        collected = shortfall.of_run(run, estimate, needed, found.prediction, found.curves, together)
        if (collected.efficiency or 0) < attribution.EXACTLY:
            # Devices that need no time: what is left is md's and the host's.
            ceiling = self.campaign().ceiling(measured.geometry, measured.workload)
            collected = replace(collected, ceiling=ceiling)
        if point.latency:
            collected = replace(collected, latency=_latency(point.latency, found))
        return replace(collected, replaced=lambda drives: _replaced(found, drives).iops.value)

    def _together(self) -> dict[str, float]:
        """Return the IOPS of each drive side by side over those alone; empty if that was not measured."""
        campaign = self.campaign()
        alone = campaign.alone()
        try:
            return alone.shares(campaign.member(alone.workload)) if alone else {}
        except RigError:
            return {}

    def faster(
        self, geometry: Geometry, workload: Workload, drives: Sequence[str], factors: Mapping[str, float]
    ) -> Prediction:
        """Predict an array of these members, of which some are faster by a factor, by serial number.

        Raises ``NotApplicable`` with the reason if that is not possible.
        """
        found = self._of_array(geometry, workload, drives)
        if isinstance(found, str):
            raise NotApplicable(found)
        if not factors:
            return found.prediction
        return found.by([curve.times(factors.get(curve.drive, 1.0)) for curve in found.curves])

    def _of(self, measured: Measured) -> PredictedArray | str:
        """Return the prediction, or the reason why there is none."""
        geometry = measured.geometry
        drives = measured.runs[0].members[: geometry.width - geometry.missing]
        return self._of_array(geometry, measured.workload, drives)

    def _of_array(self, geometry: Geometry, workload: Workload, drives: Sequence[str]) -> PredictedArray | str:
        key = geometry, workload, tuple(drives)
        if key not in self._predicted:
            try:
                self._predicted[key] = self._predict(geometry, workload, drives)
            except RigError as error:
                return str(error)  # a bare drive may be measured later in the visits
            except CannotJudge as error:
                self._predicted[key] = str(error)
        return self._predicted[key]

    def _predict(self, geometry: Geometry, workload: Workload, drives: Sequence[str]) -> PredictedArray:
        if why := member_curve.objection(geometry, workload, self.striping):
            raise NotApplicable(why)
        campaign = self.campaign()
        curves = _curves([campaign.member(each) for each in campaign.member_workloads(geometry, workload)], drives)
        reads = workload.read_fraction
        found = prediction.predict(geometry, reads, workload.outstanding(geometry.width), curves)
        return PredictedArray(found, curves, reads)


def _curves(members: Sequence[Measured], drives: Sequence[str]) -> tuple[MemberCurve, ...]:
    """Return the curve of each drive; all measurements have one mix."""
    points: dict[str, list[CurvePoint]] = {drive: [] for drive in drives}
    for measured in members:
        for each in measured.members():
            if each.drive in points:
                points[each.drive].append(CurvePoint.of(each, _estimate(each)))
    if missing := [drive for drive, found in points.items() if len(found) < len(members)]:
        raise NotApplicable(f"drive {missing[0]} was left out when the bare drives were measured")
    mix = members[0].workload.read_fraction
    return tuple(MemberCurve(drive, mix, tuple(found)) for drive, found in points.items())


def _one_drive(found: PredictedArray, workload: Workload) -> Estimate | None:
    """Return the IOPS of the median member alone, as deep as in the array; None unless it has the array's mix.

    A mirrored write is outstanding at both members: at depth 1 per drive each of them has two.
    """
    mixes = {each.read_fraction for each in found.curves}
    if workload.read_fraction not in (0, 1) or mixes != {workload.read_fraction}:
        return None
    depth = member_curve.mean_depth(found.prediction.geometry, workload)
    ordered = sorted(found.curves, key=lambda each: each.iops(depth))
    usual = ordered[len(ordered) // 2]
    value = usual.iops(depth)
    nearest = usual.nearest(depth).iops
    return replace(nearest, value=value, low=value * (1 - usual.error), high=value * (1 + usual.error))


def _replaced(array: PredictedArray, drives: Collection[str]) -> Prediction:
    """Predict the array with the named drives replaced by median ones."""
    return array.by(prediction.with_median(array.curves, drives, array.depth))


def _even(array: PredictedArray, every: Sequence[MemberCurve]) -> Prediction:
    """Predict the array with every member like the median of all drives, at the array's own mix."""
    mix = array.curves[0].read_fraction
    ordered = sorted((each for each in every if each.read_fraction == mix), key=lambda each: each.iops(array.depth))
    usual = ordered[len(ordered) // 2]
    return array.by([replace(usual, drive=each.drive) for each in array.curves])


def _typical(measured: Measured) -> Run:
    """Return the last run; of cells the one of median IOPS, because a single minute may be an exception."""
    if not measured.visited:
        return measured.runs[-1]
    return sorted(measured.runs, key=lambda run: run.iops)[len(measured.runs) // 2]


def _estimate(measured: Measured) -> Estimate:
    try:
        return iops(measured, ConfidenceLevel())
    except CannotJudge:  # a saturation has no rounds of one rate
        return Estimate(measured.iops, measured.iops, measured.iops, 1, Unit.IOPS)


def _latency(asked: BrokenLatency, array: PredictedArray) -> LatencyEvidence:
    """Return what bare members make of a latency; rare slow I/Os are counted, as no simulation is long enough."""
    evidence = LatencyEvidence(asked.measured_ns, asked.limit_ns)
    if asked.claim in OF_KIND:
        is_read = asked.claim is Claim.READ_MEAN_LATENCY
        return shortfall.of_mean(evidence, array.prediction, array.curves, is_read, partial(_replaced, array))
    q = QUANTILES.get(asked.claim)
    if q is not None and q <= shortfall.DEEPEST:
        return shortfall.of_quantile(evidence, array.prediction, array.curves, q, partial(_replaced, array))
    promised = asked.times_per_hour if q is None else 1 - q
    rate = shortfall.Rate(promised, is_of_spells=q is None)
    return shortfall.of_rare(evidence, array.prediction, array.curves, rate)
