"""The folder of a fleet: ``fleet.json`` lists the bays, ``bays/<name>`` is the run folder of each.

A bay's folder is determined by its name alone. ``fleet.json`` may be foreign: it can name bays, but not lead out of its
folder. The format is in docs/run-folder.md.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path

from pytest_ssdqual.qual import safe_text, strict_json
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.notification import without_secrets
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.journal import RECORDS, OtherSchema, document, folder_name, read_document, refuse
from pytest_ssdqual.report.run_folder.manifest import installed_versions
from pytest_ssdqual.rig.machine.machine import utc_now

NAME, BAYS = "fleet.json", "bays"
BAY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
#: Maximum size of ``fleet.json``; a thousand bays with a dozen labels each need 1 MB.
LARGEST_BYTES = 16 << 20
#: Maximum number of bays named in a sentence.
MOST_NAMED = 4


@frozen
class FleetBay:
    """A requested machine with its drives."""

    name: str
    #: ``bays/<name>``: see ``folder_of``.
    folder: str
    machine: str
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Slots of drives by name or identity.
    slots: Mapping[str, str] = field(default_factory=dict)
    #: Reason why the bay was not started; empty if it was.
    refused: str = ""


@frozen
class Fleet:
    """Content of ``fleet.json``."""

    path: Path
    #: Name of the folder at its creation.
    id: str
    #: UTC, ISO 8601.
    started: str
    #: None while it is running, and if it was killed.
    ended: str | None
    exit_status: int | None
    command_line: tuple[str, ...]
    #: Version of this plugin.
    version: str
    bays: tuple[FleetBay, ...]
    #: True for copies of separate runs, perhaps of other users; their planned arrays are not this user's.
    merged: bool = False


def folder_of(name: str) -> str:
    """Return the path of a bay's run folder in the fleet; ``ValueError`` for an invalid name."""
    if not BAY_NAME.fullmatch(name):
        raise ValueError(
            f"{safe_text.line(name, 80)!r} is not a valid bay name: letters, digits, _ . and - after a letter or "
            f"digit, 64 at most"
        )
    return f"{BAYS}/{name}"


def create(root: Path, token: str, bays: Iterable[FleetBay]) -> Fleet:
    """Create a fleet folder ``<utc>-<start of token>`` below ``root``; ``JournalError`` if that fails.

    ``ValueError`` if two bays would have the same folder. The runs create the folders of the bays.
    """
    return create_at(root / folder_name(token), bays)


def create_at(path: Path, bays: Iterable[FleetBay], *, merged: bool = False) -> Fleet:
    """Create a fleet folder with a given name."""
    version = installed_versions().get("pytest-ssdqual", "")
    fleet = Fleet(
        path, path.name, utc_now(), None, None, without_secrets(sys.argv), version, _apart(tuple(bays)), merged
    )
    try:
        safe_files.make_root(path.parent)
        safe_files.make_folder(path)
        safe_files.make_folder(path / BAYS)
        safe_files.sync(path)
        safe_files.sync(path.parent)
    except OSError as error:
        refuse(path, error)
    write(fleet)
    return fleet


def write(fleet: Fleet) -> None:
    """Replace ``fleet.json`` atomically; ``JournalError`` if that fails."""
    record = plain(fleet)
    del record["path"]
    try:
        safe_files.write_whole(fleet.path / NAME, document(record))
        safe_files.sync(fleet.path)
    except OSError as error:
        refuse(fleet.path / NAME, error)


def closed(fleet: Fleet, when: str, status: int) -> Fleet:
    """Return the fleet with its end (``when`` is UTC, ISO 8601), without writing it."""
    return replace(fleet, ended=when, exit_status=status)


def read(path: Path) -> Fleet:
    """Return the fleet of a folder; ``ValueError`` with the reason if it cannot be read."""
    try:
        with os.fdopen(safe_files.open_regular(path / NAME), "rb") as file:
            text = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{path} is not the folder of a fleet: {NAME}: {error.strerror or error}") from error
    if len(text) > LARGEST_BYTES:
        raise ValueError(f"{path / NAME} cannot be read: it is too large")
    try:
        content = strict_json.table(strict_json.read_json(text))
        # A path need not be UTF-8, which records are.
        fleet = replace(read_document(Fleet, path / NAME, {**content, "path": "."}), path=path)
        _apart(fleet.bays)
    except OtherSchema as error:
        raise ValueError(str(error)) from error
    except ValueError as error:
        raise ValueError(f"{path / NAME} cannot be read: {safe_text.line(str(error))}") from error
    return fleet


def is_fleet(path: Path) -> bool:
    """Return True for the folder of a fleet, even if its ``fleet.json`` is damaged."""
    return _is(path / NAME, stat.S_ISREG) and path.is_dir()


def bay_folders(path: Path) -> tuple[Path, ...]:
    """Return the run folders of a fleet's bays: in the order of ``fleet.json``, then others, by name.

    Bays that were not started have none. Links are not followed, and ``fleet.json`` need not be readable.
    """
    there = {each.name: each for each in run_folders(path / BAYS)} if _is(path / BAYS, stat.S_ISDIR) else {}
    try:
        named = [bay.name for bay in read(path).bays]
    except ValueError:
        named = []
    first = [there.pop(name) for name in named if name in there]
    return (*first, *there.values())


def run_folders(folder: Path) -> list[Path]:
    """Return every run folder directly below a folder, by name; links are not followed."""
    if not folder.is_dir():
        return []
    return [each for each in sorted(folder.iterdir()) if _is(each, stat.S_ISDIR) and _is(each / RECORDS, stat.S_ISREG)]


def fleet_of(folder: Path) -> Path | None:
    """Return the fleet whose ``bays`` this folder is, or is in, or None."""
    folder = folder.resolve()
    for bays in (folder, folder.parent):
        if bays.name == BAYS and is_fleet(bays.parent):
            return bays.parent
    return None


def is_merged(path: Path) -> bool:
    """Return True if the fleet has copies of separate runs."""
    try:
        return read(path).merged
    except ValueError:
        return False


def called(folder: Path) -> str:
    """Return the printable name of a run folder; of a bay with that of its fleet: ``<id>/dut1``."""
    own, fleet = folder.resolve().name, fleet_of(folder)
    return safe_text.line(f"{fleet.name}/{own}" if fleet else own)


def name_one(path: Path) -> str:
    """Return the message for a fleet's folder where a single run is required."""
    name, bays = safe_text.line(path.name), [safe_text.line(each.name, 80) for each in bay_folders(path)]
    if not bays:
        return f"{name} is the folder of several bays, of which none was started"
    shown = ", ".join([*bays[:MOST_NAMED], *(["…"] if len(bays) > MOST_NAMED else [])])
    return f"{name} is a run of {len(bays)} bays ({shown}): name one of them as {name}/{BAYS}/{bays[0]}"


def _is(path: Path, kind: Callable[[int], bool]) -> bool:
    """Return True if the path is of this kind itself, not through a link."""
    try:
        return kind(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def _apart(bays: tuple[FleetBay, ...]) -> tuple[FleetBay, ...]:
    """Raise ``ValueError`` unless every bay has its own folder, also on file systems that ignore case."""
    seen: set[str] = set()
    for bay in bays:
        if bay.folder != folder_of(bay.name):
            raise ValueError(f"the folder of the bay {bay.name} is {folder_of(bay.name)}, and no other")
        if bay.name.lower() in seen:
            raise ValueError(f"two bays are called {bay.name}")
        seen.add(bay.name.lower())
    return bays
