"""Finds and reads run folders: records, arrays that were left behind, and the evidence that counts in the end.

A damaged or unfinished folder has less to read, which is no error. Only a folder without records or of another schema
is refused (``OtherSchema``, an ``OSError``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pytest_ssdqual.qual import safe_text, strict_json
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.records import RecordT, from_plain, plain, shallow
from pytest_ssdqual.report.evidence import health
from pytest_ssdqual.report.evidence.evidence import BESIDE, EXPECTED, About, Evidence, of_facts
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.journal import RECORDS, OtherSchema, require_schema
from pytest_ssdqual.report.run_folder.manifest import UNREADABLE, Manifest, PlannedClaims, PlannedTests, WorsenedDrive

DefaultT = TypeVar("DefaultT")
#: Kinds of records that hold evidence.
JUDGED = ("verdict", "observation")
#: Kinds of the records of drives whose health worsened, and of the tests and claims of a session.
WORSENED, PLANNED, CLAIMS = "drive_worsened", "tests_planned", "claims_planned"
#: Kinds of the records of arrays that were stopped, which may have lost a member.
STOPPED = ("array_stopped", "array_left")
CONTENTS: Mapping[str, type[object]] = {WORSENED: WorsenedDrive, PLANNED: PlannedTests, CLAIMS: PlannedClaims}
#: Kinds of records without which a run could look better than it is.
DECISIVE = (*JUDGED, *CONTENTS, *STOPPED)
#: Kind of a record of one of these kinds that cannot be read at all.
UNKNOWN = "unknown"
#: Kind of the record after which a later session begins.
RESUMED = "run_resumed"
#: Kinds of records that begin a session, or come before its beginning.
BEGINNINGS = ("run_started", RESUMED, "resume_refused", "leftovers_removed")


@frozen
class Record:
    """One line of ``records.jsonl``."""

    kind: str
    #: UTC, ISO 8601.
    time: str
    #: All other fields of the line.
    facts: Mapping[str, object]

    @property
    def test(self) -> str:
        """Id of its test; empty if it is of none."""
        return str(self.facts.get("test", ""))

    @property
    def is_of_session(self) -> bool:
        """True for an error that is of a session, not of a test."""
        return self.facts.get("of_session") is True

    def content(self, kind: type[RecordT]) -> RecordT:
        """Return the record as the dataclass that was written; ``ValueError`` if it is damaged."""
        return from_plain(kind, {name: value for name, value in self.facts.items() if name not in BESIDE})

    def fact(self, name: str, kind: type[RecordT], default: DefaultT) -> RecordT | DefaultT:
        """Return a field; the default if it is missing or of another type."""
        try:
            return from_plain(kind, self.facts.get(name))
        except ValueError:
            return default

    @property
    def is_damaged(self) -> bool:
        """True if a decisive record, other than evidence, cannot be read."""
        if self.kind == UNKNOWN:
            return True
        try:
            if self.kind in STOPPED:
                from_plain(tuple[str, ...], self.facts.get("objections"))
            elif self.kind in CONTENTS:
                self.content(CONTENTS[self.kind])
        except ValueError:
            return True
        return False


@frozen
class ArrayLeftBehind:
    """An array that a run planned, and that no run recorded as stopped."""

    #: UUID of the array in mdadm's spelling, as given to ``mdadm --create``.
    uuid: str
    device: str
    #: Identities (WWN or serial) of the members.
    members: tuple[str, ...]
    machine_id: str
    run_folder: Path


@frozen
class CacheLeftSwitched:
    """A drive whose write cache a run switched, and that no run recorded as restored."""

    #: Random name of the change.
    change: str
    #: Identity (WWN or serial) of the drive, and its full name at that time.
    drive: str
    name: str
    #: ``on`` or ``off``, before it was switched.
    was: str
    machine_id: str
    run_folder: Path
    #: All names of the drive, as the record has them.
    names: frozenset[str]


def read_records(path: Path, *kinds: str) -> Iterator[Record]:
    """Yield the records of a run folder (or of its ``records.jsonl``), of some kinds or all, in order.

    An incomplete line, left at the end of a session by a crash or a full disk, was never acknowledged to its writer and
    is skipped, as is a line beyond the length limit. Any other damaged line of a decisive kind that is asked for is a
    record ``UNKNOWN``. ``OSError`` without the file, ``OtherSchema`` for lines of another schema.
    """
    named, decisive = (tuple(f'"{kind}"'.encode() for kind in names) for names in (kinds, DECISIVE))
    file = path / RECORDS if path.is_dir() else path
    is_damaged = False
    for number, line in enumerate(safe_files.read_lines(file)):
        if is_damaged and not _begins_session(line, file):
            yield Record(UNKNOWN, "", {})
        is_damaged = False
        # Most of a long run's lines are of other kinds: without this, reading its verdicts takes three times as long.
        # The first line says which schema the folder has.
        if number and named and not any(name in line for name in named):
            continue
        record = _parse(line, file)
        if record is None:
            is_damaged = any(name in line for name in decisive)
        elif not kinds or record.kind in kinds:
            yield record


@frozen
class LeftBehind:
    """What runs did to drives and did not undo, oldest first."""

    #: Arrays that were planned and not stopped.
    arrays: tuple[ArrayLeftBehind, ...] = ()
    #: Write caches that were switched and not restored.
    caches: tuple[CacheLeftSwitched, ...] = ()


def left_behind(*roots: Path) -> LeftBehind:
    """Return what is left behind, over all run folders below each root and the bays of fleets.

    A root is the folder of runs or, for a bay, the ``bays`` of its fleet; then the other runs count as well. Arrays are
    identified by md UUID, changes of write caches by a name of their own; both were drawn at random before the array
    was created or the cache switched. A later run that removes a leftover records that in its own folder, so all
    folders are read together. Folders that other users own or can write to are ignored, because an array listed here
    may be erased. So are folders of another schema; the guard then refuses their arrays. Damaged records of a cache are
    left out: nothing is switched by a guess.
    """
    arrays: dict[str, ArrayLeftBehind] = {}
    caches: dict[str, CacheLeftSwitched] = {}
    undone: set[str] = set()
    for file in dict.fromkeys(file for root in roots for file in _records_of_ours(root)):
        with contextlib.suppress(OtherSchema):
            for record in read_records(file):
                uuid, change = record.facts.get("uuid"), record.facts.get("change")
                if record.kind in ("array_stopped", "write_cache_restored"):
                    undone.update(name for name in (uuid, change) if isinstance(name, str))
                elif record.kind == "array_planned" and isinstance(uuid, str):
                    arrays[uuid] = _planned(uuid, record, file.parent)
                elif record.kind == "write_cache_planned" and (left := _switched(record.facts, file.parent)):
                    caches.setdefault(left.change, left)
    return LeftBehind(
        tuple(array for uuid, array in arrays.items() if uuid not in undone),
        tuple(left for change, left in caches.items() if change not in undone),
    )


def _records_of_ours(root: Path) -> list[Path]:
    """Return the records files of all own run folders below ``root``, and of the bays of fleets among them.

    If ``root`` is the ``bays`` of a fleet, other runs are beside that fleet.
    """
    own = fleet.fleet_of(root)
    files = [each / RECORDS for folder in _ours_below(own.parent if own else root) for each in (folder, *_bays(folder))]
    return [file for file in files if file.is_file() and not file.is_symlink()]


def _bays(folder: Path) -> list[Path]:
    """Return the bays of a fleet; none of a merged one, as its copies may be of runs of other users."""
    bays = folder / fleet.BAYS
    return _ours_below(bays) if safe_files.is_ours(bays) and not fleet.is_merged(folder) else []


def _ours_below(folder: Path) -> list[Path]:
    return [each for each in sorted(folder.iterdir()) if safe_files.is_ours(each)] if folder.is_dir() else []


def _planned(uuid: str, record: Record, folder: Path) -> ArrayLeftBehind:
    device, machine_id = (record.fact(name, str, "") for name in ("device", "machine_id"))
    return ArrayLeftBehind(uuid, device, record.fact("members", tuple[str, ...], ()), machine_id, folder)


def _switched(facts: Mapping[str, object], folder: Path) -> CacheLeftSwitched | None:
    """Return a planned change of a write cache; None if the record is damaged."""
    change, drive, was = (facts.get(name) for name in ("change", "drive", "was"))
    if not isinstance(change, str) or not isinstance(drive, str) or was not in ("on", "off"):
        return None
    name, machine_id = (str(facts.get(each, "")) for each in ("name", "machine_id"))
    listed = facts.get("names")
    names = frozenset(each for each in listed if isinstance(each, str)) if isinstance(listed, list) else frozenset()
    return CacheLeftSwitched(change, drive, safe_text.line(name), str(was), machine_id, folder, names)


def _begins_session(line: bytes, file: Path) -> bool:
    record = _parse(line, file)
    return record is not None and record.kind in BEGINNINGS


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


@frozen
class Judged(Evidence):
    """A verdict or an observation of a test."""

    #: Id of the test.
    test: str = ""
    #: UTC, ISO 8601; empty before it is recorded.
    time: str = ""
    #: A failed verdict whose test was expected to fail.
    is_expected: bool = False

    @property
    def subject(self) -> tuple[object, ...]:
        """What it is about: equal of two if the later one replaces the earlier one."""
        return self.test, *self.identity

    @classmethod
    def of(cls, test: str, evidence: Evidence, time: str = "", *, is_expected: bool = False) -> Judged:
        """Return the evidence as that of a test."""
        own: dict[str, Any] = shallow(evidence)
        return cls(**own, test=test, time=time, is_expected=is_expected)

    @classmethod
    def read(cls, record: Record) -> Judged | None:
        """Return the content of a record; None if it is damaged."""
        try:
            found = of_facts(record.facts)
        except ValueError:
            return None
        return cls.of(record.test, found, record.time, is_expected=record.facts.get(EXPECTED) is True)

    def replaces(self, damaged: Record) -> bool:
        """Return whether an earlier record, of which only some keys may be readable, was about the same."""
        own = plain(self)
        own["group"] = damaged.facts.get("group") if self.about is About.SEARCH else self.group
        return all(
            damaged.facts.get(name) == own[name] for name in ("test", "claim", "geometries", "workloads", "group")
        )


@dataclass(frozen=True)
class RunReader:
    """Manifest and records of a run folder, read once. ``cached_property`` needs a ``__dict__``, hence no slots."""

    folder: Path
    #: ``UNREADABLE`` if it is missing or damaged.
    manifest: Manifest
    #: All, in the order in which they were written.
    records: tuple[Record, ...]

    @classmethod
    def read(cls, folder: Path, *kinds: str) -> RunReader:
        """Read all records or those of some kinds; ``OSError`` without records or with another schema."""
        return cls(folder, _manifest(folder), tuple(read_records(folder, *kinds)))

    def of(self, *kinds: str) -> tuple[Record, ...]:
        """Return the records of these kinds, in order."""
        return tuple(record for record in self.records if record.kind in kinds)

    def contents(self, kind: type[RecordT], *kinds: str) -> Iterator[RecordT]:
        """Yield the records of these kinds as the dataclass that was written; damaged ones are left out."""
        for record in self.of(*kinds):
            with contextlib.suppress(ValueError):
                yield record.content(kind)

    @cached_property
    def judged(self) -> tuple[Judged, ...]:
        """Each verdict and observation once, with its last result, in the order of those.

        A test that was run again, here or in a resumed session, replaces its earlier verdict. Damaged ones
        (``unreadable``) are left out.
        """
        return self._evidence[0]

    @cached_property
    def unreadable(self) -> int:
        """Number of damaged records without which the run could look better than it is."""
        return self._evidence[1] + sum(record.is_damaged for record in self.records)

    @cached_property
    def _evidence(self) -> tuple[tuple[Judged, ...], int]:
        """The verdicts and observations, and the number of damaged ones that no later one replaces."""
        found: dict[tuple[object, ...], Judged] = {}
        damaged: list[Record] = []
        for record in self.of(*JUDGED):
            if each := Judged.read(record):
                found.pop(each.subject, None)
                found[each.subject] = each
                damaged = [other for other in damaged if not each.replaces(other)]
            else:
                damaged.append(record)
        return tuple(found.values()), len(damaged)

    def wrongs(self) -> Iterator[str]:
        """Yield what a run left behind, a sentence each."""
        yield from self._still_running()
        yield from self._arrays_left_running()
        yield from self.caches_left()

    def _still_running(self) -> list[str]:
        """Return work that must finish and was running when the last session ended."""
        found: list[str] = []
        for record in self.of(RESUMED, "still_running"):
            if record.kind == RESUMED:
                found.clear()
            else:
                found.append(str(record.facts.get("sentence")))
        return found

    def _arrays_left_running(self) -> Iterator[str]:
        """Yield the arrays that could not be stopped until the end."""
        last = {str(record.facts.get("uuid")): record for record in self.of("array_left", "array_stopped")}
        for record in last.values():
            device, why = (record.facts.get(name) for name in ("device", "why"))
            if record.kind == "array_left" and why:
                yield f"{device} still runs, and the next run that tests its drives stops it: {why}"

    def caches_left(self) -> Iterator[str]:
        """Yield what went wrong with write caches that the run switched."""
        for record in self.last_of_caches().values():
            if record.kind == "write_cache_left" or record.facts.get("lost") is True:
                yield str(record.facts.get("sentence"))

    def last_of_caches(self) -> dict[str, Record]:
        """Return the last record of each change of a write cache that ended."""
        return {str(each.facts.get("change")): each for each in self.of("write_cache_restored", "write_cache_left")}

    def failed_drives(self) -> Iterator[tuple[str, str]]:
        """Yield the serial number of each drive that failed under the load, and the id of the test that reported it."""
        for each in self.judged:
            if each.claim == health.FAILED:
                yield from ((part.name, each.test) for part in each.members)


def _manifest(folder: Path) -> Manifest:
    try:
        return Manifest.read(folder)
    except OtherSchema:
        raise
    except (OSError, ValueError):
        return UNREADABLE
