"""``manifest.json``: subject and means of a run, with everything that a verdict depends on.

Each bay has an expected number of drives, and the source of that number.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ssdqual.qual import strict_json
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.records import plain, shallow
from pytest_ssdqual.report.evidence.multiplicity import FamilyRecord
from pytest_ssdqual.report.run_folder.journal import MANIFEST, SCHEMA, Journal, read_document
from pytest_ssdqual.rig.drives.topology import Drive

if TYPE_CHECKING:
    from pytest_ssdqual.rig.health.health import DriveHealth

#: Shown where only a pattern determined the number of drives.
NONE = "number of drives not checked"
#: Distributions whose arithmetic or behaviour is in the result.
DISTRIBUTIONS = ("pytest-ssdqual", "pytest", "pytest-xdist", "hypothesis", "numpy", "scipy", "pydantic")


@frozen
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


@frozen
class Document:
    """A spec or a protocol as it was used."""

    name: str
    text: str
    sha256: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha256", hashlib.sha256(self.text.encode()).hexdigest())


@frozen
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


@frozen
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


@frozen
class JudgedTests:
    """Counts of the hardware tests of the last session."""

    hardware_tests: int
    #: Passed or failed.
    judged: int
    in_error: int
    #: Reasons if none was judged; else empty.
    nothing_judged: str
    #: Tests that a session planned and none ran.
    not_run: int


@frozen
class Manifest:
    """Content of ``manifest.json``, written at the start and at the end of each session."""

    #: Empty only of ``UNREADABLE``.
    run_id: str
    #: Start of the first session; UTC, ISO 8601.
    started: str
    spec: Document | None
    protocol: Document
    #: True if the protocol may decide about a product.
    acceptance: bool
    bays: tuple[BayEntry, ...]
    #: Oldest first.
    sessions: tuple[Session, ...]
    #: End of the last session; None while it is running, and if it was killed.
    ended: str | None = None
    exit_status: int | None = None
    #: Remarks of the guard: what it could not check, and what it removed.
    remarks: tuple[str, ...] = ()
    #: Effect of the number of claims; None until the end.
    family: FamilyRecord | None = None
    #: Baseline of promises in per cent: name of the run, and digest of its records.
    baseline: Mapping[str, str] | None = None
    #: None until the end.
    judged: JudgedTests | None = None
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
    def is_readable(self) -> bool:
        return self is not UNREADABLE

    @property
    def drives(self) -> tuple[Drive, ...]:
        """The drives of all machines."""
        return tuple(drive for bay in self.bays for drive in bay.drives)

    @property
    def documents(self) -> dict[str, Document]:
        """The protocol and the spec, by what they are."""
        found = {"protocol": self.protocol, "spec": self.spec}
        return {kind: each for kind, each in found.items() if each and each.name}

    @property
    def serials(self) -> dict[str, str]:
        """The names of the drives by their identities."""
        return {drive.identity: drive.name for drive in self.drives}

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of the first session."""
        return self.sessions[0].versions if self.sessions else {}

    def resumed(self, session: Session) -> Manifest:
        """Return the manifest with a session that has begun."""
        return replace(self, sessions=(*self.sessions, session), ended=None, exit_status=None)

    def closed(self, ended: str, exit_status: int) -> Manifest:
        """Return the manifest with the end of its last session."""
        *before, last = self.sessions
        sessions = (*before, replace(last, ended=ended, exit_status=exit_status))
        return replace(self, sessions=sessions, ended=ended, exit_status=exit_status)

    def to_record(self) -> dict[str, object]:
        """Plain JSON data; ``read`` reads it back."""
        return {"schema": SCHEMA, **plain(self)}

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Return the manifest of a run folder; ``OSError`` or ``ValueError`` if it is missing or damaged."""
        path = folder / MANIFEST
        return read_document(cls, path, strict_json.read_json(path.read_bytes()))


@frozen
class HealthRecord:
    """``health``: of one drive, before or after."""

    #: Identity of the drive.
    drive: str
    when: str
    #: File with the whole answer of smartctl.
    raw: str
    passed: bool | None
    temperature_c: int | None
    percentage_used: int | None
    critical_warning: int | None
    media_counts: Mapping[str, int]
    power_on_hours: int | None
    data_written_bytes: int | None
    counters: Mapping[str, int]
    media_errors: int | None


@frozen
class WorsenedDrive:
    """``drive_worsened``: a drive that failed, or whose health changed by more than its use explains."""

    #: Identity of the drive.
    drive: str
    #: Path, model and serial number.
    name: str
    findings: tuple[str, ...]
    #: Those of the findings that make the product unfit.
    defects: tuple[str, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(f"{self.name}: {finding}" for finding in self.findings)


@frozen
class PlannedClaims:
    """``claims_planned``: for how many claims the verdicts are corrected."""

    count: int
    #: The protocol's ``verdict.family``.
    control: str


@frozen
class PlannedTests:
    """``tests_planned``: what a collection added."""

    #: Ids of tests that will run and that no earlier session had.
    tests: tuple[str, ...]
    #: Claims that each test declares.
    claims: tuple[tuple[str, ...], ...]
    #: Ids of applicable tests of the same suites that will not run.
    left_out: tuple[str, ...]
    #: Claims that the spec promises.
    promised: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.tests) != len(self.claims):
            raise ValueError(f"{len(self.tests)} tests with the claims of {len(self.claims)}")


#: In place of a manifest that is missing or damaged.
UNREADABLE = Manifest("", "", None, Document("", ""), acceptance=False, bays=(), sessions=())


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
    name = f"{drive.name}-{when}.json"
    raw = journal.keep(name, health.raw_json.encode("utf-8", "backslashreplace"), folder="health")
    record = HealthRecord(
        drive=drive.identity,
        when=when,
        raw=raw,
        passed=health.passed,
        temperature_c=health.temperature_c,
        percentage_used=health.percentage_used,
        critical_warning=health.critical_warning,
        media_counts=health.media_counts,
        power_on_hours=health.power_on_hours,
        data_written_bytes=health.data_written_bytes,
        counters=health.counters,
        media_errors=health.media_errors,
    )
    journal.note("health", **shallow(record))
