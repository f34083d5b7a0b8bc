"""The journal: the writer of a run folder.

Files are only added and lines only appended, by any number of processes at once, so that everything written before a
crash or a full disk stays readable. The folder belongs to the user alone (``report.run_folder.safe_files``). The format
is in docs/run-folder.md.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import json
import math
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from pytest_ssdqual.qual import safe_text, strict_json
from pytest_ssdqual.qual.records import RecordT, from_plain, plain
from pytest_ssdqual.report.run_folder import checksums, safe_files, transcript
from pytest_ssdqual.report.run_folder.checksums import SUMS
from pytest_ssdqual.report.run_folder.transcript import ROTATE_BYTES, TRANSCRIPT
from pytest_ssdqual.rig.machine.machine import Completed, RigError, utc_now
from pytest_ssdqual.rig.resume import checkpoint
from pytest_ssdqual.rig.resume.checkpoint import Checkpoint

#: Schema of records, transcript, manifest and ``fleet.json``. Readers refuse another one.
SCHEMA = 3
RECORDS, MANIFEST, CHECKPOINT = "records.jsonl", "manifest.json", "checkpoint.json"
#: A checkpoint of 64 drives is 20 KB.
MOST_CHECKPOINT_BYTES = 1 << 20
#: A longer time between two records may be a clock that was set: the time of day does not tell. Passes of a fill, the
#: longest steps of most runs, take hours.
LONGEST_STEP_S = 86_400.0
#: Output of a command up to this size is written into the transcript itself.
INLINE_BYTES = 4096


class OtherSchema(OSError):
    """A file of another schema, which this version cannot read."""


def require_schema(path: Path, found: object) -> None:
    """Raise ``OtherSchema`` unless ``found`` is ``SCHEMA``."""
    if found != SCHEMA:
        schema = safe_text.line(str(found), 40)
        raise OtherSchema(f"{path} has schema {schema}, and this version of pytest-ssdqual reads schema {SCHEMA} only")


def read_document(kind: type[RecordT], path: Path, content: object) -> RecordT:
    """Return the dataclass of a document with a schema; ``ValueError``, or ``OtherSchema``."""
    found = dict(strict_json.table(content))
    if "schema" not in found:
        raise ValueError(f"this is no {kind.__name__}: it has no schema")
    require_schema(path, found.pop("schema"))
    return from_plain(kind, found)


def load(kind: type[RecordT], path: Path, most_bytes: int) -> RecordT:
    """Return the dataclass of a file with a schema; ``OSError``, ``OtherSchema`` or ``ValueError``."""
    with open(safe_files.open_regular(path), "rb") as file:  # noqa: PTH123 (a descriptor)
        return read_document(kind, path, strict_json.read_json(file.read(most_bytes)))


def document(record: object) -> bytes:
    """Return the text of such a file, which people can read, too."""
    text = json.dumps({"schema": SCHEMA, **plain(record)}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return safe_text.json_text(text).encode()


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """Return the array that the run has left, and its state; None if there is none, or the file is damaged."""
    try:
        return load(Checkpoint, folder / CHECKPOINT, MOST_CHECKPOINT_BYTES)
    except (OSError, ValueError):
        return None


class JournalError(RigError):
    """Evidence cannot be stored: the run folder is full, missing or not writable."""

    ends_run = True


@dataclass(slots=True)
class Journal:
    """A process's writer of a run folder; thread-safe."""

    path: Path
    #: Distinguishes the lines and files of several processes: ``main``, ``gw0``.
    writer: str = "main"
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    #: Digest → the file a command's output was spilled to, so that ``keep`` need not store it twice.
    _spilled: dict[str, Path] = field(default_factory=dict)
    _pending: list[JournalError] = field(default_factory=list)
    #: Size at which the transcript is emptied into a packed file.
    rotate_bytes: int = ROTATE_BYTES
    #: Inode of the folder, by which a replaced folder is detected.
    _inode: int = 0
    #: A clock that is never set.
    clock: Callable[[], float] = time.monotonic
    #: The last record, by ``clock``.
    _noted_s: float = math.inf
    #: Held during each write, and while the folder is sealed.
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _is_sealed: bool = False

    def __post_init__(self) -> None:
        self._inode = self.path.lstat().st_ino

    @classmethod
    def create(cls, root: Path, run_id: str) -> Journal:
        """Create a run folder ``<utc>-<start of run_id>`` below ``root``; ``JournalError`` if that fails."""
        return cls.create_at(root / folder_name(run_id))

    @classmethod
    def create_at(cls, path: Path) -> Journal:
        """Create a run folder with a given name."""
        try:
            safe_files.make_root(path.parent)
            for folder in (path, *(path / name for name in ("fio", "health", "transcript"))):
                safe_files.make_folder(folder)
            for name in (RECORDS, TRANSCRIPT):
                os.close(safe_files.create(path / name))
            safe_files.sync(path)
            safe_files.sync(path.parent)
        except OSError as error:
            refuse(path, error)
        return cls(path)

    @classmethod
    def open(cls, path: Path, writer: str = "main") -> Journal:
        """Return a writer of an existing run folder; ``JournalError`` if there is none.

        A folder that other users can write to is refused, because they could redirect what is written.
        """
        if not (path / RECORDS).is_file():
            raise JournalError(f"{path} is not a run folder: it has no {RECORDS}")
        try:
            safe_files.require_ours(path)
            last = transcript.last_number(path, writer)
        except OSError as error:
            refuse(path, error)
        return cls(path, writer, itertools.count(1 + last))

    def unseal(self) -> None:
        """Remove the seal of a folder that is written again. Harmless without one."""
        self._require_in_place()
        _remove(self.path / SUMS)
        self._is_sealed = False

    def note(self, kind: str, **facts: object) -> None:
        """Append a record; it is on disk when this returns, else ``JournalError`` was raised."""
        with self._writing():
            head = {"schema": SCHEMA, "kind": kind, "time": utc_now(), "writer": self.writer}
            now_s = self.clock()
            since_s, self._noted_s = now_s - self._noted_s, now_s
            since = {"since_last_s": since_s} if since_s > LONGEST_STEP_S else {}
            _append(self.path / RECORDS, {**head, **facts, **head, **since})
            if checkpoint.concerns(kind, facts):
                self._write_checkpoint(kind, facts)
            self._raise_pending()

    def keep(self, name: str, data: bytes, folder: str = "fio") -> str:
        """Store raw evidence and return its name in the run folder.

        A name in use gets a number (``run-2.json.gz``), so that repeats do not overwrite each other. Characters that
        are invalid in file names (blanks of serial numbers, slashes of models) become ``_``. ``JournalError`` if it
        cannot be stored whole; then nothing of it remains.
        """
        with self._writing():
            path = _claim(self.path / folder, name)
            spilled = self._spilled.pop(hashlib.sha256(data).hexdigest(), None)
            if spilled is None or not _link(spilled, path):
                _replace(path, data)
            self._raise_pending()
            return path.relative_to(self.path).as_posix()

    def write_manifest(self, record: Mapping[str, object]) -> None:
        """Replace ``manifest.json`` atomically."""
        with self._writing():
            _replace(self.path / MANIFEST, document(record))

    def transcribe(self, machine_name: str) -> Callable[[Completed], None]:
        """Return an observer that records every command run on this machine.

        The observer never raises: it is also called during clean-up, where a full disk must not prevent an array from
        being stopped. The next ``note`` or ``keep`` raises its error.
        """

        def observe(completed: Completed) -> None:
            try:
                self._transcribe(machine_name, completed)
            except JournalError as error:
                self._pending.append(error)

        return observe

    def seal(self) -> None:
        """Write ``SHA256SUMS`` over all files, as the last action in a run folder.

        Foreign files are listed, too; links are not followed. Afterwards this process writes nothing until ``unseal``.
        """
        with self._lock:
            self._require_in_place()
            try:
                text = checksums.text(self.path)
            except OSError as error:
                refuse(self.path, error)
            _replace(self.path / SUMS, text)
            self._is_sealed = True

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Keep the folder from being sealed during a write; raise ``JournalError`` if it was sealed or replaced.

        Ctrl-C seals the folders of bays that daemon threads are still opening. What these wrote afterwards would not be
        as the seal lists it, and readers would report a damaged folder.
        """
        with self._lock:
            if self._is_sealed:
                raise JournalError(f"evidence cannot be stored in {self.path}: the folder has been sealed")
            self._require_in_place()
            yield

    def _require_in_place(self) -> None:
        """Raise ``JournalError`` if another folder or a link has replaced the run folder."""
        try:
            found = self.path.lstat()
        except OSError as error:
            refuse(self.path, error)
        if found.st_ino != self._inode or not stat.S_ISDIR(found.st_mode):
            raise JournalError(f"evidence cannot be stored in {self.path}: another folder has replaced it")

    def _write_checkpoint(self, kind: str, facts: Mapping[str, object]) -> None:
        """Replace ``checkpoint.json`` by the state after this event; without the file nothing can be re-adopted."""
        path, before = self.path / CHECKPOINT, read_checkpoint(self.path)
        state = checkpoint.after(before, kind, plain(facts))
        if state is None:
            _remove(path)
        elif state != before:
            _replace(path, document(state))

    def _transcribe(self, machine_name: str, completed: Completed) -> None:
        with self._writing():
            number = next(self._numbers)
            line = {
                "schema": SCHEMA,
                "number": number,
                "writer": self.writer,
                "machine": machine_name,
                "argv": list(completed.argv),
                "status": completed.status,
                "started": completed.started,
                "elapsed_s": completed.elapsed_s,
            }
            for name, data in (("stdout", completed.stdout), ("stderr", completed.stderr)):
                if len(data) <= INLINE_BYTES:
                    line[name] = data.decode("utf-8", "backslashreplace")
                else:
                    line[f"{name}_file"] = self._spill(f"{self.writer}-{number}.{name.removeprefix('std')}", data)
            _append(self.path / TRANSCRIPT, line, limit_bytes=self.rotate_bytes)

    def _spill(self, name: str, data: bytes) -> str:
        path = _claim(self.path / "transcript", name)
        _replace(path, data)
        self._spilled = {hashlib.sha256(data).hexdigest(): path}
        return path.relative_to(self.path).as_posix()

    def _raise_pending(self) -> None:
        if self._pending:
            first, self._pending = self._pending[0], []
            raise first


def folder_name(run_id: str) -> str:
    """Return ``<utc>-<start of run_id>`` for a new folder; names sort by time."""
    short = re.sub(r"[^A-Za-z0-9]", "", run_id)[:8] or "run"
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{short}"


def _append(path: Path, record: Mapping[str, object], *, limit_bytes: int | None = None) -> None:
    """Append a line in one write to a file that is opened for appending and locked, for threads and processes.

    A full disk takes half a line: it is removed again. A writer that died may have left one: it is ended first, so that
    only that line is lost. Without the lock, a line that another process is writing would look like half a line. The
    line is on disk when this returns, unless the file is emptied at ``limit_bytes``.
    """
    line = json.dumps(plain(record), ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"
    data = safe_text.json_text(line).encode()
    try:
        # Not O_CREAT: lines in a folder that was deleted or unmounted would be lost.
        descriptor = safe_files.open_regular(path, os.O_RDWR | os.O_APPEND)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if limit_bytes:
                transcript.make_room(path, descriptor, len(data), limit_bytes)
            end = os.lseek(descriptor, 0, os.SEEK_END)
            if end and os.pread(descriptor, 1, end - 1) != b"\n":
                data = b"\n" + data
            written = os.write(descriptor, data)
            if written < len(data):  # a full disk takes what fits, and only the next write fails
                try:
                    os.write(descriptor, data[written:])
                    raise JournalError(f"{path} could not be written in one piece")
                finally:
                    os.ftruncate(descriptor, end)
            if not limit_bytes:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        refuse(path, error)


def _claim(folder: Path, name: str) -> Path:
    """Create an empty file of this name, or of this name with a number, safely among concurrent writers."""
    name = safe_files.file_name(name)
    stem, dot, suffix = name.partition(".")
    try:
        if not folder.exists():
            with contextlib.suppress(FileExistsError):
                safe_files.make_folder(folder)
        for number in itertools.count(1):
            path = folder / (name if number == 1 else f"{stem}-{number}{dot}{suffix}")
            try:
                os.close(safe_files.create(path))
            except FileExistsError:
                continue
            return path
    except OSError as error:
        refuse(folder / name, error)
    raise RuntimeError("unreachable: itertools.count has no end")


def _replace(path: Path, data: bytes) -> None:
    """Write a file's content, whole or not at all."""
    try:
        safe_files.write_whole(path, data)
        safe_files.sync(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            if path.stat().st_size == 0:  # only claimed
                path.unlink()
        refuse(path, error)


def _remove(path: Path) -> None:
    """Remove a file, if it is there; it is gone from the disk when this returns."""
    try:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
            safe_files.sync(path.parent)
    except OSError as error:
        refuse(path.parent, error)


def _link(source: Path, path: Path) -> bool:
    """Make ``path`` a hard link to ``source``; False if the file system has none."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.hardlink_to(source)
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        return False
    return True


def refuse(path: Path, error: OSError) -> NoReturn:
    """Raise ``JournalError`` with the system's message."""
    raise JournalError(f"evidence cannot be stored in {path}: {error.strerror or error}") from error
