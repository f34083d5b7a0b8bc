"""Reads many run folders, each run once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, TypeVar

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.run_folder.reader import RunReader, read_records
from pytest_ssdqual.report.run_summary.run_view import KINDS, LONG_AGO, OF_TESTS, RunView

#: Kinds of records that a run has once it has done something to drives, or with them.
WORK = ("purging", "measuring", "measured")


class Skipped(ValueError):
    """A folder is not read; the message says why."""


class IdentifiedRun(Protocol):
    """A run of which copies have the same identity."""

    @property
    def name(self) -> str: ...
    @property
    def identity(self) -> str: ...


RunT = TypeVar("RunT", bound=IdentifiedRun)


def read(folders: Iterable[Path]) -> tuple[list[RunView], list[str]]:
    """Return each run once, by its start, and a sentence for each folder that is skipped."""
    runs, skipped = once(folders, _read)
    return sorted(runs, key=lambda run: (run.started, run.name)), skipped


def once(folders: Iterable[Path], read: Callable[[Path], RunT | None]) -> tuple[list[RunT], list[str]]:
    """Return each run once, as a merged fleet has copies of runs, and a sentence for each folder that is skipped.

    ``read`` returns None for a run that is not asked for, and raises ``Skipped`` or ``OSError`` with the reason.
    """
    runs: dict[str, RunT] = {}
    skipped = []
    for folder in folders:
        try:
            run = read(folder)
        except (Skipped, OSError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            skipped.append(f"{fleet.called(folder)} is skipped: {safe_text.line(why)}")
            continue
        if run is not None and (twin := runs.setdefault(run.identity, run)) is not run:
            skipped.append(f"{run.name} is skipped: it is the same run as {twin.name}")
    return list(runs.values()), skipped


def _read(folder: Path) -> RunView:
    story = RunReader.read(folder, *KINDS, "run_refused")
    if not story.manifest.is_readable:
        began = "was refused before it began" if story.of("run_refused") else "has no readable manifest.json"
        raise Skipped(f"it {began}")
    run = RunView.of(story)
    if run.started == LONG_AGO:
        raise Skipped("its start is unknown")
    if _never_began(story):
        raise Skipped("it never began: it has no result of a test, and nothing was measured")
    return run


def _never_began(story: RunReader) -> bool:
    """Return True for a bay of a run that ended before the bay's tests began, for example."""
    results = (each for each in story.of(*OF_TESTS) if not each.is_of_session)
    return not any(results) and not any(read_records(story.folder, *WORK))
