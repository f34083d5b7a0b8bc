"""Purges drives: returns each to its state before first use, by its best method.

Methods are tried from the best to the worst. One that a drive lacks or refuses is passed over for the next, and the
record lists each with the reason. SNIA PTS 2.0.2 accepts a format, a sanitize and a secure erase as a purge; a discard
(TRIM, UNMAP, Deallocate) is a fall-back, and a missing purge must be reported.

Everything here destroys data; ``zero`` documents what its callers must hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.integrity import erasure
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.machine.channel import last_words
from pytest_ssdqual.rig.machine.machine import CommandFailed, Machine, RigError
from pytest_ssdqual.rig.machine.side_by_side import each
from pytest_ssdqual.rig.purge import ata, nvme
from pytest_ssdqual.rig.purge.zero import PassedOver, await_answers, exclusively

#: Transports as lsblk names them. A SATA drive behind a SAS adapter is ``sas``, so those are asked for ATA, too; a
#: bridge (``usb``) is not: some of them keep the password and lose the erase.
NVME, ATA = frozenset({"nvme"}), frozenset({"sata", "ata", "sas"})

DISCARD, NONE = erasure.DISCARD, erasure.NONE


@frozen
class Rung:
    """One purge method."""

    name: str
    #: Transports of the drives that support it.
    transports: frozenset[str]
    #: Executes, verifies and names it; ``PassedOver`` if nothing was done, ``RigError`` if the drive is worse.
    climb: Callable[[Machine, Drive], str]


#: Best first. Format before Sanitize: it reaches one namespace, is complete when it returns, and cannot leave a drive
#: that accepts no data. ATA's Sanitize before its Security Erase: it needs no password, which could lock a drive whose
#: power fails in the middle, and the firmware of most machines freezes the latter only. SCSI's FORMAT UNIT and SANITIZE
#: are omitted: no emulator has them, and an interrupted one leaves a drive that cannot be read at all.
LADDER: tuple[Rung, ...] = (
    Rung("NVMe Format", NVME, nvme.format_namespace),
    Rung("NVMe Sanitize", NVME, nvme.sanitize),
    Rung("ATA Sanitize", ATA, ata.sanitize),
    Rung("ATA Security Erase", ATA, ata.security_erase),
)


@frozen
class Purged:
    """Method by which one drive was purged."""

    method: str
    #: Better methods, each with the reason why it was not used.
    passed_over: tuple[str, ...] = ()


def purge(machine: Machine, drives: Sequence[Drive], *, best: bool) -> dict[str, Purged]:
    """Purge every drive as well as it allows; return the methods by identity.

    Without ``best`` it is a discard of the whole range, if the drive supports it. ``DriveRefused`` if a drive is in
    use after all, ``RigError`` if one is worse than before; the others are finished first.
    """
    purged = each(machine, drives, lambda on, drive: purge_one(on, drive, LADDER if best else ()))
    await_answers(machine, drives)
    return {drive.identity: done for drive, done in zip(drives, purged, strict=True)}


def purge_one(machine: Machine, drive: Drive, ladder: Sequence[Rung]) -> Purged:
    """Purge one drive by the first method that succeeds, or a discard, or not at all."""
    # The discard comes first: a drive that is in use is refused before any other command is sent to it.
    refusal = _discard(machine, drive)
    passed_over: list[str] = []
    for rung in ladder:
        if drive.transport not in rung.transports:
            continue
        try:
            return Purged(rung.climb(machine, drive), tuple(passed_over))
        except PassedOver as reason:
            passed_over.append(f"{rung.name}: {reason}")
    if not refusal:
        return Purged(DISCARD, tuple(passed_over))
    passed_over.append(f"discard: {refusal}")
    # Data that the user agreed to lose must not be found on the drive when the run is over.
    try:
        exclusively(machine, ["wipefs", "--all", drive.path], drive)
    except CommandFailed as error:
        reasons = "; ".join(passed_over)
        raise RigError(f"{drive.describe()} can be neither purged nor written ({reasons}): {error}") from error
    return Purged(NONE, tuple(passed_over))


def _discard(machine: Machine, drive: Drive) -> str:
    """Discard the whole range; return why that failed, or an empty string."""
    done = exclusively(machine, ["blkdiscard", drive.path], drive, check=False)
    if done.status and _awaited_sanitize(machine, drive):
        done = exclusively(machine, ["blkdiscard", drive.path], drive, check=False)
    return last_words(done) if done.status else ""


def _awaited_sanitize(machine: Machine, drive: Drive) -> bool:
    """Wait for a sanitize, perhaps of an interrupted run, until which the drive refuses everything; True if it ran."""
    if drive.transport in NVME:
        return nvme.await_sanitize(machine, drive)
    return drive.transport in ATA and ata.await_sanitize(machine, drive)
