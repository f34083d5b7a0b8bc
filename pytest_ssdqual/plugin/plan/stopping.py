"""What the selected tests ask of each measurement, by their marks and the limits of the spec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pytest

from pytest_ssdqual.plugin.judging.evidence_builder import FigurePlace
from pytest_ssdqual.plugin.plan import marks, needs
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import OF_EXTREMES, OF_TAIL, Claim, Scope
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.stats import stopping_rule
from pytest_ssdqual.qual.stats.stopping_rule import Decision, Question
from pytest_ssdqual.qual.verdict.multiplicity import ALONE, ErrorControl
from pytest_ssdqual.qual.workload.workload import Workload

#: Claims about one measurement; of the others a single measurement decides nothing.
OF_ONE = (Scope.RUN, Scope.MEMBERS)

#: The claims of each measurement that tests ask for.
Asked = Mapping[tuple[Geometry, Workload], frozenset[Claim]]


def asked(items: Iterable[pytest.Item]) -> Asked:
    """What the marks ``ssd_promise`` of the tests declare."""
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


def tails(wanted: Asked, spec: Spec) -> frozenset[Workload]:
    """Workloads of which a percentile of the tail or an extreme is asked for and promised, on one array at least.

    By workload, not by array: widths are compared with each other.
    """
    return frozenset(
        workload
        for (geometry, workload), claims in wanted.items()
        if any(spec.is_promised(claim, geometry, workload) for claim in claims & (OF_TAIL | OF_EXTREMES))
    )


def by_the_second(wanted: Asked) -> frozenset[Workload]:
    """Workloads of which the slowest second is asked for: fio has to report every second."""
    return frozenset(workload for (_, workload), claims in wanted.items() if Claim.WORST_SECOND in claims)


@dataclass(frozen=True, slots=True)
class Promises:
    """``rig.measure.sequential_verdict``'s question at each look; see ``__call__``."""

    spec: Spec
    protocol: Protocol
    asked: Asked
    family: ErrorControl = ALONE

    def __call__(self, measured: Measured) -> Decision:
        """Whether the verdict on every claim that is asked for is settled; see ``stopping``.

        Of what no limit decides by this measurement alone (relations, sweeps, series, unpromised figures, references),
        whether its IOPS are known as precisely as the protocol wants.
        """
        # What nobody asks for by itself is what a promise compares with.
        claims = self.asked.get((measured.geometry, measured.workload), frozenset())
        place = FigurePlace.of(measured)
        limits = {
            claim: limit
            for claim in sorted(claims)
            if claim.scope in OF_ONE and (limit := self.spec.limit(claim, place.geometry, place.workload))
        }
        question = Question(
            limits=limits,
            is_precise=not limits or any(claim.scope not in OF_ONE or claim not in limits for claim in claims),
            is_observed=bool(claims & OF_EXTREMES),
        )
        return stopping_rule.decide(measured, question, self.protocol.sequential, self.protocol.verdict, self.family)
