"""The folder of a run of several bays: ``fleet.json`` says which there are, ``bays/<name>`` has the run folder of each.

The rule of the module: a bay's folder is where its name says, and nowhere else. ``fleet.json`` may have been written by
others; it can name bays, it cannot lead out of its folder. What is in it: docs/run-folder.md.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pytest_ssdqual.qual import safe_text, strict_json
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.journal import RECORDS, SCHEMA, OtherSchema, folder_name, refuse, require_schema
from pytest_ssdqual.report.run_folder.manifest import installed_versions
from pytest_ssdqual.rig.machine.machine import utc_now

NAME, BAYS = "fleet.json", "bays"
BAY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
#: A thousand bays with a dozen labels each need 1 MB; what is larger is none of ours.
LARGEST_BYTES = 16 << 20
#: Bays that are named in a sentence.
MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class FleetBay:
    """A machine with its drives, as it was asked for."""

    name: str
    #: ``bays/<name>``: see ``folder_of``.
    folder: str
    machine: str
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Where a drive sits, by its name or identity.
    slots: Mapping[str, str] = field(default_factory=dict)
    #: Why it was never begun; empty if it was.
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Fleet:
    """What ``fleet.json`` says."""

    path: Path
    #: The name of the folder, as it was when it was made.
    id: str
    #: UTC, ISO 8601.
    started: str
    #: None while it goes on, and for ever if it was killed.
    ended: str | None
    exit_status: int | None
    command_line: tuple[str, ...]
    #: Of this plugin.
    version: str
    bays: tuple[FleetBay, ...]
    #: Put together of copies of runs that were made separately, maybe by others: what they planned was not ours.
    merged: bool = False


def folder_of(name: str) -> str:
    """Where a bay's run folder is, in the folder of its fleet; ``ValueError`` if that is no name of a bay."""
    if not BAY_NAME.fullmatch(name):
        raise ValueError(
            f"{safe_text.line(name, 80)!r} is no name of a bay: letters, digits, _ . and - after a letter or digit, "
            f"64 at most"
        )
    return f"{BAYS}/{name}"


def create(root: Path, token: str, bays: Iterable[FleetBay]) -> Fleet:
    """A new fleet folder ``<utc>-<start of token>`` below ``root``; ``JournalError`` if that cannot be.

    ``ValueError`` if two bays could not be told apart. The bays' own folders are made by their runs.
    """
    return create_at(root / folder_name(token), bays)


def create_at(path: Path, bays: Iterable[FleetBay], *, merged: bool = False) -> Fleet:
    """``create`` with a name that somebody chose."""
    version = installed_versions().get("pytest-ssdqual", "")
    fleet = Fleet(path, path.name, utc_now(), None, None, tuple(sys.argv), version, _apart(tuple(bays)), merged)
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
    """Write ``fleet.json`` anew; the old one stays until the new one is whole. ``JournalError``."""
    record: dict[str, object] = {"schema": SCHEMA, **_record(fleet)}
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        safe_files.write_whole(fleet.path / NAME, safe_text.json_text(text).encode())
        safe_files.sync(fleet.path)
    except OSError as error:
        refuse(fleet.path / NAME, error)


def closed(fleet: Fleet, when: str, status: int) -> Fleet:
    """The same when it has ended (``when`` is UTC, ISO 8601); it is not written yet."""
    return replace(fleet, ended=when, exit_status=status)


def read(path: Path) -> Fleet:
    """The fleet of this folder; ``ValueError`` with one sentence if it cannot be told."""
    try:
        with os.fdopen(safe_files.open_regular(path / NAME), "rb") as file:
            text = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{path} is no folder of a fleet: {NAME}: {error.strerror or error}") from error
    if len(text) > LARGEST_BYTES:
        raise ValueError(f"{path / NAME} cannot be read: it is larger than any of ours")
    try:
        return _fleet(path, strict_json.table(strict_json.read_json(text)))
    except OtherSchema as error:
        raise ValueError(str(error)) from error
    except (ValueError, KeyError) as error:
        told = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path / NAME} cannot be read: {safe_text.line(told)}") from error


def is_fleet(path: Path) -> bool:
    """Whether it is the folder of a fleet: whether ``fleet.json`` can be read is another question."""
    return _is(path / NAME, stat.S_ISREG) and path.is_dir()


