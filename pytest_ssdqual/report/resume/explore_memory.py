"""What searches have found, kept from one run to the next: a small JSON file for each drive model, firmware and spec.

It only says where a search begins; nothing is judged by it. So it is read with suspicion and written with patience: a
file that cannot be read is as good as none, unless it has another schema (``OtherSchema``); what cannot be kept is told
and no error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_ssdqual.qual import strict_json
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.journal import SCHEMA, OtherSchema, require_schema
from pytest_ssdqual.rig.machine.machine import utc_now

#: The latest of so many are kept: each costs the next search a measurement.
MOST = 20
#: More than that is no file of ours.
MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class SearchSubject:
    """Whose findings they are."""

    model: str
    firmware: str
    #: Its name.
    spec: str

    @property
    def file_name(self) -> str:
        """Readable as far as a model is, and different for different subjects."""
        digest = hashlib.sha256("\0".join((self.model, self.firmware, self.spec)).encode("utf-8", "surrogatepass"))
        readable = re.sub(r"[^A-Za-z0-9]+", "-", f"{self.model} {self.spec}")[:60].strip("-").lower()
        return f"{readable or 'drive'}-{digest.hexdigest()[:16]}.json"


@dataclass(frozen=True, slots=True)
class Remembered:
    """A workload that broke a promise, and did so again when measured anew."""

    workload: Workload
    claim: str
    #: On which array, by name.
    geometry: str
    #: Whether nothing simpler next to it broke one.
    is_simplest: bool
    #: Name of the run folder.
    run: str
    time: str = ""


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of such files; made when there is something to keep."""

    folder: Path

    def recall(self, subject: SearchSubject) -> tuple[Remembered, ...]:
        """The latest first; empty where nothing is known, or nothing that can be read. ``OtherSchema``."""
        path = self.folder / subject.file_name
        try:
            with open(safe_files.open_regular(path), "rb") as file:  # noqa: PTH123
                content = strict_json.table(strict_json.read_json(file.read(MOST_BYTES)))
            require_schema(path, strict_json.count(content, "schema"))
            if content["subject"] != _subject_record(subject):
                return ()
            return tuple(map(_of_record, strict_json.array(content["found"])))
        except OtherSchema:
            raise
        except (OSError, KeyError, ValueError):
            return ()

    def keep(self, subject: SearchSubject, found: Remembered) -> None:
        """Put it first; ``OSError`` if that cannot be."""
        known = [each for each in self.recall(subject) if each.workload != found.workload]
        self._write(subject, [replace(found, time=utc_now()), *known][:MOST])

    def forget(self, subject: SearchSubject, workload: Workload) -> None:
        """It keeps its promises now; ``OSError`` as ``keep``."""
        known = self.recall(subject)
        if left := [each for each in known if each.workload != workload]:
            self._write(subject, left)
        elif known:
            (self.folder / subject.file_name).unlink(missing_ok=True)

    def _write(self, subject: SearchSubject, found: Sequence[Remembered]) -> None:
        if not self.folder.exists():
            safe_files.make_root(self.folder.parent)
            with contextlib.suppress(FileExistsError):
                safe_files.make_folder(self.folder)
        safe_files.require_ours(self.folder)
        content = {
            "schema": SCHEMA,
            "subject": _subject_record(subject),
            "found": [_record(each) for each in found],
        }
        path = self.folder / subject.file_name
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        with open(safe_files.create(part, replace=True), "wb") as file:  # noqa: PTH123 (a descriptor)
            file.write(json.dumps(content, indent=2).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)


def _subject_record(subject: SearchSubject) -> dict[str, str]:
    return {"model": subject.model, "firmware": subject.firmware, "spec": subject.spec}


def _record(found: Remembered) -> dict[str, object]:
    return {
        "workload": str(found.workload),
        "asked": found.workload.to_record(),
        "claim": found.claim,
        "geometry": found.geometry,
        "is_simplest": found.is_simplest,
        "run": found.run,
        "time": found.time,
    }


def _of_record(value: object) -> Remembered:
    record: Mapping[str, object] = strict_json.table(value)
    texts = {name: str(record[name]) for name in ("claim", "geometry", "run", "time")}
    workload = Workload.from_record(strict_json.table(record["asked"]))
    return Remembered(workload=workload, is_simplest=record["is_simplest"] is True, **texts)
