"""The right to destroy drives: the guard has passed them and the lease is held.

Whatever writes to a drive wants a ``HeldDrives``; it can only be had through the guard and the lease, and it
looks again, by identity, before every step that destroys.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from pytest_ssdqual.rig.drives.survey import Drive, survey
from pytest_ssdqual.rig.drives.topology import Topology, plain_uuid
from pytest_ssdqual.rig.guard import consent, content, refusals
from pytest_ssdqual.rig.guard.consent import Content
from pytest_ssdqual.rig.guard.lease import Lease, Terms
from pytest_ssdqual.rig.guard.refusals import Leftover
from pytest_ssdqual.rig.machine.machine import DriveRefused, Machine
from pytest_ssdqual.rig.md import mdadm


class HeldDrives:
    """Drives of one machine under one lease, from construction until ``release``."""

    def __init__(
        self,
        machine: Machine,
        drives: Sequence[Drive],
        contents: Mapping[str, Content] = MappingProxyType({}),
        terms: Terms | None = None,
    ) -> None:
        """Lease on ``terms``, then look again.

        ``contents`` is what was on the drives when the guard passed them, by kernel name. Raises ``LeaseTaken``, or
        ``DriveRefused`` if a drive was put to use since, or carries what it did not then.
        """
        self.drives = tuple(drives)
        self._terms = replace(terms or Terms(), names=names(drives))
        self._contents = dict(contents)
        self._ours: set[str] = set()
        self._machine = machine
        self._generation = machine.generation
        self._lease = self._take()

    def hold_again(self) -> None:
        """After the machine was restarted, where leases do not survive: lease anew, then look again.

        Raises as the construction.
        """
        self._lease = self._take()

    def require_lease(self) -> None:
        """Raise unless the lease is held now: ``LeaseLost``, or ``DriveRefused`` if the connection was lost meanwhile
        and a drive is not the one that it was before.
        """
        self._lease.require()
        if self._generation != (now := self._machine.generation):
            self._require_same()
            self._generation = now

    def expect(self, uuid: str) -> None:
        """An array of this UUID is about to be built: its superblocks will be no surprise."""
        self._ours.add(uuid)

    def require(self, drives: Sequence[Drive]) -> None:
        """Raise unless these may be destroyed *now*: held, the same drives as before, not in use, nothing new on them.

        New is what was not there when they were looked at last, but for superblocks of arrays of ours (``expect``).
        """
        foreign = [drive.describe() for drive in drives if drive not in self.drives]
        if foreign:
            raise DriveRefused(f"not among the drives of this run: {', '.join(foreign)}")
        self.require_lease()
        self._look(drives)

    def release(self) -> None:
        """Give up the lease."""
        self._lease.release()

    def _require_same(self) -> None:
        """That they are in use is no wonder: by now they may be members of our array."""
        nodes = survey(self._machine, [drive.kname for drive in self.drives])
        now = {drive.kname: nodes.drive(drive.kname) for drive in self.drives if drive.kname in nodes.nodes}
        other = [drive.describe() for drive in self.drives if now.get(drive.kname) != drive]
        if other:
            raise DriveRefused(f"not the same since the connection was lost, or gone: {', '.join(other)}")

    def _look(self, drives: Sequence[Drive]) -> None:
        self._contents |= refusals.recheck(self._machine, *drives, known=self._contents, ours=self._ours)

    def _take(self) -> Lease:
        lease = Lease(self._machine, [drive.identity for drive in self.drives], self._terms)
        try:
            self._look(self.drives)
        except BaseException:
            lease.release()
            raise
        return lease


def names(drives: Iterable[Drive]) -> dict[str, str]:
    """What each is called where people read of it, by identity: a WWN alone says little."""
    return {drive.identity: f"{drive.path} ({drive.serial})" if drive.serial else drive.path for drive in drives}


def examined_leftovers(
    machine: Machine, topology: Topology, ours: Collection[str], wanted: Collection[str]
) -> Topology:
    """The topology with what is on the leftovers of our own earlier arrays on ``wanted`` (kernel names of drives), and
    on the members of these.
    """
    found = [leftover for leftover in refusals.leftovers(topology, ours) if set(leftover.members) <= set(wanted)]
    if not found:
        return topology
    arrays, members = {each.kname for each in found}, {name for each in found for name in each.members}
    return content.examined(machine, survey(machine, {*wanted, *arrays}), arrays | members, ours)


def stoppable(
    topology: Topology, ours: Collection[str], wanted: Collection[str], wipe: Collection[str] = ()
) -> tuple[Leftover, ...]:
    """The leftovers of an examined topology that may be stopped: on ``wanted`` alone, array and members unused, and
    with nothing on them.

    ``ours`` are the UUIDs of arrays that our journals say were created and not stopped. What is on a leftover may have
    been given up: then ``wipe`` names every member, by serial or WWN. The guard reports all others.
    """
    known = frozenset(filter(None, map(plain_uuid, ours)))
    found = []
    for leftover in refusals.leftovers(topology, known):
        members = [topology.nodes[kname] for kname in leftover.members if kname in topology.nodes]
        given_up = bool(members) and all(node.serial in wipe or node.wwn in wipe for node in members)
        # Stopping erases superblocks: a member that something else has open is refused with its bytes unchanged.
        others = (use for node in members for use in refusals.in_use(topology, node.kname, known))
        is_used = any(refusals.LEFT_OVER not in use for use in others)
        # What is on the array is on its members.
        is_carrying = any(what for node in members for what in consent.signs_on(topology, node, known))
        if set(leftover.members) <= set(wanted) and not is_used and (given_up or not is_carrying):
            found.append(leftover)
    return tuple(found)


def clear_leftovers(
    machine: Machine, topology: Topology, leftovers: Iterable[Leftover], note: Callable[..., None]
) -> tuple[str, ...]:
    """Stop what is ``stoppable``; returns what was stopped, and ``note`` is told of each.

    The members are leased first: a run that still lives is not disturbed (``LeaseTaken``).
    """
    stopped = []
    for leftover in leftovers:
        drives = [topology.drive(kname) for kname in leftover.members]
        with Lease(machine, [drive.identity for drive in drives], Terms(names=names(drives))):
            uuid, path = mdadm_spelling(leftover.uuid), topology.path(leftover.kname)
            objections = mdadm.last_look(machine, path)
            left = mdadm.stop(machine, path, [drive.path for drive in drives], uuid)
        # A member that keeps our superblock keeps the array on our books, so that its remains need no consent.
        kind = "array_left" if left else "array_stopped"
        note(kind, uuid=uuid, leftover=True, not_erased=left, objections=objections)
        stopped.append(f"{topology.path(leftover.kname)} of {', '.join(drive.path for drive in drives)}")
    return tuple(stopped)


def mdadm_spelling(uuid: str) -> str:
    """32 hexadecimal digits as mdadm and our journals write them: ``a:b:c:d``."""
    return ":".join(uuid[start : start + 8] for start in range(0, 32, 8))
