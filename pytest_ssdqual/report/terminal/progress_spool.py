"""Progress log: events from a worker's process to the controller, through a small file of the run folder.

The log is no evidence: its name begins with a dot, and events may be lost. At ``LIMIT_BYTES`` it is written anew with
the latest state. A full disk or a missing file is no error.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pytest_ssdqual.qual import strict_json
from pytest_ssdqual.qual.progress_events import KINDS, Looked, News
from pytest_ssdqual.qual.records import from_plain, plain
from pytest_ssdqual.report.run_folder import safe_files

#: Some minutes of one event a second; a controller reads at least once a minute.
LIMIT_BYTES = 64 << 10
#: Maximum size of a read; a progress log is smaller.
MOST_BYTES = 1 << 20
#: Number of interim analyses that are retained when the file is written anew.
LOOKS = 20
PREFIX, SUFFIX = ".live-", ".jsonl"


@dataclass(slots=True)
class SpoolWriter:
    """Writer of a worker's progress log; thread-safe."""

    folder: Path
    worker: str
    limit_bytes: int = LIMIT_BYTES
    #: Monotonic clock, common to all processes of the controller.
    clock: Callable[[], float] = time.monotonic
    _number: int = 0
    _size: int = 0
    #: The last line of each kind, and those of interim analyses, each with its number.
    _state: dict[type[News], tuple[int, bytes]] = field(default_factory=dict)
    _looks: deque[tuple[int, bytes]] = field(default_factory=lambda: deque(maxlen=LOOKS))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def path(self) -> Path:
        return self.folder / f"{PREFIX}{self.worker}{SUFFIX}"

    def write(self, event: News) -> None:
        """Append an event; never raises."""
        with self._lock, contextlib.suppress(OSError):
            self._number += 1
            record = {
                "number": self._number,
                "at_s": self.clock(),
                "event": type(event).__name__,
                "fields": plain(event),
            }
            data = json.dumps(record, separators=(",", ":")).encode() + b"\n"
            if isinstance(event, Looked):
                self._looks.append((self._number, data))
            else:
                self._state[type(event)] = self._number, data
            if self._number == 1 or self._size + len(data) > self.limit_bytes:
                self._begin_anew()
            else:
                self._append(data)

    def _append(self, data: bytes) -> None:
        descriptor = safe_files.open_regular(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            self._size += os.write(descriptor, data)
        finally:
            os.close(descriptor)

    def _begin_anew(self) -> None:
        data = b"".join(line for _, line in sorted([*self._looks, *self._state.values()]))
        part = self.path.with_suffix(".part")
        with open(safe_files.create(part, replace=True), "wb") as file:  # noqa: PTH123 (a descriptor)
            file.write(data)
        part.replace(self.path)
        self._size = len(data)


@dataclass(slots=True)
class SpoolReader:
    """Reader of the progress logs of all workers."""

    folder: Path
    #: Inode, offset and number of the last event of each file.
    _places: dict[Path, tuple[int, int, int]] = field(default_factory=dict)

    def poll(self) -> Iterator[tuple[str, News, float]]:
        """Yield worker, event and time by the monotonic clock; never raises."""
        for path in sorted(self.folder.glob(f"{PREFIX}*{SUFFIX}")):
            with contextlib.suppress(OSError):
                worker = path.name.removeprefix(PREFIX).removesuffix(SUFFIX)
                for event, at_s in self._new(path):
                    yield worker, event, at_s

    def remove(self) -> None:
        """Remove the logs: at the end of a run, and those of a killed session before workers begin."""
        for path in self.folder.glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                path.unlink()

    def _new(self, path: Path) -> Iterator[tuple[News, float]]:
        descriptor = safe_files.open_regular(path)
        try:
            inode = os.fstat(descriptor).st_ino
            known, offset, last = self._places.get(path, (inode, 0, 0))
            if known != inode:
                offset = 0
            data = os.pread(descriptor, MOST_BYTES, offset)
        finally:
            os.close(descriptor)
        whole = data[: data.rfind(b"\n") + 1]
        # The position is stored before the first event is yielded, so that a caller that stops gets no event twice.
        found = [each for each in map(_parsed, whole.splitlines()) if each and each[0] > last]
        last = max([last, *(number for number, _, _ in found)])
        self._places[path] = (inode, offset + len(whole), last)
        yield from ((event, at_s) for _, event, at_s in found)


def _parsed(line: bytes) -> tuple[int, News, float] | None:
    try:
        record = dict(strict_json.table(strict_json.read_json(line)))
        number, at_s = strict_json.count(record, "number"), strict_json.number(record.get("at_s"))
        return number, from_plain(KINDS[str(record.get("event"))], record.get("fields")), at_s
    except (KeyError, ValueError):
        return None
