"""Limits of arrays by the chain sheet → drive → array (`qual.spec.chain`).

Before arrays are built, the bare drives do the I/O of the sheet's figures, their anchors, and that of the arrays. An
array is held to a percentage of what its drives do by their own curves. A drive that misses an anchor is no measure of
its array: its curve is raised to the sheet, so that its array misses the limit as the drive misses the sheet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from pytest_ssdqual.plugin.judging.attributor import Attributor
from pytest_ssdqual.plugin.judging.siblings import Siblings
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.chain import Anchor, ChainedPromise
from pytest_ssdqual.qual.spec.claims import Claim, Limit
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.stats.estimate import CannotJudge
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.qual.validity.attribution import Cause
from pytest_ssdqual.qual.verdict.verdict import Outcome, judge_all
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.machine.machine import RigError

#: A drive that does less than this share of a published figure is raised as one that does it.
LEAST_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class ChainedLimit:
    """The limit of an array, and a clause that says what it is measured by."""

    limit: Limit
    reference: str


@dataclass(frozen=True, slots=True)
class MissedAnchor:
    """A drive that does less than the promised percentage of a published figure."""

    drive: str
    anchor: Anchor
    #: IOPS over the published ones.
    share: float

    def __str__(self) -> str:
        published = format_value(self.anchor.published.value, Unit.IOPS)
        return f"drive {self.drive} does {self.share:.0%} of the {published} of {self.anchor.workload}"


@dataclass(slots=True)
class Chain:
    """The chained limits of one run, each found once."""

    spec: Spec
    attributor: Attributor
    siblings: Siblings
    _known: dict[tuple[Geometry, Workload], ChainedLimit] = field(default_factory=dict)

    def limit(self, claim: Claim, geometry: Geometry, workload: Workload) -> ChainedLimit | None:
        """Return the limit of an array by its members; None if nothing is chained here.

        Raises ``RigError`` if a bare drive was not measured, and ``CannotJudge`` if its array cannot be predicted.
        """
        promise = self.spec.chained(claim, geometry, workload)
        if promise is None:
            return None
        place = geometry, workload
        if place not in self._known:
            self._known[place] = self._by_members(promise, claim, geometry, workload)
        return self._known[place]

    def of_spec(self, claim: Claim, geometry: Geometry, workload: Workload) -> Limit | None:
        """Return the limit of the spec, else the chained one; None also if that cannot be known."""
        if limit := self.spec.limit(claim, geometry, workload):
            return limit
        with suppress(RigError, CannotJudge):
            chained = self.limit(claim, geometry, workload)
            return chained.limit if chained else None
        return None

    def _by_members(
        self, promise: ChainedPromise, claim: Claim, geometry: Geometry, workload: Workload
    ) -> ChainedLimit:
        found = self._judged(promise, geometry)
        missed = [each for each in found if isinstance(each, MissedAnchor)]
        predicted = self.attributor.faster(geometry, workload, _factors(missed)).iops.value
        what = f"{format_value(predicted, Unit.IOPS)} that {_reference(promise.sheet, missed, found)}"
        share = f"{promise.percent:g} % of the {what}"
        bound = predicted * promise.percent / 100
        limit = Limit(claim.direction, bound, claim.unit, f"{promise.place}: {share}")
        return ChainedLimit(limit, f"the limit is {share}")

    def _judged(self, promise: ChainedPromise, geometry: Geometry) -> tuple[MissedAnchor | Cause, ...]:
        """Return each drive of the array that misses an anchor, and what kept all drives from an anchor."""
        campaign = self.attributor.campaign()
        members = frozenset(campaign.drives_of(geometry))
        return tuple(
            found
            for anchor in promise.anchors
            for found in self._below(anchor, campaign.member(anchor.workload), promise)
            if isinstance(found, Cause) or found.drive in members
        )

    def _below(self, anchor: Anchor, measured: Measured, promise: ChainedPromise) -> Iterator[MissedAnchor | Cause]:
        """Yield the drives whose whole interval is below the percentage of a published figure.

        If the host, or a path that they share, limits all drives at their maxima, that is the only thing yielded.
        """
        published, claim = anchor.published.value, Claim.STEADY_IOPS
        limit = Limit(claim.direction, published * promise.percent / 100, claim.unit, promise.place)
        verdicts = judge_all(claim, measured, limit)
        cause = self.siblings.cause(verdicts, measured)
        if cause and cause.culprit.acquits_drives:
            yield cause
            return
        for verdict in verdicts:
            if verdict.outcome is Outcome.FAIL:
                yield MissedAnchor(verdict.subject.drive, anchor, verdict.estimate.value / published)


def _reference(sheet: str, missed: Sequence[MissedAnchor], found: Sequence[MissedAnchor | Cause]) -> str:
    """Return whose curves the limit was made from, as a clause."""
    if missed:
        drives = len({each.drive for each in missed})
        miss = "1 drive misses" if drives == 1 else f"{drives} drives miss"
        return f"its drives could do if all met {sheet}, which {miss}: {min(missed, key=_share_of)}"
    if found:
        causes = ", ".join(dict.fromkeys(each.subject for each in found if isinstance(each, Cause)))
        return f"its drives can do by their own curves; at their maxima they are limited by {causes}"
    return f"drives that meet {sheet} can do by their own curves"


def _factors(missed: Sequence[MissedAnchor]) -> Mapping[str, float]:
    """Return by how much each drive would have to be faster to do all that is published."""
    factors: dict[str, float] = {}
    for each in missed:
        factors[each.drive] = max(factors.get(each.drive, 1.0), 1 / max(each.share, LEAST_SHARE))
    return factors


def _share_of(missed: MissedAnchor) -> float:
    return missed.share
