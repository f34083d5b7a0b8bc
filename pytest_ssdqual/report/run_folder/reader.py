"""Run folders read back: events line by line, and what earlier runs built and did not take down.

A run folder as its readers want it: what it is about, what happened, and what was judged of it in the end.

The rule of the module: it reads what is there. A folder that is damaged or unfinished tells less, and that is no error;
only a folder without records is none, and one of another schema is refused (``OtherSchema``, an ``OSError``).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_ssdqual.qual import safe_text, strict_json
from pytest_ssdqual.report.evidence import evidence
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.journal import MANIFEST, RECORDS, SCHEMA, OtherSchema, require_schema


@dataclass(frozen=True, slots=True)
class Record:
    """One line of ``records.jsonl``."""

    kind: str
    #: UTC, ISO 8601.
    time: str
    #: Everything else in the line. Readers take what they know and ignore the rest.
    facts: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ArrayLeftBehind:
    """An array that some run was about to create, and of which no run says that it was stopped."""

    #: md's, in mdadm's spelling, as it was given to ``mdadm --create``.
    uuid: str
    device: str
    #: Identities (WWN or serial) of the members.
    members: tuple[str, ...]
    machine_id: str
    run_folder: Path


def read_records(path: Path, *kinds: str) -> Iterator[Record]:
    """All events of a run folder (or of its ``records.jsonl``), or those of some kinds, in the order they were written.

    A line that is not whole, as a crash or a full disk leaves it, is passed over: it was never acknowledged to its
    writer; so is one that is longer than any of ours. ``OSError`` if there is no such file, ``OtherSchema`` if its
    lines have another schema.
    """
    named = [f'"{kind}"'.encode() for kind in kinds]
    file = path / RECORDS if path.is_dir() else path
    for number, line in enumerate(safe_files.read_lines(file)):
        # Most of a long run's lines are of other kinds: without this, reading its verdicts takes three times as long.
        # The first line says which schema the folder has.
        if number and named and not any(name in line for name in named):
            continue
        record = _parse(line, file)
        if record and (not kinds or record.kind in kinds):
            yield record


def unfinished_arrays(root: Path) -> tuple[ArrayLeftBehind, ...]:
    """Arrays planned and never stopped, over all run folders below ``root`` and the bays of fleets, oldest run first.

    ``root`` is the folder of runs or, for a bay, the ``bays`` of its fleet; then the other runs count as well. They are
    recognised by md UUID, which is ours alone: it was drawn at random before the array was created. A later
    run that clears a leftover away notes ``array_stopped`` in its own folder, so all folders are read together.
    Folders that others have made, or can write to, are not believed: what is called ours may be erased. Nor are those
    of another schema, whose arrays the guard then refuses.
    """
    planned: dict[str, ArrayLeftBehind] = {}
    stopped: set[str] = set()
    for file in _records_of_ours(root):
        with contextlib.suppress(OtherSchema):
            for record in read_records(file):
                uuid = record.facts.get("uuid")
                if not isinstance(uuid, str):
                    continue
                if record.kind == "array_stopped":
                    stopped.add(uuid)
                elif record.kind == "array_planned":
                    planned[uuid] = _planned(uuid, record.facts, file.parent)
    return tuple(array for uuid, array in planned.items() if uuid not in stopped)


def _records_of_ours(root: Path) -> list[Path]:
    """Of all run folders below ``root``, in order, and of the bays of fleets among them.

    Of a bay ``root`` is the ``bays`` of its fleet: what other runs have left is beside that fleet.
    """
    own = fleet.fleet_of(root)
    files = [each / RECORDS for folder in _ours_below(own.parent if own else root) for each in (folder, *_bays(folder))]
    return [file for file in files if file.is_file() and not file.is_symlink()]


def _bays(folder: Path) -> list[Path]:
    """Of a fleet. Copies in a merged one may be of others' runs; it was we who copied, not we who planned."""
    bays = folder / fleet.BAYS
    return _ours_below(bays) if safe_files.is_ours(bays) and not fleet.is_merged(folder) else []


