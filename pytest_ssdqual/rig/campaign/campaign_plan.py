"""The plan of a campaign as data: what is measured on which array, in which order, and how each array gets ready.

``preparation`` decides when drives are filled and conditioned, and when an array is built, confirmed or degraded. The
plan asks it for the condition that an array will be in, the campaign for the condition that the array is in.

By most protocols the bare drives are filled and conditioned, all side by side and once for each access pattern. Before
each array is assembled of them, all of them are written to again, because some were idle. What changes the drives
otherwise (saturations, loops, rebuilds, searches, integrity tests), and everything by a protocol that conditions
arrays, is on an array with a fill of its own.

By a protocol with visits, all measurements of one access pattern are one experiment: see ``experiment``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from enum import StrEnum
from functools import partial
from itertools import groupby

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import Fill, PartialFill
from pytest_ssdqual.qual.workload.rounds import Rounds
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.resume.checkpoint import ResultKey

FRESH = Fill(0, "128k")


class StepKind(StrEnum):
    """Kinds of steps; the values are those of ``ResultKey``."""

    #: The array itself; there is nothing to measure.
    ARRAY = "array"
    #: The steady state for a class of workloads.
    CONDITIONED = "conditioned"
    #: A workload on all bare drives side by side, from which arrays are predicted.
    MEMBER = "member"
    #: A workload on each bare drive alone, to compare with all side by side.
    ALONE = "alone"
    MEASURED = "measured"
    SATURATION = "saturation"
    LOOP = "loop"
    #: All data of filled drives side by side.
    READ_BACK = "read_back"
    REBUILD = "rebuild"
    SEARCH = "search"
    INTEGRITY = "integrity"
    #: Ranges are discarded, and read.
    DISCARD = "discard"
    #: Filled drives are purged, and read.
    ERASURE = "erasure"


#: Kinds that have a result in the cache.
WITH_RESULT = (
    StepKind.READ_BACK,
    StepKind.MEMBER,
    StepKind.ALONE,
    StepKind.MEASURED,
    StepKind.SATURATION,
    StepKind.LOOP,
    StepKind.REBUILD,
)
#: Kinds that follow each other on one array.
SHARING = (
    StepKind.ARRAY,
    StepKind.READ_BACK,
    StepKind.CONDITIONED,
    StepKind.MEMBER,
    StepKind.ALONE,
    StepKind.MEASURED,
    StepKind.REBUILD,
)
#: Kinds that leave the array as it was.
HARMLESS = tuple(kind for kind in SHARING if kind is not StepKind.REBUILD)
#: Kinds that are executed on an array of conditioned drives, if the protocol conditions drives.
ON_DRIVES = HARMLESS
#: Kinds that are executed before any array is built.
OF_MEMBERS = (StepKind.MEMBER, StepKind.ALONE)


@frozen
class CampaignStep:
    """One step: what is measured on which array."""

    kind: StepKind
    geometry: Geometry
    what: Workload | Rounds | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.geometry}{'' if self.what is None else f' {self.what}'}"

    @property
    def key(self) -> ResultKey:
        """The key of the step's result."""
        return ResultKey(self.kind.value, self.geometry, "" if self.what is None else str(self.what))

    @property
    def measured(self) -> Workload | None:
        """The workload of a measurement in steady state; None of other steps."""
        return self.what if self.kind is StepKind.MEASURED and isinstance(self.what, Workload) else None

    @property
    def loss(self) -> tuple[int, bool]:
        """Sort key: what the array has lost when the step is done. No step restores a member, or ends a rebuild."""
        return self.geometry.missing, self.kind is StepKind.REBUILD

    @property
    def pattern(self) -> str | None:
        """Access pattern that the array is conditioned for; None if it is not."""
        is_conditioned = self.kind not in (StepKind.ARRAY, StepKind.INTEGRITY, StepKind.SATURATION)
        return self.what.pattern if isinstance(self.what, Workload) and is_conditioned else None


