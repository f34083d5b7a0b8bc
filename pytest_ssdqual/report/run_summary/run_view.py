"""The view of a run: its verdict, judged claims, errors and skips, which every surface shows; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.run_folder.manifest import HealthRecord, Manifest, WorsenedDrive
from pytest_ssdqual.report.run_folder.reader import DECISIVE, JUDGED, RESUMED, WORSENED, Judged, RunReader
from pytest_ssdqual.report.run_summary import coverage, time_budget, write_caches
from pytest_ssdqual.report.run_summary.causes import LEFT_OUT, CauseGroup, groups, left_out
from pytest_ssdqual.report.run_summary.errors import (
    ERROR,
    FAILED,
    PASSED,
    SKIPPED,
    ErrorGroup,
    skipped,
    troubles,
)
from pytest_ssdqual.report.run_summary.fitness import PageVerdict, count, stand
from pytest_ssdqual.report.run_summary.time_budget import BudgetUse
from pytest_ssdqual.report.view import drive_history, subject

UNKNOWN = "unknown"
LONG_AGO = datetime.min.replace(tzinfo=UTC)
#: Kinds of the records that tests leave.
OF_TESTS = (*JUDGED, ERROR, FAILED, PASSED, SKIPPED)
#: Kinds of records that are read.
KINDS = (
    *OF_TESTS,
    RESUMED,
    *DECISIVE,
    "write_cache",
    "health",
    *coverage.KINDS,
    *time_budget.KINDS,
    LEFT_OUT,
    "environment",
    *drive_history.BEFORE,
)


@frozen
class RunView:
    """What all surfaces show of a run; it has no records, as a fleet may have thousands of runs."""

    folder: Path
    manifest: Manifest
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
    health: Mapping[str, HealthRecord] = field(default_factory=dict)
    #: A sentence for each drive side by side without a valid figure, by serial number; see ``causes.left_out``.
    left_out: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> RunView:
        """Read a run folder; ``OSError`` without records."""
        return cls.of(RunReader.read(folder, *KINDS))

    @classmethod
    def of(cls, story: RunReader) -> RunView:
        judged, errors, skips = story.judged, troubles(story), skipped(story)
        changed = tuple(story.contents(WorsenedDrive, WORSENED))
        counts = replace(
            count(judged, errors),
            unreadable=story.unreadable,
            skipped=sum(map(len, skips.values())),
            worsened=len({each.drive for each in changed if each.defects}),
            unread=sum(not drive.has_health for drive in story.manifest.drives),
            unlogged=sum("host_faults" in record.fact("unknown", list[str], []) for record in story.of("environment")),
            uneven=drive_history.uneven(story),
        )
        verdict = stand(counts, story.manifest, coverage.coverage(story, judged))
        budget = BudgetUse.of(each for kind in time_budget.KINDS for each in story.of(kind))
        caches = write_caches.states(story)
        history = drive_history.phrase(story)
        health = {reading.drive: reading for reading in story.contents(HealthRecord, "health")}
        return cls(
            story.folder, story.manifest, verdict, judged, errors, skips, changed, budget, caches, history, health,
            left_out(story.of(LEFT_OUT), judged),
        )  # fmt: skip

    @property
    def worsened(self) -> tuple[str, ...]:
        """A sentence for each change of a drive's health that use does not explain."""
        return tuple(sentence for each in self.changed for sentence in each.sentences)

    @property
    def promised(self) -> list[Evidence]:
        """What was judged by a promise."""
        return [each for each in self.judged if each.is_promised]

    def sentences(self, outcome: str) -> tuple[str, ...]:
        """Return the sentences of all claims with this outcome (``Finding``)."""
        return tuple(each.sentence for each in self.judged if each.outcome == outcome)

    @property
    def causes(self) -> tuple[CauseGroup, ...]:
        """The broken promises by their causes; see ``causes.groups``."""
        return groups(self.judged)

    @property
    def machines(self) -> tuple[str, ...]:
        return tuple(bay.machine for bay in self.manifest.bays)

    @property
    def name(self) -> str:
        """Printable name of the folder; of a bay with that of its fleet."""
        return fleet.called(self.folder)

    @property
    def started(self) -> datetime:
        """Start of the run; ``LONG_AGO`` if it is unknown."""
        return subject.moment(self.manifest.started) or LONG_AGO

    @property
    def identity(self) -> str:
        """Identity of the run, equal for copies."""
        return subject.identity(self.manifest, self.folder)

    @property
    def models(self) -> str:
        return _joined(drive.model for drive in self.manifest.drives)

    @property
    def firmware(self) -> str:
        return _joined(drive.firmware for drive in self.manifest.drives)

    @property
    def machine(self) -> str:
        return ", ".join(self.machines) or UNKNOWN

    def document(self, kind: str) -> str:
        """Return the name of the ``protocol`` or the ``spec``; empty if it is unknown."""
        document = self.manifest.documents.get(kind)
        return document.name if document else ""


def shown(name: str | None) -> str:
    """Return a name that a drive gave, as it is shown and compared."""
    return safe_text.line(name or "", 80) or UNKNOWN


def _joined(names: Iterable[str | None]) -> str:
    return ", ".join(sorted(set(map(shown, names)))) or UNKNOWN
