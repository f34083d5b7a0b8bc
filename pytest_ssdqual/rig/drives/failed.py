"""Drives that failed in this run, the error of whatever needs one of them, and the health of all drives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_ssdqual.qual.spec.health_limits import ORDINARY, HealthTable
from pytest_ssdqual.qual.validity.drive_failure import FailedDrive
from pytest_ssdqual.rig.drives import health
from pytest_ssdqual.rig.drives.health import DriveHealth
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.machine.machine import Machine, RigError


class DriveFailed(RigError):
    """Drives failed under the load: a verdict on them where it happened, and an error in all other tests."""

    def __init__(self, about: str, drives: Sequence[FailedDrive]) -> None:
        super().__init__(f"{about} was not measured: {'; '.join(each.sentence for each in drives)}")
        self.about = about
        self.drives = tuple(drives)


@dataclass(slots=True)
class DriveFailures:
    """Drives of this run that failed, and the SMART data of all drives when the run began, with its limits."""

    #: By path.
    before: Mapping[str, DriveHealth] = field(default_factory=dict)
    #: By serial number, in the order in which they failed.
    failed: dict[str, FailedDrive] = field(default_factory=dict)

    limits: HealthTable = ORDINARY
    #: Number of times that this run has cut the machine's power.
    power_cuts: int = 0

    def worsened(self, earlier: DriveHealth, now: DriveHealth) -> tuple[str, ...]:
        """Return the changes of a drive's health that neither use nor this run explains."""
        return health.worsened(earlier, health.without_power_cuts(now, self.power_cuts), self.limits)

    def defects(self, earlier: DriveHealth, now: DriveHealth) -> tuple[str, ...]:
        """Return those changes that are a defect by the limits of the spec."""
        return health.defects(earlier, health.without_power_cuts(now, self.power_cuts), self.limits)

    def among(self, members: Sequence[Drive]) -> tuple[FailedDrive, ...]:
        """Return the failed drives among ``members``."""
        return tuple(self.failed[name] for name in map(serial_of, members) if name in self.failed)

    def require(self, about: str, members: Sequence[Drive]) -> None:
        """Raise ``DriveFailed`` if one of ``members`` has failed; nothing is measured on it any more."""
        if lost := self.among(members):
            raise DriveFailed(about, lost)


def serial_of(drive: Drive) -> str:
    """Return the name of a drive in verdicts."""
    return drive.serial or drive.identity


def findings(machine: Machine, drives: Sequence[Drive], failures: DriveFailures) -> dict[str, tuple[str, ...]]:
    """Return the findings about the health of each drive now, by serial number; empty for a healthy one.

    A finding is a failure under the load, a defect that the drive reported when the run began, and one since then. A
    drive without health (``Drive.has_health``) is left out unless it failed: nothing is known about it.
    ``RigError`` if nothing was found, and a drive could not be read: that is neither health nor a defect.
    ``MachineLost`` if the machine is lost.
    """
    found: dict[str, tuple[str, ...]] = {}
    unread: list[RigError] = []
    for drive in drives:
        name = serial_of(drive)
        if failed := failures.failed.get(name):
            found[name] = (failed.sentence,)
            continue
        if not drive.has_health:
            continue
        earlier = failures.before[drive.path]
        at_start = tuple(f"when the run began: {each}" for each in failures.defects(_unblemished(earlier), earlier))
        since: tuple[str, ...] = ()
        try:
            since = failures.defects(earlier, health.read(machine, [drive])[drive.path])
        except RigError as error:
            if error.ends_run:
                raise
            unread.append(error)
        found[name] = (*at_start, *since)
    if unread and not any(found.values()):
        raise unread[0]
    return found


def _unblemished(found: DriveHealth) -> DriveHealth:
    """Return the same health without anything that the drive reports as wrong."""
    return replace(found, passed=None, critical_warning=None, media_errors=None, percentage_used=None)