@frozen
class Build:
    """Purge the drives, and build and fill an array of them; the array that stands is taken down first."""

    geometry: Geometry
    fill: Fill
    #: An array that an earlier session left is not taken over: the step begins with a purge of its own.
    anew: bool = False
    #: Filled with data that are read back; not taken over either.
    is_stamped: bool = False

    @property
    def failure_key(self) -> object:
        return self.geometry, self.fill


@frozen
class Assemble:
    """Take down the array that stands, and build one of the conditioned drives, which keep their data.

    Of drives side by side nothing is built: the first of them stand.
    """

    geometry: Geometry

    @property
    def failure_key(self) -> object:
        return self.geometry, "assembled"


@frozen
class Refresh:
    """Write to the bare drives until each is as fast as it settled: an array of them follows."""

    geometry: Geometry
    workload: Workload

    @property
    def failure_key(self) -> object:
        return self.geometry, self.workload.pattern, "refreshed"


@frozen
class Precondition:
    """Bring the array, or the drives side by side, into the steady state of the workload's pattern."""

    geometry: Geometry
    workload: Workload
    for_search: bool = False

    @property
    def failure_key(self) -> object:
        return self.geometry, self.workload.pattern, self.for_search


@frozen
class FailMembers:
    """Fail members, until the array has this geometry."""

    geometry: Geometry
    fill: Fill
    for_search: bool = False

    @property
    def failure_key(self) -> object:
        return self.geometry, self.fill, self.for_search


Preparation = Build | Assemble | Precondition | Refresh | FailMembers


@frozen
class ArrayCondition:
    """The condition of the array that stands, and of the drives that it was assembled of."""

    geometry: Geometry
    fill: Fill
    #: Access pattern that it is in the steady state of; None if it is in none.
    pattern: str | None = None
    #: Something was done to it that no further measurement may build on.
    spent: bool = False
    #: That was a search, which may go on.
    searched: bool = False
    #: The drives side by side that were filled; None if an array of them was.
    drives: Geometry | None = None
    #: Access pattern that they are in the steady state of.
    drives_pattern: str | None = None
    #: All of them were just written to, so none has idled.
    is_fresh: bool = False
    #: They have to be written to before the next step, also if they stand as they are.
    is_due: bool = False
    #: The drives hold the data of a fill that can be read back, and nothing else was written since.
    is_stamped: bool = False

    @property
    def is_assembled(self) -> bool:
        """True if the array has no fill of its own."""
        return self.drives not in (None, self.geometry)

    def leads_to(self, geometry: Geometry, fill: Fill) -> bool:
        """Return True if this is the array, or will be when more of its members have failed."""
        now = self.geometry
        same = (now.healthy, self.fill, self.spent) == (geometry.healthy, fill, False)
        return same and now.missing <= geometry.missing

    def after(self, done: Preparation) -> ArrayCondition:
        """Return the condition after a preparation."""
        if isinstance(done, Build):
            bare = done.geometry if done.geometry.is_side_by_side and not done.anew else None
            return ArrayCondition(done.geometry, done.fill, drives=bare, is_stamped=done.is_stamped)
        if isinstance(done, Assemble):
            is_bare = done.geometry.is_side_by_side
            return replace(
                self,
                geometry=done.geometry,
                pattern=self.drives_pattern,
                is_fresh=self.is_fresh and is_bare,
                is_stamped=self.is_stamped and is_bare,
            )
        if isinstance(done, FailMembers):
            return replace(self, geometry=done.geometry)
        pattern = done.workload.pattern
        written = replace(self, pattern=pattern, is_stamped=False)
        if done.geometry != self.drives:
            return written
        return replace(written, drives_pattern=pattern, is_fresh=True, is_due=False)

    def used_for(self, step: CampaignStep) -> ArrayCondition:
        """Return the condition after a step."""
        if step.kind in HARMLESS:
            is_idle = step.what is None
            return replace(self, is_fresh=self.is_fresh and is_idle, is_stamped=self.is_stamped and is_idle)
        return replace(self, spent=True, searched=step.kind is StepKind.SEARCH)


