"""Executes the plan of a run on its drives, step by step, when a test waits for the result of a step.

First come the steps that the plan has before it on the same array, and before an array is taken down, the rest of its
steps. So each array is built once, and the state in which something is measured does not depend on the order of the
tests. A result or a failure is in the cache from then on; a hundred tests that need the same broken step report one
cause.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar, cast

from pytest_ssdqual.qual.integrity.read_back import ReadBack
from pytest_ssdqual.qual.integrity.stamp import Stamp
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.measured.sweep import Ceiling, DrivesAlone
from pytest_ssdqual.qual.raid import member_curve
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.stats.estimate import TooFew
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.stats.visits import Cell
from pytest_ssdqual.qual.workload.rounds import Rounds, RoundsResult
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import (
    SHARING,
    CampaignPlan,
    CampaignStep,
    Preparation,
    StepKind,
    takes_down,
)
from pytest_ssdqual.rig.campaign.experiment import Ending, Experiment
from pytest_ssdqual.rig.campaign.result_cache import ResultCache
from pytest_ssdqual.rig.campaign.standing_array import StandingArray
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, RigError
from pytest_ssdqual.rig.md import ceiling
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import (
    fixed_time,
    load_calibration,
    read_back,
    replays,
    rounds,
    saturation,
    visits,
)
from pytest_ssdqual.rig.measure import rebuild as rebuilding
from pytest_ssdqual.rig.measure.probe import Probe
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.measure.visits import Enough
from pytest_ssdqual.rig.resume import readopt_array
from pytest_ssdqual.rig.resume.checkpoint import ResultKey

T = TypeVar("T")
Result = Measured | DrivesAlone | Saturation | RoundsResult | Rebuild | ReadBack


def allow_all(step: CampaignStep, preparations: Sequence[Preparation]) -> None:
    """Allow every step."""


@dataclass(slots=True)
class Campaign:
    """Executes steps and returns their results; ``close`` it, or the array stays.

    Each method raises ``RigError`` or a subclass, the same again each time. A step that is not in the plan is executed,
    too.
    """

    setup: Setup
    plan: CampaignPlan = field(default_factory=CampaignPlan)
    cache: ResultCache = field(default_factory=ResultCache)
    #: Workloads with a test of a tail or an extreme, on any array: their windows are equally long.
    tails: Container[Workload] = frozenset()
    #: For a protocol with visits: decides at a look whether a point needs no further one.
    enough: Enough = visits.at_once
    #: Raises a ``RigError`` if a step must not begin, with what its array needs before it.
    allowed: Callable[[CampaignStep, Sequence[Preparation]], None] = allow_all
    _standing: StandingArray = field(init=False)
    #: Number in the plan of the array that stands.
    _array_number: int | None = None
    #: Cells of each point that is visited, in this session and before it.
    _cells: dict[CampaignStep, list[Cell]] = field(default_factory=dict)
    #: By workload and serial number; None where it could not be measured.
    _alone: dict[tuple[Workload, str], Measured | None] = field(default_factory=dict)
    #: By array and workload; in another boot of the machine they are measured again.
    _ceilings: dict[tuple[Geometry, Workload], Ceiling] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._standing = StandingArray(self.setup, self.cache)

    def array(self, geometry: Geometry) -> Array:
        """Return the array of this geometry, filled by the protocol; a degraded one has members failed."""
        step = CampaignStep(StepKind.ARRAY, geometry)
        if self._preparation(step):
            self._execute_due(step)
        return self._ready(step)

    def steady(self, geometry: Geometry, workload: Workload) -> SteadyState | None:
        """Return the steady state of the array's conditioning for this class of workload.

        None if the protocol does not condition. ``InvalidMeasurement`` if the array did not settle in time; that is not
        tried again for the next workload, or hours would be spent on each.
        """
        step = CampaignStep(StepKind.CONDITIONED, geometry, workload)
        if self._preparation(step):
            self._execute_due(CampaignStep(StepKind.MEASURED, geometry, workload))
        self._ready(step)
        return self._standing.steady

    def measure(self, geometry: Geometry, workload: Workload) -> Measured:
        """Return all repeats of one workload on one array; by a protocol with visits until ``enough``."""
        return cast(Measured, self._result(CampaignStep(StepKind.MEASURED, geometry, workload)))

    def sweep(self, geometries: Sequence[Geometry], workload: Workload) -> tuple[Measured, ...]:
        """Return one workload on several arrays, which are measured in the order of the plan.

        On conditioned drives that is from the widest to the narrowest array, so that no drive is used after it idled.
        """
        steps = sorted((CampaignStep(StepKind.MEASURED, each, workload) for each in geometries), key=self.plan.place)
        for step in steps:
            if not self._is_known(step):
                self.allowed(step, ())  # before hours for the others
        return tuple(cast(Measured, self._result(step)) for step in steps)

    def member(self, workload: Workload) -> Measured:
        """Return the workload on all bare drives side by side, as measured before any array.

        ``RigError`` if it was not: it was not planned, or failed.
        """
        bare = self.plan.bare
        for kind in (StepKind.MEASURED, StepKind.MEMBER):
            if bare and (step := CampaignStep(kind, bare, workload)) in self.plan.steps:
                if not self._is_known(step):
                    raise RigError(f"{workload} was not measured on the bare drives before the arrays")
                return cast(Measured, self._result(step))
        raise RigError(f"{workload} was not measured on the bare drives")

    def member_workloads(self, geometry: Geometry, workload: Workload) -> tuple[Workload, ...]:
        """Return the workloads of bare drives from which ``workload`` on an array is predicted, the shallowest first.

        They are those that it needs, and all others of the same mix and size.
        """
        limits = [drive.queue_limit for drive in self.setup.held.drives if drive.queue_limit is not None]
        needed = member_curve.member_workloads(geometry, workload, min(limits, default=None))
        alike = (
            each.what
            for each in self.plan.of_members
            if isinstance(each.what, Workload) and each.what.at(1) == needed[0].at(1)
        )
        return tuple(sorted(dict.fromkeys((*needed, *alike)), key=lambda each: each.qd_per_drive))

    def drives_of(self, geometry: Geometry) -> tuple[str, ...]:
        """Return the serial numbers of the present members of an array that can be built now.

        ``DriveFailed`` if one of its drives has failed.
        """
        members = self.setup.failures.usable(geometry, self.setup.held.drives)
        return tuple(drive.name for drive in members)[: geometry.width - geometry.missing]

    def alone(self, workload: Workload | None = None) -> DrivesAlone | None:
        """Return a workload on each drive alone, by default the shallowest that was; None if it was not measured."""
        return next((alone for alone in self.all_alone() if workload in (None, alone.workload)), None)

    def all_alone(self) -> Iterator[DrivesAlone]:
        """Yield what was measured on each drive alone."""
        for step in self.plan.of_members:
            if step.kind is StepKind.ALONE and self._is_known(step):
                with suppress(RigError):
                    yield cast(DrivesAlone, self._result(step))

    def drive_alone(self, geometry: Geometry, workload: Workload, serial: str) -> Measured | None:
        """Return reads of one of the drives side by side that stand, measured alone now, once.

        None if the workload writes, if other drives stand, or if the measurement fails.
        """
        array, key = self._standing.array, (workload, serial)
        if workload.writes or array is None or array.geometry != geometry:
            return self._alone.get(key)
        if key not in self._alone:
            members = tuple(drive for drive in array.members if drive.name == serial)
            one = replace(array, geometry=fixed_time.ONE, members=members)
            self._alone[key] = None
            try:
                self._alone[key] = fixed_time.measure_alone(self._of_members(), one, workload).measurements[0]
            except RigError as error:
                if error.ends_run:
                    raise
        return self._alone[key]

    def ceiling(self, geometry: Geometry, workload: Workload) -> Ceiling:
        """Return what md and the host can do with the same array on memory devices; measured once for each in a boot.

        ``MachineLost`` if the machine is lost.
        """
        key = geometry, workload
        if key not in self._ceilings:
            earlier = self._earlier_ceiling(geometry, workload)
            self._ceilings[key] = earlier or ceiling.measure(self.setup, geometry, workload)
        return self._ceilings[key]

    def _earlier_ceiling(self, geometry: Geometry, workload: Workload) -> Ceiling | None:
        """Return the ceiling of an earlier session in this boot; one that was unknown may be known now."""
        earlier = self.cache.earlier.recall(ResultKey("ceiling", geometry, str(workload)))
        if not isinstance(earlier, Ceiling) or earlier.iops is None or earlier.asked != workload:
            return None
        return earlier if earlier.boot_id == ceiling.boot_id(self.setup.machine) else None

    def _is_known(self, step: CampaignStep) -> bool:
        return self.cache.knows(step, step.key)

    def read_back(self, geometry: Geometry) -> ReadBack:
        """Return the comparison of all data of drives side by side with what was written to them.

        If something else was written since their fill, they are purged and filled again.
        """
        return cast(ReadBack, self._result(CampaignStep(StepKind.READ_BACK, geometry)))

    def saturate(self, geometry: Geometry, workload: Workload) -> Saturation:
        """Return writes from the purged state until settled, or until the protocol's volume or time is used up."""
        return cast(Saturation, self._result(CampaignStep(StepKind.SATURATION, geometry, workload)))

    def loop(self, geometry: Geometry, loop: Rounds) -> RoundsResult:
        """Return all rounds of a loop, from its own purge and fill on."""
        return cast(RoundsResult, self._result(CampaignStep(StepKind.LOOP, geometry, loop)))

    def cell(self, geometry: Geometry, loop: Rounds, workload: Workload) -> Measured:
        """Return one workload of the rounds; ``InvalidMeasurement`` if they did not become steady."""
        found = self.loop(geometry, loop)
        try:
            cell = found.measured(workload)
        except TooFew as error:
            raise InvalidMeasurement(str(error)) from error
        if not found:
            raise InvalidMeasurement(repr(found).strip("<>"))
        return cell

    def rebuild(self, geometry: Geometry, workload: Workload) -> Rebuild:
        """Return the rebuild of a degraded array while ``workload`` runs; ``geometry`` is the rebuilding one."""
        return cast(Rebuild, self._result(CampaignStep(StepKind.REBUILD, geometry, workload)))

    def probe(self, geometry: Geometry, workload: Workload, probe: Probe) -> Measured:
        """Return one measurement of a search, on an array that is the search's own from its purge on.

        What a search writes (parts of the range, compressible data) would spoil other measurements. Raises a plain
        ``RigError`` if the array cannot be built or conditioned.
        """
        step = CampaignStep(StepKind.SEARCH, geometry, workload)
        # Conditioned for plain workloads: a search draws skewed ones again and again, each would begin with a purge.
        plain = replace(step, what=replace(workload, zipf=0, zones="", region_percent=100))

        def now() -> Measured:
            try:
                if self._preparation(plain):
                    self._execute_due(plain)
                array = self._ready(plain)
            except InvalidMeasurement as error:
                raise RigError(f"nothing can be searched on {geometry}: {error}") from error
            return probe.measure(self.setup, array, workload)

        key = replace(step.key, kind=probe.kind)
        return self.cache.result((probe.kind, step), key, partial(self._isolated, step, now), partial(_is_of, step))

    @property
    def searched(self) -> Array | None:
        """The array of a search, if it stands."""
        condition = self._standing.condition
        return self._standing.array if condition and condition.searched else None

    def spend(self, step: CampaignStep, work: Callable[[Array, Stamp], T]) -> T:
        """Return the result of ``work`` on the array of ``step``, with the stamp of its fill; nothing else uses it."""

        def once() -> T:
            return work(self._ready(step), self._standing.stamped.stamp)

        def now() -> T:
            self.allowed(step, ())
            self._execute_due(step)
            return self._isolated(step, once)

        return self.cache.unless_failed(step, now)

    def apart(self, geometry: Geometry, work: Callable[[], T]) -> T:
        """Return the result of ``work``, an integrity test that builds arrays of its own; no array stands then."""

        def now() -> T:
            step = CampaignStep(StepKind.INTEGRITY, geometry)
            self.allowed(step, ())
            self._execute_due(step)
            self.allowed(step, ())
            self.close()
            self.setup.set_caches()
            return work()

        return self.cache.unless_failed(("integrity", geometry), now)

    def close(self) -> None:
        """Stop the array; the drives stay leased."""
        self._array_number = None
        self._standing.close()

    def _result(self, step: CampaignStep) -> Result:
        def now() -> Result:
            self.allowed(step, ())  # before steps that only this one would need
            self._execute_due(step)
            if experiment := self.plan.experiment(step):
                return self._visited(step, experiment)
            return self._execute(step)

        return self.cache.result(step, step.key, now, partial(_is_of, step))

    def _execute_due(self, step: CampaignStep) -> None:
        """Execute the steps that go before ``step``. Their failures are raised in the tests that need them."""
        self._execute_all(self._due(step))

    def _execute_all(self, steps: Iterable[CampaignStep]) -> None:
        for each in steps:
            if self.cache.knows(each, each.key) or self.plan.experiment(each):
                continue  # what is visited comes together, when a test asks for it
            try:
                self.cache.result(each, each.key, partial(self._execute, each), partial(_is_of, each))
            except RigError as error:
                if error.ends_run:
                    raise

    def _due(self, step: CampaignStep) -> Iterator[CampaignStep]:
        """Yield the planned steps that go before ``step``: the rest of the array that stands, if that has to make room
        for another one, and then those that the plan has before ``step`` on its own array.
        """
        if self._takes_down(step) or self.plan.array_of(step) != self._array_number:
            for each in self.plan.on_array(self._array_number):
                # A rebuild writes a whole member for hours, and its test may be skipped after all.
                if each.kind is not StepKind.REBUILD and not self._takes_down(each):
                    yield each
        if step.kind in SHARING and not step.geometry.is_side_by_side:
            yield from self.plan.members_before(step)
        is_taken_down = self._takes_down(step)
        for each in self.plan.before(step):
            if is_taken_down or not self._takes_down(each):
                yield each

    def _takes_down(self, step: CampaignStep) -> bool:
        """Return True if the array that stands has to be taken down for ``step``, or if no array stands."""
        return takes_down(self._preparation(step))

    def _preparation(self, step: CampaignStep) -> tuple[Preparation, ...]:
        return self.plan.preparation(self._standing.condition, step)

    def _ready(self, step: CampaignStep) -> Array:
        """Get the array ready for a step, and return it. This measures nothing.

        ``DriveFailed`` if one of its drives has failed in this run; of drives side by side, if all have.
        """
        if self.setup.failures.failed:
            self.setup.failures.usable(step.geometry, self.setup.held.drives)
        self.allowed(step, self._preparation(step))
        self.setup.set_caches()
        load_calibration.require(self.setup)
        stood = self._standing.array
        try:
            self._standing.prepare(self._preparation(step))
        finally:
            if self._standing.array is not stood:  # also one that was built, but could not be conditioned
                self._array_number = self.plan.array_of(step)
        return self._standing.use_for(step)

    def _execute(self, step: CampaignStep) -> Result:
        """Get the array ready and measure; again without each drive side by side that fails or gives no valid figure.

        The others stay filled and conditioned: their load was the same, and it was interrupted only.
        """
        return self._isolated(step, partial(self._once, step))

    def _isolated(self, step: CampaignStep, work: Callable[[], T]) -> T:
        return self.setup.failures.isolated(step.geometry, step, work, self.setup.logbook)

    def _once(self, step: CampaignStep) -> Result:
        array = self._ready(step)
        self.allowed(step, ())  # conditioning may have taken longer than expected
        if isinstance(step.what, Rounds):
            return rounds.run(self.setup, array, step.what)
        if step.kind is StepKind.READ_BACK:
            return read_back.compare(self.setup, array, self._standing.fill, self._standing.stamped)
        if step.what is None:
            raise TypeError(f"{step} has no result")
        if step.kind is StepKind.SATURATION:
            return saturation.saturate(self.setup, array, step.what)
        if step.kind is StepKind.REBUILD:
            return rebuilding.rebuild(self.setup, array, step.what)
        if step.kind is StepKind.MEMBER:
            return fixed_time.measure(self._of_members(), array, step.what, step.kind.value)
        if step.kind is StepKind.ALONE:
            return fixed_time.measure_alone(self._of_members(), array, step.what)
        return self._measured(array, step.what)

    def _of_members(self) -> Setup:
        return replace(self.setup, protocol=self.setup.protocol.of_members)

    def _visited(self, asked: CampaignStep, steps: Sequence[CampaignStep]) -> Measured:
        """Return the result of a step after the visits of all; their results and failures are kept."""
        endings: dict[CampaignStep, Ending] = {}

        def ended(step: CampaignStep, ending: Ending) -> None:
            endings[step] = ending
            if isinstance(ending, Measured):
                self.cache.put(step, ending)  # limits of other points may rest on it before the experiment ends
            elif step != asked:
                self.cache.fail(step, ending)

        self._measure_references(asked, steps)
        others = [step for step in steps if step != asked]
        failed = {step for step in others if self.cache.failure(step)}
        decided = {step: known for step in others if step not in failed and (known := self._recalled(step))}
        for step in steps:
            self._cells.setdefault(step, self._earlier_cells(step))
        experiment = Experiment(
            setup=self.setup,
            steps=[step for step in steps if step not in failed],
            ready=self._ready,
            isolated=self._isolated,
            ended=ended,
            enough=self.enough,
            cells=self._cells,
            decided=decided,
            begin_visit=self._standing.begin_visit,
        )
        experiment.run()
        if self._standing.array is not None:
            readopt_array.count(self.setup, self._standing.array, "measured")
        ending = endings[asked]
        if isinstance(ending, Exception):
            raise ending
        return ending

    def _measure_references(self, asked: CampaignStep, steps: Sequence[CampaignStep]) -> None:
        """Measure the bare drives that arrays of an experiment are predicted from, before its visits."""
        if any(not step.geometry.is_side_by_side for step in steps):
            of_pattern = [each for each in self.plan.of_members if each.pattern == asked.pattern]
            self._execute_all(of_pattern)

    def _recalled(self, step: CampaignStep) -> Measured | None:
        """Return the result of this session or of an earlier one; None if there is none that is this step's."""
        if step not in self.cache:
            recalled = self.cache.earlier.recall(step.key)
            if not _is_of(step, recalled):
                return None
            self.cache.put(step, recalled)
        return cast(Measured, self.cache[step])

    def _earlier_cells(self, step: CampaignStep) -> list[Cell]:
        """Return the cells of an earlier session, if its workload of that name is this one."""
        cells = self.cache.earlier.cells(step.key)
        return [cell for cell in cells if cell.run.workload == step.what]

    def _measured(self, array: Array, workload: Workload) -> Measured:
        if workload.replay:
            return replays.measure(self.setup, array, workload)
        measured = fixed_time.measure(self.setup, array, workload, tail=workload in self.tails)
        readopt_array.count(self.setup, array, "measured")
        return measured


def _is_of(step: CampaignStep, result: object) -> bool:
    """Return True if a result of an earlier session is that of this step: names may have been given anew."""
    if isinstance(result, RoundsResult):
        return result.loop == step.what
    if isinstance(result, Rebuild):
        return result.foreground.workload == step.what
    if isinstance(result, Measured | DrivesAlone | Saturation):
        return result.workload == step.what
    return isinstance(result, ReadBack)
