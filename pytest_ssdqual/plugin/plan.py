"""Collected tests → what will be built and measured, in which order, and what it will cost. Touches nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from pytest_ssdqual.plugin.marks import Family, needs_drives
from pytest_ssdqual.qual.geometry import Geometry, costs
from pytest_ssdqual.qual.protocol import Protocol
from pytest_ssdqual.qual.spec import Spec
from pytest_ssdqual.qual.workload import Workload
from pytest_ssdqual.report.plan_text import Plan, PlannedArray

#: Starting fio and looking at the array before and after, per measurement; purge, creation and stop, per array.
OVERHEAD_S, BUILD_S = 2.0, 20.0
#: What a fill is assumed to reach if the data sheet does not say: a slow SATA SSD, bytes per second and drive.
FILL_BYTES_PER_S = 200e6


def order(items: list[pytest.Item]) -> None:
    """Sort our items in place so that each array is built once and sweeps come last, when all is measured.

    Other tests keep their order, and come first: nobody waits days for a unit test.
    """
    items.sort(key=_key)


def _key(item: pytest.Item) -> tuple[object, ...]:
    if not needs_drives(item):
        return (0,)
    geometry, family, workload = _parameters(item)
    if family is not None:
        return (2, family.level, _workload_key(workload))
    return (1, geometry.level if geometry else "", geometry.width if geometry else 0, _workload_key(workload))


def _workload_key(workload: Workload | None) -> tuple[object, ...]:
    """Random first; within a class pure writes first (Intel S3500 RAID paper, seeds A-P7), then deeper queues."""
    if workload is None:
        return ()
    return (not workload.is_random, workload.read_fraction, workload.block_bytes, workload.qd_per_drive)


def _parameters(item: pytest.Item) -> tuple[Geometry | None, Family | None, Workload | None]:
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    found = (parameters.get("geometry"), parameters.get("family"), parameters.get("workload"))
    geometry, family, workload = found
    return (
        geometry if isinstance(geometry, Geometry) else None,
        family if isinstance(family, Family) else None,
        workload if isinstance(workload, Workload) else None,
    )


def measurements(items: Iterable[pytest.Item]) -> dict[Geometry, list[Workload]]:
    """Every array that is needed, and the workloads to measure on it, each once."""
    wanted: dict[Geometry, list[Workload]] = {}
    for item in items:
        if not needs_drives(item) or item.get_closest_marker("skip"):
            continue
        geometry, family, workload = _parameters(item)
        for each in family.geometries if family else [geometry] if geometry else []:
            workloads = wanted.setdefault(each, [])
            if workload is not None and workload not in workloads:
                workloads.append(workload)
    return {geometry: sorted(wanted[geometry], key=_workload_key) for geometry in sorted(wanted)}


def predict(
    wanted: dict[Geometry, list[Workload]], protocol: Protocol, spec: Spec, drives: int, drive_bytes: int
) -> Plan:
    """Time and bytes, from the protocol and the data sheet; bytes are what the members take, parity included."""
    return Plan(
        tuple(_predict(geometry, each, protocol, spec, drive_bytes) for geometry, each in wanted.items()),
        drives=drives,
        protocol=protocol.name,
        acceptance=protocol.acceptance,
        endurance_bytes=spec.endurance_bytes,
    )


def _predict(
    geometry: Geometry, workloads: Sequence[Workload], protocol: Protocol, spec: Spec, drive_bytes: int
) -> PlannedArray:
    fill_bytes = protocol.fill_passes * drive_bytes * geometry.width
    fill_rate = spec.sequential_write_bytes_per_s or FILL_BYTES_PER_S
    classes = {workload.is_random for workload in workloads}
    condition_s = BUILD_S + protocol.fill_passes * drive_bytes / fill_rate + len(classes) * protocol.precondition_s
    each_s = protocol.ramp_s + protocol.window_s
    written = fill_bytes + sum(_written(geometry, workload, each_s * protocol.repeats, spec) for workload in workloads)
    if True in classes:
        first = next(workload for workload in workloads if workload.is_random)
        conditioning = Workload("randwrite", first.bs, 8)
        written += _written(geometry, conditioning, protocol.precondition_s, spec)
    return PlannedArray(
        geometry=str(geometry),
        workloads=len(workloads),
        condition_s=condition_s,
        measure_s=len(workloads) * protocol.repeats * (each_s + OVERHEAD_S),
        bytes_written=int(written),
    )


def _written(geometry: Geometry, workload: Workload, seconds: float, spec: Spec) -> float:
    """Bytes the members take, if the array does what the data sheet says; 0 where that is not published."""
    iops = spec.expected_iops(geometry, workload)
    if iops is None or workload.read_fraction == 1:
        return 0.0
    return iops * (1 - workload.read_fraction) * workload.block_bytes * seconds * costs(geometry).writes
