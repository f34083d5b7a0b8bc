"""A test station: the drives of a set-up, the one array that stands on them now, and all results measured on it.

Everything is measured once: every result is stored, and so is every failure, so that a hundred tests that need the
same broken thing report one cause instead of trying a hundred times. Results of an earlier session of the same run are
resumed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.workload.rounds import Loop, LoopResult
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, MachineLost, RigError, UnforeseenAgain
from pytest_ssdqual.rig.md import members
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle, fixed_time, rounds, saturation, sequential_verdict
from pytest_ssdqual.rig.measure import rebuild as rebuilding
from pytest_ssdqual.rig.measure.array_lifecycle import FRESH, Fill
from pytest_ssdqual.rig.measure.probe import Probe
from pytest_ssdqual.rig.measure.result_cache import Stock
from pytest_ssdqual.rig.measure.sequential_verdict import Enough
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.resume import readopt_array
from pytest_ssdqual.rig.resume.checkpoint import Conditioned, Forgetful, Memory, ResultKey


@dataclass(slots=True)
class StandingArray:
    """What is built now, and the state it was brought into."""

    array: Array
    fill: Fill
    #: The class it is in the steady state of: True random, False sequential.
    conditioned: dict[bool, SteadyState | None] = field(default_factory=dict)
    #: What an earlier session conditioned it for; to be confirmed before anything is measured.
    inherited: Conditioned | None = None
    #: Something was done to it that no further measurement may build on.
    spent: bool = False
    #: That was a search, which may go on.
    searched: bool = False


T = TypeVar("T")


@dataclass(slots=True)
class Station:
    """See the module; ``close`` it, or the array stays."""

    setup: Setup
    memory: Memory = field(default_factory=Forgetful)
    #: What will be measured on each array: all of it while the array stands.
    planned: Mapping[Geometry, Sequence[Workload]] = field(default_factory=dict)
    #: Workloads of which the tail or an extreme is asked for, on whatever array: their windows are equally long.
    tails: Container[Workload] = frozenset()
    #: Workloads of which the slowest second is asked for.
    by_the_second: Container[Workload] = frozenset()
    #: Of a sequential protocol: asked at each look whether it may be the last.
    enough: Enough = sequential_verdict.at_once
    #: All that was measured, and all that could not be.
    stock: Stock = field(default_factory=Stock)
    _standing: StandingArray | None = None
    #: Nothing was built yet of what an earlier session left.
    _untouched: bool = True
    _using_up: bool = False

    def array(self, geometry: Geometry) -> Array:
        """The array of this geometry, filled by the protocol; built now if it does not stand already.

        A degraded one is the healthy one with members failed.
        """
        return self._stand(geometry, Fill.of(self.setup.protocol)).array

    def steady(self, geometry: Geometry, workload: Workload) -> SteadyState | None:
        """Condition the array for this class of workload (random or sequential), unless it was the last one.

        None if the protocol has no such step. ``InvalidMeasurement`` if it does not settle in time; that is not
        tried again for the next workload, or hours would be spent on each.
        """
        # An array is conditioned with all its members, and degraded then: that is how it happens in the field.
        standing = self._leading_to(geometry)
        if standing is None or workload.is_random not in standing.conditioned:
            standing = self._stand(geometry.healthy, Fill.of(self.setup.protocol))
        if workload.is_random not in standing.conditioned:
            condition = partial(self._condition, standing, workload)
            # The writes of one class undo the state that the other one needs.
            standing.conditioned.clear()
            state = self.stock.unless_failed((geometry.healthy, workload.is_random), condition)
            standing.conditioned[workload.is_random] = state
        return standing.conditioned[workload.is_random]

    def measure(self, geometry: Geometry, workload: Workload) -> Measured:
        """All repeats of one workload on one array, measured now or before; by a sequential protocol until ``enough``.

        Raises ``RigError`` or a child of it, the same again each time it is asked for.
        """

        def now() -> Measured:
            self.steady(geometry, workload)
            array = self.array(geometry)
            rule = self.setup.protocol.sequential
            if rule is None:
                measured = fixed_time.measure(self.setup, array, workload, tail=workload in self.tails)
            else:
                rule = replace(rule, report_s=1) if workload in self.by_the_second else rule
                measured = sequential_verdict.measure(self.setup, array, workload, rule, self.enough)
            readopt_array.count(self.setup, array, "measured")
            return measured

        key = ResultKey("measured", geometry, str(workload))
        return self._once(key, now, Measured, lambda found: found.workload == workload)

    def sweep(self, geometries: Sequence[Geometry], workload: Workload) -> tuple[Measured, ...]:
        """The workload on every one of these arrays, which are built once for all workloads: see ``_use_up``."""
        return tuple(self.measure(geometry, workload) for geometry in geometries)

    def saturate(self, geometry: Geometry, workload: Workload) -> Saturation:
        """Writes from the purged state until settled, or until the protocol's volume or time is used up."""

        def now() -> Saturation:
            standing = self._purged(geometry, FRESH)
            standing.spent = True
            return saturation.saturate(self.setup, standing.array, workload)

        key = ResultKey("saturation", geometry, str(workload))
        return self._once(key, now, Saturation, lambda found: found.run.workload == workload)

    def loop(self, geometry: Geometry, loop: Loop) -> LoopResult:
        """All rounds of a loop, from its own purge and fill on."""

        def now() -> LoopResult:
            standing = self._purged(geometry, Fill(loop.fill_passes, loop.fill_bs))
            standing.spent = True
            return rounds.run(self.setup, standing.array, loop)

        return self._once(ResultKey("loop", geometry, loop.name), now, LoopResult, lambda found: found.loop == loop)

    def rebuild(self, geometry: Geometry, workload: Workload) -> Rebuild:
        """Give a degraded array its members back while ``workload`` runs; ``geometry`` is the rebuilding one."""

        def now() -> Rebuild:
            failed = Geometry(geometry.level, geometry.width, geometry.missing)
            self.steady(failed, workload)
            self.array(failed)
            self._use_up([failed])
            standing = self._standing
            if standing is None:
                raise RigError(f"{failed} is gone")
            standing.spent = True
            return rebuilding.rebuild(self.setup, standing.array, workload)

        key = ResultKey("rebuild", geometry, str(workload))
        return self._once(key, now, Rebuild, lambda found: found.foreground.workload == workload)

    def probe(self, geometry: Geometry, workload: Workload, probe: Probe) -> Measured:
        """One measurement of a search, made now or before; on an array that is the search's own from its purge on.

        What a search writes (parts of the range, compressible data) would spoil what others measure. Raises as
        ``measure``, but what keeps the array from being built or conditioned is a plain ``RigError``.
        """

        def now() -> Measured:
            return probe.measure(self.setup, self._for_search(geometry, workload), workload)

        key = ResultKey(probe.kind, geometry, str(workload))
        return self._once(key, now, Measured, lambda found: found.workload == workload)

    @property
    def searched(self) -> Array | None:
        """What a search stands on now."""
        return self._standing.array if self._standing and self._standing.searched else None

    def _for_search(self, geometry: Geometry, workload: Workload) -> Array:
        """What the search of this class stands on, conditioned for it; built now if there is nothing of the kind."""
        standing = self._standing
        fits = standing and standing.searched and standing.array.geometry == geometry
        if standing and fits and workload.is_random in standing.conditioned:
            return standing.array

        def prepare() -> StandingArray:
            standing = self._purged(geometry.healthy, Fill.of(self.setup.protocol))
            standing.conditioned[workload.is_random] = self._condition(standing, workload)
            if geometry.missing:
                self._degrade(standing, geometry)
            return standing

        try:
            standing = self.stock.unless_failed(("search", geometry, workload.is_random), prepare)
        except InvalidMeasurement as error:
            raise RigError(f"nothing can be searched on {geometry}: {error}") from error
        standing.spent = standing.searched = True
        return standing.array

    def close(self) -> None:
        """Stop the array; the drives stay held."""
        if self._standing:
            standing, self._standing = self._standing, None
            array_lifecycle.stop(self.setup, standing.array)
            if not standing.spent:
                readopt_array.count(self.setup, standing.array, "closed")

    def _is(self, geometry: Geometry) -> bool:
        standing = self._standing
        return bool(standing and not standing.spent and standing.array.geometry == geometry)

    def _stand(self, geometry: Geometry, fill: Fill) -> StandingArray:
        """What stands, if it is this and was filled in this way; else it is built. Failing to build is not repeated."""
        standing = self._standing
        if standing and self._is(geometry) and standing.fill == fill:
            return standing
        if failure := self.stock.failure((geometry, fill)):
            if isinstance(failure, UnforeseenAgain):
                raise failure
            raise RigError(f"{geometry} was not built: {failure}")
        try:
            if geometry.missing:
                return self._degrade(self._stand_for_failing(geometry, fill), geometry)
            self._use_up(self.planned)
            self.close()
            self._standing = self._taken_over(geometry, fill) or StandingArray(
                array_lifecycle.build(self.setup, geometry, fill), fill
            )
            readopt_array.count(self.setup, self._standing.array, "built")
        except MachineLost:
            raise
        except Exception as error:
            told = self.stock.fail((geometry, fill), error)
            with contextlib.suppress(Exception):  # the error on its way says more
                self.close()
            if told is error:
                raise
            raise told from error
        return self._standing

    def _purged(self, geometry: Geometry, fill: Fill) -> StandingArray:
        """One that is built now, whatever stands or was left: nothing but this was ever written to it."""
        self._use_up(self.planned)
        self.close()
        self._untouched = False
        return self._stand(geometry, fill)

    def _taken_over(self, geometry: Geometry, fill: Fill) -> StandingArray | None:
        """What an earlier session left, if it is this and nothing else was built before."""
        left, self._untouched = self.memory.inheritance() if self._untouched else None, False
        if left is None or (left.geometry, Fill(left.passes, left.fill_bs)) != (geometry, fill):
            return None
        array = readopt_array.take_over(self.setup, left)
        return StandingArray(array, fill, inherited=left.conditioned) if array else None

    def _condition(self, standing: StandingArray, workload: Workload) -> SteadyState | None:
        inherited, standing.inherited = standing.inherited, None
        is_its = inherited is not None and inherited.writes.is_random == workload.is_random
        state = readopt_array.confirm(self.setup, standing.array, inherited) if inherited and is_its else None
        state = state or fixed_time.precondition(self.setup, standing.array, workload)
        readopt_array.count(self.setup, standing.array, "conditioned")
        return state

    def _stand_for_failing(self, geometry: Geometry, fill: Fill) -> StandingArray:
        """The same array with all members, or with fewer missing ones."""
        now = self._standing
        same = now and not now.spent and now.fill == fill and now.array.geometry.healthy == geometry.healthy
        if now and same and now.array.geometry.missing < geometry.missing:
            return now
        return self._stand(geometry.healthy, fill)

    def _degrade(self, standing: StandingArray, geometry: Geometry) -> StandingArray:
        self._use_up([standing.array.geometry])
        standing.array = members.fail_members(self.setup, standing.array, geometry.missing)
        return standing

    def _use_up(self, geometries: Iterable[Geometry]) -> None:
        """Measure what is planned on what stands, as it is or with more members missing, before that is too late.

        So no array is built again for one more workload. What fails is told to the test that asks for it.
        """
        if self._using_up:
            return
        self._using_up = True
        try:
            for geometry in sorted(geometries):
                for workload in self.planned.get(geometry, ()):
                    if self._is_ready_for(geometry, workload):
                        with contextlib.suppress(RigError):
                            self.measure(geometry, workload)
        finally:
            self._using_up = False

    def _is_ready_for(self, geometry: Geometry, workload: Workload) -> bool:
        """Whether this is not known yet, and can be measured without building anything."""
        standing = self._leading_to(geometry)
        if standing is None or self._knows(ResultKey("measured", geometry, str(workload))):
            return False
        return not standing.array.geometry.missing or workload.is_random in standing.conditioned

    def _leading_to(self, geometry: Geometry) -> StandingArray | None:
        """What stands, if it is this array, or will be when more of its members have failed."""
        standing = self._standing
        if standing is None or standing.spent or standing.fill != Fill.of(self.setup.protocol):
            return None
        now = standing.array.geometry
        return standing if now.healthy == geometry.healthy and now.missing <= geometry.missing else None

    def _knows(self, key: ResultKey) -> bool:
        return key in self.stock or self.memory.has(key)

    def _once(self, key: ResultKey, work: Callable[[], T], kind: type[T], is_this: Callable[[T], bool]) -> T:
        """What is kept under ``key``, else what is recalled and ``is_this`` (names may have been given anew), else
        what ``work`` gives.
        """
        if key not in self.stock:

            def recalled() -> T:
                found = self.memory.recall(key)
                return found if isinstance(found, kind) and is_this(found) else work()

            self.stock.put(key, self.stock.unless_failed(key, recalled))
        return self.stock[key]  # type: ignore[return-value]
