"""``--ssd-resume``: finds, checks and reopens the folder of the run to resume."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ssdqual.plugin.bay.bay import Bay
from pytest_ssdqual.plugin.options.settings import Settings
from pytest_ssdqual.plugin.options.values import usage_error
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.notification import without_secrets
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.resume.rebuild_measurements import Recollection
from pytest_ssdqual.report.resume.resume import NotResumable, Past, Present, Verdicts
from pytest_ssdqual.report.run_folder.find import NoSuchRun, find_any
from pytest_ssdqual.report.run_folder.journal import Journal
from pytest_ssdqual.report.run_folder.lock import FolderLock
from pytest_ssdqual.report.run_folder.manifest import Manifest, Session
from pytest_ssdqual.rig.drives.cache_state import CacheState, WriteCacheRecord
from pytest_ssdqual.rig.fio.load import DriveLoad, LoadRecord
from pytest_ssdqual.rig.machine.machine import RigError, utc_now
from pytest_ssdqual.rig.resume.checkpoint import ResultKey


def budget_s(settings: Settings, resumed: ResumedRun | None) -> float | None:
    """Return the seconds that a run may take in all of its sessions; a resumed run keeps its own without another."""
    return settings.budget_s or (resumed.past.manifest.budget_s if resumed else None)


@frozen
class ResumedRun:
    """A run that is resumed, with its recorded measurements and verdicts."""

    past: Past
    memory: Recollection
    verdicts: Verdicts
    #: Sentences about recorded measurements that must be repeated because their files are damaged.
    damaged: Sequence[str]

    @classmethod
    def of(cls, past: Past) -> ResumedRun:
        """Read the past run, and check every file that its measurements depend on."""
        damaged: list[str] = []
        memory = past.memory(lambda key, why: damaged.append(f"{_called(key)} is measured again: {why}"))
        return cls(past, memory, Verdicts(past.records), tuple(damaged))

    @property
    def load(self) -> DriveLoad | None:
        """Load of fio in the past run, which this session continues with; None if it was not chosen yet, or if its
        record is damaged.
        """
        try:
            return self.past.story.of("load")[-1].content(LoadRecord).load
        except (IndexError, ValueError):
            return None

    @property
    def write_caches(self) -> dict[str, CacheState]:
        """States of the drives' write caches in the last session that measured, by the drives' identities."""
        return {each.drive: each.now for each in self.past.story.contents(WriteCacheRecord, "write_cache")}

    def note_in(self, journal: Journal) -> None:
        """Record damaged measurements in ``journal`` from now on."""
        self.memory.forgotten = lambda key, why: journal.note("not_recalled", what=_called(key), reason=why)

    def bay(self, bay: Bay) -> Bay:
        """Return the bay with the drives in the order of the past run."""
        return replace(bay, drives=self.past.drives_in_order(bay.drives))

    def require_same(self, now: Present) -> tuple[str, ...]:
        """Return remarks for the header: recorded measurements, differences, damaged measurements.

        Raises ``pytest.UsageError`` with all differences that a resumed run must not have.
        """
        if refusals := self.past.refusals(now):
            raise pytest.UsageError("--ssd-resume: " + "\n--ssd-resume: ".join(refusals))
        count = len(self.memory)
        known = f"resuming {self.past.folder.name}: {count} measurement{'' if count == 1 else 's'} reused"
        failed = tuple(
            f"drive {serial} failed in an earlier session, so it is not used" for serial in self.past.failed_drives
        )
        return known, *failed, *self.past.remarks(now), *self.damaged

    def continued(self, now: Present) -> Manifest:
        """Return the run's manifest with this session added."""
        session = Session(without_secrets(sys.argv), utc_now(), differences=self.past.remarks(now))
        return self.past.manifest.resumed(session)

    def note_begun(self, journal: Journal, now: Present) -> None:
        """Write the first record of this session."""
        journal.note(
            "run_resumed",
            machine=now.machine,
            drives=[drive.identity for drive in now.drives],
            command_line=without_secrets(sys.argv),
            facts=dict(now.facts),
            recalled=len(self.memory),
            differences=self.past.remarks(now),
            damaged=self.damaged,
            failed=list(self.past.failed_drives),
        )


def command(arguments: Sequence[str], name: str) -> str:
    """Return the command line that resumes the run of this name, from the ``arguments`` of its last session."""
    option = "--ssd-resume"
    words = iter(arguments)
    kept = []
    for word in words:
        if word == option:
            next(words, None)
        elif not word.startswith(f"{option}="):
            kept.append(word)
    return shlex.join(["pytest", *kept, f"{option}={name}"])


def asked_for(config: pytest.Config, settings: Settings) -> ResumedRun | None:
    """Return the run to resume, locked for this process; None without the option. Raises ``pytest.UsageError``.

    A run that only collects reads the folder without a lock; a bay of several has a plan, but is not resumed by itself.
    """
    if settings.resume is None:
        return None
    with usage_error(NotResumable, NoSuchRun, RigError, of="--ssd-resume"):
        folder = find_any(settings.resume, settings.run_root)
        if not config.option.collectonly or config.option.ssd_doctor:
            _require_its_kind(folder, settings)
        if not config.option.collectonly:
            claim(config, folder).require_alone()
        return ResumedRun.of(Past.read(folder))


def _require_its_kind(folder: Path, settings: Settings) -> None:
    """Raise ``NotResumable`` for one bay of several: its tests have the bay's name in their ids, others would repeat
    all.
    """
    several = fleet.fleet_of(folder)
    if several and not settings.is_of_several and not fleet.is_merged(several):
        raise NotResumable(
            f"{folder.name} is a bay of a run of several: resume it with --ssd-resume={several.name} "
            f"--ssd-bay={folder.name} -n 1"
        )


def claim(config: pytest.Config, folder: Path, writer: str = "main") -> FolderLock:
    """Lock a run folder for this session; raise ``JournalError`` if another process has the lock."""
    claim = FolderLock(folder, writer)
    config.add_cleanup(claim.release)
    return claim


def opened(config: pytest.Config, resumed: ResumedRun | None, create: Callable[[], Journal]) -> Journal:
    """Return the run's journal: a new one, or that of the resumed run."""
    if resumed is None:
        journal = create()
        claim(config, journal.path)
        return journal
    journal = Journal.open(resumed.past.folder)
    journal.unseal()
    resumed.note_in(journal)
    return journal


def note_refusal(journal: Journal, resumed: ResumedRun | None, reasons: str) -> None:
    """Complete the run folder of a refused run, with the transcript of the machine and the reasons."""
    journal.note("resume_refused" if resumed else "run_refused", reasons=reasons)
    if resumed is None or resumed.past.sums:
        journal.seal()


def _called(key: ResultKey) -> str:
    kind = "" if key.kind == "measured" else f" ({key.kind})"
    return f"{key.geometry} {key.what}{kind}"
