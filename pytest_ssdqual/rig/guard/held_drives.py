"""The right to destroy drives: the guard has passed them and this run holds the lease.

Everything that writes to a drive requires a ``HeldDrives``. Only the guard and the lease can make one, and it rechecks
the drives, by identity, before every destructive step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from pytest_ssdqual.rig.drives.survey import Drive, survey
from pytest_ssdqual.rig.drives.topology import Source, Topology, plain_uuid
from pytest_ssdqual.rig.guard import consent, content, refusals
from pytest_ssdqual.rig.guard.consent import Consent, Content
from pytest_ssdqual.rig.guard.lease import Lease, LeaseLost, Terms, names_of
from pytest_ssdqual.rig.guard.refusals import Leftover
from pytest_ssdqual.rig.machine.machine import DriveRefused, Machine
from pytest_ssdqual.rig.machine.side_by_side import PermittedMachine
from pytest_ssdqual.rig.md import mdadm


class HeldDrives:
    """Drives of one machine under one lease, from construction until ``release``."""

    def __init__(
        self,
        machine: Machine,
        drives: Sequence[Drive],
        contents: Mapping[str, Content] = MappingProxyType({}),
        terms: Terms | None = None,
        unchecked: Collection[Source] = frozenset(),
    ) -> None:
        """Take the lease on ``terms``, then recheck the drives.

        ``contents`` is what was on the drives when the guard passed them, by kernel name. ``unchecked`` are the sources
        that may be blind in every check. Raises ``LeaseTaken``, or ``DriveRefused`` if a drive has come into use since,
        or has content that it did not have then.
        """
        self.drives = tuple(drives)
        self._terms = terms
        self._contents = dict(contents)
        self._unchecked = frozenset(unchecked)
        self._known_uuids: set[str] = set()
        self._machine = machine
        self._generation = machine.generation
        #: Drives that are not back after a power cut, and whose names others have now.
        self._displaced: set[Drive] = set()
        self._lease: Lease | None = self._take(lambda: self._look(self.drives))

    def hold_again(self, first: Callable[[], None] = lambda: None) -> None:
        """Take the lease after a restart of the machine ended it, call ``first`` under it, and recheck the drives.

        A drive that is gone is no objection to the others. Raises what the constructor raises; then no lease is held,
        although the controller may not have noticed yet that the former one ended.
        """
        self._lease = None

        def recheck() -> None:
            first()
            self._look(self.drives, may_be_gone=True)

        self._lease = self._take(recheck)

    def identify_again(self, now: Mapping[Drive, Drive]) -> None:
        """Hold drives that lost their power under their names of ``now``, and recheck them; others stay as they were.

        ``now`` has the drives by what they were, with another path and kernel name. The machine kept its power and the
        lease, whose locks have the drives' own names. Data without a signature are no objection: the drive may have
        changed them. Raises what the constructor raises, if the lease was lost ``LeaseLost``.
        """
        self.require_lease_alone()
        names = {drive.kname: renamed.kname for drive, renamed in now.items()}
        self._displaced = {drive for drive in self.drives if drive not in now and drive.kname in names.values()}
        gone = {drive.kname for drive in self._displaced}
        self._contents = {
            names.get(kname, kname): content for kname, content in self._contents.items() if kname not in gone
        }
        self.drives = tuple(now.get(drive, drive) for drive in self.drives)
        self._look(tuple(now.values()), may_have_data=True)

    def require_lease(self) -> None:
        """Raise ``LeaseLost`` unless the lease is held now.

        Raise ``DriveRefused`` if the connection was lost meanwhile and another drive is in the place of one of these,
        or one turned read-only.
        """
        self.require_lease_alone()
        if self._generation != (now := self._machine.generation):
            self._require_same()
            self._generation = now

    def require_same(self) -> None:
        """As ``require_lease``, and look in any case whether another drive is in the place of one of these.

        For a command that changes no data and names drives by their paths: they may be members of this run's array.
        """
        self.require_lease()
        self._require_same()

    def require_lease_alone(self) -> None:
        """Raise ``LeaseLost`` unless the lease is held now; for a command that is bound to the one drive it is about.

        The state of the other drives is no objection to such a command, and the binding compares its own.
        """
        if self._lease is None:
            raise LeaseLost(f"the lease on {self._machine.name} ended when the machine restarted")
        self._lease.require()

    @property
    def leased(self) -> PermittedMachine:
        """The machine for commands that destroy data: each requires the lease again, since a purge may take hours."""
        return PermittedMachine(self._machine, self.require_lease)

    def expect(self, uuid: str) -> None:
        """Expect superblocks of this UUID on the drives from now on: this run is about to build the array."""
        self._known_uuids.add(uuid)

    def require(self, drives: Sequence[Drive]) -> None:
        """Raise unless these may be destroyed *now*: held, the same drives as before, not in use, no new content.

        New is content that the previous check did not find, except superblocks of arrays of this run (``expect``).
        """
        self._require(drives)

    def require_purged(self, drives: Sequence[Drive]) -> None:
        """As ``require``, after a purge, which may have taken hours.

        It may leave data of which the label is gone, or blocks that cannot be read until they are written.
        """
        self._require(drives, may_have_data=True)

    def _require(self, drives: Sequence[Drive], *, may_have_data: bool = False) -> None:
        foreign = [drive.describe() for drive in drives if drive not in self.drives]
        if foreign:
            raise DriveRefused(f"not among the drives of this run: {', '.join(foreign)}")
        self.require_lease()
        self._look(drives, may_have_data=may_have_data)
        self.require_lease()  # looking may take minutes, in which a controller that slept can lose it

    def release(self) -> None:
        """Give up the lease."""
        if self._lease:
            self._lease.release()

    def _require_same(self) -> None:
        """Raise ``DriveRefused`` if another drive has the place of one of these, or if one turned read-only.

        One that is gone is no objection to the others: it cannot be written to, and the step that needs it finds that.
        Being in use is expected here: they may already be members of this run's array.
        """
        topology = survey(self._machine)
        there = [
            drive for drive in self.drives if drive not in self._displaced and not refusals.is_gone(topology, drive)
        ]
        now = {drive: topology.drive(drive.kname) for drive in there}
        other = [
            drive
            for drive in there
            if not _is_same(drive, now[drive]) or refusals.unknown_names(topology.nodes[drive.kname], drive)
        ]
        locked = [drive for drive in there if drive not in other and now[drive].read_only and not drive.read_only]
        reasons = [
            words.format(", ".join(drive.describe() for drive in drives))
            for words, drives in (
                ("another drive is in its place since it was checked: {}", other),
                ("{} turned read-only since it was checked", locked),
            )
            if drives
        ]
        if reasons:
            raise DriveRefused("; ".join(reasons))

    def _look(self, drives: Sequence[Drive], *, may_be_gone: bool = False, may_have_data: bool = False) -> None:
        self._contents |= refusals.recheck(
            self._machine,
            *drives,
            known=self._contents,
            known_uuids=self._known_uuids,
            unchecked=self._unchecked,
            may_be_gone=may_be_gone,
            may_have_data=may_have_data,
        )

    def _take(self, recheck: Callable[[], None]) -> Lease:
        lease = Lease(self._machine, names_of(self.drives), self._terms)
        try:
            recheck()
        except BaseException:
            lease.release()
            raise
        return lease


def _is_same(before: Drive, now: Drive) -> bool:
    """Return whether all is equal but what the kernel or the drive itself may change while the drive is in its place.

    A drive at the end of its life locks itself against writing, a rule of udev sets ``rotational`` late, and a
    controller that does not answer has a link of unknown speed.
    """
    kept = replace(now, read_only=before.read_only, rotational=before.rotational, max_link=before.max_link)
    return kept == before


def examined_leftovers(
    machine: Machine, topology: Topology, known_uuids: Collection[str], wanted: Collection[str]
) -> Topology:
    """The topology with the content of arrays left over on ``wanted`` (kernel names of drives) and of their members."""
    leftovers = [
        leftover for leftover in refusals.leftovers(topology, known_uuids) if set(leftover.members) <= set(wanted)
    ]
    if not leftovers:
        return topology
    arrays, members = (
        {leftover.kname for leftover in leftovers},
        {name for leftover in leftovers for name in leftover.members},
    )
    return content.examined(machine, survey(machine, {*wanted, *arrays}), arrays | members, known_uuids, names=True)


def stoppable(
    topology: Topology, known_uuids: Collection[str], wanted: Collection[str], given: Collection[Consent] = ()
) -> tuple[Leftover, ...]:
    """The leftovers of an examined topology that may be stopped.

    Such an array is on ``wanted`` alone, neither it nor a member is in use by any path, and no consent is ``missing``
    for any member, on which the content of the array is found. ``known_uuids`` are the UUIDs of arrays that a journal
    records as created and not as stopped. The guard reports all other leftovers, except an array without members,
    which no drive leads to.
    """
    own_uuids = frozenset(filter(None, map(plain_uuid, known_uuids)))
    stoppable_arrays = []
    for leftover in refusals.leftovers(topology, own_uuids):
        members = [topology.nodes[kname] for kname in leftover.members if kname in topology.nodes]
        paths_to = [(node, *topology.twins(node.kname)) for node in members]
        # Stopping erases superblocks, so a member that another process has open is refused with its bytes unchanged.
        all_uses = (
            use for paths in paths_to for path in paths for use in refusals.uses(topology, path.kname, own_uuids)
        )
        is_used = not all(use.by_leftover for use in all_uses)
        is_carrying = any(
            reason for paths in paths_to for reason in consent.missing(topology, paths, given, own_uuids, free=True)
        )
        is_there = bool(members) and len(members) == len(leftover.members)
        is_wanted = is_there and set(leftover.members) <= set(wanted)
        if is_wanted and not is_used and not is_carrying:
            stoppable_arrays.append(leftover)
    return tuple(stoppable_arrays)


def clear_leftovers(
    machine: Machine, topology: Topology, leftovers: Iterable[Leftover], note: Callable[..., None]
) -> tuple[str, ...]:
    """Stop what is ``stoppable``, call ``note`` for each array, and return descriptions of the stopped arrays.

    The members are leased first, so that a run that is still alive is not disturbed (``LeaseTaken``).
    """
    stopped = []
    for leftover in leftovers:
        drives = [topology.drive(kname) for kname in leftover.members]
        with Lease(machine, names_of(drives)):
            uuid, path = mdadm_spelling(leftover.uuid), topology.path(leftover.kname)
            objections = mdadm.final_objections(machine, path)
            not_erased = mdadm.stop(machine, path, [drive.path for drive in drives], uuid)
        # While a member still has the superblock, the array stays recorded as left, so its remains need no consent.
        kind = "array_left" if not_erased else "array_stopped"
        note(kind, uuid=uuid, leftover=True, not_erased=not_erased, objections=objections)
        stopped.append(f"{topology.path(leftover.kname)} of {', '.join(drive.path for drive in drives)}")
    return tuple(stopped)


def mdadm_spelling(uuid: str) -> str:
    """A UUID of 32 hexadecimal digits as mdadm and journals write it: ``a:b:c:d``."""
    return ":".join(uuid[start : start + 8] for start in range(0, 32, 8))
