"""Collected tests → what is built and measured, in which order. Touches nothing; ``forecast`` says what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeVar

import pytest

from pytest_ssdqual.plugin import needs
from pytest_ssdqual.plugin.marks import needs_drives
from pytest_ssdqual.plugin.needs import Need
from pytest_ssdqual.qual.geometry import Geometry
from pytest_ssdqual.qual.loop import Loop
from pytest_ssdqual.qual.spec import Spec
from pytest_ssdqual.qual.workload import Workload
from pytest_ssdqual.rig.memory import Key, Memory

T = TypeVar("T")


class Stage(IntEnum):
    """What is done with the drives of one array, in this order.

    What has a purge of its own comes first, in any order. Then the array is built once more, for all the rest: it is
    conditioned, loses its members one by one, and ends with a rebuild, after which it is of no more use.
    """

    FRESH = 0
    LOOP = 1
    MEASURED = 2
    DEGRADED = 3
    REBUILD = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that is needed, each once, by array; in the order in which it will be measured."""

    measured: dict[Geometry, list[Workload]] = field(default_factory=dict)
    saturated: dict[Geometry, list[Workload]] = field(default_factory=dict)
    loops: dict[Geometry, list[Loop]] = field(default_factory=dict)
    #: By the rebuilding geometry.
    rebuilt: dict[Geometry, list[Workload]] = field(default_factory=dict)

    @property
    def geometries(self) -> list[Geometry]:
        return sorted({*self.measured, *self.saturated, *self.loops, *self.rebuilt})


def order(items: list[pytest.Item]) -> None:
    """Sort our items in place so that arrays are built and conditioned as rarely as possible.

    Sweeps come last: by then all that they compare is measured. Other tests keep their order, and come first: nobody
    waits days for a unit test.
    """
    items.sort(key=_key)


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
            if need.measured or not need.workloads:
                _add(found.measured, geometry, need.measured)
    for geometry, reference in list(_references(found, spec)):
        _add(found.measured, geometry, [reference])
    return Wanted(
        {geometry: sorted(found.measured[geometry], key=measured_first) for geometry in sorted(found.measured)},
        dict(sorted(found.saturated.items())),
        dict(sorted(found.loops.items())),
        dict(sorted(found.rebuilt.items())),
    )


def missing(wanted: Wanted, memory: Memory) -> Wanted:
    """What an earlier session of the same run has not measured already."""

    def unknown(kind: str, part: dict[Geometry, list[T]]) -> dict[Geometry, list[T]]:
        left = {
            geometry: [each for each in values if not memory.has(Key(kind, geometry, str(each)))]
            for geometry, values in part.items()
        }
        # Where nothing was to be measured, the array itself is what is wanted.
        return {geometry: values for geometry, values in left.items() if values or not part[geometry]}

    return Wanted(
        unknown("measured", wanted.measured),
        unknown("saturation", wanted.saturated),
        unknown("loop", wanted.loops),
        unknown("rebuild", wanted.rebuilt),
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


def _key(item: pytest.Item) -> tuple[object, ...]:
    if not needs_drives(item):
        return (0,)
    need = needs.of(item)
    if not need.geometries:
        return (1, "", 0)
    first = need.geometries[0]
    if need.is_sweep:
        return (2, first.level, first.missing, _block(need))
    stage = _stage(need)
    # Members are lost one by one; the first rebuild takes the array as the last loss left it.
    lost = -first.missing if stage is Stage.REBUILD else first.missing
    return (1, first.level, first.width, stage, lost, _block(need))


def _stage(need: Need) -> Stage:
    """The last of those that a test needs."""
    geometry = need.geometries[0]
    if geometry.rebuilding:
        return Stage.REBUILD
    if need.measured or not (need.loops or need.saturated):
        return Stage.DEGRADED if geometry.missing else Stage.MEASURED
    return Stage.LOOP if need.loops else Stage.FRESH


def _block(need: Need) -> tuple[object, ...]:
    """Within a stage: what has a purge of its own first, loops one after the other, classes one after the other.

    A series of both classes stands where the second begins: neither is then interrupted by it.
    """
    alone = tuple(map(str, need.saturated)) + tuple(map(str, need.loops))
    several = need.measured or need.rebuilt or tuple(cell for loop in need.loops for cell in loop.workloads)
    sequential = any(not each.is_random for each in several)
    return (not alone, alone, sequential, min(map(measured_first, several), default=()))