def _ours_below(folder: Path) -> list[Path]:
    return [each for each in sorted(folder.iterdir()) if safe_files.is_ours(each)] if folder.is_dir() else []


def worsened_drives(path: Path) -> tuple[str, ...]:
    """What a run did to its drives beyond expected wear, a sentence each, from its run folder."""
    return tuple(
        safe_text.line(f"{record.facts.get('name')}: {finding}")
        for record in read_records(path)
        if record.kind == "drive_worsened" and isinstance(findings := record.facts.get("findings"), list)
        for finding in findings
    )


def still_running(path: Path) -> tuple[str, ...]:
    """Work that must finish and went on when the last session of a run ended, a sentence each."""
    found: list[str] = []
    for record in read_records(path):
        if record.kind == "run_resumed":
            found.clear()
        elif record.kind == "still_running":
            found.append(safe_text.line(str(record.facts.get("sentence"))))
    return tuple(found)


def _planned(uuid: str, facts: Mapping[str, object], folder: Path) -> ArrayLeftBehind:
    members = facts.get("members")
    return ArrayLeftBehind(
        uuid=uuid,
        device=str(facts.get("device", "")),
        members=tuple(map(str, members)) if isinstance(members, list) else (),
        machine_id=str(facts.get("machine_id", "")),
        run_folder=folder,
    )


def _parse(line: bytes, file: Path) -> Record | None:
    try:
        facts = dict(strict_json.table(strict_json.read_json(line)))
    except ValueError:
        return None
    schema, kind, time = (facts.pop(name, None) for name in ("schema", "kind", "time"))
    if not isinstance(schema, int) or not isinstance(kind, str) or not isinstance(time, str):
        return None
    require_schema(file, schema)
    return Record(kind, time, facts)


#: Kinds of records that hold evidence.
JUDGED = ("verdict", "observation")


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, or a figure of which nothing is promised, as it counts in the end."""

    #: Id of the test.
    test: str
    #: UTC, ISO 8601.
    time: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class RunReader:
    """A run folder, read once."""

    folder: Path
    #: Empty if there is none yet, or none that can be read.
    manifest: Mapping[str, object]
    #: All, in the order in which they were written.
    records: tuple[Record, ...]

    @classmethod
    def read(cls, folder: Path, *kinds: str) -> RunReader:
        """With all records, or those of some kinds only. ``OSError`` if there are no records, or of another schema."""
        return cls(folder, _manifest(folder), tuple(read_records(folder, *kinds)))

    def of(self, *kinds: str) -> tuple[Record, ...]:
        """The records of these kinds, in order."""
        return tuple(record for record in self.records if record.kind in kinds)

    def evidence(self) -> tuple[Judged, ...]:
        """What was judged or observed, each once, as it came out last; in the order in which that was said.

        A test that was run again, here or in a session that resumed the run, takes its earlier verdict back. What
        cannot be read (``unreadable``) is left out.
        """
        return tuple(each for each in map(_judged, _last(self.of(*JUDGED))) if each)

    def unreadable(self) -> int:
        """How many verdicts count and cannot be read, because their records are damaged."""
        return sum(_judged(record) is None for record in _last(self.of(*JUDGED)))


def _last(records: Iterable[Record]) -> Iterable[Record]:
    found: dict[str, Record] = {}
    for record in records:
        about = json.dumps([record.facts.get(name) for name in ("test", "claim", "geometries", "workloads")])
        found.pop(about, None)
        found[about] = record
    return found.values()


def _judged(record: Record) -> Judged | None:
    try:
        found = evidence.from_record(record.facts)
    except ValueError:
        return None
    return Judged(str(record.facts.get("test", "")), record.time, found)


def _manifest(folder: Path) -> Mapping[str, object]:
    try:
        found = dict(strict_json.table(strict_json.read_json((folder / MANIFEST).read_bytes())))
    except (OSError, ValueError):
        return {}
    require_schema(folder / MANIFEST, found.get("schema", SCHEMA))
    return found
