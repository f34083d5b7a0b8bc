"""Which run folder a user means."""

from __future__ import annotations

from pathlib import Path

from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.run_folder.journal import RECORDS

#: The newest run that began.
LAST = "last"


class NoSuchRun(ValueError):
    """There is no such run folder, or more than one; the sentence says which."""


def find(name: str, root: Path) -> Path:
    """The run folder that ``name`` means: a path, the name of one below ``root`` or its beginning, or ``last``.

    The last one is the newest that began. The beginning of a name is that of a run that began, if there is one.
    ``NoSuchRun`` if there is none, if it may be several, or if it is a run of several bays.
    """
    found = find_any(name, root)
    if not (found / RECORDS).is_file():
        raise NoSuchRun(fleet.name_one(found))
    return found


def find_any(name: str, root: Path) -> Path:
    """The same; also the folder of a fleet."""
    if "\0" in name or not name:
        raise NoSuchRun(f"{name!r} is the name of no run folder")
    # Imported here: it loads pydantic, which ``ssdqual --help`` does without.
    from pytest_ssdqual.report.resume import resume

    if name == LAST:
        try:
            return resume.find(root, LAST)
        except resume.NotResumable as error:
            raise NoSuchRun(f"there is no run in {root}") from error
    for folder in (root / name, Path(name)):
        if _is_run(folder):
            return folder
    below = sorted(root.iterdir()) if root.is_dir() else []
    found = [each for each in below if each.name.startswith(name) and _is_run(each)]
    found = list(filter(resume.began, found)) or found
    if not found:
        raise NoSuchRun(f"{name} is neither a run folder nor the beginning of the name of one in {root}")
    if len(found) > 1:
        several = ", ".join(each.name for each in found[:2])
        raise NoSuchRun(f"{name} may be any of {len(found)} runs in {root}: {several}, …")
    return found[0]


def _is_run(folder: Path) -> bool:
    return (folder / RECORDS).is_file() or fleet.is_fleet(folder)
