"""Changes of the drives' write caches: made under the lease, on record before they are made, and undone.

A changed setting of a drive outlives every process, so its undoing cannot depend on one. The record of a change
(``write_cache_planned``) has the former state and is on disk before the drive is switched; ``write_cache_restored`` of
the same change ends it. A run restores its own changes before it gives up the lease. A later run restores the changes
of runs that could not, on drives with the same identity that its guard has passed, under a lease of its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.records import shallow
from pytest_ssdqual.qual.serial_number import is_generic
from pytest_ssdqual.qual.spec.protocol_rules import AS_FOUND, WriteCacheRule
from pytest_ssdqual.rig.drives import write_cache
from pytest_ssdqual.rig.drives.cache_state import CacheState, WriteCacheRecord
from pytest_ssdqual.rig.drives.topology import Drive, Source
from pytest_ssdqual.rig.drives.write_cache import Switched
from pytest_ssdqual.rig.guard import refusals
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.guard.lease import Lease, names_of
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, Machine, RigError
from pytest_ssdqual.rig.machine.side_by_side import each

#: Writes one record; it is on disk before the call returns.
Note = Callable[..., None]
#: The states in which a write cache can be switched, each with the other one.
OTHER = {CacheState.ON: CacheState.OFF, CacheState.OFF: CacheState.ON}


@frozen
class CacheChange:
    """A change of a drive's write cache that is on record and not undone."""

    #: Random name, the same in all records of the change.
    change: str
    #: Identity of the drive that was switched.
    drive: str
    was: CacheState
    #: ``Drive.all_names`` of it.
    names: frozenset[str] = frozenset()

    def is_of(self, drive: Drive) -> bool:
        """Return whether ``drive`` is the drive that was switched.

        Any namespace of an NVMe drive is, since they have one write cache. For other drives only the identity counts:
        bridges and enclosures may report one serial for several drives. A serial that many drives have is none.
        """
        shared = (name for name in self.names & drive.all_names if not is_generic(name))
        return drive.identity == self.drive or (drive.transport == "nvme" and any(shared))


