"""The stopping question of each measurement, from the marks of the selected tests and the limits of the spec."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pytest_ssdqual.plugin.plan import marks, needs
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.sweep import Sweep
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import OF_COUNTERS, OF_EXTREMES, OF_SECONDS, OF_TAIL, Claim, Limit, Scope
from pytest_ssdqual.qual.spec.combined import CombinedSpec
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.spec import DEFAULT, Spec, shipped
from pytest_ssdqual.qual.stats import group_sequential, sweep_precision
from pytest_ssdqual.qual.stats.group_sequential import Decision, Question, Side
from pytest_ssdqual.qual.verdict.multiplicity import ALONE, ErrorControl
from pytest_ssdqual.qual.workload.workload import Workload

#: Scopes of claims that a single measurement can decide.
OF_ONE = (Scope.RUN, Scope.MEMBERS)

#: Claims about several widths that depend on the IOPS of each.
OF_WIDTHS = frozenset((Claim.SCALING_SLOPE, Claim.SCALING_DEVIATION, Claim.LATENCY_GROWTH_BETWEEN_WIDTHS))

#: The claims that tests declare for each measurement.
ClaimsByMeasurement = Mapping[tuple[Geometry, Workload], frozenset[Claim]]


def asked(
    items: Iterable[pytest.Item], wanted: Callable[[pytest.Item], frozenset[Claim]] = marks.promised
) -> ClaimsByMeasurement:
    """Return the claims that the tests declare for each measurement; ``wanted`` are those of one test that count."""
    found: dict[tuple[Geometry, Workload], frozenset[Claim]] = {}
    for item in items:
        need = needs.of(item)
        if not need.measured or item.get_closest_marker("skip"):
            continue
        named = wanted(item)
        for geometry in need.geometries:
            for workload in need.measured:
                found[geometry, workload] = found.get((geometry, workload), frozenset()) | named
    return found


#: Promises of which a plan says that they decide nothing.
MOST_UNUSED = 5


def unused(wanted: ClaimsByMeasurement, spec: Spec, sources: Iterable[str]) -> tuple[str, ...]:
    """Return sentences about promises that decide about no measurement, of claims that tests judge.

    A misspelt workload is the usual cause. ``sources`` are paths and shipped names of the sheets; shipped ones have
    promises for all suites.
    """
    own = {Path(each).stem for each in sources if each not in shipped() and each != DEFAULT}
    judged = {claim for claims in wanted.values() for claim in claims}
    sentences = []
    for sheet in spec.different if isinstance(spec, CombinedSpec) else (spec,):
        if sheet.key not in own:
            continue
        deciding = (sheet.deciding(claim, *place) for place, claims in wanted.items() for claim in claims)
        used = {each.source for each in deciding if each}
        found = (each for each in sheet.promises if each.claim in judged and each.source not in used)
        sentences += [f"{each.source} ({each.about}) decides about none of these measurements" for each in found]
    more = len(sentences) - MOST_UNUSED
    return (*sentences[:MOST_UNUSED], *([f"and {more} more promises decide about none"] if more > 0 else []))


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
    """Return the workloads with a test of single seconds: fio has to report every second."""
    return frozenset(workload for (_, workload), claims in wanted.items() if claims & OF_SECONDS)


def nothing_known(geometry: Geometry, workload: Workload) -> Measured | None:
    """No other measurement is known."""
    return None


def as_measured(sweep: Sweep) -> Sweep:
    """Return the sweep without predictions."""
    return sweep


@dataclass(frozen=True, slots=True)
class Promises:
    """Answers ``rig.measure.sequential_verdict`` at each look: may the measurement stop?"""

    spec: Spec
    protocol: Protocol
    asked: ClaimsByMeasurement
    family: ErrorControl = ALONE
    #: Returns the result of a measurement of this run, or None.
    known: Callable[[Geometry, Workload], Measured | None] = nothing_known
    #: Returns a sweep with what its arrays are predicted to do, as it will be judged.
    predicted: Callable[[Sweep], Sweep] = as_measured

    def __call__(self, measured: Measured) -> Decision:
        """Decide whether the verdict on every declared claim is settled; see ``qual.stats.group_sequential``.

        Where a sweep is not decided by the widths known so far, this one becomes as precise as the protocol asks.
        """
        question = self.question(measured.geometry, measured.workload)
        decision = self._decide(measured, question)
        rule, percent = self.protocol.sequential, question.precision_percent
        is_coarse = rule and percent is not None and percent > rule.precision_percent
        if decision.done and rule and is_coarse and not self._decides_sweeps(measured):
            decision = self._decide(
                measured, replace(question, precision_percent=rule.precision_percent, precision_side=Side.BOTH)
            )
        return decision

    def question(self, geometry: Geometry, workload: Workload) -> Question:
        """Return what a measurement has to decide.

        Claims without a limit for a single measurement (relations, workload sets, figures without a promise,
        references) need IOPS as precise as the protocol requires, claims about widths a part of their tolerance.
        Extremes are observed for a time, whatever the IOPS are.
        """
        # A measurement without declared claims is the reference of a promise. A longer one makes no counter
        # surer, and there is none before the process has ended.
        claims = self.asked.get((geometry, workload), frozenset()) - OF_COUNTERS
        limits = {
            claim: limit
            for claim in sorted(claims)
            if claim.scope in OF_ONE and (limit := self.spec.limit(claim, geometry, workload))
        }
        sweeps = self._of_sweeps(geometry, workload)
        others = claims - limits.keys() - sweeps.keys() - OF_EXTREMES
        finest = self.protocol.sequential.precision_percent if self.protocol.sequential else 0.0
        precision, side = None, Side.BOTH
        if others or not (limits or sweeps):
            precision = finest
        elif sweeps:
            precision, side = self._of_width(geometry, workload, sweeps, finest)
        return Question(limits, precision, side, is_observed=bool(claims & OF_EXTREMES))

    def _of_width(
        self, geometry: Geometry, workload: Workload, limits: Mapping[Claim, Limit], finest_percent: float
    ) -> tuple[float, Side]:
        """Return how precise a width has to be for its sweeps at first, per cent, and on which side.

        Widths fall short of the narrowest one. That wide arrays keep up depends on the lower ends of their intervals,
        and on the upper end of the narrowest one's.
        """
        others = self._alike(geometry, workload)
        is_narrowest = bool(others) and geometry < min(others)
        percent = sweep_precision.coarse_percent(limits, finest_percent, len(others), is_narrowest=is_narrowest)
        return percent, Side.ABOVE if is_narrowest else Side.BELOW

    def _decide(self, measured: Measured, question: Question) -> Decision:
        return group_sequential.decide(measured, question, self.protocol.sequential, self.protocol.verdict, self.family)

    def _of_sweeps(self, geometry: Geometry, workload: Workload) -> dict[Claim, Limit]:
        """Return the limits of the claims about several widths that depend on the IOPS of this one."""
        claims = self.asked.get((geometry, workload), frozenset())
        limits = {claim: self.spec.limit(claim, geometry, workload) for claim in sorted(claims & OF_WIDTHS)}
        return {claim: limit for claim, limit in limits.items() if limit}

    def _decides_sweeps(self, measured: Measured) -> bool:
        """Return whether the sweeps are decided by the widths known so far; True while there is no other."""
        geometry, workload = measured.geometry, measured.workload
        limits = self._of_sweeps(geometry, workload)
        alike = self._alike(geometry, workload)
        others = [found for each in alike if (found := self.known(each, workload))]
        if not others:
            return True
        sweep = self.predicted(Sweep((*others, measured)))
        return sweep_precision.is_decided(sweep, limits, self.protocol.verdict, self.family)

    def _alike(self, geometry: Geometry, workload: Workload) -> list[Geometry]:
        """Return the other widths of the sweeps of this one."""
        limits = self._of_sweeps(geometry, workload)
        return [
            each
            for each, of_each in self.asked
            if of_each == workload
            and (each.level, each.missing, each.rebuilding) == (geometry.level, geometry.missing, geometry.rebuilding)
            and each != geometry
            and self.asked[each, of_each] >= limits.keys()
        ]
