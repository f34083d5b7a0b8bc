"""News of a bay from a worker's process to the controller's, through a file of the run folder that stays small.

It is for people who watch, and no evidence: its name begins with a dot, nothing in it has to arrive, and when it has
grown to ``LIMIT_BYTES`` it begins anew with the last state. A disk that is full, or a file that is gone, is no error.
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

from pytest_ssdqual.qual import progress_events, strict_json
from pytest_ssdqual.qual.progress_events import Looked, News
from pytest_ssdqual.report.run_folder import safe_files

#: Some minutes of one a second: a controller reads once a minute at least.
LIMIT_BYTES = 64 << 10
#: What a controller reads at once; a file of ours is never so long.
MOST_BYTES = 1 << 20
#: Looks that are told again when the file begins anew.
LOOKS = 20
PREFIX, SUFFIX = ".live-", ".jsonl"


@dataclass(slots=True)
class SpoolWriter:
    """A worker's end. Threads may share it."""

    folder: Path
    worker: str
    limit_bytes: int = LIMIT_BYTES
    #: One for all processes of this computer.
    clock: Callable[[], float] = time.monotonic
    _number: int = 0
    _size: int = 0
    #: The last line of each kind.
    _state: dict[type[News], bytes] = field(default_factory=dict)
    _looks: deque[bytes] = field(default_factory=lambda: deque(maxlen=LOOKS))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def path(self) -> Path:
        return self.folder / f"{PREFIX}{self.worker}{SUFFIX}"

    def tell(self, told: News) -> None:
        """One line more; never raises."""
        with self._lock, contextlib.suppress(OSError):
            self._number += 1
            record = {"number": self._number, "at_s": self.clock(), **progress_events.to_record(told)}
            data = json.dumps(record, separators=(",", ":")).encode() + b"\n"
            if isinstance(told, Looked):
                self._looks.append(data)
            else:
                # What comes later overtakes: a state is told in the order in which it came to be.
                self._state.pop(type(told), None)
                self._state[type(told)] = data
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
        lines: list[bytes] = [*self._looks, *self._state.values()]
        lines.sort(key=_number_of)
        data = b"".join(lines)
        part = self.path.with_suffix(".part")
        with open(safe_files.create(part, replace=True), "wb") as file:  # noqa: PTH123 (a descriptor)
            file.write(data)
        part.replace(self.path)
        self._size = len(data)


@dataclass(slots=True)
class SpoolReader:
    """The controller's end: what is new in the spools of all workers."""

    folder: Path
    #: Of each file: which it is, how far it was read, and the number of the last news.
    _places: dict[Path, tuple[int, int, int]] = field(default_factory=dict)

    def poll(self) -> Iterator[tuple[str, News, float]]:
        """Worker, what it told, and when by the monotonic clock; never raises."""
        for path in sorted(self.folder.glob(f"{PREFIX}*{SUFFIX}")):
            with contextlib.suppress(OSError):
                worker = path.name.removeprefix(PREFIX).removesuffix(SUFFIX)
                for told, at_s in self._new(path):
                    yield worker, told, at_s

    def remove(self) -> None:
        """At the end of a run nobody watches any more."""
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
        # The next number is kept before anything is given away: whoever stops in between does not get it twice.
        found = [each for each in map(_parsed, whole.splitlines()) if each and each[0] > last]
        last = max([last, *(number for number, _, _ in found)])
        self._places[path] = (inode, offset + len(whole), last)
        yield from ((told, at_s) for _, told, at_s in found)


def _parsed(line: bytes) -> tuple[int, News, float] | None:
    try:
        record = dict(strict_json.table(strict_json.read_json(line)))
        number, at_s = strict_json.count(record, "number"), strict_json.number(record.get("at_s"))
        told = {name: value for name, value in record.items() if name not in ("number", "at_s")}
        return number, progress_events.from_record(told), at_s
    except ValueError:
        return None


def _number_of(line: bytes) -> int:
    found = _parsed(line)
    return found[0] if found else 0
