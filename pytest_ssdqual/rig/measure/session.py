"""Set-up of a measurement: a machine, the drives that it may destroy, the protocol, and the journal."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol as Interface

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.qual.workload.trace import Trace
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.failed import DriveFailures
from pytest_ssdqual.rig.fio.load import DriveLoad, Load
from pytest_ssdqual.rig.guard.cache_changes import WriteCaches
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.machine.machine import Machine, RigError
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.observe.environment import EnvironmentReading
from pytest_ssdqual.rig.observe.live_stats import Live
from pytest_ssdqual.rig.observe.open_files import Users

#: Is called with the current step and its estimated seconds.
Progress = Callable[[str, float], None]
#: Is called with the result of a look, and the seconds by which the measurement exceeds its plan.
Looked = Callable[[str], None]


class Logbook(Interface):
    """Records what is done; the journal implements it."""

    def note(self, kind: str, **facts: object) -> None:
        """Record one event; it is on disk before this returns."""

    def keep(self, name: str, data: bytes) -> str:
        """Store raw evidence under ``name``; return its name in the run folder."""


class BudgetSpent(RigError):
    """Something was not begun, or is left out, because of the time budget of the run."""


def unlimited() -> float:
    """Return the time that is left to a run without a budget."""
    return math.inf


@dataclass(slots=True)
class LoadChoice:
    """The load of fio on the drives of this run."""

    #: None until ``load_calibration`` chooses it, before the first measurement.
    chosen: DriveLoad | None = field(default_factory=DriveLoad)

    @property
    def drives(self) -> DriveLoad:
        return self.chosen or DriveLoad()

    def of(self, array: Array) -> Load:
        """Return the load of an array or of drives side by side."""
        return self.drives.of([each.identity for each in array.members], bare=array.geometry.is_side_by_side)


@dataclass(slots=True)
class LatestReadings:
    """The readings of the environment around the latest load."""

    array: Array | None = None
    before: EnvironmentReading | None = None
    #: None while the load runs, and after it failed.
    after: EnvironmentReading | None = None
    #: The processes that had its drives open meanwhile.
    users: Users = field(default_factory=Users)
    #: Drives whose self-test was waited for in vain, by serial number.
    in_self_test: set[str] = field(default_factory=set)

    def of(self, array: Array) -> EnvironmentReading | None:
        """Return the reading since which kernel messages about ``array`` are new; None if others were loaded.

        That is the end of the latest load. If it failed, it is its beginning: a fault of the host that ended it still
        explains why a drive is gone at the next attempt. Names are those of the beginning, because a device that
        dropped out has none any more.
        """
        if self.array is None or self.before is None or not set(array.members) <= set(self.array.members):
            return None
        return replace(self.before, kernel_log=(self.after or self.before).kernel_log)


@frozen
class Setup:
    """The set-up on which ``array_lifecycle``, ``fixed_time``, ``saturation``, ``rounds`` and ``rebuild`` work."""

    machine: Machine
    held: HeldDrives
    protocol: Protocol
    logbook: Logbook
    machine_id: str
    progress: Progress
    looked: Looked | None = None
    #: Live statistics, if there are observers.
    live: Live | None = None
    failures: DriveFailures = field(default_factory=DriveFailures)
    load: LoadChoice = field(default_factory=LoadChoice)
    readings: LatestReadings = field(default_factory=LatestReadings)
    #: The drives' write caches; None if none is read or switched.
    caches: WriteCaches | None = None
    #: What the drives map at a time; None if that is unknown.
    unit_bytes: int | None = None
    #: True if the spec makes heat the product's behaviour.
    promises_heat: Callable[[Geometry, Workload], bool] = lambda geometry, workload: False
    #: The trace of replays.
    trace: Trace | None = None
    #: True if the drives' counts of their writes to flash are read.
    counts_media: Callable[[Geometry, Workload], bool] = lambda geometry, workload: False
    #: Seconds of the run's time budget that are left.
    left_s: Callable[[], float] = unlimited

    def set_caches(self) -> None:
        """Set the drives' write caches before the first step, as the protocol demands; ``RigError``."""
        if self.caches:
            self.caches.require_set()

    def require_caches(self, array: Array) -> None:
        """Raise ``InvalidMeasurement`` if drives of a measurement that has ended lost the protocol's setting."""
        if self.caches:
            self.caches.require(array.members)

    def note(self, kind: str, geometry: Geometry, **facts: object) -> None:
        """Record an event of an array, or of drives side by side."""
        self.logbook.note(kind, geometry=str(geometry), **facts)

    def require_time(self, seconds: float, what: str) -> None:
        """Raise ``BudgetSpent`` if ``what`` would end late."""
        left_s = self.left_s()
        if seconds > left_s:
            needed, left = (format_duration(max(0, round(each))) for each in (seconds, left_s))
            raise BudgetSpent(f"{what} was not begun: it takes {needed}, and {left} of the run's time budget remain")
