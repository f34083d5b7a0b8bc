"""Which run folder a user means."""

from __future__ import annotations

from pathlib import Path

from pytest_ssdqual.report import resume
from pytest_ssdqual.report.journal import RECORDS
from pytest_ssdqual.report.resume import LAST


class NoSuchRun(ValueError):
    """There is no such run folder, or more than one; the sentence says which."""


def find(name: str, root: Path) -> Path:
    """The run folder that ``name`` means: a path, the name of one below ``root`` or its beginning, or ``last``.

    The last one is the newest that began to measure. ``NoSuchRun`` if there is none, or if it may be several.
    """
    if "\0" in name or not name:
        raise NoSuchRun(f"{name!r} is the name of no run folder")
    if name == LAST:
        try:
            return resume.find(root, LAST)
        except resume.NotResumable as error:
            raise NoSuchRun(f"there is no run in {root}") from error
    for folder in (root / name, Path(name)):
        if (folder / RECORDS).is_file():
            return folder
    below = sorted(root.iterdir()) if root.is_dir() else []
    found = [each for each in below if each.name.startswith(name) and (each / RECORDS).is_file()]
    if not found:
        raise NoSuchRun(f"{name} is neither a run folder nor the beginning of the name of one in {root}")
    if len(found) > 1:
        several = ", ".join(each.name for each in found[:2])
        raise NoSuchRun(f"{name} may be any of {len(found)} runs in {root}: {several}, …")
    return found[0]
