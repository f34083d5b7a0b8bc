"""Drives as if they had never been written, by the best means each of them has.

The rule of the module: a ladder is climbed down. What a drive lacks or refuses is passed over for the next best, and
the record says so, for each rung and with the reason. SNIA PTS 2.0.2 takes a format, a sanitize and a secure erase for
a purge; a discard (TRIM, UNMAP, Deallocate) is a fall-back, and a missing purge must be reported.

Everything here destroys data; ``zero`` says what its callers must hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.machine.channel import last_words
from pytest_ssdqual.rig.machine.machine import CommandFailed, Machine, RigError
from pytest_ssdqual.rig.purge import ata, nvme
from pytest_ssdqual.rig.purge.zero import PassedOver, each, exclusively

#: As lsblk names them. A SATA drive behind a SAS adapter is ``sas``, so those are asked whether they speak ATA; a
#: bridge (``usb``) is not: some of them keep the password and lose the erase.
NVME, ATA = frozenset({"nvme"}), frozenset({"sata", "ata", "sas"})

DISCARD = "discard of the whole range"
NONE = "none"


@dataclass(frozen=True, slots=True)
class Rung:
    """One way of purging a drive."""

    name: str
    #: Of the drives that it is for.
    transports: frozenset[str]
    #: Does it, verifies it and says what was done; ``PassedOver`` if nothing was, ``RigError`` if the drive is worse.
    climb: Callable[[Machine, Drive], str]


#: Best first. Format before Sanitize: it reaches one namespace, is over when it says so, and cannot leave a drive that
#: takes no data. ATA's Sanitize before its Security Erase: it needs no password, which could lock a drive whose power
#: fails in the middle, and the firmware of most machines freezes the one and not the other. SCSI's FORMAT UNIT and
#: SANITIZE are left out: nothing emulated has them, and one cut short leaves a drive that cannot be read at all.
LADDER = (
    Rung("NVMe Format", NVME, nvme.format_namespace),
    Rung("NVMe Sanitize", NVME, nvme.sanitize),
    Rung("ATA Sanitize", ATA, ata.sanitize),
    Rung("ATA Security Erase", ATA, ata.security_erase),
)


@dataclass(frozen=True, slots=True)
class Purged:
    """How one drive was purged."""

    method: str
    #: What would have been better, each with the reason why it was not done.
    passed_over: tuple[str, ...] = ()

    def to_record(self) -> dict[str, object]:
        """Plain data for the journal."""
        return {"method": self.method, "passed_over": list(self.passed_over)}


def purge(machine: Machine, drives: Sequence[Drive], *, best: bool) -> dict[str, dict[str, object]]:
    """Return every drive to "never written" as well as it allows; identity → ``Purged.to_record``.

    Without ``best`` it is a discard of the whole range, if the drive has that. Raises ``DriveRefused`` if a drive is in
    use after all, ``RigError`` if one is worse than before; all others are finished first.
    """
    purged = each(drives, lambda drive: purge_one(machine, drive, LADDER if best else ()))
    return {drive.identity: done.to_record() for drive, done in zip(drives, purged, strict=True)}


def purge_one(machine: Machine, drive: Drive, ladder: Sequence[Rung]) -> Purged:
    """Purge one drive by the first rung it can climb, or a discard, or not at all."""
    # First of all: a drive that is in use is refused before anything is sent to it.
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
    # What the user agreed to lose must not be found on the drive when the run is over.
    try:
        exclusively(machine, ["wipefs", "--all", drive.path], drive)
    except CommandFailed as error:
        tried = "; ".join(passed_over)
        raise RigError(f"{drive.describe()} can be neither purged nor written ({tried}): {error}") from error
    return Purged(NONE, tuple(passed_over))


def _discard(machine: Machine, drive: Drive) -> str:
    """Discard the whole range; why that was not done, or an empty string."""
    done = exclusively(machine, ["blkdiscard", drive.path], drive, check=False)
    if done.status and _awaited_sanitize(machine, drive):
        done = exclusively(machine, ["blkdiscard", drive.path], drive, check=False)
    return last_words(done) if done.status else ""


def _awaited_sanitize(machine: Machine, drive: Drive) -> bool:
    """Whether the drive was still being sanitized, for a run that was cut short perhaps: until then it refuses all."""
    if drive.transport in NVME:
        return nvme.await_sanitize(machine, drive)
    return drive.transport in ATA and ata.await_sanitize(machine, drive)
