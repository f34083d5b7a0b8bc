"""Tests whose claims have no limit: nothing is measured for them alone, unless it is asked for.

A figure without a limit judges nothing, and costs as much time as one with a limit. It is observed where another test
needs the same measurement anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

import pytest

from pytest_ssdqual.plugin.plan import marks, needs, order, published_figures
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Claim, Scope
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.workload.workload import Workload

#: The setting that has everything measured, as a configuration file has it.
MEASURE = "ssd_measure_unpromised = true"
#: Why a promise in per cent of an earlier run is no limit without that run.
NO_BASELINE = f"; name the earlier run with --ssd-baseline=RUN, or measure one with {MEASURE}"

#: Why an array is not held to what its drives do.
NO_MEMBERS = "; ssd_members = true and a protocol that measures the bare drives hold it to what its drives do"


@frozen
class ClaimPlace:
    """What a test judges a claim on: one array, or all widths of a sweep, under one workload."""

    claim: Claim
    geometries: tuple[Geometry, ...]
    workload: Workload
    #: It is a cell of rounds, before which no members are measured.
    is_cell: bool

    @property
    def place(self) -> tuple[Claim, Geometry, Workload]:
        """Where a spec has the promise of it; of a sweep that is the widest array."""
        return self.claim, max(self.geometries), self.workload

    def has_limit(self, spec: Spec, *, has_baseline: bool, has_members: bool) -> bool:
        """Return whether the claim has a limit.

        One in per cent of an earlier run needs that run, a chained one the measurements of the bare members.
        """
        if spec.no_law(self.claim, self.geometries, self.workload):
            return False
        if spec.limit(*self.place):
            return True
        if relation := spec.relation(*self.place):
            return has_baseline or relation.reference is not None
        return has_members and not self.is_cell and spec.chained(*self.place) is not None

    def why(self, spec: Spec) -> str:
        """Return why there is no limit."""
        no_law = spec.no_law(self.claim, self.geometries, self.workload)
        relation = spec.relation(*self.place)
        cure = NO_BASELINE if relation and not relation.reference else ""
        if spec.chained(*self.place) and not self.is_cell:
            cure = NO_MEMBERS
        return no_law or f"{spec.why_no_limit(*self.place)}{cure}"


@frozen
class Unpromised:
    """The tests of a run that have no limit."""

    #: Tests that are not measured, each with the reason.
    left_out: Mapping[pytest.Item, str] = field(default_factory=dict)
    #: Tests that are measured all the same.
    observed: frozenset[pytest.Item] = frozenset()
    #: The claims of each test that are worth measuring for.
    judged: Mapping[pytest.Item, frozenset[Claim]] = field(default_factory=dict)

    def wanted(self, item: pytest.Item) -> frozenset[Claim]:
        """Return the claims that a test is measured for."""
        return self.judged.get(item, marks.promised(item))

    @property
    def sentence(self) -> str:
        """Return how many tests have no limit, without a full stop; empty if all have one."""
        without, of = len(self.left_out) + len(self.observed), len(self.judged)
        if not without:
            return ""
        tests = f"{without:,} of {of:,} tests {'have' if without > 1 else 'has'} no limit"
        if not self.observed:
            return f"{tests} and {'are' if without > 1 else 'is'} not measured: {MEASURE} measures them"
        if not self.left_out:
            return f"{tests}: what they measure is shown, and judges nothing"
        return (
            f"{tests}: {len(self.left_out):,} are not measured ({MEASURE} measures them), "
            f"{len(self.observed):,} are shown, because other tests measure the same"
        )


def find(
    items: Iterable[pytest.Item], spec: Spec, *, has_baseline: bool, measures_all: bool, has_members: bool = True
) -> Unpromised:
    """Find the tests without a limit, and which of them are measured all the same.

    ``measures_all``: those that nothing else needs, too. ``has_members``: the bare drives are measured before arrays.
    """

    def is_limited(place: ClaimPlace) -> bool:
        return place.has_limit(spec, has_baseline=has_baseline, has_members=has_members)

    selected = marks.selected(items)
    places = {item: found for item in selected if (found := tuple(claim_places(item)))}
    limited = {item: frozenset(place.claim for place in found if is_limited(place)) for item, found in places.items()}
    without = {item: found for item, found in places.items() if not limited[item] & _named(item)}
    if measures_all:
        return Unpromised({}, frozenset(without), {item: marks.promised(item) for item in places})
    needed = order.needed([item for item in selected if item not in without], spec)
    observed = frozenset(item for item in without if needed.keys() >= set(needs.of(item)))
    left_out = {item: f"not promised: {found[0].why(spec)}" for item, found in without.items() if item not in observed}
    return Unpromised(left_out, observed, limited)


def claim_places(item: pytest.Item) -> Iterator[ClaimPlace]:
    """Yield what a test judges its claims on; nothing for a test that judges none, or not on arrays of its own."""
    names = marks.fixtures(item)
    if "ssd_sla" not in names or "ssd_explore" in names:
        return
    geometries = tuple(dict.fromkeys(step.geometry for step in needs.of(item)))
    about = needs.subject(item)
    workloads = about.series.workloads if about.series else about.workloads
    for claim in sorted(marks.promised(item)) if geometries else ():
        arrays = [geometries] if claim.scope is Scope.SWEEP else [(each,) for each in geometries]
        # A set of workloads has its promise by the first of them.
        loads = workloads[:1] if claim.scope is Scope.CURVE else workloads
        yield from (ClaimPlace(claim, array, load, about.rounds is not None) for load in loads for array in arrays)


def _named(item: pytest.Item) -> frozenset[Claim]:
    """Return the claims that a test judges; all of its module if it declares none for itself."""
    return marks.own_claims(item) or marks.promised(item)


def of_a_sheet(items: Iterable[pytest.Item], sheets: Sequence[Spec]) -> dict[pytest.Item, Claim | None]:
    """Return the tests that have their limits from figures that these sheets lack, each with such a claim.

    A test of published figures has none without a sheet. Limits that hold for any drive need no sheet.
    """
    found: dict[pytest.Item, Claim | None] = {}
    for item in filter(marks.needs_drives, items):
        if item.get_closest_marker(published_figures.MARK):
            found[item] = None
        elif not item.get_closest_marker("skip"):
            lacking = (
                each.claim
                for each in claim_places(item)
                for sheet in sheets
                if each.claim in _named(item) and sheet.lacks_figure(*each.place)
            )
            if claim := next(lacking, None):
                found[item] = claim
    return found
