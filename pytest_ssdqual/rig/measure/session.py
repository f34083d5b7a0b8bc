"""The measuring set-up: a machine, the drives it may destroy, how to treat them, and where it is all written down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol as Interface

from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.machine.machine import Machine
from pytest_ssdqual.rig.observe.live_stats import Live


class Logbook(Interface):
    """Where what is done is written down; the journal is one."""

    def note(self, kind: str, **facts: object) -> None:
        """One event, on disk before this returns."""
        ...

    def keep(self, name: str, data: bytes) -> str:
        """Raw evidence under ``name``; returns the name it can be found by in the run folder."""
        ...


#: Told what is being done now, and for about how many seconds.
Progress = Callable[[str, float], None]
#: Told what a look at a measurement under way has shown, and how many seconds longer than planned it goes on.
Looked = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Setup:
    """See the module. What works on it: ``assembly``, ``measuring``, ``saturating``, ``looping``, ``rebuilding``."""

    machine: Machine
    held: HeldDrives
    protocol: Protocol
    logbook: Logbook
    machine_id: str
    progress: Progress
    looked: Looked | None = None
    #: Whoever watches fio while it runs.
    live: Live | None = None
