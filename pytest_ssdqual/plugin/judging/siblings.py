"""Collects the evidence about drives side by side of which some break a promise; `qual.validity.side_by_side` decides.

Costs nothing until a promise is broken. What the drives hang on is then read with one command, and if several drives
are slow under reads, one of them is measured alone: that tells a path that they share from slow drives.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from pytest_ssdqual.qual.measured.environment import DriveEnvironment
from pytest_ssdqual.qual.measured.judgeable import Judgeable
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.measured.sweep import Curve
from pytest_ssdqual.qual.spec.claims import OF_LATENCY, Claim, Direction, Scope
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit, format_capacity
from pytest_ssdqual.qual.validity import attribution, shortfall, side_by_side
from pytest_ssdqual.qual.validity.attribution import SLOW, Cause
from pytest_ssdqual.qual.validity.latency_attribution import OWN
from pytest_ssdqual.qual.validity.shortfall import Shortfall
from pytest_ssdqual.qual.validity.side_by_side import DriveFigure, SideBySide, Trait, TraitKind
from pytest_ssdqual.qual.verdict import estimators
from pytest_ssdqual.qual.verdict.verdict import Outcome, Verdict
from pytest_ssdqual.rig.campaign.campaign import Campaign
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.guard import shared_paths
from pytest_ssdqual.rig.machine.machine import RigError

#: Claims that a path which is too narrow breaks by itself.
OF_RATE = (Claim.STEADY_IOPS, Claim.READ_IOPS, Claim.WRITE_IOPS, Claim.THROUGHPUT)
#: A path that carries so large a share of what it carries of reads is what limits writes.
CARRIED = 0.9


@dataclass(slots=True)
class Siblings:
    """Attributes the promises that drives side by side break."""

    campaign: Callable[[], Campaign]
    #: Things that the drives hang on, by serial number; None until they are read.
    _hang_on: dict[str, frozenset[Trait]] | None = field(default=None)

    def cause(self, verdicts: Sequence[Verdict], judged: Judgeable) -> Cause | None:
        """Return the cause of the broken promises among ``verdicts``, one of each drive or one that compares them.

        None if no promise is broken, or if the drives are not side by side.
        """
        failed = [verdict for verdict in verdicts if verdict.outcome is Outcome.FAIL]
        if not failed or not judged.subject.geometry.is_side_by_side:
            return None
        claim, run = failed[0].claim, _run(judged)
        scores = _compared(failed[0], judged) if claim.scope is Scope.MEMBERS else _over_limit(verdicts)
        broken = {verdict.subject.drive for verdict in failed}
        errors = {verdict.subject.drive: _error(verdict) for verdict in verdicts}
        traits = self._traits(list(scores), run)
        found = SideBySide(
            tuple(
                DriveFigure(serial, score, serial in broken, errors.get(serial, 0.0), traits[serial])
                for serial, score in scores.items()
            ),
            alone=self._alone(claim, judged),
            together=lambda serial: self._together(serial, judged),
            host=_host(run) if run else None,
            behind=_behind(claim, failed[0]),
            is_at_most=claim.direction is Direction.AT_MOST,
            compares=claim.scope is Scope.MEMBERS,
        )
        return side_by_side.attribute(found)

    def _alone(self, claim: Claim, judged: Judgeable) -> Mapping[str, float]:
        """Return the shares of ``SideBySide.alone``."""
        alone = self.campaign().alone(judged.subject.workload)
        if alone is None or claim not in OF_RATE or not isinstance(judged, Measured):
            return {}
        return alone.shares(judged)

    def _traits(self, serials: Sequence[str], run: Run | None) -> dict[str, frozenset[Trait]]:
        campaign = self.campaign()
        drives = {drive.name: drive for drive in campaign.setup.held.drives}
        if self._hang_on is None:
            self._hang_on = _paths(campaign, list(drives.values()))
        seen = {each.name: each for each in run.seen.drives} if run and run.seen else {}
        found = {}
        for serial in serials:
            own = _of_drive(drives[serial]) if serial in drives else ()
            place = _of_place(seen[serial]) if serial in seen else ()
            found[serial] = frozenset([*own, *place, *self._hang_on.get(serial, ())])
        return found

    def _together(self, serial: str, judged: Judgeable) -> float | None:
        """Return the IOPS of a drive with the others over those alone; measured now if it was not before.

        What a load shows says nothing about one that is twice as deep: the path may carry only the former.
        """
        campaign = self.campaign()
        wanted = judged.subject.workload
        if isinstance(judged, Measured) and wanted.writes:
            return self._by_reads(serial, judged)
        alone = campaign.alone(wanted) or campaign.alone()
        try:
            if alone and (alone.workload == wanted or wanted.outstanding(1) < 2 * alone.workload.outstanding(1)):
                return alone.shares(campaign.member(alone.workload)).get(serial)
        except RigError:
            return None
        if not isinstance(judged, Measured):
            return None
        one = campaign.drive_alone(judged.geometry, judged.workload, serial)
        beside = next((each.iops for each in judged.members() if each.drive == serial), None)
        return beside / one.iops if one and one.iops and beside is not None else None

    def _by_reads(self, serial: str, writes: Measured) -> float | None:
        """Return the IOPS of a drive together over those alone of the reads by which a path shows its limit.

        No drive writes alone, as the others would collect garbage meanwhile. But a path that limits writes carries no
        more reads: None if all drives together read more than they write.
        """
        campaign = self.campaign()
        read = []
        for alone in campaign.all_alone():
            with suppress(RigError):
                read.append((alone, campaign.member(alone.workload)))
        if not read:
            return None
        alone, together = max(read, key=lambda pair: _bytes_per_s(pair[1]))
        if _bytes_per_s(writes) < CARRIED * _bytes_per_s(together):
            return None
        return alone.shares(together).get(serial)


def _bytes_per_s(measured: Measured) -> float:
    """Return what all drives side by side transferred."""
    return sum(member.iops for member in measured.members()) * measured.workload.block_bytes


def _run(judged: Judgeable) -> Run | None:
    if isinstance(judged, Measured):
        return judged.runs[-1]
    if isinstance(judged, Saturation):
        return judged.run
    return judged[-1].runs[-1] if isinstance(judged, Curve) else None


def _over_limit(verdicts: Sequence[Verdict]) -> dict[str, float | None]:
    """Return how good each drive is by its own limit: larger is better."""
    found: dict[str, float | None] = {}
    for verdict in verdicts:
        value, bound = verdict.estimate.value, verdict.limit.bound
        is_at_least = verdict.limit.direction is Direction.AT_LEAST
        found[verdict.subject.drive] = None
        if value > 0 and bound > 0 and math.isfinite(value):
            found[verdict.subject.drive] = value / bound if is_at_least else bound / value
    return found


def _error(verdict: Verdict) -> float:
    """Return how much better a figure may be than estimated, as a share of it; 0 if that is unbounded."""
    found = verdict.estimate
    end = found.high if verdict.limit.direction is Direction.AT_LEAST else found.low
    if found.value <= 0 or end <= 0 or not math.isfinite(end):
        return 0.0
    return abs(math.log(end / found.value))


def _compared(verdict: Verdict, judged: Judgeable) -> dict[str, float | None]:
    """Return the figures that a claim about evenness compares: larger is better."""
    alike = estimators.alike(verdict.claim, judged)
    if verdict.claim.direction is Direction.AT_LEAST:
        return dict(alike)
    return {serial: 1 / value if value > 0 else None for serial, value in alike.items()}


def _behind(claim: Claim, verdict: Verdict) -> float:
    """Return the share of the median of the others, below which a drive is behind.

    A promise of evenness says itself how far drives may be apart; for latencies on both sides of the median.
    """
    bound = verdict.limit.bound
    if claim is Claim.MEMBER_SPREAD and verdict.limit.unit is Unit.RATIO:
        return max(SLOW, bound)
    if claim is Claim.LATENCY_SPREAD_BETWEEN_MEMBERS and verdict.limit.unit is Unit.RATIO:
        return 1 / math.sqrt(max(1.0, bound))
    return 1 / OWN if claim in OF_LATENCY else SLOW


def _host(run: Run) -> Cause | None:
    """Return the host or fio as the cause if their own figures say that they are the bottleneck."""
    if run.seen is None:
        return None
    done = Estimate(run.iops, run.iops, run.iops, 1, Unit.IOPS)
    found = Shortfall(run.geometry, done, None, host=shortfall.host(run.seen))
    return attribution.fio_is_the_bound(found) or attribution.host_is_the_bound(found)


def _paths(campaign: Campaign, drives: Sequence[Drive]) -> dict[str, frozenset[Trait]]:
    """Return what the drives hang on, by serial number, without root ports of one drive; empty if it is unknown."""
    try:
        paths = shared_paths.paths(campaign.setup.machine, drives)
    except RigError:
        return {}
    users = Counter(thing for path in paths for thing in set(path.on))
    return {
        path.drive.name: frozenset(
            Trait(TraitKind.SHARED, thing.kind, thing.name)
            for thing in path.on
            if users[thing] > 1 or thing.kind != shared_paths.ROOT_PORT
        )
        for path in paths
    }


def _of_drive(drive: Drive) -> Iterator[Trait]:
    known = {"model": drive.model, "firmware": drive.firmware, "capacity": format_capacity(drive.size_bytes)}
    for name, value in known.items():
        if value:
            yield Trait(TraitKind.DRIVE, name, value)
    if drive.queue_limit is not None:
        yield Trait(TraitKind.HOST, "queue depth", str(drive.queue_limit))


def _of_place(seen: DriveEnvironment) -> Iterator[Trait]:
    if seen.link:
        yield Trait(TraitKind.PLACE, "link", seen.link.describe())
    place = seen.placement
    if place is None:
        return
    if place.numa_node is not None:
        yield Trait(TraitKind.PLACE, "NUMA node", str(place.numa_node))
    for name, value in (
        ("I/O scheduler", place.scheduler), ("nr_requests", place.nr_requests), ("write cache", place.write_cache),
        ("interrupts on CPUs", place.interrupt_cpus),
    ):  # fmt: skip
        if value:
            yield Trait(TraitKind.HOST, name, str(value))
