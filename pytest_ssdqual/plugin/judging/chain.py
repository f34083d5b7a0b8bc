"""Limits of arrays by the chain sheet → drive → array (`qual.spec.datasheet`).

Before arrays are built, the bare drives do the I/O of the sheet's figures, their anchors, and that of the arrays. An
array is held to a percentage of what its drives do by their own curves. A drive that misses an anchor is no measure of
its array: its curve is raised to the sheet, so that its array misses the limit as the drive misses the sheet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_ssdqual.plugin.judging.attributor import Attributor
from pytest_ssdqual.plugin.judging.siblings import Siblings
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.raid.member_curve import physical_read_fraction
from pytest_ssdqual.qual.spec.claims import Claim, Limit
from pytest_ssdqual.qual.spec.datasheet import Anchor, ChainedPromise
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.stats.estimate import CannotJudge
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.qual.verdict.multiplicity import ErrorControl
from pytest_ssdqual.qual.verdict.verdict import Outcome, judge_all
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.machine.machine import RigError

#: A drive that does less than this share of a published figure is raised as one that does it.
LEAST_SHARE = 0.01


@frozen
class ChainedLimit:
    """The limit of an array, and a clause that says what it is measured by."""

    limit: Limit
    reference: str
    #: Why it is not known whether the drives meet their sheet; an array that keeps the limit is no pass then.
    doubt: str


@frozen
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
    #: Clauses about anchors that do not show whether the drives meet their sheet.
    doubts: list[str] = field(default_factory=list)

    def reference(self, sheet: str) -> str:
        """Return whose curves a limit is made from, as a clause."""
        if self.missed:
            drives = len({each.drive for each in self.missed})
            worst = min(self.missed, key=lambda missed: missed.share)
            miss = "1 drive misses" if drives == 1 else f"{drives} drives miss"
            return f"its drives could do if all met {sheet}, which {miss}: {worst}"
        drives_of = "its drives" if self.doubts else f"drives that meet {sheet}"
        return f"{drives_of} can do by their own curves"


@dataclass(slots=True)
class Chain:
    """The chained limits of one run, each found once."""

    spec: Spec
    attributor: Attributor
    siblings: Siblings
    #: The claims among which an anchor's own test is judged: a drive that is undecided there raises no limit here.
    family: ErrorControl
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
            chained = self._by_members(promise, *place)
            if chained.doubt:
                return chained  # at a look an anchor may not be decided yet
            self._known[place] = chained
        return self._known[place]

    def of_spec(self, claim: Claim, geometry: Geometry, workload: Workload) -> Limit | None:
        """Return the limit of the spec, else the chained one; None also if that cannot be known."""
        if limit := self.spec.limit(claim, geometry, workload):
            return limit
        try:
            members = self.attributor.campaign().drives_of(geometry)
            chained = self.limit(claim, geometry, workload, members)
        except RigError as error:
            if error.ends_run:
                raise
            return None
        except CannotJudge:
            return None
        return chained.limit if chained and not chained.doubt else None

    def _by_members(
        self, promise: ChainedPromise, geometry: Geometry, workload: Workload, members: Sequence[str]
    ) -> ChainedLimit:
        anchored = self._anchored(promise, members)
        reads = physical_read_fraction(geometry, workload)
        factors = _factors(anchored.missed, promise.anchors, reads)
        predicted = self.attributor.faster(geometry, workload, members, factors).iops.value
        what = f"{format_value(predicted, Unit.IOPS)} that {anchored.reference(promise.sheet)}"
        share = f"{promise.percent:g} % of the {what}"
        limit = _limit(predicted, promise.percent, f"{promise.place}: {share}")
        return ChainedLimit(limit, f"the limit is {share}", "; ".join(dict.fromkeys(anchored.doubts)))

    def _anchored(self, promise: ChainedPromise, members: Sequence[str]) -> Anchored:
        """Judge the members by the anchors. One that was not measured is an error of its own test, not of arrays."""
        anchored = Anchored()
        for anchor in promise.anchors:
            try:
                measured = self.attributor.campaign().member(anchor.workload)
            except RigError as error:
                if error.ends_run:
                    raise
                anchored.doubts.append(f"their maximum {anchor.workload} was not measured")
                continue
            self._judge(anchor, measured, promise, members, anchored)
        return anchored

    def _judge(
        self, anchor: Anchor, measured: Measured, promise: ChainedPromise, members: Sequence[str], anchored: Anchored
    ) -> None:
        """Add the members that miss the anchor as its own test would say, side by side and alone.

        A member of which that is not certain is none that is known to meet its sheet, either.
        """
        claim, published = Claim.STEADY_IOPS, anchor.published.value
        limit = self.spec.limit(claim, measured.geometry, anchor.workload)
        limit = limit or _limit(published, promise.percent, promise.place)
        of_all = judge_all(claim, measured, limit, family=self.family)
        verdicts = [each for each in of_all if each.subject.drive in members]
        alone = self.attributor.campaign().alone(anchor.workload)
        suffices = {each.drive for each in alone.measurements if _reaches(each, limit)} if alone else set()
        doubtful = [each for each in verdicts if not each and each.subject.drive not in suffices]
        below = [each for each in doubtful if each.outcome is Outcome.FAIL]
        if not below:
            if doubtful:
                anchored.doubts.append(f"their maximum {anchor.workload} is undecided")
            return
        cause = self.siblings.cause(verdicts, measured)
        if cause and cause.culprit.acquits_drives:
            anchored.doubts.append(f"at their maximum {anchor.workload} {cause.subject} limits them")
            return
        anchored.missed += [
            MissedAnchor(verdict.subject.drive, anchor, verdict.estimate.value / published) for verdict in below
        ]


def _reaches(alone: Measured, limit: Limit) -> bool:
    """Return whether a drive reaches its limit while the others are idle."""
    own = limit.of(alone.drive)
    return own is not None and alone.iops >= own.bound


def _limit(iops: float, percent: float, source: str) -> Limit:
    claim = Claim.STEADY_IOPS
    return Limit(claim.direction, iops * percent / 100, claim.unit, source)


def _factors(missed: Sequence[MissedAnchor], anchors: Sequence[Anchor], reads: float) -> Mapping[str, float]:
    """Return by how much each drive would have to be faster at this share of reads to do all that is published.

    One that misses the published writes only is slower in its writes only.
    """
    usual = {anchor: _time(anchor, reads) for anchor in anchors}
    factors: dict[str, float] = {}
    for drive in dict.fromkeys(each.drive for each in missed):
        shares = {each.anchor: max(each.share, LEAST_SHARE) for each in missed if each.drive == drive}
        own = sum(seconds / shares.get(anchor, 1.0) for anchor, seconds in usual.items())
        factors[drive] = own / sum(usual.values())
    return factors


def _time(anchor: Anchor, reads: float) -> float:
    """Return the seconds that a drive needs for its I/Os of this kind, of one I/O of the mix."""
    return (reads if anchor.workload.read_fraction else 1 - reads) / anchor.published.value
