"""``--ssd-resume``: from the name of a run to its folder, opened again; or a usage error that says why not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.options.settings import Settings
from pytest_ssdqual.plugin.session.bay import Bay
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.resume.rebuild_measurements import Recollection
from pytest_ssdqual.report.resume.resume import NotResumable, Past, Present, Verdicts, find
from pytest_ssdqual.report.run_folder.journal import Journal
from pytest_ssdqual.report.run_folder.lock import FolderLock
from pytest_ssdqual.report.run_folder.manifest import Manifest, Session
from pytest_ssdqual.rig.machine.machine import RigError, utc_now
from pytest_ssdqual.rig.resume.checkpoint import ResultKey

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.session.state import Qualification


@dataclass(frozen=True, slots=True)
class Resumption:
    """A run that is continued, and what is known of it."""

    past: Past
    memory: Recollection
    verdicts: Verdicts
    #: What is measured again although there is a record of it, in words.
    damaged: Sequence[str]

    @classmethod
    def of(cls, past: Past) -> Resumption:
        """Looks at every file that a measurement rests on."""
        damaged: list[str] = []
        memory = past.memory(lambda key, why: damaged.append(f"{_called(key)} is measured again: {why}"))
        return cls(past, memory, Verdicts(past.records), tuple(damaged))

    def tell(self, journal: Journal) -> None:
        """From now on, what turns out to be damaged is noted in ``journal``."""
        self.memory.forgotten = lambda key, why: journal.note("not_recalled", what=_called(key), reason=why)

    def bay(self, bay: Bay) -> Bay:
        """The same drives in the order in which the run had them."""
        return replace(bay, drives=self.past.drives_in_order(bay.drives))

    def require_same(self, now: Present) -> None:
        """``pytest.UsageError`` with everything that must not differ and does."""
        if refusals := self.past.refusals(now):
            raise pytest.UsageError("--ssd-resume: " + "\n--ssd-resume: ".join(refusals))

    def remarks(self, now: Present) -> tuple[str, ...]:
        """For the header: what is known already, what must be known, what is measured again."""
        count = len(self.memory)
        known = f"resuming {self.past.folder.name}: {count} measurement{'' if count == 1 else 's'} recalled"
        return known, *self.past.remarks(now), *self.damaged

    def continued(self, now: Present) -> Manifest:
        """The run's manifest with a session more."""
        manifest = self.past.manifest
        session = Session(tuple(sys.argv), utc_now(), differences=self.past.remarks(now))
        return replace(manifest, resumed=(*manifest.resumed, session))

    def note_begun(self, journal: Journal, now: Present) -> None:
        """The first word of this session."""
        journal.note(
            "run_resumed",
            machine=now.machine,
            drives=[drive.identity for drive in now.drives],
            command_line=sys.argv,
            facts=dict(now.facts),
            recalled=len(self.memory),
            differences=self.past.remarks(now),
            damaged=self.damaged,
        )


def asked_for(config: pytest.Config, settings: Settings) -> Resumption | None:
    """The run to be continued, ours alone from now on; None if none is. ``pytest.UsageError`` if it cannot be.

    When tests are only collected its folder is read and left alone.
    """
    if settings.resume is None:
        return None
    try:
        folder = find(settings.run_root, settings.resume)
        if not config.option.collectonly:
            _require_its_kind(folder, settings)
            claim(config, folder).require_alone()
        return Resumption.of(Past.read(folder))
    except (NotResumable, RigError) as error:
        raise pytest.UsageError(f"--ssd-resume: {error}") from error


def _require_its_kind(folder: Path, settings: Settings) -> None:
    """The tests of a bay of several bear its name: without it all would be judged once more, by other names."""
    several = fleet.fleet_of(folder)
    if several and not settings.is_of_several and not fleet.is_merged(several):
        raise NotResumable(
            f"{folder.name} is a bay of a run of several: go on with it by --ssd-resume={several.name} "
            f"--ssd-bay={folder.name} -n 1"
        )


def require(run: Qualification) -> None:
    """That a run may be continued with what this session has; ``pytest.UsageError`` if not, remarks if so."""
    if run.resumed:
        run.resumed.require_same(run.present)
        run.bay = replace(run.bay, remarks=(*run.bay.remarks, *run.resumed.remarks(run.present)))


def claim(config: pytest.Config, folder: Path, writer: str = "main") -> FolderLock:
    """The right to write into a run folder until the session is over; ``JournalError`` if another process has it."""
    claim = FolderLock(folder, writer)
    config.add_cleanup(claim.release)
    return claim


def opened(config: pytest.Config, resumed: Resumption | None, create: Callable[[], Journal]) -> Journal:
    """The run's journal: a new one, or that of the run that is continued."""
    if resumed is None:
        journal = create()
        claim(config, journal.path)
        return journal
    journal = Journal.open(resumed.past.folder)
    journal.unseal()
    resumed.tell(journal)
    return journal


def note_refusal(journal: Journal, resumed: Resumption | None, reasons: str) -> None:
    """A request that was refused leaves a whole run folder, too: what was asked of the machine, and the reasons."""
    journal.note("resume_refused" if resumed else "run_refused", reasons=reasons)
    if resumed is None or resumed.past.sums:
        journal.seal()


def _called(key: ResultKey) -> str:
    kind = "" if key.kind == "measured" else f" ({key.kind})"
    return f"{key.geometry} {key.what}{kind}"
