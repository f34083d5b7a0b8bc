"""Merges separate runs into one fleet: the runs are copied and stay unchanged.

Every file is checked before anything is created, and only files that a run's seal lists are copied.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.report.fleet import folder as fleets
from pytest_ssdqual.report.fleet.folder import Fleet, FleetBay
from pytest_ssdqual.report.html.page import REPORT
from pytest_ssdqual.report.run_folder import checksums, safe_files
from pytest_ssdqual.report.run_folder.checksums import SUMS
from pytest_ssdqual.report.run_folder.journal import MANIFEST, RECORDS
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.view import subject
from pytest_ssdqual.rig.machine.machine import utc_now

#: Files that ``ssdqual report`` writes again; they may be newer than the seal.
DERIVED = frozenset({REPORT, "summary.md"})
#: Model of the lab's emulated drives, whose serial numbers are the same in every lab.
EMULATED = re.compile(r"SSDQ\d{4}")
#: Name of the controller as machine under test.
HERE = frozenset({"local", "localhost", "this machine"})
#: Exit status of a bay that has none: as if a test had failed, since what is not known is not green.
NOT_KNOWN = 1
#: Size of the pieces of a copy.
PIECE_BYTES = 1 << 20


class NotMergeable(ValueError):
    """The runs cannot be merged; the message says why."""


@frozen
class MergedFolder:
    """A run that becomes a bay, or a bay of a fleet that was not started."""

    asked: FleetBay
    #: None for a bay that was not started.
    folder: Path | None = None
    identity: str = ""
    #: Digests by name of the files to copy, without ``SHA256SUMS``.
    files: dict[str, str] = field(default_factory=dict)
    #: Files that the seal does not list.
    unnamed: tuple[str, ...] = ()
    #: Labels of drives by identity.
    drives: dict[str, str] = field(default_factory=dict)
    #: Time spans of its sessions.
    spans: tuple[tuple[datetime, datetime], ...] = ()


def gather(folders: Sequence[Path]) -> tuple[MergedFolder, ...]:
    """Return the runs of these folders, with every file checked; ``NotMergeable`` or ``OSError``."""
    sources = tuple(each for folder in folders for each in _sources(folder))
    if not any(each.folder for each in sources):
        raise NotMergeable("there is no run to merge")
    _require_apart(sources)
    return sources


def require_new(into: Path) -> None:
    """Raise ``NotMergeable`` if the path exists."""
    if os.path.lexists(into):
        raise NotMergeable(f"{into} exists: a merged fleet gets a folder of its own")


def merge(sources: Sequence[MergedFolder], into: Path, names: Sequence[str] = ()) -> Fleet:
    """Create the fleet ``into`` from copies; ``names`` are those of the bays, in order.

    ``NotMergeable``, ``JournalError`` or ``OSError`` if that fails; then nothing of it remains.
    """
    require_new(into)
    sources = _named(sources, names)
    fleet = fleets.create_at(into, [each.asked for each in sources], merged=True)
    try:
        statuses = [_copied(each, into / each.asked.folder) for each in sources]
        fleet = fleets.closed(fleet, utc_now(), max(statuses))
        fleets.write(fleet)
    except BaseException:
        shutil.rmtree(into)
        raise
    return fleet


def left_out(sources: Sequence[MergedFolder]) -> Iterator[str]:
    """Return a sentence for each run with files that its seal does not list; they are not copied."""
    for each in sources:
        if each.unnamed:
            first = named([safe_text.line(name, 80) for name in each.unnamed], 1)
            yield f"{_called(each)}: its seal does not list {first}; not copied"


def _sources(folder: Path) -> list[MergedFolder]:
    """Return a run folder as one source, a fleet as its bays."""
    if not fleets.is_fleet(folder):
        return [_source(folder, None)]
    try:
        asked = {bay.name: bay for bay in fleets.read(folder).bays}
    except ValueError as error:
        raise NotMergeable(str(error)) from error
    there = {each.name: each for each in fleets.bay_folders(folder)}
    never = [MergedFolder(bay) for name, bay in asked.items() if name not in there]
    return [*(_source(path, asked.get(name)) for name, path in there.items()), *never]


def _source(folder: Path, asked: FleetBay | None) -> MergedFolder:
    if not (folder / RECORDS).is_file():
        raise NotMergeable(f"{folder} is not a run folder: it has no {RECORDS}")
    there = {path.relative_to(folder).as_posix(): path for path in safe_files.files_below(folder)}
    files = _sealed(folder, there)
    shown = [name for name in there if not name.rpartition("/")[2].startswith(".")]
    return _completed_source(folder, asked, files, tuple(name for name in shown if name not in files and name != SUMS))


def _sealed(folder: Path, there: Mapping[str, Path]) -> dict[str, str]:
    """Return the files that the seal lists; ``NotMergeable`` if one has changed."""
    named = checksums.read(folder)
    if not named:
        raise NotMergeable(
            f"{folder} is not complete: it has no {SUMS}, so its run has not ended; pytest --ssd-resume ends it"
        )
    files = {}
    for name, digest in named.items():
        found = checksums.digest(there[name]) if name in there else ""
        if found != digest and name not in DERIVED:
            how = "has changed since it was sealed" if found else "is missing"
            raise NotMergeable(f"{folder} is not complete: {safe_text.line(name, 120)} {how}")
        if found:
            files[name] = found
    for name in (RECORDS, MANIFEST):
        if name not in files:
            raise NotMergeable(f"{folder} is not complete: its {SUMS} does not list {name}")
    return files


def _completed_source(
    folder: Path, asked: FleetBay | None, files: dict[str, str], unnamed: tuple[str, ...]
) -> MergedFolder:
    story = RunReader.read(folder, "run_started")
    bays = story.manifest.bays
    machine = bays[0].machine if bays else ""
    drives = {}
    for drive in story.manifest.drives:
        serial = drive.serial or ""
        if not EMULATED.fullmatch(serial):
            drives[drive.identity] = safe_text.line(f"{drive.model or ''} {serial}".strip(), 80)
    host = bays[0].facts.get("hostname", "") if bays else ""
    # A run on its own machine calls it local, wherever that was.
    here = host if machine in HERE else ""
    name = (asked.name if asked else _name(here or machine or folder.resolve().name)) or "bay"
    own = FleetBay(name, fleets.folder_of(name), machine, asked.labels if asked else {}, asked.slots if asked else {})
    return MergedFolder(
        own, folder, subject.identity(story.manifest, folder), files, unnamed, drives, tuple(_spans(story))
    )


def _spans(story: RunReader) -> Iterator[tuple[datetime, datetime]]:
    """Return the time spans of the sessions; without a start or an end they are unbounded.

    A session that was killed has no end; the lock of the run folder had ended it before the next one began.
    """
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    sessions = story.manifest.sessions
    starts = [subject.moment(each.started) for each in sessions]
    for session, start, next_start in zip_longest(sessions, starts, starts[1:]):
        yield start or first, subject.moment(session.ended) or next_start or last


def _require_apart(sources: Sequence[MergedFolder]) -> None:
    """Raise ``NotMergeable`` if a run occurs twice, or two runs measured a drive at the same time."""
    runs: dict[str, MergedFolder] = {}
    having: dict[str, list[MergedFolder]] = {}
    for each in sources:
        if each.folder is None:
            continue
        for same in (each.identity, each.files[RECORDS]):
            if (twin := runs.setdefault(same, each)) is not each:
                raise NotMergeable(f"{_called(each)} is the same run as {_called(twin)}")
        for name, drive in each.drives.items():
            for other in having.setdefault(name, []):
                if _overlap(each, other):
                    raise NotMergeable(
                        f"{drive} was measured in {_called(other)} and in {_called(each)} at the same time: neither "
                        "can be believed"
                    )
            having[name].append(each)


def _overlap(one: MergedFolder, other: MergedFolder) -> bool:
    return any(begin < its_end and its_begin < end for begin, end in one.spans for its_begin, its_end in other.spans)


def _called(source: MergedFolder) -> str:
    return safe_text.line(str(source.folder), 200) if source.folder else source.asked.name


def _named(sources: Sequence[MergedFolder], names: Sequence[str]) -> list[MergedFolder]:
    """Return the sources with the given names, or with their own names made unique."""
    if names and len(names) != len(sources):
        raise NotMergeable(f"--names has {len(names)} names for {len(sources)} bays")
    given = list(names) or [each.asked.name for each in sources]
    often = [name.lower() for name in given]
    taken: set[str] = set()
    found = []
    for source, name in zip(sources, given, strict=True):
        if names and (often.count(name.lower()) > 1):
            raise NotMergeable(f"--names has {safe_text.line(name, 80)} twice")
        unique = name if names or often.count(name.lower()) == 1 else _unique(source, name)
        for number in range(2, len(sources) + 2):
            if unique.lower() not in taken and (unique == name or unique.lower() not in often):
                break
            unique = f"{name[:50]}-{number}"
        taken.add(unique.lower())
        found.append(_renamed(source, unique))
    return found


def _unique(source: MergedFolder, name: str) -> str:
    """Return names made unique by the first drive's serial number or the run's name."""
    serial = next(iter(source.drives.values()), "").rpartition(" ")[2]
    own = _name(serial) or (_name(source.folder.resolve().name) if source.folder else "")
    return f"{name[:30]}-{own[:32]}" if own else name


def _renamed(source: MergedFolder, name: str) -> MergedFolder:
    try:
        folder = fleets.folder_of(name)
    except ValueError as error:
        raise NotMergeable(f"--names: {error}") from error
    return replace(source, asked=replace(source.asked, name=name, folder=folder))


def _name(text: str) -> str:
    """Return a valid bay name from a machine or serial number; ``root@dut1`` becomes ``dut1``."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text.rpartition("@")[2]).strip("-_.")[:40]


def _copied(source: MergedFolder, to: Path) -> int:
    """Copy the files that the seal lists and verify the copies; return the exit status of the run.

    ``NOT_KNOWN`` of a bay that was not started, and of a run without a status.
    """
    if source.folder is None:
        return NOT_KNOWN
    safe_files.make_folder(to)
    for name, digest in [*source.files.items(), (SUMS, "")]:
        below = to / name
        for folder in reversed([each for each in below.parents if to in each.parents]):
            if not folder.exists():
                safe_files.make_folder(folder)
        _copy(source.folder / name, below)
        if digest and checksums.digest(below) != digest:
            raise NotMergeable(f"{source.folder / name} changed while it was copied")
    status = RunReader.read(to, "run_started").manifest.exit_status
    return NOT_KNOWN if status is None else status


def _copy(source: Path, to: Path) -> None:
    with os.fdopen(safe_files.open_regular(source), "rb") as read, os.fdopen(safe_files.create(to), "wb") as written:
        shutil.copyfileobj(read, written, PIECE_BYTES)
