"""A run folder as its readers want it: what it is about, what happened, and what was judged of it in the end.

The rule of the module: it reads what is there. A folder that is damaged, unfinished or from an older version tells
less, and that is no error; only a folder without records is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_ssdqual.qual import strict_json
from pytest_ssdqual.report.evidence import evidence
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.run_folder.journal import MANIFEST
from pytest_ssdqual.report.run_folder.reader import Record, read_records

#: Kinds of records that hold evidence.
JUDGED = ("verdict", "observation")
#: What the first versions did not write.
OLDER: Mapping[str, object] = {
    "about": "run",
    "group": "",
    "published": None,
    "members": [],
    "worst": "",
    "points": [],
    "remarks": [],
}


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, or a figure of which nothing is promised, as it counts in the end."""

    #: Id of the test.
    test: str
    #: UTC, ISO 8601.
    time: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Story:
    """A run folder, read once."""

    folder: Path
    #: Empty if there is none yet, or none that can be read.
    manifest: Mapping[str, object]
    #: All, in the order in which they were written.
    records: tuple[Record, ...]

    @classmethod
    def read(cls, folder: Path, *kinds: str) -> Story:
        """With all records, or those of some kinds only. ``OSError`` if there are no records."""
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
        """How many verdicts count and cannot be read: a newer version may have written them."""
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
        found = evidence.from_record({**OLDER, **record.facts})
    except ValueError:
        return None
    return Judged(str(record.facts.get("test", "")), record.time, found)


def _manifest(folder: Path) -> Mapping[str, object]:
    try:
        return dict(strict_json.table(strict_json.read_json((folder / MANIFEST).read_bytes())))
    except (OSError, ValueError):
        return {}
