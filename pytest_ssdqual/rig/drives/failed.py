"""Drives that failed in this run, and the error of whatever needs one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_ssdqual.qual.validity.drive_failure import FailedDrive
from pytest_ssdqual.rig.drives.health import DriveHealth
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.machine.machine import RigError


class DriveFailed(RigError):
    """Drives failed under the load: a verdict on them where it happened, and an error in all other tests."""

    def __init__(self, about: str, drives: Sequence[FailedDrive]) -> None:
        super().__init__(f"{about} was not measured: {'; '.join(each.sentence for each in drives)}")
        self.about = about
        self.drives = tuple(drives)


@dataclass(slots=True)
class DriveFailures:
    """Drives of this run that failed, and the SMART data of all drives when the run began."""

    #: By path.
    before: Mapping[str, DriveHealth] = field(default_factory=dict)
    #: By serial number, in the order in which they failed.
    failed: dict[str, FailedDrive] = field(default_factory=dict)

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
