"""The plan of a run: all steps that the collected tests need, in order, and the order of the tests that follows.

This is the only place that decides an order; ``rig.campaign.campaign`` executes the steps. Touches no drive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import chain

import pytest

from pytest_ssdqual.plugin.plan import marks, needs
from pytest_ssdqual.qual.inspection.record import LONGEST_SELF_TEST_S
from pytest_ssdqual.qual.raid import member_curve
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.qual.workload.rounds import Rounds
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignStep, StepKind, on_fewest_arrays
from pytest_ssdqual.rig.resume.checkpoint import EarlierResults

#: All steps of a run without duplicates, in the order of execution.
Steps = tuple[CampaignStep, ...]


class Stage(IntEnum):
    """Stages of the work on one array, in their order.

    First come the stages with a purge of their own. Then the array is built once for all measurements: the rig compares
    the filled data, conditions the array for one class of workloads and then for the other, removes members one by one,
    and ends with a rebuild. Searches have a purge of their own, too, and come after all other work on all arrays: they
    take hours, and a run that is stopped then has all other results.
    """

    FRESH = 0
    LOOP = 1
    FILLED = 2
    MEASURED = 3
    REBUILD = 4
    SEARCH = 5
    LIVES = 6
    #: Drives whose data are erased stay erased.
    ERASED = 7


STAGES = {
    StepKind.SATURATION: Stage.FRESH,
    StepKind.LOOP: Stage.LOOP,
    StepKind.READ_BACK: Stage.FILLED,
    StepKind.ARRAY: Stage.MEASURED,
    StepKind.MEMBER: Stage.MEASURED,
    StepKind.ALONE: Stage.MEASURED,
    StepKind.MEASURED: Stage.MEASURED,
    StepKind.REBUILD: Stage.REBUILD,
    StepKind.SEARCH: Stage.SEARCH,
    StepKind.INTEGRITY: Stage.LIVES,
    StepKind.DISCARD: Stage.LIVES,
    StepKind.ERASURE: Stage.ERASED,
}

#: Parameters of the fixture ``ssd_self_test`` whose tests come after all measurements.
EXTENDED = "extended"
LAST_SELF_TESTS = ("last", EXTENDED)
NO_TIME_OF_SELF_TESTS = (
    "no time for the drives' extended self-tests, which take what the drives say "
    f"(at most {format_duration(LONGEST_SELF_TEST_S)})"
)


def order(items: list[pytest.Item], *, of_drives: bool = False) -> None:
    """Sort hardware tests in place: each where the plan has the last step that it needs.

    ``of_drives``: the protocol conditions drives, not arrays.

    Sweeps come late: by then their measurements exist. Searches follow, then the last self-tests of the drives, and
    their health is judged at the end.
    Tests without drives keep their order and come first, so that their results do not take days.
    """
    needed = {item: needs.of(item) for item in items}
    steps = in_order(chain.from_iterable(needed.values()), of_drives=of_drives)
    places = {step: place for place, step in enumerate(steps)}

    def key(item: pytest.Item) -> tuple[object, ...]:
        if not marks.needs_drives(item):
            return (0,)
        if "ssd_health" in marks.fixtures(item):
            return (5,)
        if marks.parameters(item).get("ssd_self_test") in LAST_SELF_TESTS:
            return (4,)
        last = max((places[step] for step in needed[item]), default=-1)
        if any(map(_is_search, needed[item])):
            return (3, last)
        return (2 if needs.subject(item).family else 1, last)

    items.sort(key=key)


def unplanned(items: Iterable[pytest.Item]) -> tuple[str, ...]:
    """Return what the tests do that takes time, and has no step of the plan."""
    kinds = {marks.parameters(item).get("ssd_self_test") for item in items}
    return (NO_TIME_OF_SELF_TESTS,) if EXTENDED in kinds else ()


def plan(
    items: Iterable[pytest.Item],
    spec: Spec,
    protocol: Protocol,
    queue_limit: int | None = None,
    *,
    members: bool = True,
) -> Steps:
    """Return the steps that these tests need, with the workloads that promises of ``spec`` compare with.

    With ``members`` also the measurements of bare drives from which arrays are predicted; ``queue_limit`` is the most
    I/Os that a drive queues.
    """
    found = [*needed(items, spec)]
    bare = of_members(found, protocol, spec, queue_limit) if members else ()
    return in_order([*found, *bare], of_drives=protocol.conditions_drives)


def needed(items: Iterable[pytest.Item], spec: Spec) -> dict[CampaignStep, None]:
    """Return the steps of the tests that are not skipped, and of the workloads that promises compare with, in any
    order.
    """
    steps = dict.fromkeys(step for item in items if not item.get_closest_marker("skip") for step in needs.of(item))
    return steps | dict.fromkeys(_references(steps, spec))


def of_members(steps: Sequence[CampaignStep], protocol: Protocol, spec: Spec, queue_limit: int | None = None) -> Steps:
    """Return the measurements of bare drives, side by side and alone, that predictions for these steps need.

    The drives are those of the widest array; the anchors of chained promises are measured on them, too. What a test
    measures on them anyway is not measured twice.
    """
    if not protocol.members.window_s:
        return ()
    predicted = {each.geometry: None for each in steps if each.measured and not each.geometry.is_side_by_side}
    workloads = {
        member: None
        for each in steps
        if each.geometry in predicted
        and isinstance(each.what, Workload)
        and not member_curve.objection(each.geometry, each.what, protocol.striping)
        for member in member_curve.member_workloads(each.geometry, each.what, queue_limit)
    }
    if not workloads:
        return ()
    widest = max(each.width for each in predicted)
    planned = [each.geometry for each in steps if each.geometry.is_side_by_side and each.geometry.width >= widest]
    bare = min(planned, default=Geometry(RaidLevel.DRIVE, widest))
    members = [CampaignStep(StepKind.MEMBER, bare, each) for each in workloads]
    reads = [each for each in workloads if not each.writes]
    deepest = max(reads, key=lambda each: each.qd_per_drive * each.block_bytes, default=None)
    reference = deepest or Workload("randread", next(iter(workloads)).bs, max(each.qd_per_drive for each in workloads))
    known = {each.measured for each in steps if each.geometry == bare}
    together = [] if deepest else [CampaignStep(StepKind.MEMBER, bare, reference)]
    anchors = _anchors(steps, spec)
    together += [CampaignStep(StepKind.MEMBER, bare, each) for each in anchors if each not in workloads]
    both = (*(each for each in [*members, *together] if each.what not in known),)
    return (*both, *(CampaignStep(StepKind.ALONE, bare, each) for each in _loads_alone(reference, anchors)))


def _loads_alone(reference: Workload, anchors: Iterable[Workload]) -> tuple[Workload, ...]:
    """Return the reads that each bare drive does alone: those of the published maxima, and ``reference``.

    All drives at their maxima may be more than the host or a path can carry; each drive alone shows that. A maximum
    that is at most twice as deep as the reference shows what that would.
    """
    reads = [anchor for anchor in anchors if not anchor.writes]
    depth, size = reference.outstanding(1), reference.block_bytes
    is_covered = any(each.block_bytes == size and depth <= each.outstanding(1) <= 2 * depth for each in reads)
    return tuple(reads if is_covered else dict.fromkeys([reference, *reads]))


def _anchors(steps: Iterable[CampaignStep], spec: Spec) -> dict[Workload, None]:
    """Return the workloads of the published figures that chained promises of arrays rest on."""
    chained = (spec.chained(Claim.STEADY_IOPS, step.geometry, step.measured) for step in steps if step.measured)
    return {anchor.workload: None for promise in chained if promise for anchor in promise.anchors}


def in_order(steps: Iterable[CampaignStep], *, of_drives: bool = False) -> Steps:
    """Return the steps in the order of execution, each once; ``of_drives``: drives are conditioned, not arrays."""
    found = dict.fromkeys(steps)
    if of_drives:
        return _on_conditioned_drives(found)
    lossy = _random_last(found)

    def place(step: CampaignStep) -> tuple[object, ...]:
        return (_is_search(step), step.kind is StepKind.ERASURE, *_place(step, turned=step.geometry in lossy))

    return tuple(on_fewest_arrays(sorted(found, key=place)))


def missing(steps: Iterable[CampaignStep], memory: EarlierResults) -> Steps:
    """Return the steps without a result of an earlier session of the same run.

    The progress of a search that has not ended is unknown before it resumes; an integrity test begins anew.
    """
    return tuple(step for step in steps if not memory.has(step.key))


def _is_search(step: CampaignStep) -> bool:
    """Return whether the step is a search for workloads or an integrity test, which come after all other steps."""
    return STAGES[step.kind] >= Stage.SEARCH


def _references(steps: Iterable[CampaignStep], spec: Spec) -> Iterator[CampaignStep]:
    """Yield the references of single runs, and those of cells of rounds that are not cells themselves."""
    for step in steps:
        cells: tuple[Workload, ...] = ()
        if isinstance(step.what, Rounds):
            cells = step.what.measured
        elif step.measured:
            yield from (
                CampaignStep(StepKind.MEASURED, step.geometry, each)
                for each in spec.references(step.geometry, step.measured)
            )
        for cell in cells:
            outside = (each for each in spec.references(step.geometry, cell) if each not in cells)
            yield from (CampaignStep(StepKind.MEASURED, step.geometry, each) for each in outside)


def _random_last(steps: Iterable[CampaignStep]) -> set[Geometry]:
    """Return the arrays that lose members after random writes.

    On these, random workloads come after sequential ones; otherwise the rig would have to condition them again.
    """
    chain = (StepKind.MEASURED, StepKind.REBUILD)
    return {
        each.geometry.healthy
        for each in steps
        if each.kind in chain
        and each.geometry.missing
        and each.pattern
        and isinstance(each.what, Workload)
        and each.what.is_random
    }


def _on_conditioned_drives(steps: Iterable[CampaignStep]) -> Steps:
    """Return the steps so that drives are conditioned once for each access pattern.

    What has a fill of its own comes before or after. Within a pattern the bare drives come first, and then the widest
    arrays of all levels, so that few drives idle; before each array all of them are written to again. Degraded arrays
    come last, because their missing members idle. An array without a workload is built where it is measured anyway, and
    comes after that: before measurements all drives are written to, without a workload they are not.
    """
    found = tuple(steps)
    patterns: dict[Geometry, str] = {}
    for each in found:
        if each.pattern is not None and STAGES[each.kind] is Stage.MEASURED:
            of_array = each.geometry.healthy
            patterns[of_array] = min(patterns.get(of_array, each.pattern), each.pattern, key=_of_pattern)

    def place(step: CampaignStep) -> tuple[object, ...]:
        stage, geometry = STAGES[step.kind], step.geometry
        if stage is not Stage.MEASURED:
            return (stage, *_place(step, turned=False))
        pattern = step.pattern or patterns.get(geometry.healthy, "sequential")
        of_array = (
            not geometry.is_side_by_side,
            geometry.missing > 0,
            -geometry.width,
            geometry.level,
            geometry.tuning,
            geometry.missing,
        )
        return (stage, *_of_pattern(pattern), *of_array, step.what is None, _of_class(step))

    return tuple(sorted(found, key=place))


def _of_pattern(pattern: str) -> tuple[bool, bool, bool, str]:
    """Sort key of an access pattern: uniform random first, then skewed ones, then sequential.

    Those of a part of the range come last: they have a fill of their own.
    """
    return "_reg" in pattern, pattern.startswith("sequential"), pattern != "random", pattern


def _place(step: CampaignStep, *, turned: bool) -> tuple[object, ...]:
    """Sort key of a step; ``turned``: sequential workloads first."""
    geometry, stage = step.geometry, STAGES[step.kind]
    # Members are removed one by one; the first rebuild starts from the last such state.
    lost = -geometry.missing if stage is Stage.REBUILD else geometry.missing
    place = (geometry.level, geometry.width, geometry.tuning, stage, lost)
    if not isinstance(step.what, Workload):
        return (*place, False, (str(step.what),) if step.what else ())
    # By what it is conditioned for: of reads beside writes that is the pattern of the writes.
    return (*place, step.what.pattern.startswith("sequential") is not turned, _of_class(step))


def _of_class(step: CampaignStep) -> tuple[object, ...]:
    """Sort key within a class: pure writes first (Intel S3500 RAID paper, seeds A-P7), then by depth."""
    what = step.what
    if not isinstance(what, Workload):
        return ()
    return (what.read_fraction, what.block_bytes, what.outstanding(1), str(what))
