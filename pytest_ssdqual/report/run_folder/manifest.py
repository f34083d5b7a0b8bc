"""``manifest.json``: subject and means of a run, with everything that a verdict depends on.

Each bay has an expected number of drives, and the source of that number.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ssdqual.qual import strict_json
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.report.run_folder.journal import MANIFEST, SCHEMA, Journal, OtherSchema, read_document
from pytest_ssdqual.rig.drives.topology import Drive

if TYPE_CHECKING:
    from pytest_ssdqual.rig.drives.health import DriveHealth

#: Shown where only a pattern determined the number of drives.
NONE = "number of drives not checked"
#: Distributions whose arithmetic or behaviour is in the result.
DISTRIBUTIONS = ("pytest-ssdqual", "pytest", "pytest-xdist", "hypothesis", "numpy", "scipy", "pydantic")


@dataclass(frozen=True, slots=True)
class ExpectedDrives:
    """Expected number of drives."""

    drives: int
    #: Such as ``--ssd-expect`` or ``the inventory``.
    source: str

    def __str__(self) -> str:
        return f"{self.drives} drive{'s' if self.drives != 1 else ''} expected ({self.source})"


def describe(expected: ExpectedDrives | None) -> str:
    """Return a phrase for people."""
    return str(expected) if expected else NONE


@dataclass(frozen=True, slots=True)
class Document:
    """A spec or a protocol as it was used."""

    name: str
    text: str
    sha256: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha256", hashlib.sha256(self.text.encode()).hexdigest())


@dataclass(frozen=True, slots=True)
class BayEntry:
    """A machine under test and its drives; ``facts`` come from ``rig.machine.facts``."""

    machine: str
    facts: Mapping[str, str]
    drives: tuple[Drive, ...]
    #: The sheet by which each drive was judged, with the class of the drive, by the drive's identity.
    sheets: Mapping[str, str]

    def __post_init__(self) -> None:
        for drive in self.drives:
            if not drive.wwn and not drive.serial:
                raise ValueError(f"{drive.path} has no identity")


@dataclass(frozen=True, slots=True)
class Session:
    """A process that worked on a run: the first one, or one that resumed it."""

    command_line: tuple[str, ...]
    #: UTC, ISO 8601.
    started: str
    #: None while it is running, and if it was killed.
    ended: str | None = None
    exit_status: int | None = None
    versions: Mapping[str, str] = field(default_factory=lambda: installed_versions())
    #: Differences of the machine from the first session, in words.
    differences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """Content of ``manifest.json``, written at the start and at the end of each session."""

    run_id: str
    #: Command line of the first session, like all fields without another session in their description.
    command_line: tuple[str, ...]
    #: UTC, ISO 8601.
    started: str
    spec: Document | None
    protocol: Document
    #: True if the protocol may decide about a product.
    acceptance: bool
    bays: tuple[BayEntry, ...]
    #: Remarks of the guard: what it could not check, and what it removed.
    remarks: tuple[str, ...] = ()
    ended: str | None = None
    exit_status: int | None = None
    versions: Mapping[str, str] = field(default_factory=lambda: installed_versions())
    #: The sessions that resumed it.
    resumed: tuple[Session, ...] = ()
    #: Record of ``report.evidence.multiplicity``; None until the end.
    family: Mapping[str, object] | None = None
    #: Baseline of promises in per cent: name of the run, and digest of its records.
    baseline: Mapping[str, str] | None = None
    #: Counts of the hardware tests of the last session, and the reasons if it judged none.
    judged: Mapping[str, object] | None = None
    #: Expected number of drives; None if only a pattern determined it.
    expected: ExpectedDrives | None = None
    #: Seconds that the run may take in all of its sessions; None without a budget.
    budget_s: float | None = None
    #: Claims that must be judged; None: each claim that the selected tests declare.
    required_claims: tuple[str, ...] | None = None
    #: Promises of the package, for claims that the spec does not mention; None if they are the spec.
    defaults: Document | None = None
    #: Models of the drives that were judged by the promises for any drive, because no data sheet was named.
    without_sheet: tuple[str, ...] = ()

    @property
    def sessions(self) -> tuple[Session, ...]:
        """Oldest first."""
        first = Session(self.command_line, self.started, self.ended, self.exit_status, self.versions)
        return first, *self.resumed

    def closed(self, ended: str, exit_status: int) -> Manifest:
        """Return the manifest with the end of its last session."""
        if not self.resumed:
            return replace(self, ended=ended, exit_status=exit_status)
        *before, last = self.resumed
        return replace(self, resumed=(*before, replace(last, ended=ended, exit_status=exit_status)))

    def to_record(self) -> dict[str, object]:
        """Plain JSON data; ``from_record`` reads it back. Its keys of one session are those of the last."""
        last = self.sessions[-1]
        record = {"schema": SCHEMA, **plain(self), "ended": last.ended, "exit_status": last.exit_status}
        del record["resumed"]
        bays = [
            {**plain(bay), "drives": [{"identity": drive.identity, **plain(drive)} for drive in bay.drives]}
            for bay in self.bays
        ]
        return {**record, "sessions": plain(self.sessions), "bays": bays}

    @classmethod
    def from_record(cls, content: object) -> Manifest:
        """Return the inverse of ``to_record``; ``ValueError`` for anything else or another schema."""
        try:
            record = dict(strict_json.table(content))
            first, *resumed = map(strict_json.table, strict_json.array(record.pop("sessions", None)))
            mine = {name: first[name] for name in ("ended", "exit_status", "versions")}
            bays = [_without_identities(strict_json.table(bay)) for bay in strict_json.array(record.get("bays"))]
            return read_document(cls, Path(MANIFEST), {**record, **mine, "resumed": resumed, "bays": bays})
        except (KeyError, OtherSchema) as error:
            raise ValueError(f"this is no Manifest: {error}" if isinstance(error, KeyError) else str(error)) from error


def _without_identities(bay: Mapping[str, object]) -> dict[str, object]:
    drives = [dict(strict_json.table(drive)) for drive in strict_json.array(bay.get("drives"))]
    for drive in drives:
        drive.pop("identity", None)
    return {**bay, "drives": drives}


def installed_versions() -> dict[str, str]:
    """Return versions of Python and of installed distributions that take part."""
    found = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def keep_health(journal: Journal, drive: Drive, health: DriveHealth, when: str) -> None:
    """Store a drive's answer as ``health/<serial>-<when>.json`` and record its figures; ``JournalError``."""
    name = f"{drive.serial or drive.identity}-{when}.json"
    raw = journal.keep(name, health.raw_json.encode("utf-8", "backslashreplace"), folder="health")
    figures = {**plain(health), "media_errors": health.media_errors}
    del figures["raw_json"]
    journal.note("health", drive=drive.identity, when=when, raw=raw, **figures)
