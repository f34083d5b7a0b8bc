"""All points of a run that share an access pattern, as one experiment: arrays are visited in rounds.

Each array is visited twice, hours apart, the second time in reversed order; a visit measures some
cells of each of its workloads in random order. What is not decided then is visited again, until the
protocol's last visit. What a session that was interrupted has measured counts.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol_rules import VisitRule
from pytest_ssdqual.qual.stats import visits
from pytest_ssdqual.qual.stats.visits import Cell, Point
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignStep
from pytest_ssdqual.rig.campaign.result_cache import SILENCES
from pytest_ssdqual.rig.drives.failed import DriveFailed
from pytest_ssdqual.rig.machine.machine import DriveSilent, InvalidMeasurement, RigError
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.session import BudgetSpent, Setup
from pytest_ssdqual.rig.measure.visits import Enough, measure_cell, note_look, rule_of

#: The result of a point, or what failed.
Ending = Measured | Exception
#: Starting fio and checking the array before and after each cell, and taking an array down and
#: assembling the next one: seconds, as in the plan.
CELL_OVERHEAD_S, ARRAY_OVERHEAD_S = 3.5, 20.0


@dataclass(slots=True)
class Experiment:
    """The visits of the points that ``steps`` name, each a workload on an array."""

    setup: Setup
    steps: Sequence[CampaignStep]
    #: Gets the array of a step ready, and returns it.
    ready: Callable[[CampaignStep], Array]
    #: Executes work for a step; for drives side by side again without each drive that prevents it.
    isolated: Callable[[CampaignStep, Callable[[], tuple[Cell, Run]]], tuple[Cell, Run]]
    #: Is called with the ending of each point when it is known.
    ended: Callable[[CampaignStep, Ending], None]
    enough: Enough
    #: Cells of each point until now, also of an earlier session; new ones are added.
    cells: dict[CampaignStep, list[Cell]] = field(default_factory=dict)
    #: Points that are decided.
    decided: Mapping[CampaignStep, Measured] = field(default_factory=dict)
    #: Lets the array that stands, or the bare drives, not count as prepared for a visit.
    begin_visit: Callable[[], None] = lambda: None
    #: The order of workloads in a visit.
    order: random.Random = field(default_factory=random.Random)
    _step_of: dict[Point, CampaignStep] = field(default_factory=dict)
    _open: list[Point] = field(default_factory=list)
    _cells: dict[Point, list[Cell]] = field(default_factory=dict)
    #: Arrays that were not ready for a visit.
    _missed: dict[Geometry, RigError] = field(default_factory=dict)
    _latest: dict[Point, Measured] = field(default_factory=dict)

    def run(self) -> None:
        """Visit until every point has an ending; raises what ends the run."""
        self._begin()
        rule = rule_of(self.setup)
        for visit in range(len(rule.cells)):
            for geometry in self._in_order(visit):
                self._visit(geometry, visit)
            if visit + 1 >= rule.before_first_look:
                self._look(visit, is_last=self._is_last(visit))
            if not self._open:
                return

    def _begin(self) -> None:
        for step in self.steps:
            if not isinstance(step.what, Workload):
                raise TypeError(f"{step} is no measurement of a workload")
            point = step.geometry, step.what
            self._step_of[point] = step
            self._cells[point] = self.cells.setdefault(step, [])
            if step in self.decided:
                self._latest[point] = self.decided[step]
            else:
                self._open.append(point)

    def _in_order(self, visit: int) -> Sequence[Geometry]:
        """Return the arrays of open points: in the plan's order, and every other time in reverse."""
        geometries = tuple(dict.fromkeys(geometry for geometry, _ in self._open))
        return geometries if visit % 2 == 0 else geometries[::-1]

    def _visit(self, geometry: Geometry, visit: int) -> None:
        """Measure the cells of one array's visit that are still to be measured."""
        todo = self._todo(geometry, visit)
        if not todo:
            return
        seconds, what = self._visit_s(len(todo)), f"visit {visit + 1}"
        try:
            self.setup.require_time(seconds, f"{what} of {geometry}")
        except BudgetSpent as error:
            for point in dict.fromkeys(todo):
                self._end_unvisited(point, error)
            return
        self.setup.progress(f"{geometry}: {what}, {len(todo)} cells", seconds)
        if not self._is_ready(geometry, todo):
            return
        before: Run | None = None
        for point in todo:
            if point not in self._open:
                continue  # an error has ended it
            before = self._cell(point, visit, before)

    def _is_ready(self, geometry: Geometry, todo: Sequence[Point]) -> bool:
        """Get an array ready for its visit; False if that fails.

        A visit may be missed once: a busy array, or a fio that was killed, must not cost the night.
        """
        try:
            self.begin_visit()
            self.ready(self._step_of[todo[0]])
        except (BudgetSpent, DriveFailed):
            return True  # each point has its own ending
        except RigError as error:
            if error.ends_run:
                raise
            if geometry in self._missed:
                for point in dict.fromkeys(todo):
                    self._end(point, error)
            self._missed[geometry] = error
            self.setup.note("visit_missed", geometry, fault=str(error))
            return False
        return True

    def _end_unvisited(self, point: Point, error: BudgetSpent) -> None:
        """End a point that has no further visit: with what it has shown, or else with the error."""
        if point not in self._latest:
            self._end(point, error)
            return
        self._decide(point, visits.without_further(self._latest[point]), is_last=True)

    def _todo(self, geometry: Geometry, visit: int) -> list[Point]:
        """Return the cells to measure, by their points: each workload once, then each again."""
        count = rule_of(self.setup).cells[visit]
        points = [point for point in self._open if point[0] == geometry]
        missing = {point: count - sum(cell.visit == visit for cell in self._cells[point]) for point in points}
        todo: list[Point] = []
        for number in range(count):
            turn = [point for point in points if missing[point] > number]
            todo += self.order.sample(turn, len(turn))
        return todo

    def _cell(self, point: Point, visit: int, before: Run | None) -> Run | None:
        """Measure one cell; an error ends its point."""
        step = self._step_of[point]
        generation = self.setup.machine.generation

        def measured() -> tuple[Cell, Run]:
            return measure_cell(self.setup, self.ready(step), point[1], visit, before)

        try:
            cell, run = self._answered(lambda: self.isolated(step, measured))
        except BudgetSpent as error:
            self._end_unvisited(point, error)
            return None
        except Exception as error:
            if isinstance(error, RigError) and error.ends_run:
                raise
            self._end(point, error)
            return None
        cells = self._cells[point]
        if cells and cells[0].run.members != run.members:
            # A drive side by side was left out: cells with it are of other drives.
            cells.clear()
        cells.append(cell)
        return run if self.setup.machine.generation == generation else None

    def _answered(self, work: Callable[[], tuple[Cell, Run]]) -> tuple[Cell, Run]:
        """Return the result of work that is tried again if a drive does not answer; it may later."""
        for _ in range(SILENCES - 1):
            with suppress(DriveSilent):
                return work()
        return work()

    def _is_last(self, visit: int) -> bool:
        """Return whether no further visit follows: by the rule, or because its time is over."""
        cells = rule_of(self.setup).cells
        if visit + 1 == len(cells):
            return True
        points = Counter(geometry for geometry, _ in self._open)
        count = cells[visit + 1]
        least_s = min((self._visit_s(count * each) for each in points.values()), default=0.0)
        return least_s > self.setup.left_s()

    def _visit_s(self, cells: int) -> float:
        """Return the seconds of a visit of so many cells."""
        rule: VisitRule = rule_of(self.setup)
        per_cell_s = rule.ramp_s + rule.cell_s + CELL_OVERHEAD_S
        return rule.refresh_s + ARRAY_OVERHEAD_S + cells * per_cell_s

    def _look(self, visit: int, *, is_last: bool) -> None:
        """Decide which points end by their cells until this visit, and record their results.

        A session that was interrupted may have measured cells of the next one.
        """
        cells: dict[Point, list[Cell]] = {}
        for point, of_point in self._cells.items():
            until = sorted((cell for cell in of_point if cell.visit <= visit), key=lambda cell: cell.visit)
            if until:
                cells[point] = until
        measured = visits.at_look(cells, self.setup.protocol, is_last=is_last)
        self._latest |= {point: measured[point] for point in self._open if point in measured}
        for point in list(self._open):
            if point in measured:
                self._decide(point, measured[point], is_last=is_last)
            elif is_last:
                self._end(point, self._too_few(point))

    def _decide(self, point: Point, measured: Measured, *, is_last: bool) -> None:
        others = [each for other, each in self._latest.items() if other != point]
        try:
            decision = self.enough(measured, others)
        except Exception as error:
            if isinstance(error, RigError) and error.ends_run:
                raise
            self._end(point, error)
            return
        note_look(self.setup, measured, decision)
        if decision or is_last:
            fixed_time.record_measured(self.setup, measured)
            self._end(point, measured)

    def _too_few(self, point: Point) -> RigError:
        geometry, workload = point
        if geometry in self._missed:
            return self._missed[geometry]
        about = f"{workload} on {geometry}"
        if self.setup.left_s() < self._visit_s(1):
            return BudgetSpent(f"{about} has too few visits: the run's time budget is over")
        return InvalidMeasurement(f"{about} has too few visits that count")

    def _end(self, point: Point, ending: Ending) -> None:
        self._open.remove(point)
        self.ended(self._step_of[point], ending)
