"""Finds run folders: by a path, a name, its beginning or ``last``, and all of them below a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.journal import RECORDS, OtherSchema
from pytest_ssdqual.report.run_folder.reader import read_records

#: The newest run that began.
LAST = "last"
#: pytest's ``ExitCode.USAGE_ERROR``.
USAGE_ERROR = 4


class NoSuchRun(ValueError):
    """No run folder or more than one matches; the message lists them."""


def find(name: str, root: Path) -> Path:
    """Return the run folder for a path, a name below ``root`` or its beginning, or ``last``.

    ``last`` is the newest run that began. A beginning matches runs that began first. ``NoSuchRun`` if none or several
    match, or if it is a fleet.
    """
    folder = find_any(name, root)
    if not (folder / RECORDS).is_file():
        raise NoSuchRun(fleet.name_one(folder))
    return folder


def find_any(name: str, root: Path) -> Path:
    """Return the run folder or the fleet's folder; ``last`` may be a fleet of which a bay began, but no merged one."""
    if "\0" in name or not name:
        raise NoSuchRun(f"{name!r} is not the name of a run folder")
    if name == LAST:
        return _last(root)
    for folder in (root / name, Path(name)):
        if _is_run(folder):
            return folder
    below = sorted(root.iterdir()) if root.is_dir() else []
    matching = [folder for folder in below if folder.name.startswith(name) and _is_run(folder)]
    matching = list(filter(began, matching)) or matching
    if not matching:
        raise NoSuchRun(f"{name} is neither a run folder nor the beginning of the name of one in {root}")
    if len(matching) > 1:
        first_two = ", ".join(folder.name for folder in matching[:2])
        raise NoSuchRun(f"{name} matches {len(matching)} runs in {root}: {first_two}, …")
    return matching[0]


def _is_run(folder: Path) -> bool:
    return (folder / RECORDS).is_file() or fleet.is_fleet(folder)


def _last(root: Path) -> Path:
    folders = sorted(filter(safe_files.is_ours, root.iterdir()), reverse=True) if root.is_dir() else []
    for folder in folders:
        if began(folder) and not (fleet.is_fleet(folder) and fleet.is_merged(folder)):
            return folder
    raise NoSuchRun(f"there is no run in {root}")


def began(folder: Path) -> bool:
    """True if the run began, or any bay of a fleet; False if its drives or its tests were refused."""
    return any(map(_began, fleet.bay_folders(folder) if fleet.is_fleet(folder) else [folder]))


def _began(folder: Path) -> bool:
    if not (folder / RECORDS).is_file():
        return False
    is_begun = False
    try:
        for record in read_records(folder, "run_started", "run_ended", "purging", "measuring"):
            if record.kind in ("purging", "measuring"):
                return True
            # pytest finds a mistake in a suite at collection, after run_started; nothing was written to a drive then.
            is_begun = record.facts.get("exit_status") != USAGE_ERROR
    except OtherSchema:
        return True  # the reader refuses it
    return is_begun


def folders_below(folder: Path) -> Iterator[Path]:
    """Yield run folders at any depth; hidden folders and links are skipped.

    A folder that cannot be listed is among them: it may be the run of another user, which readers then report.
    """
    closed: list[OSError] = []
    for at, below, names in os.walk(folder, onerror=closed.append):
        if RECORDS in names:
            below.clear()
            yield Path(at)
        below[:] = sorted(name for name in below if not name.startswith("."))
    yield from (Path(error.filename) for error in closed)
