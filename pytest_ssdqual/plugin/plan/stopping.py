"""The stopping question of each measurement, from the marks of the selected tests and the limits of the spec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pytest

from pytest_ssdqual.plugin.plan import marks, needs
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import OF_EXTREMES, OF_HEAT, OF_TAIL, Claim, Scope
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.stats import group_sequential
from pytest_ssdqual.qual.stats.group_sequential import Decision, Question
from pytest_ssdqual.qual.verdict.multiplicity import ALONE, ErrorControl
from pytest_ssdqual.qual.workload.workload import Workload

#: Scopes of claims that a single measurement can decide.
OF_ONE = (Scope.RUN, Scope.MEMBERS)

#: The claims that tests declare for each measurement.
ClaimsByMeasurement = Mapping[tuple[Geometry, Workload], frozenset[Claim]]


def asked(items: Iterable[pytest.Item]) -> ClaimsByMeasurement:
    """Return the claims that the marks ``ssd_promise`` of the tests declare for each measurement."""
    found: dict[tuple[Geometry, Workload], frozenset[Claim]] = {}
    for item in items:
        need = needs.of(item)
        if not need.measured or item.get_closest_marker("skip"):
            continue
        named = marks.promised(item)
        for geometry in need.geometries:
            for workload in need.measured:
                found[geometry, workload] = found.get((geometry, workload), frozenset()) | named
    return found


def tails(wanted: ClaimsByMeasurement, spec: Spec) -> frozenset[Workload]:
    """Return the workloads with a promise of a tail percentile or an extreme that a test judges, on at least one array.

    By workload, not by array, because sweeps compare widths.
    """
    return frozenset(
        workload
        for (geometry, workload), claims in wanted.items()
        if any(spec.is_promised(claim, geometry, workload) for claim in claims & (OF_TAIL | OF_EXTREMES))
    )


def by_the_second(wanted: ClaimsByMeasurement) -> frozenset[Workload]:
    """Return the workloads with a test of the slowest second: fio has to report every second."""
    return frozenset(workload for (_, workload), claims in wanted.items() if Claim.WORST_SECOND in claims)


@dataclass(frozen=True, slots=True)
class Promises:
    """Answers ``rig.measure.sequential_verdict`` at each look: may the measurement stop?"""

    spec: Spec
    protocol: Protocol
    asked: ClaimsByMeasurement
    family: ErrorControl = ALONE

    def __call__(self, measured: Measured) -> Decision:
        """Decide whether the verdict on every declared claim is settled; see ``qual.stats.group_sequential``.

        Claims without a limit for a single measurement (relations, sweeps, workload sets, figures without a promise,
                references) need IOPS as precise as the protocol requires.
        """
        question = self.question(measured.geometry, measured.workload)
        return group_sequential.decide(measured, question, self.protocol.sequential, self.protocol.verdict, self.family)

    def question(self, geometry: Geometry, workload: Workload) -> Question:
        """Return what a measurement has to decide."""
        # A measurement without declared claims is the reference of a promise. A longer one makes no reading of heat
        # surer, and there is none before the process has ended.
        claims = self.asked.get((geometry, workload), frozenset()) - OF_HEAT
        limits = {
            claim: limit
            for claim in sorted(claims)
            if claim.scope in OF_ONE and (limit := self.spec.limit(claim, geometry, workload))
        }
        return Question(
            limits=limits,
            is_precise=not limits or any(claim.scope not in OF_ONE or claim not in limits for claim in claims),
            is_observed=bool(claims & OF_EXTREMES),
        )