def preparation(
    now: ArrayCondition | None, step: CampaignStep, fill: Fill, drives: Geometry | None = None
) -> tuple[Preparation, ...]:
    """Return what the array of ``step`` needs before the step, if ``now`` stands; ``fill`` is the protocol's.

    ``drives``: the drives side by side that it conditions; None if it conditions arrays.
    """
    if now and now.is_stamped and step.pattern is not None:
        # Stamps compress, so reads of them are no reads of random data. A capacity of random writes leaves 37 %.
        now = None
    target = replace(step.geometry, rebuilding=False)
    if drives and step.kind in ON_DRIVES:
        return tuple(_of_drives(now, step, target, fill, drives))
    whole, anew = target.healthy, step.kind not in SHARING
    fill = _fill_of(step, fill)
    if now and now.is_assembled:
        now = None
    if step.kind is StepKind.SEARCH and now and now.searched and now.geometry == target:
        is_ready = now.pattern == step.pattern
    elif anew or now is None or not now.leads_to(target, fill):
        is_ready = False
    else:
        # An array is conditioned with all its members, and degraded then: that is how it happens in the field.
        is_ready = not now.geometry.missing or step.pattern in (None, now.pattern)
    todo: list[Preparation] = []
    if now is None or not is_ready or _lacks_stamps(now, step):
        todo.append(Build(whole, fill, anew, _is_stamped(step)))
        now = ArrayCondition(whole, fill)
    if step.pattern not in (None, now.pattern) and isinstance(step.what, Workload):
        todo.append(Precondition(whole, step.what, step.kind is StepKind.SEARCH))
    if target.missing > now.geometry.missing and step.kind is not StepKind.CONDITIONED:
        todo.append(FailMembers(target, now.fill, step.kind is StepKind.SEARCH))
    return tuple(todo)


def _of_drives(
    now: ArrayCondition | None, step: CampaignStep, target: Geometry, fill: Fill, drives: Geometry
) -> Iterator[Preparation]:
    """Yield what ``step`` needs on an array of conditioned drives."""
    needed, fill = max(drives.width, target.width), _fill_of(step, fill)
    is_spent = now is None or now.spent or now.fill != fill or now.drives is None or now.drives.width < needed
    if now is None or is_spent or _lacks_stamps(now, step):
        build = Build(Geometry(RaidLevel.DRIVE, needed), fill, is_stamped=_is_stamped(step))
        yield build
        now = ArrayCondition(build.geometry, fill).after(build)
    bare, whole = now.drives or drives, target.healthy
    workload = step.what if isinstance(step.what, Workload) and step.pattern is not None else None
    if workload and workload.pattern != now.drives_pattern:
        if now.geometry != bare:
            yield Assemble(bare)
        conditioning = Precondition(bare, workload)
        yield conditioning
        now = replace(now, geometry=bare).after(conditioning)
    if now.is_due or now.geometry.healthy != whole or now.geometry.missing > target.missing:
        for each in _from_drives(now, whole, bare, workload):
            yield each
            now = now.after(each)
    if target.missing > now.geometry.missing and step.kind is not StepKind.CONDITIONED:
        yield FailMembers(target, fill)


def _from_drives(
    now: ArrayCondition, whole: Geometry, bare: Geometry, workload: Workload | None
) -> Iterator[Preparation]:
    """Yield what makes ``whole`` of the bare drives, none of which has idled then."""
    if workload and not now.is_fresh:
        if now.geometry != bare:
            yield Assemble(bare)
        yield Refresh(bare, workload)
        now = replace(now, geometry=bare)
    if now.geometry != whole:
        yield Assemble(whole)