def bay_folders(path: Path) -> tuple[Path, ...]:
    """The run folders of a fleet's bays: in the order of ``fleet.json``, then others that are there, by name.

    Those that were never begun have none. Nothing is followed out of the folder, and ``fleet.json`` need not be
    readable.
    """
    there = {each.name: each for each in run_folders(path / BAYS)} if _is(path / BAYS, stat.S_ISDIR) else {}
    try:
        named = [bay.name for bay in read(path).bays]
    except ValueError:
        named = []
    first = [there.pop(name) for name in named if name in there]
    return (*first, *there.values())


def run_folders(folder: Path) -> list[Path]:
    """Every run folder right below one, by name; links are not followed."""
    if not folder.is_dir():
        return []
    return [each for each in sorted(folder.iterdir()) if _is(each, stat.S_ISDIR) and _is(each / RECORDS, stat.S_ISREG)]


def fleet_of(folder: Path) -> Path | None:
    """The fleet whose ``bays`` this folder is, or is in, or None."""
    folder = folder.resolve()
    for bays in (folder, folder.parent):
        if bays.name == BAYS and is_fleet(bays.parent):
            return bays.parent
    return None


def is_merged(path: Path) -> bool:
    """Whether it holds copies of runs that were made separately."""
    try:
        return read(path).merged
    except ValueError:
        return False


def called(folder: Path) -> str:
    """The name of a run folder, fit to be printed; of a bay with that of its fleet: ``<id>/dut1``."""
    own, fleet = folder.resolve().name, fleet_of(folder)
    return safe_text.line(f"{fleet.name}/{own}" if fleet else own)


def name_one(path: Path) -> str:
    """What is said where one run is needed and the folder of a fleet was named."""
    name, bays = safe_text.line(path.name), [safe_text.line(each.name, 80) for each in bay_folders(path)]
    if not bays:
        return f"{name} is the folder of several bays, of which none was begun"
    shown = ", ".join([*bays[:MOST_NAMED], *(["…"] if len(bays) > MOST_NAMED else [])])
    return f"{name} is a run of {len(bays)} bays ({shown}): name one of them as {name}/{BAYS}/{bays[0]}"


def _is(path: Path, kind: Callable[[int], bool]) -> bool:
    """Whether there is one of this kind, itself and not through a link."""
    try:
        return kind(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def _apart(bays: tuple[FleetBay, ...]) -> tuple[FleetBay, ...]:
    """``ValueError`` unless every bay has a folder of its own, on file systems that ignore case, too."""
    seen: set[str] = set()
    for bay in bays:
        if bay.folder != folder_of(bay.name):
            raise ValueError(f"the folder of the bay {bay.name} is {folder_of(bay.name)}, and no other")
        if bay.name.lower() in seen:
            raise ValueError(f"two bays are called {bay.name}")
        seen.add(bay.name.lower())
    return bays


def _record(fleet: Fleet) -> dict[str, object]:
    bays = [{**asdict(bay), "labels": dict(bay.labels), "slots": dict(bay.slots)} for bay in fleet.bays]
    return {
        "id": fleet.id,
        "started": fleet.started,
        "ended": fleet.ended,
        "exit_status": fleet.exit_status,
        "command_line": list(fleet.command_line),
        "version": fleet.version,
        "merged": fleet.merged,
        "bays": bays,
    }


def _fleet(path: Path, record: Mapping[str, object]) -> Fleet:
    require_schema(path / NAME, record["schema"])
    ended, status = record["ended"], record["exit_status"]
    if status is not None and (not isinstance(status, int) or isinstance(status, bool)):
        raise ValueError("exit_status is no whole number")
    bays = tuple(_bay(strict_json.table(each)) for each in strict_json.array(record["bays"]))
    return Fleet(
        path,
        _text(record, "id"),
        _text(record, "started"),
        None if ended is None else _text(record, "ended"),
        status,
        tuple(_text({"command_line": each}, "command_line") for each in strict_json.array(record["command_line"])),
        _text(record, "version"),
        _apart(bays),
        record["merged"] is True,
    )


def _bay(record: Mapping[str, object]) -> FleetBay:
    labels, slots = (_texts(record, name) for name in ("labels", "slots"))
    name, folder, machine = (_text(record, each) for each in ("name", "folder", "machine"))
    return FleetBay(name, folder, machine, labels, slots, _text(record, "refused"))


def _texts(record: Mapping[str, object], name: str) -> dict[str, str]:
    found = strict_json.table(record[name])
    return {each: _text(found, each) for each in found}


def _text(record: Mapping[str, object], name: str) -> str:
    found = record[name]
    if not isinstance(found, str):
        raise ValueError(f"{safe_text.line(name, 80)} is no text")  # noqa: TRY004 (bad data, not a bad call)
    return found