@dataclass(slots=True)
class WriteCaches:
    """The write caches of one run's drives, set as the protocol demands and restored."""

    machine: Machine
    held: HeldDrives
    rule: WriteCacheRule
    note: Note
    machine_id: str = ""
    #: States in earlier sessions of a resumed run, by the drives' identities.
    earlier: Mapping[str, CacheState] = field(default_factory=dict)
    #: Of each drive with a change that is not undone: the change, and the state that the drive reported after it.
    _open: dict[str, tuple[Drive, CacheChange, CacheState]] = field(init=False, default_factory=dict)
    #: State of each drive, by identity: when the run held it first, and after ``set``.
    _found: dict[str, CacheState] = field(init=False, default_factory=dict)
    _now: dict[str, CacheState] = field(init=False, default_factory=dict)
    _is_set: bool = field(init=False, default=False)

    def require_set(self) -> None:
        """Set the write caches before the first step that needs the drives, unless that was done; raises as ``set``."""
        if not self._is_set:
            self.set()

    def set(self) -> None:
        """Read all write caches, switch those that the protocol demands otherwise, and record the outcome of each.

        Nothing is switched that is in that state already, so it may be called again after the drives lost their power.
        ``LeaseLost`` before a switch without the lease; ``RigError`` if the machine is lost, or if a drive is not in
        the state that it had in the earlier sessions and the protocol leaves it as it is found.
        """
        drives = self.held.drives
        for drive, (state, why) in zip(drives, each(self.machine, drives, self._read), strict=True):
            self._require_as_before(drive, state)
            if drive.identity in self._open:  # perhaps under another name since then
                self._open[drive.identity] = drive, *self._open[drive.identity][1:]
            self._found.setdefault(drive.identity, state)
            now = state
            if self.rule != AS_FOUND and state is OTHER[CacheState(self.rule)]:
                now, why = self._switch(drive, CacheState(self.rule))
            self._now[drive.identity] = now
            outcome = _outcome(self.rule, state, now, why)
            record = WriteCacheRecord(drive.identity, drive.describe(), self.rule, state, now, outcome)
            self.note("write_cache", **shallow(record))
        self._is_set = True

    def require(self, drives: Iterable[Drive]) -> None:
        """Raise ``InvalidMeasurement`` unless drives that were measured are still in the state that they were put in.

        A reset may have returned them to their own; they are switched again. A drive that does not report its state now
        may have lost it, too. A drive that never had the state that the protocol demands is not an objection.
        """
        if self.rule == AS_FOUND:
            return
        wanted = CacheState(self.rule)
        switched = [drive for drive in drives if self._now.get(drive.identity) is wanted]
        states = list(zip(switched, each(self.machine, switched, self._read), strict=True))
        lost = [drive.describe() for drive, (state, _) in states if state is OTHER[wanted]]
        if lost:
            self.set()
            raise InvalidMeasurement(
                f"the write cache was {OTHER[wanted]} at the end of a measurement, and the protocol has it {wanted}: "
                f"{', '.join(lost)}"
            )
        unread = [f"{drive.describe()}{_because(why)}" for drive, (state, why) in states if state is not wanted]
        if unread:
            raise InvalidMeasurement(
                f"the protocol has the write cache {wanted}, and its state was not reported at the end of a "
                f"measurement: {', '.join(unread)}"
            )

    def restore(self, obstacle: str = "") -> None:
        """Restore every write cache that ``set`` switched, and record the outcome.

        With an ``obstacle``, a reason why the drives do not answer, or without the lease, none is switched, and that is
        recorded. Otherwise all are tried. Then ``RigError`` is raised if the machine is lost or nothing can be
        recorded.
        """
        ended: RigError | None = None
        for drive, change, expected in list(self._open.values()):
            try:
                undo(self.machine, drive, [change], self.note, self.held.require_lease_alone, expected, obstacle)
            except RigError as error:
                ended = ended or error
        self._open.clear()
        if ended:
            raise ended

    def _read(self, machine: Machine, drive: Drive) -> tuple[CacheState, str]:
        """Return the state, and why it is unknown."""
        try:
            return write_cache.read(machine, drive), ""
        except RigError as error:
            if error.ends_run:
                raise
            return CacheState.UNKNOWN, str(error)

    def _require_as_before(self, drive: Drive, now: CacheState) -> None:
        was = self.earlier.get(drive.identity)
        if self.rule == AS_FOUND and was in OTHER and now is OTHER[was]:
            raise RigError(
                f"the write cache of {drive.describe()} is {now} and was {was} in the earlier session of this run; "
                f"`{write_cache.by_hand(drive, was)}` on {self.machine.name} switches it, or begin a new run"
            )

    def _switch(self, drive: Drive, wanted: CacheState) -> tuple[CacheState, str]:
        """Switch a write cache that is on record as to be restored; return its state, and why it is not the other."""
        self.held.require_lease()
        _, change, _ = self._open.get(drive.identity, (drive, None, None))
        if change is None:
            # A drive that was found as the protocol demands, and has lost that since, is restored to what was found.
            found = self._found[drive.identity]
            was = found if found in OTHER else OTHER[wanted]
            change = CacheChange(secrets.token_hex(8), drive.identity, was, drive.all_names)
            self.note(
                "write_cache_planned", change=change.change, drive=drive.identity, name=drive.describe(), was=was,
                names=sorted(change.names), wanted=wanted, machine_id=self.machine_id,
                by_hand=write_cache.by_hand(drive, was),
            )  # fmt: skip
            self._open[drive.identity] = drive, change, CacheState.UNKNOWN
        try:
            done = write_cache.switch(self.machine, drive, wanted)
        except RigError as error:
            if error.ends_run:
                raise
            return CacheState.UNKNOWN, str(error)
        self._open[drive.identity] = drive, change, done.after
        return done.after, done.printed