def _fill_of(step: CampaignStep, fill: Fill) -> Fill:
    if isinstance(step.what, Rounds):
        return Fill(step.what.fill_passes, step.what.fill_bs)
    if step.kind in (StepKind.SATURATION, StepKind.INTEGRITY, StepKind.DISCARD):
        return FRESH
    if _is_stamped(step):
        return replace(fill, passes=max(1, fill.passes))
    # Writes to a part of the range leave the rest purged (SNIA PTS, ActiveRange): filled once, it would not be spare.
    if isinstance(step.what, Workload) and step.what.writes and step.what.region_percent < 100:
        return PartialFill(fill.passes, fill.bs, step.what.region_percent)
    return fill


def _is_stamped(step: CampaignStep) -> bool:
    """Return True if the step looks for data of the fill, or with a fill's stamp for its own."""
    return step.kind in (StepKind.READ_BACK, StepKind.ERASURE, StepKind.DISCARD)


def _lacks_stamps(now: ArrayCondition, step: CampaignStep) -> bool:
    """Return True if the step reads data back that the drives do not have, or no more."""
    return _is_stamped(step) and not now.is_stamped


def on_fewest_arrays(steps: Iterable[CampaignStep]) -> Iterator[CampaignStep]:
    """Yield the steps of each array in their order, but those that need another array after those that do not."""
    for _, of_array in groupby(steps, key=lambda step: step.geometry.healthy):
        left, now = list(of_array), None
        while left:
            step = next((each for each in left if now and not takes_down(preparation(now, each, FRESH))), left[0])
            left.remove(step)
            now = _after(now, preparation(now, step, FRESH), step)
            yield step


def takes_down(todo: Iterable[Preparation]) -> bool:
    """Return True if the array that stands is taken down, if there is one."""
    return any(isinstance(each, Build | Assemble) for each in todo)


def conditioned_drives(steps: Iterable[CampaignStep]) -> Geometry | None:
    """Return the drives side by side that a protocol conditions for these steps; None if none of them needs that."""
    widths = [each.geometry.width for each in steps if each.kind in ON_DRIVES]
    return Geometry(RaidLevel.DRIVE, max(widths)) if widths else None


def _after(
    now: ArrayCondition | None, todo: Iterable[Preparation], step: CampaignStep, fill: Fill = FRESH
) -> ArrayCondition:
    """Return the condition of the array after the preparations and the step."""
    for each in todo:
        now = (now or ArrayCondition(each.geometry, fill)).after(each)
    return (now or ArrayCondition(step.geometry, fill)).used_for(step)


