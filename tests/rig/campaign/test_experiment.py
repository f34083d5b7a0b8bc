"""An experiment: arrays are visited in rounds, until every point is decided or has failed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest
from support.builders import strategies
from support.builders.measuring import PROTOCOL, READ, setup_of
from support.fakes.logbook import Logbook

from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol_rules import MeasureRule, VisitRule
from pytest_ssdqual.qual.stats import visits
from pytest_ssdqual.qual.stats.group_sequential import Decision
from pytest_ssdqual.qual.stats.visits import Cell
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign import experiment as experimenting
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignStep, StepKind
from pytest_ssdqual.rig.campaign.experiment import Ending, Experiment
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, MachineLost
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.session import BudgetSpent, Setup

WIDE, NARROW = Geometry.parse("raid5x4"), Geometry.parse("raid5x3")
MIX = Workload("randrw", "4k", 8, read_percent=70)
RULE = VisitRule(cells=(2, 1, 3), cell_s=60)
IN_VISITS = replace(PROTOCOL, measure=MeasureRule(1, 60, 1, 2), visits=RULE)
STEPS = [CampaignStep(StepKind.MEASURED, geometry, workload) for geometry in (WIDE, NARROW) for workload in (READ, MIX)]


@dataclass
class Rig(Logbook):
    """What is measured, and what becomes of it."""

    #: Array and visit of each cell.
    cells: list[tuple[Geometry, Workload, int]] = field(default_factory=list)
    #: What happens instead of a cell of this array and workload.
    broken: dict[tuple[Geometry, Workload], Exception] = field(default_factory=dict)
    unbuildable: dict[Geometry, Exception] = field(default_factory=dict)
    #: Cells after which a point is decided.
    enough: dict[tuple[Geometry, Workload], int] = field(default_factory=dict)
    endings: dict[CampaignStep, Ending] = field(default_factory=dict)
    members: tuple[str, ...] = ("S1", "S2", "S3")
    left_s: float = float("inf")

    def ready(self, step: CampaignStep) -> Array:
        if step.geometry in self.unbuildable:
            raise self.unbuildable[step.geometry]
        return Array(step.geometry, "/dev/md100", (), "u", 1 << 29, "assumed")

    def cell(self, setup: Setup, array: Array, workload: Workload, visit: int, before: Run | None) -> tuple[Cell, Run]:
        point = array.geometry, workload
        if point in self.broken:
            raise self.broken[point]
        self.cells.append((*point, visit))
        run = strategies.run([1000] * 60, workload=workload, geometry=str(array.geometry), rounds=1)
        run = replace(run, members=self.members)
        return visits.cell(run, before, visit), run

    def decide(self, measured: Measured, others: Sequence[Measured]) -> Decision:
        needed = self.enough.get((measured.geometry, measured.workload), 3)
        return Decision(len(measured.runs) >= needed, "so many cells")

    def setup(self) -> Setup:
        setup = setup_of(self, IN_VISITS, machine=SimpleNamespace(generation=0))
        return replace(setup, left_s=lambda: self.left_s)

    def run(
        self,
        earlier: Mapping[CampaignStep, Sequence[Cell]] | None = None,
        decided: Mapping[CampaignStep, Measured] | None = None,
    ) -> None:
        def isolated(step: CampaignStep, work: Callable[[], tuple[Cell, Run]]) -> tuple[Cell, Run]:
            return work()

        Experiment(
            setup=self.setup(),
            steps=STEPS,
            ready=self.ready,
            isolated=isolated,
            ended=self.endings.__setitem__,
            enough=self.decide,
            cells={step: list(cells) for step, cells in (earlier or {}).items()},
            decided=decided or {},
            order=random.Random(1),  # noqa: S311
        ).run()


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    rig = Rig()
    monkeypatch.setattr(experimenting, "measure_cell", rig.cell)
    return rig


def cells_of(ending: Ending) -> tuple[int, ...]:
    assert isinstance(ending, Measured)
    assert ending.visited
    return ending.visited.cells


def test_each_array_is_visited_twice_the_second_time_reversed(rig: Rig) -> None:
    rig.run()
    assert [geometry for geometry, _, _ in rig.cells] == [WIDE] * 4 + [NARROW] * 4 + [NARROW] * 2 + [WIDE] * 2
    assert [visit for _, _, visit in rig.cells] == [0] * 8 + [1] * 4
    assert {cells_of(ending) for ending in rig.endings.values()} == {(2, 1)}
    of_first = [workload for _, workload, _ in rig.cells[:4]]
    assert set(of_first[:2]) == set(of_first[2:]) == {READ, MIX}, "each workload once before any of them again"


def test_only_what_is_undecided_is_visited_again(rig: Rig) -> None:
    rig.enough = {(NARROW, MIX): 5}
    rig.run()
    assert [each for each in rig.cells if each[2] == 2] == [(NARROW, MIX, 2)] * 3
    assert cells_of(rig.endings[STEPS[3]]) == (2, 1, 3)
    assert cells_of(rig.endings[STEPS[0]]) == (2, 1)


def test_undecided_point_ends_with_what_is_known(rig: Rig) -> None:
    rig.enough = dict.fromkeys([(NARROW, MIX), (WIDE, READ)], 99)
    rig.run()
    ending = rig.endings[STEPS[0]]
    assert isinstance(ending, Measured)
    assert ending.visited
    assert ending.visited.is_last
    looks = [facts for kind, facts in rig.notes if kind == "looked" and facts["geometry"] == "raid5x4"]
    assert [each["decided"] for each in looks if each["workload"] == str(READ)] == [False, False]


@pytest.mark.parametrize("points", [1, 2], ids=["cell", "array"])
def test_error_ends_the_points_that_it_is_about(rig: Rig, points: int) -> None:
    error = InvalidMeasurement("no room")
    if points == 1:
        rig.broken[WIDE, READ] = error
    else:
        rig.unbuildable[WIDE] = error
    rig.run()
    assert [rig.endings[step] for step in STEPS[:points]] == [error] * points
    assert [cells_of(rig.endings[step]) for step in STEPS[points:]] == [(2, 1)] * (4 - points)


def test_visit_that_a_lost_machine_ended_goes_on_where_it_was(rig: Rig) -> None:
    rig.broken[NARROW, READ] = MachineLost("gone")
    with pytest.raises(MachineLost):
        rig.run()
    assert not rig.endings
    done = list(rig.cells)
    earlier = {
        step: [
            rig.cell(rig.setup(), rig.ready(step), workload, visit, None)[0]
            for geometry, workload, visit in done
            if (geometry, workload) == (step.geometry, step.what)
        ]
        for step in STEPS
    }
    rig.cells.clear()
    rig.broken.clear()
    rig.run(earlier)
    assert len(done) + len(rig.cells) == 12
    assert {cells_of(ending) for ending in rig.endings.values()} == {(2, 1)}


def test_what_an_earlier_session_decided_is_not_measured_again(rig: Rig) -> None:
    rig.run()
    decided = {step: ending for step, ending in rig.endings.items() if isinstance(ending, Measured)}
    rig.cells.clear()
    rig.endings.clear()
    rig.run(decided={step: decided[step] for step in STEPS[:3]})
    assert {each[:2] for each in rig.cells} == {(NARROW, MIX)}
    assert list(rig.endings) == [STEPS[3]]


def test_without_time_for_a_second_visit_there_is_no_figure(rig: Rig) -> None:
    rig.left_s = 500.0  # a visit of four cells takes 474 s
    rig.enough = dict.fromkeys([(WIDE, READ)], 99)
    rig.run()
    assert {cells_of(ending) for ending in rig.endings.values()} == {(2, 1)}
    assert len(rig.cells) == 12, "no third visit of two arrays"
    rig.left_s = 100.0
    rig.endings.clear()
    rig.run()
    assert {type(ending) for ending in rig.endings.values()} == {BudgetSpent}


def test_time_that_ends_within_a_round_leaves_what_is_known(rig: Rig) -> None:
    rig.enough = dict.fromkeys([(WIDE, READ), (NARROW, READ)], 99)
    measure_cell = rig.cell

    def cell(setup: Setup, array: Array, workload: Workload, visit: int, before: Run | None) -> tuple[Cell, Run]:
        rig.left_s = 100.0 if visit == 2 else 3600.0
        return measure_cell(setup, array, workload, visit, before)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experimenting, "measure_cell", cell)
        rig.run()
    assert cells_of(rig.endings[STEPS[0]]) == (2, 1, 3)
    ending = rig.endings[STEPS[2]]
    assert cells_of(ending) == (2, 1), "the second array has no time for a third visit"
    assert isinstance(ending, Measured)
    assert ending.visited
    assert ending.visited.is_last


def test_drives_side_by_side_that_are_left_out_begin_anew(rig: Rig) -> None:
    measure_cell = rig.cell

    def cell(setup: Setup, array: Array, workload: Workload, visit: int, before: Run | None) -> tuple[Cell, Run]:
        if len(rig.cells) == 4:
            rig.members = ("S1", "S2")
        return measure_cell(setup, array, workload, visit, before)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experimenting, "measure_cell", cell)
        rig.run()
    for ending in rig.endings.values():
        assert isinstance(ending, Measured)
        assert {run.members for run in ending.runs} == {("S1", "S2")}
