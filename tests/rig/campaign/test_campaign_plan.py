"""A campaign and its plan: whatever is asked for in whatever order, each step is executed once, on the right array."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import strategies
from support.builders.measuring import PROTOCOL, READ, SETTLED, STREAM, WRITE, setup_of

from pytest_ssdqual.plugin.plan import order
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import Fill, PartialFill, PreconditionRule, VisitRule
from pytest_ssdqual.qual.workload.rounds import Rounds, RoundsResult, Tracked
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign import Campaign
from pytest_ssdqual.rig.campaign.campaign_plan import (
    ArrayCondition,
    Assemble,
    Build,
    CampaignPlan,
    CampaignStep,
    Precondition,
    StepKind,
    preparation,
)
from pytest_ssdqual.rig.machine.machine import MachineLost, RigError
from pytest_ssdqual.rig.md import members
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle, fixed_time, precondition, refresh, rounds, saturation
from pytest_ssdqual.rig.measure import rebuild as rebuilding
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.resume import readopt_array
from pytest_ssdqual.rig.resume.checkpoint import Conditioned

ROUNDS = Rounds("pair", (READ, WRITE), (Tracked(WRITE, "steady_iops"),), fill_bs="1m", fill_passes=2)
ON_DRIVES = replace(PROTOCOL, precondition=PreconditionRule(5, 15, of="drives"))
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
    #: Builds, lost members, conditionings and steps, in order.
    log: list[str] = field(default_factory=list)
    builds: list[tuple[Geometry, Fill]] = field(default_factory=list)
    standing: Geometry | None = None
    pattern: str | None = None
    is_fresh: bool = False
    #: The conditioned drives that the array was assembled of, and their pattern.
    bare: Geometry | None = None
    drives_pattern: str | None = None
    #: No drive has idled since the last writes to all of them.
    is_refreshed: bool = False
    #: Geometry and pattern of each conditioning.
    conditionings: list[tuple[Geometry, str]] = field(default_factory=list)
    #: Steps that fail, and the exception.
    broken: dict[CampaignStep, RigError] = field(default_factory=dict)
    unbuildable: set[Geometry] = field(default_factory=set)
    members_stay: bool = False

    def build(self, setup: Setup, geometry: Geometry, fill: Fill, pattern: str = "") -> Array:
        assert self.standing is None or self.standing.is_side_by_side, "the drives have an array"
        self.bare = geometry if geometry.is_side_by_side else None
        self.drives_pattern = None
        self.builds.append((geometry, fill))
        self.log.append(f"build {geometry}")
        if geometry in self.unbuildable:
            raise RigError("no room")
        self.standing, self.pattern, self.is_fresh = geometry, None, True
        return Array(geometry, "/dev/md100", (), f"u{len(self.builds)}", 1 << 29, "zeroed")

    def stop(self, setup: Setup, array: Array) -> None:
        assert self.standing == array.geometry
        self.standing = self.bare

    def assemble(self, setup: Setup, bare: Array, geometry: Geometry) -> Array:
        assert self.standing == self.bare == bare.geometry
        if geometry in self.unbuildable:
            self.builds.append((geometry, Fill(1, "128k")))
            raise RigError("no room")
        assert geometry.is_side_by_side or self.drives_pattern is None or self.is_refreshed
        self.standing, self.pattern = geometry, self.drives_pattern
        self.is_refreshed = self.is_refreshed and geometry.is_side_by_side
        return Array(geometry, "/dev/md100", (), "u", 1 << 29, "assumed")

    def refresh(self, setup: Setup, array: Array, conditioned: Conditioned) -> Conditioned:
        assert self.standing == array.geometry == self.bare
        self.is_refreshed = True
        return conditioned

    def fail(self, setup: Setup, array: Array, missing: int) -> Array:
        assert missing > array.geometry.missing
        if self.members_stay:
            raise RigError("mdadm refused")
        self.log.append(f"lose {missing}")
        self.standing = Geometry(array.geometry.level, array.geometry.width, missing)
        return replace(array, geometry=self.standing)

    def precondition(self, setup: Setup, array: Array, workload: Workload) -> Conditioned:
        assert self.bare in (None, array.geometry)
        assert not array.geometry.missing, "an array is conditioned with all its members"
        assert self.standing == array.geometry
        self.conditionings.append((array.geometry, workload.pattern))
        self.log.append(f"condition {workload.pattern}")
        self.pattern, self.is_fresh = workload.pattern, False
        if array.geometry == self.bare:
            self.drives_pattern, self.is_refreshed = workload.pattern, True
        return Conditioned(WRITE, SETTLED)

    def execute(self, kind: StepKind, geometry: Geometry, what: Workload | Rounds) -> Measured:
        step = CampaignStep(kind, geometry, what)
        failed = Geometry(geometry.level, geometry.width, geometry.missing)
        assert self.standing == failed
        if kind in (StepKind.MEASURED, StepKind.REBUILD):
            assert isinstance(what, Workload)
            assert self.pattern == what.pattern
            assert self.builds[-1][1] == Fill(1, "128k")
        else:
            assert self.is_fresh
        self.did.append(step)
        self.log.append(f"{'rebuild' if kind is StepKind.REBUILD else geometry} {what}")
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
        self.pattern = None
        return found


@contextmanager
def arrays() -> Iterator[SimulatedArrays]:
    found = SimulatedArrays()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_lifecycle, "build", found.build)
        patch.setattr(array_lifecycle, "stop", found.stop)
        patch.setattr(array_lifecycle, "assemble", found.assemble)
        patch.setattr(refresh, "refresh", found.refresh)
        patch.setattr(members, "fail_members", found.fail)
        patch.setattr(readopt_array, "count", lambda setup, array, moment: None)
        patch.setattr(precondition, "until_steady", found.precondition)
        patch.setattr(
            fixed_time,
            "measure",
            lambda setup, array, workload, tail: found.execute(StepKind.MEASURED, array.geometry, workload),
        )
        patch.setattr(saturation, "saturate", found.saturate)
        patch.setattr(rounds, "run", found.loop)
        patch.setattr(rebuilding, "rebuild", found.rebuild)
        yield found


def campaign(steps: order.Steps, protocol: Protocol = PROTOCOL) -> Campaign:
    setup = setup_of(None, protocol, machine=SimpleNamespace(generation=0))
    return Campaign(setup, CampaignPlan.of(steps, protocol))


def in_order(steps: Iterable[CampaignStep], protocol: Protocol) -> order.Steps:
    return order.in_order(steps, of_drives=protocol.conditions_drives)


def ask(here: Campaign, step: CampaignStep) -> object:
    if isinstance(step.what, Rounds):
        return here.loop(step.geometry, step.what)
    assert step.what
    of_kinds = {StepKind.SATURATION: here.saturate, StepKind.REBUILD: here.rebuild, StepKind.MEASURED: here.measure}
    return of_kinds[step.kind](step.geometry, step.what)


PROTOCOLS = st.sampled_from([PROTOCOL, ON_DRIVES])


@given(st.lists(st.sampled_from(STEPS), min_size=1, unique=True), PROTOCOLS, st.data())
def test_any_order_executes_each_step_once(steps: list[CampaignStep], protocol: Protocol, data: st.DataObject) -> None:
    """Also if some of the steps are not in the plan; the fake arrays check the condition of the array."""
    planned = in_order(data.draw(st.lists(st.sampled_from(steps), unique=True)), protocol)
    with arrays() as found:
        here = campaign(planned, protocol)
        for _ in range(2):
            for step in data.draw(st.permutations(steps)):
                ask(here, step)
        here.close()
    assert found.standing in (None, found.bare)
    assert Counter(found.did) == Counter(steps)


def measured(*points: tuple[Geometry, Workload]) -> list[CampaignStep]:
    return [CampaignStep(StepKind.MEASURED, *point) for point in points]


WHOLE = ["build raid6x4", "condition random"]


@pytest.mark.parametrize(
    ("planned", "asked", "log"),
    [
        pytest.param(
            [],
            measured((HEALTHY, READ), (HEALTHY, STREAM), (FAILED, READ), (TWICE, READ), (HEALTHY, WRITE)),
            [
                *WHOLE, f"raid6x4 {READ}", "condition sequential", f"raid6x4 {STREAM}",
                "condition random", "lose 1", f"raid6x4-1failed {READ}", "lose 2", f"raid6x4-2failed {READ}",
                *WHOLE, f"raid6x4 {WRITE}",
            ],
            id="members do not come back",
        ),
        pytest.param(
            [],
            measured((FAILED, READ), (FAILED, STREAM)),
            [
                *WHOLE, "lose 1", f"raid6x4-1failed {READ}",
                "build raid6x4", "condition sequential", "lose 1", f"raid6x4-1failed {STREAM}",
            ],
            id="conditioned with all members",
        ),
        pytest.param(
            measured((HEALTHY, WRITE), (HEALTHY, READ), (FAILED, READ), (OTHER, WRITE)),
            measured((HEALTHY, WRITE), (OTHER, WRITE)),
            [
                *WHOLE, f"raid6x4 {WRITE}", f"raid6x4 {READ}", "lose 1", f"raid6x4-1failed {READ}",
                "build raid5x3", "condition random", f"raid5x3 {WRITE}",
            ],
            id="the rest of an array comes before the next",
        ),
        pytest.param(
            measured((HEALTHY, WRITE)),
            measured((FAILED, READ)),
            [*WHOLE, f"raid6x4 {WRITE}", "lose 1", f"raid6x4-1failed {READ}"],
            id="the rest of an array comes before a loss",
        ),
        pytest.param(
            measured((FAILED, READ), (FAILED, STREAM)),
            measured((FAILED, READ), (OTHER, READ)),
            [
                *WHOLE, "lose 1", f"raid6x4-1failed {READ}",
                "build raid5x3", "condition random", f"raid5x3 {READ}",
            ],
            id="nothing is built for the rest",
        ),
        pytest.param(
            [*measured((HEALTHY, WRITE)), CampaignStep(StepKind.REBUILD, REBUILDING, READ), *measured((OTHER, WRITE))],
            measured((HEALTHY, WRITE), (OTHER, WRITE)),
            [*WHOLE, f"raid6x4 {WRITE}", "build raid5x3", "condition random", f"raid5x3 {WRITE}"],
            id="a rebuild takes hours and its test may be skipped",
        ),
        pytest.param(
            [],
            [CampaignStep(StepKind.REBUILD, REBUILDING, READ), *measured((FAILED, READ))],
            [*WHOLE, "lose 1", f"rebuild {READ}", *WHOLE, "lose 1", f"raid6x4-1failed {READ}"],
            id="a rebuild ends the use of an array",
        ),
    ],
)  # fmt: skip
def test_array_is_built_and_conditioned_no_more_than_needed(
    planned: list[CampaignStep], asked: list[CampaignStep], log: list[str]
) -> None:
    with arrays() as done:
        here = campaign(order.in_order(planned))
        for step in asked:
            ask(here, step)
    assert done.log == log


@given(st.lists(st.sampled_from(STEPS), unique=True), PROTOCOLS)
def test_plan_order_builds_what_the_plan_says(steps: list[CampaignStep], protocol: Protocol) -> None:
    planned = in_order(steps, protocol)
    todo = [each for todo, _ in CampaignPlan.of(planned, protocol).prepared() for each in todo]
    with arrays() as found:
        here = campaign(planned, protocol)
        for step in planned:
            ask(here, step)
    assert found.did == list(planned)
    assert found.builds == [(each.geometry, each.fill) for each in todo if isinstance(each, Build)]
    conditionings = [(each.geometry, each.workload.pattern) for each in todo if isinstance(each, Precondition)]
    assert found.conditionings == conditionings


MEASURED = [each for each in STEPS if each.kind is StepKind.MEASURED]


@given(st.lists(st.sampled_from(MEASURED), min_size=1, unique=True))
def test_drives_are_filled_once_and_conditioned_once_a_class(steps: list[CampaignStep]) -> None:
    planned = in_order(steps, ON_DRIVES)
    widest = Geometry(RaidLevel.DRIVE, max(each.geometry.width for each in steps))
    with arrays() as found:
        here = campaign(planned, ON_DRIVES)
        for step in planned:
            ask(here, step)
    assert found.builds == [(widest, Fill(1, "128k"))]
    assert sorted(found.conditionings) == sorted((widest, each) for each in {str(step.pattern) for step in steps})


def test_an_array_that_cannot_be_assembled_costs_no_conditioning() -> None:
    steps = [CampaignStep(StepKind.MEASURED, each, READ) for each in (HEALTHY, OTHER)]
    with arrays() as found:
        found.unbuildable.add(HEALTHY)
        here = campaign(in_order(steps, ON_DRIVES), ON_DRIVES)
        for _ in range(2):
            with pytest.raises(RigError, match="no room"):
                ask(here, steps[0])
        ask(here, steps[1])
    assert len(found.conditionings) == 1
    assert [each for each, _ in found.builds].count(HEALTHY) == 1


def test_measurements_of_one_pattern_are_one_experiment() -> None:
    steps = [CampaignStep(StepKind.MEASURED, *each) for each in [(HEALTHY, READ), (OTHER, WRITE)]]
    stream = CampaignStep(StepKind.MEASURED, OTHER, STREAM)
    rebuild = CampaignStep(StepKind.REBUILD, REBUILDING, READ)
    in_visits = replace(ON_DRIVES, visits=VisitRule())
    plan = CampaignPlan.of([*steps, stream, rebuild], in_visits)
    assert plan.experiment(steps[0]) == plan.experiment(steps[1]) == tuple(steps)
    assert plan.experiment(stream) == (stream,)
    assert plan.experiment(rebuild) == ()
    unplanned = CampaignStep(StepKind.MEASURED, FAILED, READ)
    assert plan.experiment(unplanned) == (*steps, unplanned)
    assert CampaignPlan.of(steps, ON_DRIVES).experiment(steps[0]) == ()


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


@pytest.mark.parametrize("error", [RigError("fio refused"), MachineLost("gone")], ids=["step", "machine"])
def test_failure_is_raised_in_the_test_that_needs_it(error: RigError) -> None:
    first, second = measured((OTHER, READ), (OTHER, STREAM))
    with arrays() as found:
        here = campaign(order.in_order([first, second]))
        found.broken[first] = error
        with pytest.raises(MachineLost) if error.ends_run else nullcontext():
            ask(here, second)
        if error.ends_run:
            del found.broken[first]
            ask(here, first)
        else:
            for _ in range(2):
                with pytest.raises(RigError, match=r"^fio refused$"):
                    ask(here, first)
    assert found.did == [first, first if error.ends_run else second]


def test_members_that_cannot_be_failed_cost_no_second_array() -> None:
    with arrays() as found:
        found.members_stay = True
        here = campaign(order.in_order([CampaignStep(StepKind.MEASURED, FAILED, each) for each in (READ, WRITE)]))
        for workload in (WRITE, READ):
            with pytest.raises(RigError, match="mdadm refused"):
                here.measure(FAILED, workload)
    assert len(found.builds) == 1


def test_array_and_steady_measure_only_what_would_be_lost() -> None:
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


@pytest.mark.parametrize("is_planned", [True, False])
@pytest.mark.parametrize(("protocol", "widths"), [(PROTOCOL, (3, 4, 5)), (ON_DRIVES, (5, 4, 3))])
def test_a_sweep_alone_is_measured_in_the_order_of_the_plan(
    protocol: Protocol, widths: Sequence[int], is_planned: bool
) -> None:
    geometries = [Geometry(RaidLevel.RAID5, width) for width in (3, 4, 5)]
    steps = [CampaignStep(StepKind.MEASURED, each, READ) for each in geometries]
    with arrays() as did:
        others = [CampaignStep(StepKind.MEASURED, geometries[-1], WRITE)]
        here = campaign(in_order(steps if is_planned else others, protocol), protocol)
        assert {each.geometry for each in here.sweep(geometries, READ)} == set(geometries)
    assert [each.geometry.width for each in did.did if each.what == READ] == list(widths)


def test_a_sweep_that_cannot_end_does_not_begin() -> None:
    geometries = [Geometry(RaidLevel.RAID5, width) for width in (3, 4)]
    steps = [CampaignStep(StepKind.MEASURED, each, READ) for each in geometries]

    def require(step: CampaignStep, preparations: object) -> None:
        if step.geometry.width == 3:
            raise RigError("the budget has no time for it")

    with arrays() as did:
        here = campaign(in_order(steps, ON_DRIVES), ON_DRIVES)
        here.allowed = require
        with pytest.raises(RigError, match="no time"):
            here.sweep(geometries, READ)
    assert did.did == []


BARE = Geometry(RaidLevel.DRIVE, 8)
READ_BACK = CampaignStep(StepKind.READ_BACK, BARE)


@pytest.mark.parametrize("drives", [BARE, None])
@pytest.mark.parametrize("passes", [0, 1, 2])
def test_data_are_read_back_before_anything_else_is_written(drives: Geometry | None, passes: int) -> None:
    fill = Fill(passes, "1m")
    build = Build(BARE, Fill(max(1, passes), "1m"), is_stamped=True)
    assert preparation(None, READ_BACK, fill, drives) == (build,)
    filled = ArrayCondition(BARE, build.fill).after(build).used_for(READ_BACK)
    assert preparation(filled, READ_BACK, fill, drives) == ()
    measured = CampaignStep(StepKind.MEASURED, BARE, READ)
    (*built, conditioned) = preparation(filled, measured, fill, drives)
    # Stamps are not measured: they compress, and conditioning leaves some.
    assert [step.is_stamped for step in built if isinstance(step, Build)] == [False]
    written = filled.after(conditioned).used_for(measured)
    assert preparation(written, READ_BACK, fill, drives) == (build,)


def test_drives_that_are_read_back_may_be_some_of_the_filled() -> None:
    fill, some = Fill(1, "1m"), CampaignStep(StepKind.READ_BACK, Geometry(RaidLevel.DRIVE, 4))
    build, fewer = preparation(None, some, fill, BARE)
    assert build == Build(BARE, fill, is_stamped=True)
    assert fewer == Assemble(some.geometry)
    standing = ArrayCondition(BARE, fill).after(build).after(fewer)
    assert preparation(standing, some, fill, BARE) == ()


@pytest.mark.parametrize("drives", [BARE, None])
def test_writes_to_a_part_of_the_range_begin_with_a_fill_of_that_part(drives: Geometry | None) -> None:
    """What was filled once is no spare, so the drives are purged, and everything else is filled anew after it."""
    fill = Fill(1, "128k")
    writes = replace(WRITE, region_percent=72)
    part, other, whole = (
        CampaignStep(StepKind.MEASURED, BARE, replace(writes, region_percent=percent)) for percent in (72, 85, 100)
    )
    of_part = Build(BARE, PartialFill(1, "128k", 72))
    build, conditioned = preparation(None, part, fill, drives)
    assert (build, conditioned) == (of_part, Precondition(BARE, writes))
    filled = ArrayCondition(BARE, of_part.fill).after(of_part).after(conditioned).used_for(part)
    assert preparation(filled, part, fill, drives) == ()
    for step in (other, whole, replace(whole, what=READ), CampaignStep(StepKind.ARRAY, BARE)):
        first = preparation(filled, step, fill, drives)[0]
        assert isinstance(first, Build)
        assert first.fill == (PartialFill(1, "128k", 85) if step is other else fill)


def test_reads_of_a_part_of_the_range_use_the_fill_of_the_whole() -> None:
    reads = CampaignStep(StepKind.MEASURED, BARE, replace(READ, region_percent=72))
    assert preparation(None, reads, Fill(1, "1m"), BARE)[0] == Build(BARE, Fill(1, "1m"))


def test_parts_of_the_range_are_filled_once_each_and_last() -> None:
    loads = [replace(WRITE, region_percent=percent) for percent in (72, 100, 85)]
    steps = [CampaignStep(StepKind.MEASURED, BARE, each) for each in (*loads, READ, STREAM)]
    planned = CampaignPlan.of(in_order(steps, ON_DRIVES), ON_DRIVES)
    builds = [each.fill for todo, _ in planned.prepared() for each in todo if isinstance(each, Build)]
    assert builds == [
        ON_DRIVES.fill,
        *(PartialFill(ON_DRIVES.fill.passes, ON_DRIVES.fill.bs, each) for each in (72, 85)),
    ]
