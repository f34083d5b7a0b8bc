"""Collected tests → what is built and measured, in which order. Touches nothing; ``forecast`` says what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeVar

import pytest

from pytest_ssdqual.plugin.plan import needs
from pytest_ssdqual.plugin.plan.marks import needs_drives
from pytest_ssdqual.plugin.plan.needs import Need
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.workload.rounds import Loop
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.resume.checkpoint import Memory, ResultKey

T = TypeVar("T")


class Stage(IntEnum):
    """What is done with the drives of one array, in this order.

    What has a purge of its own comes first, in any order. Then the array is built once more, for all the rest: it is
    conditioned for one class of workloads and for the other, loses its members one by one, and ends with a rebuild,
    after which it is of no more use. Searches have a purge of their own, too, and come last: they take hours, and
    whoever stops them knows all the rest.
    """

    FRESH = 0
    LOOP = 1
    MEASURED = 2
    REBUILD = 3
    SEARCH = 4
    LIVES = 5


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that is needed, each once, by array; in the order in which it will be measured."""

    measured: dict[Geometry, list[Workload]] = field(default_factory=dict)
    saturated: dict[Geometry, list[Workload]] = field(default_factory=dict)
    loops: dict[Geometry, list[Loop]] = field(default_factory=dict)
    #: By the rebuilding geometry.
    rebuilt: dict[Geometry, list[Workload]] = field(default_factory=dict)
    #: The plain workloads that are searched around.
    explored: dict[Geometry, list[Workload]] = field(default_factory=dict)
    #: Arrays whose lives are searched; nothing is measured on them.
    lived: dict[Geometry, list[Workload]] = field(default_factory=dict)

    @property
    def geometries(self) -> list[Geometry]:
        return sorted({*self.measured, *self.saturated, *self.loops, *self.rebuilt, *self.explored, *self.lived})


def order(items: list[pytest.Item]) -> None:
    """Sort our items in place so that arrays are built and conditioned as rarely as possible.

    Sweeps come last: by then all that they compare is measured. Other tests keep their order, and come first: nobody
    waits days for a unit test.
    """
    needed = [needs.of(item) for item in items]
    last = _random_last((geometry, need.measured or need.rebuilt) for need in needed for geometry in need.geometries)
    keys = {item: _key(item, need, last) for item, need in zip(items, needed, strict=True)}
    items.sort(key=keys.__getitem__)


def measured_first(workload: Workload) -> tuple[object, ...]:
    """Random first; within a class pure writes first (Intel S3500 RAID paper, seeds A-P7), then deeper queues."""
    return (
        not workload.is_random,
        workload.read_fraction,
        workload.block_bytes,
        workload.outstanding(1),
        str(workload),
    )


def wanted(items: Iterable[pytest.Item], spec: Spec) -> Wanted:
    """Every array that is needed and what to measure on it, with the workloads that promises of ``spec`` compare to."""
    found = Wanted()
    for item in items:
        need = Need() if item.get_closest_marker("skip") else needs.of(item)
        for geometry in need.geometries:
            if need.saturated:
                _add(found.saturated, geometry, need.saturated)
            if need.loops:
                _add(found.loops, geometry, need.loops)
            if need.rebuilt:
                _add(found.rebuilt, geometry, need.rebuilt)
            if need.explored:
                _add(found.explored, geometry, need.explored)
            if need.lived:
                _add(found.lived, geometry, ())
            elif need.measured or not need.workloads:
                _add(found.measured, geometry, need.measured)
    for geometry, reference in list(_references(found, spec)):
        _add(found.measured, geometry, [reference])
    last = _random_last((*found.measured.items(), *found.rebuilt.items()))
    measured = {each: sorted(found.measured[each], key=measured_first) for each in sorted(found.measured)}
    for geometry in last & set(measured):
        measured[geometry].sort(key=lambda workload: workload.is_random)
    return Wanted(
        measured,
        dict(sorted(found.saturated.items())),
        dict(sorted(found.loops.items())),
        dict(sorted(found.rebuilt.items())),
        dict(sorted(found.explored.items())),
        dict(sorted(found.lived.items())),
    )


def missing(wanted: Wanted, memory: Memory) -> Wanted:
    """What an earlier session of the same run has not measured already."""

    def unknown(kind: str, part: dict[Geometry, list[T]]) -> dict[Geometry, list[T]]:
        left = {
            geometry: [each for each in values if not memory.has(ResultKey(kind, geometry, str(each)))]
            for geometry, values in part.items()
        }
        # Where nothing was to be measured, the array itself is what is wanted.
        return {geometry: values for geometry, values in left.items() if values or not part[geometry]}

    return Wanted(
        unknown("measured", wanted.measured),
        unknown("saturation", wanted.saturated),
        unknown("loop", wanted.loops),
        unknown("rebuild", wanted.rebuilt),
        wanted.explored,  # how far a search had come nobody can tell before it goes on
        wanted.lived,
    )


def _references(found: Wanted, spec: Spec) -> Iterator[tuple[Geometry, Workload]]:
    """What single runs are compared with, and cells of a loop unless that is a cell, too."""
    for geometry, workloads in found.measured.items():
        for workload in workloads:
            yield from ((geometry, each) for each in spec.references(geometry, workload))
    for geometry, loops in found.loops.items():
        for loop in loops:
            for cell in loop.workloads:
                outside = (each for each in spec.references(geometry, cell) if each not in loop.workloads)
                yield from ((geometry, each) for each in outside)


def _add(found: dict[Geometry, list[T]], geometry: Geometry, values: Iterable[T]) -> None:
    known = found.setdefault(geometry, [])
    known += [each for each in dict.fromkeys(values) if each not in known]


def _random_last(lost: Iterable[tuple[Geometry, Iterable[Workload]]]) -> set[Geometry]:
    """The arrays that are to lose members in the state that random writes leave.

    There, random workloads come after sequential ones; the array would have to be conditioned for them again otherwise.
    """
    return {each.healthy for each, workloads in lost if each.missing and any(one.is_random for one in workloads)}


def _key(item: pytest.Item, need: Need, random_last: AbstractSet[Geometry]) -> tuple[object, ...]:
    if not needs_drives(item):
        return (0,)
    if not need.geometries:
        return (1, "", 0)
    first = need.geometries[0]
    if need.is_sweep:
        return (2, first.level, first.missing, _block(need, turned=False))
    stage = _stage(need)
    # Members are lost one by one; the first rebuild takes the array as the last loss left it.
    lost = -first.missing if stage is Stage.REBUILD else first.missing
    return (1, first.level, first.width, stage, lost, _block(need, turned=first in random_last))


def _stage(need: Need) -> Stage:
    """The last of those that a test needs."""
    if need.lived:
        return Stage.LIVES
    if need.explored:
        return Stage.SEARCH
    if need.rebuilt:
        return Stage.REBUILD
    if need.measured or not (need.loops or need.saturated):
        return Stage.MEASURED
    return Stage.LOOP if need.loops else Stage.FRESH


def _block(need: Need, *, turned: bool) -> tuple[object, ...]:
    """Within a stage: one loop after the other, one class after the other; ``turned``: the sequential one first.

    A series of both classes stands where the sequential one begins: neither is then interrupted by it.
    """
    alone = tuple(map(str, (*need.saturated, *need.loops, *need.explored)))
    several = (
        need.measured or need.rebuilt or need.explored or tuple(cell for loop in need.loops for cell in loop.workloads)
    )
    sequential = any(not each.is_random for each in several)
    return (alone, sequential != turned, min(map(measured_first, several), default=()))
