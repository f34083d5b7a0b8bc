"""The points of a run that may be accepted by prediction, and the random sample of them that is measured.

Both are fixed when the tests are collected, before anything is measured; see ``qual.raid.screening``.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pytest

from pytest_ssdqual.plugin.plan import marks, needs
from pytest_ssdqual.plugin.plan.needs import Need
from pytest_ssdqual.qual.raid import member_curve, screened, screening
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import OF_GROWTH, Claim
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import ScreenRule
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignStep, StepKind

#: One workload on one array.
Point = tuple[Geometry, Workload]

#: Claims about a sweep that only its narrowest and its widest array decide.
OF_ENDS = frozenset({Claim.LATENCY_SPREAD_BETWEEN_WIDTHS, Claim.LATENCY_GROWTH_BETWEEN_WIDTHS})
#: Fixtures that a test of a screened point may have besides pytest's own; any other one may need the measurement.
OF_RUN, OF_SWEEP = frozenset({"ssd_run", "ssd_workload", "ssd_geometry"}), frozenset({"ssd_sweep", "ssd_workload"})
JUDGED = frozenset({"ssd_sla"})
#: Names the bay of a test in a run of several; it measures nothing.
OF_FLEET = frozenset({"ssd_bay"})


@dataclass(frozen=True, slots=True)
class ScalingTest:
    """A test of how IOPS grow over the widths of a level."""

    geometries: tuple[Geometry, ...]
    workload: Workload
    claims: frozenset[Claim]


@dataclass(frozen=True, slots=True)
class ScreenedSweep:
    """The points of one level in one state."""

    #: ``raid5``, ``raid5-1failed``.
    name: str
    #: Points that may be accepted by prediction, from which the sample was drawn.
    points: tuple[Point, ...]
    sample: tuple[Point, ...]
    #: Points with a prediction that are measured in any case.
    measured: tuple[Point, ...]
    scalings: tuple[ScalingTest, ...]


@dataclass(frozen=True)
class ScreeningPlan:
    """The sweeps of a run that are screened."""

    rule: ScreenRule
    #: Of the samples; recorded before anything is measured.
    seed: str
    sweeps: tuple[ScreenedSweep, ...] = ()
    #: The claims of the tests about each point.
    claims: Mapping[Point, frozenset[Claim]] = field(default_factory=dict)

    @cached_property
    def _sweeps(self) -> dict[Point, ScreenedSweep]:
        return {point: sweep for sweep in self.sweeps for point in sweep.points}

    @cached_property
    def unmeasured(self) -> frozenset[Point]:
        """Points that are not measured unless they are chosen later, or their sweep disagrees."""
        return frozenset(point for sweep in self.sweeps for point in sweep.points if point not in sweep.sample)

    def sweep_of(self, point: Point) -> ScreenedSweep | None:
        """Return the sweep in which a point may be accepted by prediction; None if it has to be measured."""
        return self._sweeps.get(point)

    def leaves_out(self, step: CampaignStep) -> bool:
        """Return whether a step of the plan is one of the unmeasured points."""
        return step.kind is StepKind.MEASURED and (step.geometry, step.what) in self.unmeasured

    def is_late(self, need: Need) -> bool:
        """Return whether a test needs an unmeasured point: what it needs is known when all others are measured."""
        return any(
            (geometry, workload) in self.unmeasured for geometry in need.geometries for workload in need.measured
        )

    def lines(self) -> list[str]:
        """Return a sentence for the printed plan about each sweep."""
        return [
            f"{each.name} is screened: {len(each.measured)} of its {len(each.points) + len(each.measured)} points have "
            f"to be measured, {len(each.sample)} of the other {len(each.points)} are drawn at random, and those "
            f"closest to their limits (at least {self.rule.worst}), with the most IOPS and with the shortest latency "
            "are chosen after the bare drives; the rest is predicted, unless a measured point disagrees"
            for each in self.sweeps
        ]

    def to_record(self) -> dict[str, object]:
        """Return the facts for the journal, without the seed."""
        sweeps = [
            {
                "sweep": each.name,
                "points": list(map(name_of, each.points)),
                "sample": list(map(name_of, each.sample)),
                "measured": list(map(name_of, each.measured)),
            }
            for each in self.sweeps
        ]
        return {"rule": plain(self.rule), "sweeps": sweeps}


def draw_seed() -> str:
    """Return a seed for the samples of a run that begins."""
    return secrets.token_hex(16)


def name_of(point: Point) -> str:
    geometry, workload = point
    return f"{geometry} {workload}"


def plan(items: Sequence[pytest.Item], spec: Spec, protocol: Protocol, rule: ScreenRule, seed: str) -> ScreeningPlan:
    """Return the points that may be predicted, and their samples, drawn by ``seed``."""
    tests = [(item, needs.of(item)) for item in items if not item.get_closest_marker("skip")]
    striping = protocol.array.striping
    required: set[Point] = set()
    claims: dict[Point, frozenset[Claim]] = {}
    scalings: list[ScalingTest] = []
    for item, need in tests:
        points = [(geometry, workload) for geometry in need.geometries for workload in need.measured]
        for point in points:
            claims.setdefault(point, frozenset())
            required.update((point[0], each) for each in spec.references(*point))
        required.update(_required(item, need, points, spec))
        if need.is_sweep:
            scalings += [ScalingTest(need.geometries, each, marks.promised(item)) for each in need.measured]
        else:
            claims |= {point: claims[point] | marks.promised(item) for point in points}
    predictable = [point for point in claims if not member_curve.objection(*point, striping)]
    sweeps = tuple(
        each
        for name in dict.fromkeys(map(_sweep_name, predictable))
        if (each := _sweep(name, predictable, required, scalings, rule, seed, protocol.verdict.confidence)).points
    )
    return ScreeningPlan(rule, seed, sweeps, claims)


def _sweep(
    name: str,
    predictable: Iterable[Point],
    required: set[Point],
    scalings: Iterable[ScalingTest],
    rule: ScreenRule,
    seed: str,
    confidence: float,
) -> ScreenedSweep:
    of_sweep = [point for point in predictable if _sweep_name(point) == name]
    points = [point for point in of_sweep if point not in required]
    size = screening.sample_size(len(points), rule.outside_percent, confidence)
    # Two workloads may have one name, so the rank of a point depends on all of it.
    drawn = screening.sample({point: f"{point[0]} {point[1]!r}" for point in points}, size, seed)
    return ScreenedSweep(
        name,
        tuple(points),
        drawn,
        tuple(point for point in of_sweep if point in required),
        tuple(each for each in scalings if _sweep_name((each.geometries[0], each.workload)) == name),
    )


def _sweep_name(point: Point) -> str:
    geometry, _ = point
    return f"{geometry.level}{f'-{geometry.missing}failed' if geometry.missing else ''}"


def _required(item: pytest.Item, need: Need, points: Sequence[Point], spec: Spec) -> Iterator[Point]:
    """Yield the points that a test needs measured, whatever is predicted."""
    promised = marks.promised(item)
    public = {name for name in getattr(item, "fixturenames", ()) if name.startswith("ssd_")} - OF_FLEET
    usual = (OF_SWEEP if need.is_sweep else OF_RUN) | JUDGED
    follows = OF_GROWTH | OF_ENDS if need.is_sweep else screened.OF_IOPS
    if not (JUDGED <= public <= usual and promised and promised <= follows):
        yield from points
        return
    for geometry, workload in points:
        is_end = need.is_sweep and geometry in (min(need.geometries), max(need.geometries))
        # A figure in per cent of another one, or of an earlier run, has to be measured like that one.
        place = (max(need.geometries), workload) if need.is_sweep else (geometry, workload)
        if is_end or any(spec.relation(each, *place) or spec.of_baseline(each, *place) for each in promised):
            yield geometry, workload
