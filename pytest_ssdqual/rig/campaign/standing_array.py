"""The one array that stands on the drives: gets it ready for a step of the plan, and takes it down.

Nothing is measured here. A preparation that failed is not tried again: it would fail for each of a hundred tests.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.protocol_rules import Fill
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.rig.campaign.campaign_plan import (
    ArrayCondition,
    Assemble,
    Build,
    CampaignStep,
    FailMembers,
    Precondition,
    Preparation,
    Refresh,
)
from pytest_ssdqual.rig.campaign.result_cache import ResultCache
from pytest_ssdqual.rig.drives.failed import CONDITIONING, FILL
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, RigError, UnforeseenAgain
from pytest_ssdqual.rig.md import members
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle, precondition, refresh
from pytest_ssdqual.rig.measure.read_back import StampedFill
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.resume import readopt_array
from pytest_ssdqual.rig.resume.checkpoint import Conditioned

T = TypeVar("T")


@dataclass(slots=True)
class StandingArray:
    """The array and its condition; both None if no array stands. ``close`` it, or the array stays."""

    setup: Setup
    #: Failures of preparations.
    cache: ResultCache
    array: Array | None = None
    condition: ArrayCondition | None = None
    #: Conditioning by an earlier session; confirmed before anything is measured.
    _inherited: Conditioned | None = None
    #: Nothing was built yet in place of the array that an earlier session left.
    _untouched: bool = True
    #: The drives side by side that arrays are assembled of, and how they settled; None if the array has its own fill.
    _bare: Array | None = None
    _conditioned: Conditioned | None = None
    #: The latest fill with data that can be read back.
    _stamped: StampedFill | None = None

    def prepare(self, todo: Sequence[Preparation]) -> None:
        """Execute the preparations. If one of them has failed before, raise its failure and execute none."""
        for each in todo:
            self._require_not_failed(each)
        for each in todo:
            if isinstance(each, Build):
                self._or_undone(each, partial(self._build, each), self.close)
            elif isinstance(each, Assemble):
                self._or_undone(each, partial(self._assemble, each), self._back_to_drives)
            elif isinstance(each, Precondition):
                self._precondition(each)
            elif isinstance(each, Refresh):
                self._refresh(each)
            else:
                # The drives of an assembled array keep their condition.
                undo = self._back_to_drives if self._bare else self.close
                self._or_undone(each, partial(self._fail_members, each), undo)

    def begin_visit(self) -> None:
        """Let the next step find its array as at the beginning of a visit.

        An assembled array is taken down, and the bare drives have to be refreshed: a second visit
        that follows the first one without that would show the same minutes of the drives.
        """
        condition = self.condition
        if condition is None or condition.drives is None or self._bare is None:
            return
        if self.array is not self._bare:
            self._back_to_drives()
        if self.condition:
            self.condition = replace(self.condition, is_due=not self.condition.is_fresh)

    def require(self) -> Array:
        """Return the array that stands."""
        if self.array is None:
            raise RigError("no array stands")
        return self.array

    @property
    def steady(self) -> SteadyState | None:
        """Steady state of the pattern that the array is conditioned for; None if the protocol does not condition."""
        return self._conditioned.state if self._conditioned else None

    @property
    def fill(self) -> Fill:
        """What the array, or the drives, were filled with; ``RigError`` if none stands."""
        if self.condition is None:
            raise RigError("no array stands")
        return self.condition.fill

    @property
    def stamped(self) -> StampedFill:
        """The data on the drives that can be read back; ``RigError`` if they hold none."""
        if self._stamped is None or self.condition is None or not self.condition.is_stamped:
            raise RigError("the drives hold no data that could be read back")
        return self._stamped

    def use_for(self, step: CampaignStep) -> Array:
        """Record the condition that ``step`` leaves; return the array for the step.

        Drives side by side come without those that are left out of the step. ``InvalidMeasurement`` if no other is
        left, or if one that has not settled is a member of the array.
        """
        array = self._with_usable()
        subjects = [(each, step.pattern) for each in (step.geometry, self._bare and self._bare.geometry)]
        left_out = self.setup.failures.left_out_of(FILL, CONDITIONING, *subjects, step)
        reasons = {drive.name: left_out[drive.name] for drive in array.members if drive.name in left_out}
        is_array = not array.geometry.is_side_by_side
        if reasons and (is_array or len(reasons) == len(array.members)):
            each = "; ".join(f"{serial} {why}" for serial, why in reasons.items())
            raise InvalidMeasurement(
                f"{step} is not measured: {each}" if is_array else f"no drive is left for {step}: {each}"
            )
        self.condition = self.condition and self.condition.used_for(step)
        return array.without(reasons)

    def _with_usable(self) -> Array:
        """Return the array that stands, drives side by side as far as they can be used; see ``usable``."""
        array = self.require()
        if array.geometry.is_side_by_side and self.setup.failures.has_unusable:
            usable = self.setup.failures.usable(array.geometry, self.setup.held.drives)
            self.array = array = array.without({drive.name for drive in array.members if drive not in usable})
        return array

    def close(self) -> None:
        """Stop the array; the drives stay leased. If that fails, the next call tries again."""
        array, condition = self.array, self.condition
        self.condition = self._inherited = self._bare = self._conditioned = None
        if array:
            array_lifecycle.stop(self.setup, array)
            self.array = None
            if condition and not condition.spent:
                readopt_array.count(self.setup, array, "closed")

    def _back_to_drives(self) -> None:
        """Stop the assembled array; its drives stand as they are. If that fails, it has no condition any more."""
        array, bare, condition = self.array, self._bare, self.condition
        if array is None or bare is None or condition is None or condition.drives is None:
            raise RigError("no conditioned drives stand")
        try:
            array_lifecycle.stop(self.setup, array)
        except BaseException:
            self.condition = self._bare = self._conditioned = None
            raise
        self.array = bare
        self.condition = condition.after(Assemble(condition.drives))
        if array.geometry.level is not RaidLevel.DRIVE:
            readopt_array.count(self.setup, array, "closed")

    def _require_not_failed(self, step: Preparation) -> None:
        failure = self.cache.failure(step.failure_key)
        is_built = isinstance(step, Precondition | Refresh)
        if failure and not is_built and not isinstance(failure, UnforeseenAgain):
            raise RigError(f"{step.geometry} was not built: {failure}")
        if failure:
            raise failure

    def _or_undone(self, step: Preparation, work: Callable[[], None], undo: Callable[[], None]) -> None:
        """Call ``work``, and ``undo`` if that fails."""

        def undoing() -> None:
            with array_lifecycle.undone(undo):
                work()

        self.cache.unless_failed(step.failure_key, undoing, tries=_tries(step))

    def _build(self, step: Build) -> None:
        self.close()
        if not self._taken_over(step):
            self._stamped = StampedFill.new() if step.is_stamped else None
            pattern = self._stamped.pattern if self._stamped else ""
            build = partial(array_lifecycle.build, self.setup, step.geometry, step.fill, pattern)
            self.array = self._isolated(step.geometry, FILL, build)
            if self._stamped:
                self._stamped.written(self.setup.readings)
        array = self.require()
        self.condition = ArrayCondition(step.geometry, step.fill).after(step)
        self._bare = array if step.geometry.is_side_by_side and not step.anew else None
        readopt_array.count(self.setup, array, "built")

    def _assemble(self, step: Assemble) -> None:
        self._back_to_drives()
        bare, condition = self.require(), self.condition
        if step.geometry != bare.geometry:
            self.array = array_lifecycle.assemble(self.setup, bare, step.geometry)
        self.condition = condition and condition.after(step)
        readopt_array.count(self.setup, self.require(), "built")

    def _taken_over(self, step: Build) -> bool:
        """Take over the array that an earlier session left, if it is this one and nothing was built before."""
        left = None if step.anew or step.is_stamped or not self._untouched else self.cache.earlier.left_array()
        self._untouched = False
        if left is None or (left.geometry, Fill(left.passes, left.fill_bs)) != (step.geometry, step.fill):
            return False
        self.array = readopt_array.take_over(self.setup, left)
        self._inherited = left.conditioned if self.array else None
        return self.array is not None

    def _precondition(self, step: Precondition) -> None:
        if self.condition is None:
            raise RigError("no array stands")
        # The writes of one pattern undo the state that another one needs.
        self.condition = replace(self.condition, pattern=None)
        if step.geometry == self.condition.drives:
            self.condition = replace(self.condition, drives_pattern=None)
        work = partial(self._isolated, step.geometry, CONDITIONING, partial(self._settled, step))
        self._keep(step, self.cache.unless_failed(step.failure_key, work))

    def _refresh(self, step: Refresh) -> None:
        # Drives that do not become as fast as they settled are left out of the pattern.
        subject = step.geometry, step.workload.pattern
        work = partial(self._isolated, step.geometry, subject, partial(self._refreshed, subject))
        self._keep(step, self.cache.unless_failed(step.failure_key, work, tries=_tries(step)))

    def _keep(self, step: Precondition | Refresh, conditioned: Conditioned | None) -> None:
        self._conditioned = conditioned
        self.condition = self.condition and self.condition.after(step)

    def _refreshed(self, subject: tuple[Geometry, str]) -> Conditioned | None:
        """Refresh the bare drives but those that have not settled; None if the protocol conditions nothing."""
        conditioned, array = self._conditioned, self._with_usable()
        if conditioned is None:
            return None
        left_out = self.setup.failures.left_out_of(FILL, CONDITIONING, subject)
        found = refresh.refresh(self.setup, array.without(left_out), conditioned)
        readopt_array.count(self.setup, array, "conditioned")
        return found

    def _isolated(self, geometry: Geometry, subject: Hashable, work: Callable[[], T]) -> T:
        return self.setup.failures.isolated(geometry, subject, work, self.setup.logbook)

    def _settled(self, step: Precondition) -> Conditioned | None:
        array, inherited = self._with_usable(), self._inherited
        is_its = inherited is not None and inherited.writes.pattern == step.workload.pattern
        found = readopt_array.confirm(self.setup, array, inherited) if inherited and is_its else None
        self._inherited = None  # not before: a confirmation that was interrupted is begun again
        if found is None:
            found = precondition.until_steady(self.setup, array, step.workload)
        readopt_array.count(self.setup, array, "conditioned")
        return found

    def _fail_members(self, step: FailMembers) -> None:
        self.array = members.fail_members(self.setup, self.require(), step.geometry.missing)
        self.condition = self.condition and self.condition.after(step)


def _tries(step: Preparation) -> int:
    """Return how often a preparation may fail before it is final.

    What comes again at each visit may be disturbed once in a night.
    """
    return 2 if isinstance(step, Assemble | Refresh) else 1
