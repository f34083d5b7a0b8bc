"""A campaign and its plan: whatever is asked for in whatever order, each step is executed once, on the right array."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import strategies

from pytest_ssdqual.plugin.plan import order
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol import Fill, Protocol
from pytest_ssdqual.qual.workload.rounds import Rounds, RoundsResult, Tracked
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign import Campaign
from pytest_ssdqual.rig.campaign.campaign_plan import (
    Build,
    CampaignPlan,
    CampaignStep,
    FailMembers,
    Precondition,
    StepKind,
)
from pytest_ssdqual.rig.machine.machine import MachineLost, RigError
from pytest_ssdqual.rig.md import members
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle, fixed_time, rounds, saturation
from pytest_ssdqual.rig.measure import rebuild as rebuilding
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.resume import readopt_array

READ, WRITE, STREAM = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8), Workload("write", "128k", 8)
ROUNDS = Rounds("pair", (READ, WRITE), (Tracked(WRITE, "steady_iops"),), fill_bs="1m", fill_passes=2)
PROTOCOL = Protocol(
    name="test", acceptance=False, fill_passes=1, fill_bs="128k", precondition_s=5, precondition_limit_s=15, ramp_s=1,
    window_s=5, repeats=1, attempts=2,
)  # fmt: skip
HEALTHY, FAILED, REBUILDING = map(Geometry.parse, ("raid6x4", "raid6x4-1failed", "raid6x4-1rebuilding"))
TWICE, TWO_REBUILDING, OTHER = map(Geometry.parse, ("raid6x4-2failed", "raid6x4-2rebuilding", "raid5x3"))
STEPS = [
    *(CampaignStep(StepKind.MEASURED, *each) for each in [(HEALTHY, READ), (HEALTHY, WRITE), (HEALTHY, STREAM)]),
    *(CampaignStep(StepKind.MEASURED, *each) for each in [(FAILED, READ), (FAILED, STREAM), (TWICE, WRITE)]),
    *(CampaignStep(StepKind.MEASURED, *each) for each in [(OTHER, READ), (OTHER, STREAM)]),
    CampaignStep(StepKind.REBUILD, REBUILDING, READ),
    CampaignStep(StepKind.REBUILD, TWO_REBUILDING, WRITE),
    CampaignStep(StepKind.SATURATION, HEALTHY, WRITE),
    CampaignStep(StepKind.LOOP, HEALTHY, ROUNDS),
]


@dataclass
class SimulatedArrays:
    """What was done to arrays, and the condition of the one that stands."""

    did: list[CampaignStep] = field(default_factory=list)
    builds: list[tuple[Geometry, Fill]] = field(default_factory=list)
    standing: Geometry | None = None
    is_random: bool | None = None
    is_fresh: bool = False
    #: Steps that fail, and the exception.
    broken: dict[CampaignStep, RigError] = field(default_factory=dict)
    unbuildable: set[Geometry] = field(default_factory=set)
    members_stay: bool = False

    def build(self, setup: Setup, geometry: Geometry, fill: Fill) -> Array:
        assert self.standing is None, "the drives have an array"
        self.builds.append((geometry, fill))
        if geometry in self.unbuildable:
            raise RigError("no room")
        self.standing, self.is_random, self.is_fresh = geometry, None, True
        return Array(geometry, "/dev/md100", (), f"u{len(self.builds)}", 1 << 29, "zeroed")

    def stop(self, setup: Setup, array: Array) -> None:
        assert self.standing == array.geometry
        self.standing = None

    def fail(self, setup: Setup, array: Array, missing: int) -> Array:
        assert missing > array.geometry.missing
        if self.members_stay:
            raise RigError("mdadm refused")
        self.standing = Geometry(array.geometry.level, array.geometry.width, missing)
        return replace(array, geometry=self.standing)

    def precondition(self, setup: Setup, array: Array, workload: Workload) -> None:
        assert not array.geometry.missing, "an array is conditioned with all its members"
        self.is_random, self.is_fresh = workload.is_random, False

    def execute(self, kind: StepKind, geometry: Geometry, what: Workload | Rounds) -> Measured:
        step = CampaignStep(kind, geometry, what)
        failed = Geometry(geometry.level, geometry.width, geometry.missing)
        assert self.standing == failed
        if kind in (StepKind.MEASURED, StepKind.REBUILD):
            assert isinstance(what, Workload)
            assert self.is_random == what.is_random
            assert self.builds[-1][1] == Fill(1, "128k")
        else:
            assert self.is_fresh
        self.did.append(step)
        if step in self.broken:
            raise self.broken[step]
        workload = what if isinstance(what, Workload) else READ
        return Measured((strategies.run([1000] * 5, geometry=str(geometry), workload=workload),))

    def saturate(self, setup: Setup, array: Array, workload: Workload) -> Saturation:
        found = Saturation(self.execute(StepKind.SATURATION, array.geometry, workload).runs[0], 1 << 29)
        self.is_fresh = False
        return found

    def loop(self, setup: Setup, array: Array, loop: Rounds) -> RoundsResult:
        assert self.builds[-1][1] == Fill(2, "1m")
        self.execute(StepKind.LOOP, array.geometry, loop)
        self.is_fresh = False
        return RoundsResult(array.geometry, loop, ())

    def rebuild(self, setup: Setup, array: Array, workload: Workload) -> Rebuild:
        geometry = replace(array.geometry, rebuilding=True)
        found = Rebuild(geometry, 60.0, 1 << 28, self.execute(StepKind.REBUILD, geometry, workload), 0)
        self.is_random = None
        return found


@contextmanager
def arrays() -> Iterator[SimulatedArrays]:
    found = SimulatedArrays()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_lifecycle, "build", found.build)
        patch.setattr(array_lifecycle, "stop", found.stop)
        patch.setattr(members, "fail_members", found.fail)
        patch.setattr(readopt_array, "count", lambda setup, array, moment: None)
        patch.setattr(fixed_time, "precondition", found.precondition)
        patch.setattr(
            fixed_time,
            "measure",
            lambda setup, array, workload, tail: found.execute(StepKind.MEASURED, array.geometry, workload),
        )
        patch.setattr(saturation, "saturate", found.saturate)
        patch.setattr(rounds, "run", found.loop)
        patch.setattr(rebuilding, "rebuild", found.rebuild)
        yield found


def campaign(steps: order.Steps) -> Campaign:
    nothing = cast("Any", None)
    setup = Setup(nothing, nothing, PROTOCOL, nothing, "m", lambda what, seconds: None)
    return Campaign(setup, CampaignPlan.of(steps, PROTOCOL))


def ask(here: Campaign, step: CampaignStep) -> object:
    if isinstance(step.what, Rounds):
        return here.loop(step.geometry, step.what)
    assert step.what
    of_kinds = {StepKind.SATURATION: here.saturate, StepKind.REBUILD: here.rebuild, StepKind.MEASURED: here.measure}
    return of_kinds[step.kind](step.geometry, step.what)


@given(st.lists(st.sampled_from(STEPS), min_size=1, unique=True), st.data())
def test_any_order_executes_each_step_once(steps: list[CampaignStep], data: st.DataObject) -> None:
    """Also if some of the steps are not in the plan; the fake arrays check the condition of the array."""
    planned = order.in_order(data.draw(st.lists(st.sampled_from(steps), unique=True)))
    with arrays() as found:
        here = campaign(planned)
        for step in data.draw(st.permutations(steps)):
            ask(here, step)
        here.close()
    assert found.standing is None
    assert Counter(found.did) == Counter(steps)


@given(st.lists(st.sampled_from(STEPS), unique=True))
def test_plan_order_builds_what_the_plan_says(steps: list[CampaignStep]) -> None:
    planned = order.in_order(steps)
    builds = [
        (each.geometry, each.fill)
        for todo, _ in CampaignPlan.of(planned, PROTOCOL).prepared()
        for each in todo
        if isinstance(each, Build)
    ]
    with arrays() as found:
        here = campaign(planned)
        for step in planned:
            ask(here, step)
    assert found.did == list(planned)
    assert found.builds == builds


@given(st.lists(st.sampled_from(STEPS), min_size=1, unique=True), st.data())
def test_one_test_alone_executes_only_what_comes_before(steps: list[CampaignStep], data: st.DataObject) -> None:
    """Nothing of another array, and nothing that comes later."""
    planned, asked = order.in_order(steps), data.draw(st.sampled_from(steps))
    with arrays() as found:
        ask(campaign(planned), asked)
    assert found.did == [*CampaignPlan.of(planned, PROTOCOL).before(asked), asked]
    assert len(found.builds) == 1


@given(st.permutations(STEPS), st.sampled_from([HEALTHY, OTHER]))
def test_array_that_cannot_be_built_is_tried_once_a_fill(steps: list[CampaignStep], broken: Geometry) -> None:
    with arrays() as found:
        found.unbuildable.add(broken)
        here = campaign(order.in_order(STEPS))
        for step in steps:
            with suppress(RigError):
                ask(here, step)
    assert set(Counter(each for each in found.builds if each[0] == broken).values()) == {1}
    assert {step for step in found.did if step.geometry.healthy == broken} == set()
    assert {step for step in found.did if step.geometry.healthy != broken} == {
        step for step in STEPS if step.geometry.healthy != broken
    }


def test_failure_is_raised_in_the_test_that_needs_it() -> None:
    first, second = CampaignStep(StepKind.MEASURED, OTHER, READ), CampaignStep(StepKind.MEASURED, OTHER, STREAM)
    with arrays() as found:
        here = campaign(order.in_order([first, second]))
        found.broken[first] = RigError("fio refused")
        ask(here, second)
        for _ in range(2):
            with pytest.raises(RigError, match=r"^fio refused$"):
                ask(here, first)
    assert found.did == [first, second]


def test_lost_machine_ends_what_comes_before() -> None:
    first, second = CampaignStep(StepKind.MEASURED, OTHER, READ), CampaignStep(StepKind.MEASURED, OTHER, STREAM)
    with arrays() as found:
        found.broken[first] = MachineLost("gone")
        with pytest.raises(MachineLost):
            ask(campaign(order.in_order([first, second])), second)
    assert found.did == [first]


def test_members_that_cannot_be_failed_cost_no_second_array() -> None:
    with arrays() as found:
        found.members_stay = True
        here = campaign(order.in_order([CampaignStep(StepKind.MEASURED, FAILED, each) for each in (READ, WRITE)]))
        for workload in (WRITE, READ):
            with pytest.raises(RigError, match="mdadm refused"):
                here.measure(FAILED, workload)
    assert len(found.builds) == 1


def test_array_and_steady_state_measure_only_what_the_array_loses() -> None:
    planned = order.in_order(CampaignStep(StepKind.MEASURED, HEALTHY, each) for each in (READ, STREAM))
    with arrays() as found:
        here = campaign(planned)
        assert here.array(HEALTHY).geometry == HEALTHY
        here.steady(HEALTHY, READ)
        assert found.did == []
        assert here.array(FAILED).geometry == FAILED
        assert found.did == list(planned)
        here.steady(FAILED, STREAM)
    assert len(found.builds) == 1


def test_plan_of_a_degraded_array() -> None:
    steps = [CampaignStep(StepKind.MEASURED, FAILED, READ), CampaignStep(StepKind.REBUILD, REBUILDING, READ)]
    (first, _), (second, _) = CampaignPlan.of(steps, PROTOCOL).prepared()
    assert first == (Build(HEALTHY, Fill(1, "128k")), Precondition(HEALTHY, READ), FailMembers(FAILED, Fill(1, "128k")))
    assert second == ()
