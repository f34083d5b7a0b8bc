"""Drives that failed in this run, the error of whatever needs one of them, and the health of all drives.

Drives side by side are independent: one that fails, or that gives no figure, is left out, and the others are measured
without it (``DriveFailures.isolated``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.health_limits import KERNEL_MESSAGES, ORDINARY, HealthTable
from pytest_ssdqual.qual.validity.drive_failure import FailedDrive
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.health import health
from pytest_ssdqual.rig.health.health import DriveHealth
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, Machine, RigError

T = TypeVar("T")
#: Subjects of the preparation of drives: one that is left out of either is no longer side by side with the others.
FILL, CONDITIONING = "fill", "conditioning"


class DriveFailed(RigError):
    """Drives failed under the load: a verdict on them where it happened, and an error in all other tests."""

    def __init__(self, about: str, drives: Sequence[FailedDrive]) -> None:
        super().__init__(f"{about} was not measured: {'; '.join(each.sentence for each in drives)}")
        self.about = about
        self.drives = tuple(drives)


class DrivesUndecided(InvalidMeasurement):
    """Some of several drives side by side gave no valid figure; the others did."""

    def __init__(self, sentence: str, drives: Mapping[str, str]) -> None:
        super().__init__(sentence)
        #: Reasons by serial number.
        self.drives = dict(drives)


class EventLog(Protocol):
    """The part of ``rig.measure.session.Logbook`` that records events."""

    def note(self, kind: str, **facts: object) -> None: ...


@dataclass(slots=True)
class DriveFailures:
    """Drives of this run that failed, and the SMART data of all drives when the run began, with its limits."""

    #: By path.
    before: Mapping[str, DriveHealth] = field(default_factory=dict)
    #: By serial number, in the order in which they failed.
    failed: dict[str, FailedDrive] = field(default_factory=dict)
    #: Of what drives side by side were left out (a class of workloads on a geometry, or one measurement): reasons by
    #: serial number.
    undecided: dict[Hashable, dict[str, str]] = field(default_factory=dict)
    #: The spec's limits of a drive's health, by serial number.
    limits: Callable[[str], HealthTable] = lambda serial: ORDINARY
    #: Number of times that this run has cut the machine's power.
    power_cuts: int = 0
    #: What the kernel repaired of drives under load, by serial number: counts by counter, and its messages with theirs.
    repaired: dict[str, Counter[str]] = field(default_factory=dict)
    messages: dict[str, Counter[str]] = field(default_factory=dict)
    #: SMART data that were read since the run began, after measurements that failed and to judge the health; by path.
    latest: dict[str, DriveHealth] = field(default_factory=dict)

    def changes(self, drive: Drive, earlier: DriveHealth, now: DriveHealth) -> Iterator[tuple[str, bool]]:
        """Yield the changes of a drive's health that neither use nor this run explains; see ``health.changes``."""
        return health.changes(earlier, health.without_power_cuts(now, self.power_cuts), self.limits(drive.name))

    def defects(self, drive: Drive, earlier: DriveHealth, now: DriveHealth) -> tuple[str, ...]:
        """Return those changes that are a defect by the limits of the spec."""
        return tuple(change for change, is_defect in self.changes(drive, earlier, now) if is_defect)

    def add_repaired(self, serial: str, counts: Mapping[str, int], messages: Mapping[str, int]) -> None:
        """Add what the kernel counted and reported of a drive during a load."""
        self.repaired.setdefault(serial, Counter()).update({**counts, KERNEL_MESSAGES: sum(messages.values())})
        self.messages.setdefault(serial, Counter()).update(messages)

    def repairs(self, serial: str) -> tuple[tuple[str, bool], ...]:
        """Return what the kernel repaired of a drive, a clause each, and whether it is beyond the spec's limit."""
        found = []
        for counter, count in self.repaired.get(serial, {}).items():
            limit = self.limits(serial).limit(counter)
            allowed = "" if limit is None else f" ({limit:,} allowed)"
            first = next(iter(self.messages[serial]), "") if counter == KERNEL_MESSAGES else ""
            said = f", the first: {first}" if first else ""
            if count:
                sentence = f"drive or its link: {count:,} {counter} under load{allowed}{said}"
                found.append((sentence, limit is not None and count > limit))
        return tuple(found)

    def among(self, members: Sequence[Drive]) -> tuple[FailedDrive, ...]:
        """Return the failed drives among ``members``."""
        return tuple(self.failed[drive.name] for drive in members if drive.name in self.failed)

    @property
    def has_unusable(self) -> bool:
        """True if a drive has failed, or was not prepared with the others side by side."""
        return bool(self.failed or self.left_out_of(FILL, CONDITIONING))

    def usable(self, geometry: Geometry, drives: Sequence[Drive]) -> tuple[Drive, ...]:
        """Return the members of ``geometry``, the first of ``drives``; of drives side by side those that can be used.

        These have not failed, and nothing prevented their preparation. ``DriveFailed`` if a member of an array has
        failed, or if all drives side by side have; ``InvalidMeasurement`` if none of these is left for another reason.
        """
        members = tuple(drives[: geometry.width])
        lost = self.among(members)
        if lost and (not geometry.is_side_by_side or len(lost) == len(members)):
            raise DriveFailed(str(geometry), lost)
        unprepared = self.left_out_of(FILL, CONDITIONING) if geometry.is_side_by_side else {}
        left = tuple(drive for drive in members if drive.name not in {*self.failed, *unprepared})
        if members and not left:
            reasons = "; ".join((*(each.sentence for each in lost), *unprepared.values()))
            raise InvalidMeasurement(f"no drive of {geometry} can be used: {reasons}")
        return left

    def left_out_of(self, *subjects: Hashable) -> dict[str, str]:
        """Return the reasons of the drives that were left out of any of ``subjects``, by serial number."""
        return {serial: why for subject in subjects for serial, why in self.undecided.get(subject, {}).items()}

    def leave_out(self, geometry: Geometry, subject: Hashable, drives: Mapping[str, str], log: EventLog) -> None:
        """Leave drives side by side out of ``subject`` from now on."""
        self.undecided.setdefault(subject, {}).update(drives)
        log.note("drives_left_out", geometry=str(geometry), of=str(subject), drives=dict(drives), failed=[])

    def isolated(self, geometry: Geometry, subject: Hashable, work: Callable[[], T], log: EventLog) -> T:
        """Return the result of ``work``, which is repeated without each drive side by side that prevents it.

        A failed drive is used no more in this run, one without a valid figure is left out of ``subject``. An error that
        is about no new drive, or about all of them, is raised.
        """
        while True:
            known, left_out = set(self.failed), self.left_out_of(subject)
            try:
                return work()
            except DriveFailed as error:
                new = [each for each in error.drives if each.serial not in known]
                if not geometry.is_side_by_side or not new:
                    raise
                sentences = {each.serial: each.sentence for each in new}
                failed = [each.serial for each in new]
                log.note("drives_left_out", geometry=str(geometry), of=str(subject), drives=sentences, failed=failed)
            except DrivesUndecided as error:
                if not set(error.drives) - set(left_out):
                    raise
                self.leave_out(geometry, subject, error.drives, log)