@frozen
class CampaignPlan:
    """All steps of a run without duplicates, in the order of execution."""

    steps: tuple[CampaignStep, ...] = ()
    #: What the protocol fills drives or arrays with.
    fill: Fill = FRESH
    #: The drives side by side that it conditions; None if it conditions arrays.
    drives: Geometry | None = None
    #: The protocol measures in visits.
    has_visits: bool = False
    #: Of each step, the number of its array, counted from 0, and its place.
    _arrays: dict[CampaignStep, int] = field(init=False, repr=False, compare=False)
    _places: dict[CampaignStep, int] = field(init=False, repr=False, compare=False)
    #: Of each array, the steps with a result.
    _with_result: dict[int, tuple[CampaignStep, ...]] = field(init=False, repr=False, compare=False)
    #: The measurements of bare drives that come before arrays.
    of_members: tuple[CampaignStep, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        arrays: dict[CampaignStep, int] = {}
        with_result: dict[int, list[CampaignStep]] = {}
        number = -1
        for todo, step in self.prepared():
            number += takes_down(todo)
            arrays[step] = number
            if step.kind in WITH_RESULT:
                with_result.setdefault(number, []).append(step)
        set_field = partial(object.__setattr__, self)
        set_field("_arrays", arrays)
        set_field("_places", {step: place for place, step in enumerate(self.steps)})
        set_field("_with_result", {each: tuple(steps) for each, steps in with_result.items()})
        set_field("of_members", tuple(each for each in self.steps if each.kind in OF_MEMBERS))

    @classmethod
    def of(cls, steps: Iterable[CampaignStep], protocol: Protocol) -> CampaignPlan:
        found = tuple(dict.fromkeys(steps))
        drives = conditioned_drives(found) if protocol.conditions_drives else None
        return cls(found, protocol.fill, drives, protocol.visits is not None)

    def prepared(self) -> Iterator[tuple[tuple[Preparation, ...], CampaignStep]]:
        """Yield each step after the preparation that it needs if all steps are executed in order."""
        now: ArrayCondition | None = None
        for step in self.steps:
            todo = self.preparation(now, step)
            now = _after(now, todo, step, self.fill)
            yield todo, step

    def preparation(self, now: ArrayCondition | None, step: CampaignStep) -> tuple[Preparation, ...]:
        """Return what the array of ``step`` needs before the step, if ``now`` stands."""
        return preparation(now, step, self.fill, self.drives)

    def array_of(self, step: CampaignStep) -> int | None:
        """Return the number of the array that ``step`` is executed on.

        For a step that is not planned, it is the first array that can serve it; None if there is none.
        """
        if step in self._arrays or step.kind not in SHARING:
            return self._arrays.get(step)
        geometry = step.geometry.healthy
        serving = (each for each in self.steps if each.kind in SHARING and each.geometry.healthy == geometry)
        first = next(serving, None)
        return None if first is None else self._arrays[first]

    def place(self, step: CampaignStep) -> tuple[int, int]:
        """Return the place of ``step`` in the order of execution.

        A step that is not planned is behind all others; of several such, wide arrays come first on conditioned drives.
        """
        width = step.geometry.width
        return self._places.get(step, len(self.steps)), width if self.drives is None else -width

    def on_array(self, number: int | None) -> tuple[CampaignStep, ...]:
        """Return the steps with a result on one array; none without a number."""
        return () if number is None else self._with_result.get(number, ())

    def experiment(self, step: CampaignStep) -> tuple[CampaignStep, ...]:
        """Return the measurements that are visited together with ``step``, in the order of the plan.

        They are those of its access pattern on all arrays, itself included, also if it is not
        planned. Empty for other steps, and by a protocol without visits.
        """
        if not self.has_visits or not _is_visited(step):
            return ()
        alike = [each for each in self.steps if _is_visited(each) and each.pattern == step.pattern]
        return tuple(dict.fromkeys((*alike, step)))

    def members_before(self, step: CampaignStep) -> tuple[CampaignStep, ...]:
        """Return the measurements of bare drives that come before ``step``, which is on an array.

        If drives are conditioned, those of its class: the other class needs another conditioning.
        """
        if self.drives is None or step.pattern is None:
            return self.of_members
        return tuple(each for each in self.of_members if each.pattern == step.pattern)

    @property
    def bare(self) -> Geometry | None:
        """The drives side by side that arrays are predicted from; None if no array is."""
        return next((each.geometry for each in self.of_members), None)

    def before(self, step: CampaignStep) -> tuple[CampaignStep, ...]:
        """Return the steps with a result that come before ``step`` on the same array.

        Of a step that is not planned, these are the steps after which the array has lost less.
        """
        same_array = self.on_array(self.array_of(step))
        place = self._places.get(step)
        if place is not None:
            return same_array[: bisect_left(same_array, place, key=self._places.__getitem__)]
        return tuple(each for each in same_array if each.loss < step.loss)


def _is_visited(step: CampaignStep) -> bool:
    """Return whether the step is a measurement of a workload; a workload with pauses or a trace has no cells."""
    is_plain = isinstance(step.what, Workload) and not step.what.burst_s and not step.what.replay
    return step.kind is StepKind.MEASURED and is_plain
