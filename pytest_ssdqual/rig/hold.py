"""The right to destroy drives: the guard has passed them and the lease is held.

Whatever writes to a drive wants a ``HeldDrives``; it can only be had through the guard and the lease, and it
looks again, by identity, before every step that destroys.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from pytest_ssdqual.rig import md, safety
from pytest_ssdqual.rig.blockdev import Drive, survey
from pytest_ssdqual.rig.lease import Lease
from pytest_ssdqual.rig.machine import DriveRefused, Machine


class HeldDrives:
    """Drives of one machine under one lease, from construction until ``release``."""

    def __init__(self, machine: Machine, drives: Sequence[Drive]) -> None:
        """Lease, then look again.

        Raises ``LeaseTaken``, or ``DriveRefused`` if a drive was put to use since the guard passed it.
        """
        self.drives = tuple(drives)
        self._machine = machine
        self._lease = Lease(machine, [drive.identity for drive in drives])
        try:
            self.require(self.drives)
        except BaseException:
            self.release()
            raise

    def require_lease(self) -> None:
        """Raise ``LeaseLost`` unless the lease is held now."""
        self._lease.require()

    def require(self, drives: Sequence[Drive]) -> None:
        """Raise unless these may be destroyed *now*: held, the same drives as before, and not in use."""
        foreign = [drive.describe() for drive in drives if drive not in self.drives]
        if foreign:
            raise DriveRefused(f"not among the drives of this run: {', '.join(foreign)}")
        self.require_lease()
        safety.recheck(self._machine, *drives)

    def release(self) -> None:
        """Give up the lease."""
        self._lease.release()


def clear_leftovers(
    machine: Machine, ours: Collection[str], wanted: Collection[str], note: Callable[..., None]
) -> tuple[str, ...]:
    """Stop what is left of our own earlier arrays on ``wanted`` (kernel names of drives); returns what was stopped.

    ``ours`` are the UUIDs of arrays that our journals say were created and not stopped. Their members are leased
    first: a run that still lives is not disturbed (``LeaseTaken``). An array that something uses by now, or with
    members outside of ``wanted``, is left alone; the guard will say so. ``note`` is told of each that was stopped.
    """
    topology = survey(machine, wanted)
    stopped = []
    for leftover in safety.leftovers(topology, ours):
        if leftover.in_use or not set(leftover.members) <= set(wanted):
            continue
        drives = [topology.drive(kname) for kname in leftover.members]
        with Lease(machine, [drive.identity for drive in drives]):
            uuid, path = mdadm_spelling(leftover.uuid), topology.path(leftover.kname)
            objections = md.last_look(machine, path)
            left = md.stop(machine, path, [drive.path for drive in drives], uuid)
        # A member that keeps our superblock keeps the array on our books, so that its remains need no consent.
        kind = "array_left" if left else "array_stopped"
        note(kind, uuid=uuid, leftover=True, not_erased=left, objections=objections)
        stopped.append(f"{topology.path(leftover.kname)} of {', '.join(drive.path for drive in drives)}")
    return tuple(stopped)


def mdadm_spelling(uuid: str) -> str:
    """32 hexadecimal digits as mdadm and our journals write them: ``a:b:c:d``."""
    return ":".join(uuid[start : start + 8] for start in range(0, 32, 8))
