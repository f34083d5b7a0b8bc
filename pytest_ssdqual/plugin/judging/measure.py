"""What the fixtures ask of the station: a workload alone, several in the plan's order, or cells of a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.judging.evidence_builder import Account
from pytest_ssdqual.plugin.plan import marks
from pytest_ssdqual.plugin.plan.order import measured_first
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import spec as specs
from pytest_ssdqual.qual.stats.estimate import TooFew
from pytest_ssdqual.qual.units import parse_size
from pytest_ssdqual.qual.workload.rounds import Loop
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.qual.workload.workload_set import Series
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement
from pytest_ssdqual.rig.measure.station import Station

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.session.state import Qualification


def one(station: Station, geometry: Geometry, workload: Workload, loop: Loop | None) -> Measured:
    """A workload on an array, or its cell of a loop.

    Raises ``RigError`` or a child of it: ``InvalidMeasurement`` for a cell of a loop that did not become steady.
    """
    if loop is None:
        return station.measure(geometry, workload)
    found = station.loop(geometry, loop)
    try:
        cell = found.measured(workload)
    except TooFew as error:
        raise InvalidMeasurement(str(error)) from error
    if not found:
        raise InvalidMeasurement(repr(found).strip("<>"))
    return cell


def several(station: Station, geometry: Geometry, series: Series, loop: Loop | None) -> tuple[Measured, ...]:
    """All of a series, in its order; measured in the plan's, so that each class is conditioned once."""
    for workload in sorted(series.workloads, key=measured_first):
        one(station, geometry, workload, loop)
    return tuple(one(station, geometry, workload, loop) for workload in series.workloads)


def reference(request: pytest.FixtureRequest, geometry: Geometry, workload: Workload) -> Measured:
    """What a promise compares with: of the test's own loop if that has it."""
    loop = _loop(request)
    in_loop = loop is not None and workload in loop.workloads
    return one(request.getfixturevalue("_ssd_station"), geometry, workload, loop if in_loop else None)


def circumstances(request: pytest.FixtureRequest, run: Qualification) -> Account:
    """What all evidence of a test shares."""
    loop, sheet = _loop(request), marks.published(request.node)
    series = _parameter(request, "ssd_workload_set")
    return Account(
        protocol=run.protocol.name,
        acceptance=run.acceptance,
        beside=specs.load(sheet) if sheet else run.spec,
        promised=run.spec,
        rule=run.protocol.verdict,
        family=run.family,
        group=str(loop or series or ""),
        chunk_bytes=parse_size(run.protocol.array.chunk),
        loop=(lambda: request.getfixturevalue("ssd_rounds")) if loop else None,
    )


def _loop(request: pytest.FixtureRequest) -> Loop | None:
    loop = _parameter(request, "_ssd_rounds_definition")
    return loop if isinstance(loop, Loop) else None


def _parameter(request: pytest.FixtureRequest, name: str) -> object:
    return getattr(getattr(request.node, "callspec", None), "params", {}).get(name)
