"""``manifest.json``: what was tested, with what, on what; everything that a verdict silently depends on."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version

from pytest_ssdqual.report.journal import Journal
from pytest_ssdqual.rig.health import DriveHealth
from pytest_ssdqual.rig.topology import Drive

SCHEMA = 1

#: Distributions whose arithmetic or behaviour is in the result.
DISTRIBUTIONS = ("pytest-ssdqual", "pytest", "pytest-xdist", "hypothesis", "numpy", "scipy", "pydantic")


@dataclass(frozen=True, slots=True)
class Document:
    """A spec or a protocol as it was when it was used."""

    name: str
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class DriveEntry:
    """A drive, and its health where it was read."""

    drive: Drive
    before: DriveHealth | None = None
    after: DriveHealth | None = None


@dataclass(frozen=True, slots=True)
class BayEntry:
    """A machine under test and its drives; ``facts`` is what ``rig.provenance`` found out."""

    machine: str
    facts: Mapping[str, str]
    drives: Sequence[DriveEntry]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The whole of it; written when a run starts and again, with its end, when it ends."""

    run_id: str
    command_line: tuple[str, ...]
    #: UTC, ISO 8601.
    started: str
    spec: Document | None
    protocol: Document
    #: Whether the protocol may decide about a product.
    acceptance: bool
    bays: tuple[BayEntry, ...]
    #: What the guard could not look at and what it cleared away; for people to read.
    remarks: tuple[str, ...] = ()
    ended: str | None = None
    exit_status: int | None = None
    versions: Mapping[str, str] = field(default_factory=lambda: installed_versions())

    def to_record(self) -> dict[str, object]:
        """Plain JSON data."""
        return {
            "schema": SCHEMA,
            "run_id": self.run_id,
            "command_line": list(self.command_line),
            "started": self.started,
            "ended": self.ended,
            "exit_status": self.exit_status,
            "versions": dict(self.versions),
            "acceptance": self.acceptance,
            "spec": self.spec and _document(self.spec),
            "protocol": _document(self.protocol),
            "remarks": list(self.remarks),
            "bays": [
                {"machine": bay.machine, "facts": dict(bay.facts), "drives": [_drive(entry) for entry in bay.drives]}
                for bay in self.bays
            ],
        }


def installed_versions() -> dict[str, str]:
    """Python and the distributions that take part, of this process; what is not installed is left out."""
    found = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def health_record(health: DriveHealth) -> dict[str, object]:
    """The figures; the drive's whole answer is a file of its own (``keep_health``)."""
    return {name: value for name, value in asdict(health).items() if name != "raw_json"}


def keep_health(journal: Journal, drive: Drive, health: DriveHealth, when: str) -> None:
    """Store a drive's answer as ``health/<serial>-<when>.json`` and note its figures. ``JournalError`` if full."""
    name = f"{drive.serial or drive.identity}-{when}.json"
    raw = journal.keep(name, health.raw_json.encode("utf-8", "backslashreplace"), folder="health")
    journal.note("health", drive=drive.identity, when=when, raw=raw, **health_record(health))


def _document(document: Document) -> dict[str, str]:
    return {"name": document.name, "sha256": document.sha256, "text": document.text}


def _drive(entry: DriveEntry) -> dict[str, object]:
    return {
        "identity": entry.drive.identity,
        **entry.drive.to_json(),
        "health_before": entry.before and health_record(entry.before),
        "health_after": entry.after and health_record(entry.after),
    }
