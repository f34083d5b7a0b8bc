"""The view of a run: its verdict, judged claims, errors and skips, which every surface shows; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.run_folder.reader import JUDGED, Judged, Record, RunReader
from pytest_ssdqual.report.run_summary import coverage, time_budget, write_caches
from pytest_ssdqual.report.run_summary.causes import CauseGroup, groups
from pytest_ssdqual.report.run_summary.errors import (
    ERROR,
    FAILED,
    PASSED,
    RESUMED,
    SKIPPED,
    ErrorGroup,
    skipped,
    troubles,
)
from pytest_ssdqual.report.run_summary.fitness import PageVerdict, count, stand
from pytest_ssdqual.report.run_summary.time_budget import BudgetUse
from pytest_ssdqual.report.view import drive_history, subject
from pytest_ssdqual.rig.drives.topology import NO_SMART

UNKNOWN = "unknown"
LONG_AGO = datetime.min.replace(tzinfo=UTC)
#: Kinds of the records that tests leave, and of those about drives whose health worsened.
OF_TESTS, WORSENED = (*JUDGED, ERROR, FAILED, PASSED, SKIPPED), "drive_worsened"
#: Kinds of records that are read.
KINDS = (
    *OF_TESTS,
    RESUMED,
    WORSENED,
    "write_cache",
    "health",
    *coverage.KINDS,
    *time_budget.KINDS,
    *drive_history.BEFORE,
)


@dataclass(frozen=True, slots=True)
class WorsenedDrive:
    """A drive whose health changed by more than its use explains."""

    identity: str
    #: Path, model and serial number.
    name: str
    findings: tuple[str, ...]
    #: True if the drive failed or reports a new defect.
    is_defective: bool


@dataclass(frozen=True, slots=True)
class RunDrive:
    """A drive of a run, as the manifest has it."""

    serial: str
    model: str
    firmware: str
    #: WWN or serial number, by which records name it.
    identity: str

    @property
    def name(self) -> tuple[str, str]:
        """What tells it from the drives of other runs."""
        return self.serial, self.model


@dataclass(frozen=True, slots=True)
class RunView:
    """What all surfaces show of a run; it has no records, as a fleet may have thousands of runs."""

    folder: Path
    #: Empty if it is missing or unreadable.
    manifest: Mapping[str, object]
    verdict: PageVerdict
    judged: tuple[Judged, ...]
    errors: tuple[ErrorGroup, ...]
    #: Ids of tests by reason of their skip.
    skipped: Mapping[str, Sequence[str]]
    #: Drives whose health worsened.
    changed: tuple[WorsenedDrive, ...]
    #: None in a run without a time budget.
    budget: BudgetUse | None = None
    #: States of the drives' write caches as a phrase; empty if they were not recorded.
    write_caches: str = ""
    #: Purge, fill and conditioning of the drives as a phrase; empty if they were not recorded.
    history: str = ""
    #: Last health reading of each drive, by its identity.
    health: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> RunView:
        """Read a run folder; ``OSError`` without records."""
        return cls.of(RunReader.read(folder, *KINDS))

    @classmethod
    def of(cls, story: RunReader) -> RunView:
        judged, errors, skips = story.evidence(), troubles(story), skipped(story)
        changed = changed_drives(story)
        worse = {each.identity for each in changed if each.is_defective}
        unread = sum(drive.get("smart_type") == NO_SMART for drive in subject.manifest_drives(story.manifest))
        counts = count(judged, errors, story.unreadable(), sum(map(len, skips.values())), len(worse), unread)
        verdict = stand(counts, story.manifest, coverage.coverage(story, judged))
        budget = BudgetUse.of(each for kind in time_budget.KINDS for each in story.of(kind))
        caches = write_caches.states(story)
        history = drive_history.phrase(story)
        health = {str(each.facts.get("drive")): each.facts for each in story.of("health")}
        return cls(
            story.folder, story.manifest, verdict, judged, errors, skips, changed, budget, caches, history, health
        )

    @property
    def worsened(self) -> tuple[str, ...]:
        """A sentence for each change of a drive's health that use does not explain."""
        return tuple(f"{each.name}: {finding}" for each in self.changed for finding in each.findings)

    def sentences(self, outcome: str) -> tuple[str, ...]:
        """Return the sentences of all claims with this outcome (``Finding``)."""
        return tuple(each.evidence.sentence for each in self.judged if each.evidence.outcome == outcome)

    @property
    def causes(self) -> tuple[CauseGroup, ...]:
        """The broken promises by their causes; see ``causes.groups``."""
        return groups(each.evidence for each in self.judged)

    @property
    def machines(self) -> tuple[str, ...]:
        return tuple(subject.text(bay, "machine") for bay in subject.tables(self.manifest.get("bays")))

    @property
    def name(self) -> str:
        """Printable name of the folder; of a bay with that of its fleet."""
        return fleet.called(self.folder)

    @property
    def started(self) -> datetime:
        """Start of the run; ``LONG_AGO`` if it is unknown."""
        return subject.moment(self.manifest.get("started")) or LONG_AGO

    @property
    def identity(self) -> str:
        """Identity of the run, equal for copies."""
        return subject.identity(self.manifest, self.folder)

    @property
    def drives(self) -> tuple[RunDrive, ...]:
        return tuple(map(_drive, subject.manifest_drives(self.manifest)))

    @property
    def models(self) -> str:
        return _joined(each.model for each in self.drives)

    @property
    def firmware(self) -> str:
        return _joined(each.firmware for each in self.drives)

    @property
    def machine(self) -> str:
        return ", ".join(self.machines) or UNKNOWN

    def document(self, kind: str, fact: str = "name") -> str:
        """Return the name of the protocol or the spec, or another fact about it; empty if it is unknown."""
        return subject.text(subject.table(self.manifest.get(kind)), fact)


def changed_drives(story: RunReader) -> tuple[WorsenedDrive, ...]:
    """Return what the sessions of a run recorded as worse about its drives."""
    return tuple(map(_worsened, story.of(WORSENED)))


def _worsened(record: Record) -> WorsenedDrive:
    facts = record.facts
    return WorsenedDrive(
        str(facts.get("drive")), str(facts.get("name")), subject.texts(facts.get("findings")),
        bool(facts.get("defects")),
    )  # fmt: skip


def _drive(noted: Mapping[str, object]) -> RunDrive:
    identity = subject.text(noted, "identity")
    serial = subject.text(noted, "serial") or identity
    model, firmware = (subject.text(noted, name) for name in ("model", "firmware"))
    return RunDrive(shown(serial), shown(model), shown(firmware), identity)


def shown(name: str) -> str:
    """Return a name that a drive gave, as it is shown and compared."""
    return safe_text.line(name, 80) or UNKNOWN


def _joined(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names))) or UNKNOWN