def undo(
    machine: Machine,
    drive: Drive,
    changes: Sequence[CacheChange],
    note: Note,
    require_lease: Callable[[], None],
    expected: CacheState | None = None,
    obstacle: str = "",
) -> str:
    """Restore the state before the first of these changes of one drive.

    Records and returns a sentence: what was restored, or why it was not. Raises only what ends the run. Nothing is
    switched if ``require_lease`` raises ``RigError``: the drive may be another run's by now. ``expected`` is the state
    that the drive had for the measurements; None for changes of an earlier run. With an ``obstacle`` the drive is not
    asked.
    """
    was, ended = changes[0].was, None
    done = Switched(CacheState.UNKNOWN, CacheState.UNKNOWN, obstacle)
    try:
        if not obstacle:
            require_lease()
            done = write_cache.switch(machine, drive, was)
    except RigError as error:
        ended = error if error.ends_run else None
        done = replace(done, printed=str(error))
    lost = expected is OTHER[was] and done.before is was
    kind = "write_cache_restored" if done.after is was else "write_cache_left"
    sentence = f"the write cache of {drive.describe()} {_ending(machine, drive, was, done, lost=lost)}"
    for change in changes:
        note(
            kind, change=change.change, drive=drive.identity, name=drive.describe(), was=was, stood=done.before,
            now=done.after, leftover=expected is None, lost=lost, sentence=sentence,
        )  # fmt: skip
    if ended:
        raise ended
    return sentence


def _ending(machine: Machine, drive: Drive, was: CacheState, done: Switched, *, lost: bool) -> str:
    """Return what became of a write cache, to follow the drive's name."""
    if done.after is not was:
        return (
            f"was {was} before it was switched and could not be restored{_because(done.printed)}: the next run with "
            f"this drive does that, or `{write_cache.by_hand(drive, was)}` on {machine.name}"
        )
    if lost:
        return f"was {was} at the end of the run, though it had been switched {OTHER[was]}"
    return f"is {was} again"


def restore_left(
    machine: Machine,
    drives: Sequence[Drive],
    left: Iterable[CacheChange],
    left_now: Callable[[], Iterable[CacheChange]],
    note: Note,
    unchecked: Collection[Source] = frozenset(),
) -> tuple[str, ...]:
    """Undo the changes that earlier runs left on these drives, and return a sentence for each drive.

    The guard has passed the drives. ``left`` are the changes on record, oldest first. ``left_now`` reads them again
    under the lease, because the run that made a change may have been alive until then. ``unchecked`` are the sources
    of the guard that may be blind. Raises ``LeaseTaken``, ``DriveRefused`` for a drive that has come into use since the
    guard passed it, and ``RigError`` if the machine is lost.
    """
    left = tuple(left)
    affected = [drive for drive in drives if any(change.is_of(drive) for change in left)]
    if not affected:
        return ()
    with Lease(machine, names_of(affected)) as lease:
        refusals.recheck(machine, *affected, unchecked=unchecked)
        still_left = tuple(left_now())
        by_drive = [(drive, [change for change in still_left if change.is_of(drive)]) for drive in affected]
        return tuple(undo(machine, drive, changes, note, lease.require) for drive, changes in by_drive if changes)


def _outcome(rule: WriteCacheRule, found: CacheState, now: CacheState, why: str) -> str:
    """Return the state with its reason, as a phrase."""
    because = _because(why)
    if found is CacheState.UNKNOWN:
        return f"unknown{because}"
    if found is CacheState.ABSENT:
        return "absent: the drive has no volatile write cache"
    if rule in (AS_FOUND, found):
        return f"{found}, as found"
    if now is CacheState(rule):
        return f"{now}, switched from {found}"
    if now is found:
        return f"{now}, because the drive did not switch it {rule}{because}"
    return f"unknown after it was switched {rule}{because}"


def _because(why: str) -> str:
    return f" ({why})" if why else ""
