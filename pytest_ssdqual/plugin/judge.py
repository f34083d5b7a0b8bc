"""``sla``: the promises of the spec, as a test asks for them.

Not called ``sla.py``: as a submodule it would take the fixture's name in the package, and a second session in the
same process (``pytest.main()`` twice) would have no such fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

import pytest

from pytest_ssdqual.plugin import account
from pytest_ssdqual.plugin.account import Account, Judged, Place
from pytest_ssdqual.qual import verdict as verdicts
from pytest_ssdqual.qual.claim import Claim, Limit, Scope
from pytest_ssdqual.qual.estimate import TooFew, ratio
from pytest_ssdqual.qual.geometry import Geometry
from pytest_ssdqual.qual.measurement import Measured
from pytest_ssdqual.qual.promise import Relation
from pytest_ssdqual.qual.saturation import Saturation
from pytest_ssdqual.qual.spec import Spec
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict import Outcome, Verdict
from pytest_ssdqual.qual.workload import Workload
from pytest_ssdqual.report.evidence import Evidence
from pytest_ssdqual.rig.machine import InvalidMeasurement

Measure = Callable[[Geometry, Workload], Measured]


class Inconclusive(InvalidMeasurement):
    """The interval straddles the limit: neither kept nor broken, and never green."""


class Sla:
    """Judges what was measured by the promises of the spec, and remembers everything as evidence."""

    def __init__(
        self, spec: Spec, inconclusive: str, circumstances: Account, note: Callable[[Evidence], None], measure: Measure
    ) -> None:
        """``inconclusive`` says what becomes of an undecided verdict: ``error`` or ``skip``.

        ``measure`` gives what a promise compares with, if that is another workload.
        """
        self._spec = spec
        self._inconclusive = inconclusive
        self._account = circumstances
        self._note = note
        self._measure = measure

    def judge(self, claim: str, judged: Judged) -> Verdict:
        """The verdict on ``claim`` about a run, a sweep, a series, a saturation or a rebuild.

        Drives side by side are judged one by one; the verdict is the worst of theirs, and names the drive. Where the
        spec promises nothing of the kind, the figure is noted and the test skipped. Raises ``Inconclusive`` (a JUnit
        ``<error>``) when the evidence decides neither way, ``InvalidMeasurement`` when there is too little of it.
        """
        wanted = Claim(claim)
        if isinstance(judged, Sequence):
            judged = sorted(judged, key=lambda each: each.geometry)
        place = Place.of(judged)
        if wanted.scope is Scope.MEMBERS and isinstance(judged, Measured) and len(judged.of_members()) < 2:
            pytest.skip(f"{wanted.label}: needs several drives side by side, {place.geometry} is none of that")
        limit = self._spec.limit(wanted, place.geometry, place.workload)
        relation = self._spec.relation(wanted, place.geometry, place.workload)
        found: tuple[Verdict, ...] = ()
        try:
            if limit is not None:
                found = _by_limit(wanted, judged, place, limit)
            elif relation is not None and isinstance(judged, Measured):
                found = self._by_relation(wanted, judged, place, relation)
        except ValueError as error:
            raise InvalidMeasurement(f"{wanted.label} of {place.subject} cannot be judged: {error}") from error
        if not found:
            self._observe(wanted, judged, place)
        told = verdicts.worst(found)
        self._note(self._account.of_verdicts(judged, found, told))
        if told.outcome is Outcome.INCONCLUSIVE:
            if self._inconclusive == "skip":
                pytest.skip(repr(told))
            raise Inconclusive(repr(told))
        return told

    def _by_relation(self, claim: Claim, judged: Measured, place: Place, relation: Relation) -> tuple[Verdict, ...]:
        """Of drives side by side each is held against itself."""
        reference = account.estimates(claim, self._measure(place.geometry, relation.reference))
        limit = Limit(relation.direction, relation.percent, Unit.PERCENT, f"{relation.source}: {relation}")
        return tuple(
            verdicts.judge_relation(claim, subject, relation.reference, ratio(own, other), limit)
            for (subject, own), (_, other) in zip(account.estimates(claim, judged), reference, strict=True)
        )

    def _observe(self, claim: Claim, judged: Judged, place: Place) -> NoReturn:
        """Note the figure, and skip the test with it and the reason."""
        why = self._spec.why_no_limit(claim, place.geometry, place.workload)
        try:
            found = account.estimates(claim, judged)
        except TooFew as error:
            pytest.skip(f"{why}, and it cannot be told: {error}")
        except ValueError as error:
            raise InvalidMeasurement(f"{claim.label} of {place.subject} cannot be judged: {error}") from error
        self._note(self._account.of_estimates(claim, judged, found))
        subject, told = account.worst(claim, found)
        by = f" by drive {subject.drive}" if subject.drive else ""
        pytest.skip(f"measured {told}{by}; {why}")


def _by_limit(claim: Claim, judged: Judged, place: Place, limit: Limit) -> tuple[Verdict, ...]:
    if isinstance(judged, Measured | Saturation) and claim.scope is not Scope.MEMBERS:
        return verdicts.judge_members(claim, judged, limit)
    ((subject, estimate),) = account.estimates(claim, judged)
    return (verdicts.judge(claim, subject, estimate, limit),)
