"""``manifest.json``: what was tested, with what, on what; everything that a verdict silently depends on."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pytest_ssdqual.qual.strict_json import conforming
from pytest_ssdqual.report.run_folder import expectation
from pytest_ssdqual.report.run_folder.expectation import ExpectedDrives
from pytest_ssdqual.report.run_folder.journal import MANIFEST, SCHEMA, Journal, OtherSchema, require_schema
from pytest_ssdqual.rig.drives.health import DriveHealth
from pytest_ssdqual.rig.drives.topology import Drive

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
    """A machine under test and its drives; ``facts`` is what ``rig.machine.facts`` found out."""

    machine: str
    facts: Mapping[str, str]
    drives: Sequence[DriveEntry]


@dataclass(frozen=True, slots=True)
class Session:
    """One process that worked on a run: the one that began it, or one that resumed it."""

    command_line: tuple[str, ...]
    #: UTC, ISO 8601.
    started: str
    #: None while it goes on, and for ever if it was killed.
    ended: str | None = None
    exit_status: int | None = None
    versions: Mapping[str, str] = field(default_factory=lambda: installed_versions())
    #: In what the machine differed from the first session, in words.
    differences: tuple[str, ...] = ()

    def to_record(self) -> dict[str, object]:
        """Plain JSON data."""
        return {
            **asdict(self),
            "command_line": list(self.command_line),
            "versions": dict(self.versions),
            "differences": list(self.differences),
        }

    @classmethod
    def from_record(cls, plain: Mapping[str, Any]) -> Session:
        """The inverse of ``to_record``; ``KeyError`` or ``TypeError`` if it is not one."""
        return cls(
            tuple(map(str, plain["command_line"])),
            str(plain["started"]),
            plain["ended"],
            plain["exit_status"],
            {str(name): str(version) for name, version in plain["versions"].items()},
            tuple(map(str, plain["differences"])),
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """The whole of it; written when a session starts and again, with its end, when it ends."""

    run_id: str
    #: Of the first session, as everything else here that has no other owner.
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
    #: The sessions that resumed it.
    resumed: tuple[Session, ...] = ()
    #: What the number of claims does to the error rates of their verdicts (``report.evidence.multiplicity``); None
    #: until the end.
    family: Mapping[str, object] | None = None
    #: The earlier run that promises are in per cent of: its name, and the digest of its records.
    baseline: Mapping[str, str] | None = None
    #: Counts of the hardware tests of the last session, and the reasons if it judged none.
    judged: Mapping[str, object] | None = None
    #: Expected number of drives; None if only a pattern determined it.
    expected: ExpectedDrives | None = None

    @property
    def sessions(self) -> tuple[Session, ...]:
        """Oldest first."""
        first = Session(self.command_line, self.started, self.ended, self.exit_status, self.versions)
        return first, *self.resumed

    def closed(self, ended: str, exit_status: int) -> Manifest:
        """The same when its last session has ended."""
        if not self.resumed:
            return replace(self, ended=ended, exit_status=exit_status)
        *before, last = self.resumed
        return replace(self, resumed=(*before, replace(last, ended=ended, exit_status=exit_status)))

    def to_record(self) -> dict[str, object]:
        """Plain JSON data; ``from_record`` reads it back."""
        last = self.sessions[-1]
        return {
            "schema": SCHEMA,
            "run_id": self.run_id,
            "command_line": list(self.command_line),
            "started": self.started,
            "ended": last.ended,
            "exit_status": last.exit_status,
            "sessions": [session.to_record() for session in self.sessions],
            "versions": dict(self.versions),
            "acceptance": self.acceptance,
            "spec": self.spec and _document(self.spec),
            "protocol": _document(self.protocol),
            "remarks": list(self.remarks),
            "family": self.family,
            "baseline": self.baseline and dict(self.baseline),
            "judged": self.judged and dict(self.judged),
            "expected": self.expected and self.expected.to_record(),
            "bays": [
                {"machine": bay.machine, "facts": dict(bay.facts), "drives": [_drive(entry) for entry in bay.drives]}
                for bay in self.bays
            ],
        }

    @classmethod
    def from_record(cls, plain: Mapping[str, Any]) -> Manifest:
        """The inverse of ``to_record``; a drive's raw answers are not in it.

        ``ValueError`` if it is none of ours, or has another schema.
        """
        try:
            require_schema(Path(MANIFEST), plain["schema"])
            first, *resumed = map(Session.from_record, plain["sessions"])
            return cls(
                run_id=str(plain["run_id"]),
                command_line=first.command_line,
                started=first.started,
                spec=plain["spec"] and _read_document(plain["spec"]),
                protocol=_read_document(plain["protocol"]),
                acceptance=plain["acceptance"] is True,
                bays=tuple(map(_read_bay, plain["bays"])),
                remarks=tuple(map(str, plain["remarks"])),
                ended=first.ended,
                exit_status=first.exit_status,
                versions=first.versions,
                resumed=tuple(resumed),
                family=plain["family"],
                baseline=plain["baseline"],
                judged=plain["judged"],
                expected=expectation.of_record(plain["expected"]),
            )
        except OtherSchema as error:
            raise ValueError(str(error)) from error
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is no manifest of ours: {error!r}") from error


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


def _read_document(plain: Mapping[str, Any]) -> Document:
    return Document(str(plain["name"]), str(plain["text"]))


def _read_bay(plain: Mapping[str, Any]) -> BayEntry:
    facts = {str(name): str(value) for name, value in plain["facts"].items()}
    return BayEntry(str(plain["machine"]), facts, tuple(map(_read_drive, plain["drives"])))


def _read_drive(plain: Mapping[str, Any]) -> DriveEntry:
    ours = ("identity", "health_before", "health_after")
    before, after = (
        found and conforming(DriveHealth(**found, raw_json="")) for found in map(plain.__getitem__, ours[1:])
    )
    drive = Drive.from_json({name: plain[name] for name in plain if name not in ours})
    if not drive.wwn and not drive.serial:
        raise ValueError(f"{drive.path} has no identity")
    return DriveEntry(drive, before, after)
