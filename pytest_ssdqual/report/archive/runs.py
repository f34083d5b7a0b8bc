"""Reads many run folders, each run once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.run_folder.reader import RunReader, read_records
from pytest_ssdqual.report.run_folder.records import HealthRecord
from pytest_ssdqual.report.run_summary.run_view import KINDS, OF_TESTS, RunView
from pytest_ssdqual.rig.drives.topology import Drive

UNKNOWN = "unknown"
#: Kinds of records that a run has once it has done something to drives, or with them.
WORK = ("purging", "measuring", "measured")


@dataclass(frozen=True, slots=True)
class ArchivedDrive:
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
class ArchivedRun:
    """A run, or a bay of one of several."""

    #: Printable name of its folder; of a bay with that of its fleet.
    name: str
    folder: Path
    view: RunView
    started: datetime
    drives: tuple[ArchivedDrive, ...]
    #: Last health reading of each drive, by its identity.
    health: Mapping[str, HealthRecord]
    #: Verdicts that this version cannot read.
    unreadable: int

    @property
    def identity(self) -> str:
        """Identity of the run, equal for copies."""
        return f"{self.view.manifest.run_id} {self.view.manifest.started}"

    @property
    def models(self) -> str:
        return _joined(each.model for each in self.drives)

    @property
    def firmware(self) -> str:
        return _joined(each.firmware for each in self.drives)

    @property
    def machine(self) -> str:
        return ", ".join(self.view.machines) or UNKNOWN


def read(folders: Iterable[Path]) -> tuple[list[ArchivedRun], list[str]]:
    """Return each run once, by its start, and a sentence for each folder that is skipped."""
    runs: dict[str, ArchivedRun] = {}
    skipped = []
    for folder in folders:
        found = _read(folder)
        if isinstance(found, str):
            skipped.append(f"{fleet.called(folder)} is skipped: {found}")
        elif (twin := runs.setdefault(found.identity, found)) is not found:
            skipped.append(f"{found.name} is skipped: it is the same run as {twin.name}")
    return sorted(runs.values(), key=lambda run: (run.started, run.name)), skipped


def _read(folder: Path) -> ArchivedRun | str:
    """Return the run, or the reason why it is skipped."""
    try:
        story = RunReader.read(folder, *KINDS, "health", "run_refused")
    except OSError as error:
        return safe_text.line(error.strerror or str(error))
    if not story.manifest.is_readable:
        began = "was refused before it began" if story.of("run_refused") else "has no readable manifest.json"
        return f"it {began}"
    try:
        started = datetime.fromisoformat(story.manifest.started)
    except ValueError:
        return "its start is unknown"
    if _never_began(story):
        return "it never began: it has no result of a test, and nothing was measured"
    view = RunView.of(story)
    return ArchivedRun(
        name=fleet.called(folder),
        folder=folder,
        view=view,
        started=started if started.tzinfo else started.replace(tzinfo=UTC),
        drives=tuple(map(_drive, story.manifest.drives)),
        health={each.drive: each for each in story.contents(HealthRecord, "health")},
        unreadable=story.unreadable,
    )


def _never_began(story: RunReader) -> bool:
    """Return True for a bay of a run that ended before the bay's tests began, for example."""
    results = (each for each in story.of(*OF_TESTS) if not each.is_of_session)
    return not any(results) and not any(read_records(story.folder, *WORK))


def _drive(drive: Drive) -> ArchivedDrive:
    serial, model, firmware = map(shown, (drive.name, drive.model or "", drive.firmware or ""))
    return ArchivedDrive(serial, model, firmware, drive.identity)


def shown(name: str) -> str:
    """Return a name that a drive gave, as it is shown and compared."""
    return safe_text.line(name, 80) or UNKNOWN


def _joined(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names))) or UNKNOWN
