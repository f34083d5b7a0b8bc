"""Whether a test judges what its own fixtures measured.

A result that a test keeps for another one would be judged twice, and the other's own never, with two verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pytest_ssdqual.plugin.plan.marks import ArrayFamily
from pytest_ssdqual.qual.measured.judgeable import Subject
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.workload.rounds import Rounds
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.qual.workload.workload_set import WorkloadSet


def objection(parameters: Mapping[str, object], judged: Subject) -> str:
    """Return why a test with these parameters may not judge this; empty if it may."""
    pairs = (
        (_arrays(parameters), [_at_rest(each) for each in judged.geometries]),
        (_workloads(parameters), list(judged.workloads)),
    )
    for own, found in pairs:
        foreign = [each for each in found if each not in own]
        if own and foreign:
            judged_and_own = f"the test judges a result of {named(foreign, 1)}, but its parameter is {named(own, 3)}"
            return f"{judged_and_own}: judge what its own fixtures measured"
    return ""


def _arrays(parameters: Mapping[str, object]) -> list[Geometry]:
    geometry, family = parameters.get("ssd_geometry"), parameters.get("_ssd_widths")
    if isinstance(family, ArrayFamily):
        return [_at_rest(each) for each in family.geometries]
    return [_at_rest(geometry)] if isinstance(geometry, Geometry) else []


def _at_rest(geometry: Geometry) -> Geometry:
    """The load during a rebuild is that of the same array."""
    return replace(geometry, rebuilding=False)


def _workloads(parameters: Mapping[str, object]) -> list[Workload]:
    own, workloads = parameters.get("ssd_workload"), parameters.get("ssd_workload_set")
    rounds = parameters.get("_ssd_rounds_definition")
    if isinstance(own, Workload):
        return [own]
    if isinstance(workloads, WorkloadSet):
        return list(workloads.workloads)
    return list(rounds.measured) if isinstance(rounds, Rounds) else []