def findings(machine: Machine, drives: Sequence[Drive], failures: DriveFailures) -> dict[str, tuple[str, ...]]:
    """Return the findings about the health of each drive now, by serial number; empty for a healthy one.

    A finding is a failure under the load, a defect that the drive reported when the run began, and one since then. A
    drive without health (``Drive.has_health``) is left out unless it failed, or the kernel repaired more of it than the
    spec allows: nothing else is known about it.
    ``RigError`` if nothing was found, and a drive could not be read: that is neither health nor a defect.
    ``MachineLost`` if the machine is lost.
    """
    found: dict[str, tuple[str, ...]] = {}
    unread: list[RigError] = []
    for drive in drives:
        name = drive.name
        if failed := failures.failed.get(name):
            found[name] = (failed.sentence,)
            continue
        repaired = tuple(sentence for sentence, is_defect in failures.repairs(name) if is_defect)
        if not drive.has_health:
            found |= {name: repaired} if repaired else {}
            continue
        earlier = failures.before[drive.path]
        found_then = failures.defects(drive, _unblemished(earlier), earlier)
        at_start = tuple(f"when the run began: {each}" for each in found_then)
        since: tuple[str, ...] = ()
        try:
            now = health.read(machine, [drive])[drive.path]
            _require_known(drive, earlier, now)
            since = failures.defects(drive, earlier, now)
            failures.latest[drive.path] = now
        except RigError as error:
            if error.ends_run:
                raise
            unread.append(error)
            if not (at_start or repaired):
                continue  # nothing is known about it, which is no health
        found[name] = (*at_start, *since, *repaired)
    if unread and not any(found.values()):
        raise unread[0]
    return found


def _require_known(drive: Drive, earlier: DriveHealth, now: DriveHealth) -> None:
    """Raise ``RigError`` if the drive reports no assessment, or no count of errors, that it reported before.

    A count of another log is no substitute, because its earlier count is unknown.
    """
    counts_known = not earlier.media_counts or health.media_errors_of_one_log(earlier, now) is not None
    for what, is_known in (
        ("an assessment of its health", earlier.passed is None or now.passed is not None),
        (f"a count of {health.MEDIA_ERRORS}", counts_known),
    ):
        if not is_known:
            raise RigError(f"{drive.describe()} reported {what} when the run began, and reports none of it now")


def _unblemished(found: DriveHealth) -> DriveHealth:
    """Return the same health without anything that the drive reports as wrong."""
    counts = dict.fromkeys(found.media_counts, 0)
    return replace(found, passed=None, critical_warning=None, media_counts=counts, percentage_used=None)
