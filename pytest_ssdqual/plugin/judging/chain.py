"""Limits of arrays by the chain sheet → drive → array (`qual.spec.chain`).

Before arrays are built, the bare drives do the I/O of the sheet's figures, their anchors, and that of the arrays. An
array is held to a percentage of what its drives do by their own curves. A drive that misses an anchor is no measure of
its array: its curve is raised to the sheet, so that its array misses the limit as the drive misses the sheet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from pytest_ssdqual.qual.validity.attribution import Culprit
from pytest_ssdqual.qual.verdict.verdict import Outcome, Verdict, judge_all
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.machine.machine import RigError

#: A drive that does less than this share of a published figure is raised as one that does it.
LEAST_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class ChainedLimit:
    """The limit of an array, and a clause that says what it is measured by."""

    limit: Limit
    reference: str
    #: All anchors were measured; a look may come before one of them is decided.
    is_final: bool = True


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
class Anchored:
    """What the anchors of a promise say about the members of an array."""

    missed: list[MissedAnchor] = field(default_factory=list)
    #: Clauses about anchors that say nothing about the drives.
    unknown: list[str] = field(default_factory=list)
    is_complete: bool = True

    def reference(self, sheet: str) -> str:
        """Return whose curves a limit is made from, as a clause."""
        if self.missed:
            drives = len({each.drive for each in self.missed})
            miss = "1 drive misses" if drives == 1 else f"{drives} drives miss"
            return f"its drives could do if all met {sheet}, which {miss}: {min(self.missed, key=_share_of)}"
        if self.unknown:
            return f"its drives can do by their own curves; {'; '.join(dict.fromkeys(self.unknown))}"
        return f"drives that meet {sheet} can do by their own curves"


@dataclass(slots=True)
class Chain:
    """The chained limits of one run, each found once."""

    spec: Spec
    attributor: Attributor
    siblings: Siblings
    _known: dict[tuple[Geometry, Workload, tuple[str, ...]], ChainedLimit] = field(default_factory=dict)

    def limit(
        self, claim: Claim, geometry: Geometry, workload: Workload, members: Sequence[str]
    ) -> ChainedLimit | None:
        """Return the limit of an array of these members, by their serial numbers; None if nothing is chained here.

        Raises ``RigError`` if a bare drive was not measured, and ``CannotJudge`` if its array cannot be predicted.
        """
        promise = self.spec.chained(claim, geometry, workload)
        if promise is None:
            return None
        place = geometry, workload, tuple(members)
        if place not in self._known:
            found = self._by_members(promise, *place)
            if not found.is_final:
                return found
            self._known[place] = found
        return self._known[place]

    def of_spec(self, claim: Claim, geometry: Geometry, workload: Workload) -> Limit | None:
        """Return the limit of the spec, else the chained one; None also if that cannot be known."""
        if limit := self.spec.limit(claim, geometry, workload):
            return limit
        if self.spec.chained(claim, geometry, workload) is None:
            return None
        with suppress(RigError, CannotJudge):
            members = self.attributor.campaign().drives_of(geometry)
            chained = self.limit(claim, geometry, workload, members)
            return chained.limit if chained and chained.is_final else None
        return None

    def _by_members(
        self, promise: ChainedPromise, geometry: Geometry, workload: Workload, members: Sequence[str]
    ) -> ChainedLimit:
        anchored = self._anchored(promise, members)
        factors = _factors(anchored.missed)
        predicted = self.attributor.faster(geometry, workload, members, factors).iops.value
        what = f"{format_value(predicted, Unit.IOPS)} that {anchored.reference(promise.sheet)}"
        share = f"{promise.percent:g} % of the {what}"
        limit = _limit(predicted, promise.percent, f"{promise.place}: {share}")
        return ChainedLimit(limit, f"the limit is {share}", anchored.is_complete)

    def _anchored(self, promise: ChainedPromise, members: Sequence[str]) -> Anchored:
        """Judge the members by the anchors. One that was not measured is an error of its own test, not of arrays."""
        found = Anchored()
        for anchor in promise.anchors:
            try:
                measured = self.attributor.campaign().member(anchor.workload)
            except RigError as error:
                if error.ends_run:
                    raise
                found.unknown.append(f"their maximum {anchor.workload} was not measured")
                found.is_complete = False
                continue
            self._judge(anchor, measured, promise, members, found)
        return found

    def _judge(
        self, anchor: Anchor, measured: Measured, promise: ChainedPromise, members: Sequence[str], found: Anchored
    ) -> None:
        """Add the members whose whole interval is below the percentage of a published figure.

        What limits most of them at once, the host or a path that a measurement of the same load shows, is no fault of
        theirs.
        """
        published = anchor.published.value
        percent = 100.0 if anchor.published.is_bound else promise.percent
        of_all = judge_all(Claim.STEADY_IOPS, measured, _limit(published, percent, promise.place))
        verdicts = [verdict for verdict in of_all if verdict.subject.drive in members]
        below = [verdict for verdict in verdicts if verdict.outcome is Outcome.FAIL]
        excused = self._excused(verdicts, below, measured)
        if excused:
            found.unknown.append(f"at their maximum {anchor.workload} something above them is the bottleneck")
        found.missed += [
            MissedAnchor(verdict.subject.drive, anchor, verdict.estimate.value / published)
            for verdict in below
            if verdict.subject.drive not in excused
        ]

    def _excused(self, verdicts: Sequence[Verdict], below: Sequence[Verdict], measured: Measured) -> frozenset[str]:
        """Return the drives below an anchor for which something above them is the reason."""
        cause = self.siblings.cause(verdicts, measured)
        if cause is None or 2 * len(below) <= len(verdicts):
            return frozenset()
        if cause.is_proven:
            return frozenset(cause.drives)
        is_above = cause.culprit in (Culprit.HOST, Culprit.MEASUREMENT)
        return frozenset(verdict.subject.drive for verdict in below) if is_above else frozenset()


def _limit(iops: float, percent: float, source: str) -> Limit:
    claim = Claim.STEADY_IOPS
    return Limit(claim.direction, iops * percent / 100, claim.unit, source)


def _factors(missed: Sequence[MissedAnchor]) -> Mapping[str, float]:
    """Return by how much each drive would have to be faster to do all that is published."""
    factors: dict[str, float] = {}
    for each in missed:
        factors[each.drive] = max(factors.get(each.drive, 1.0), 1 / max(each.share, LEAST_SHARE))
    return factors


def _share_of(missed: MissedAnchor) -> float:
    return missed.share
