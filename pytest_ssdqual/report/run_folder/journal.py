"""The run folder: what a run leaves behind, written while it happens.

The rule of the module: files are only added and lines only appended, by any number of processes at once, so that
whatever was written before a crash or a full disk stays readable. It is ours alone (``report.run_folder.safe_files``).
What is in the folder: docs/run-folder.md.
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.run_folder import checksums, safe_files, transcript
from pytest_ssdqual.report.run_folder.checksums import SUMS
from pytest_ssdqual.report.run_folder.transcript import ROTATE_BYTES, TRANSCRIPT
from pytest_ssdqual.rig.machine.machine import Completed, RigError, utc_now

#: Schema of all that is in a run folder: lines of the record and the transcript, the manifest, ``fleet.json``. Another
#: one is not read.
SCHEMA = 1
RECORDS, MANIFEST = "records.jsonl", "manifest.json"
#: Output of a command up to this size is written into the transcript itself.
INLINE_BYTES = 4096


class OtherSchema(OSError):
    """A file of another schema: this version cannot read it."""


def require_schema(path: Path, found: object) -> None:
    """``OtherSchema`` unless what was found in this file is ``SCHEMA``."""
    if found != SCHEMA:
        schema = safe_text.line(str(found), 40)
        raise OtherSchema(f"{path} has schema {schema}, and this version of pytest-ssdqual reads schema {SCHEMA} only")


class JournalError(RigError):
    """Evidence cannot be kept: the run folder is full, gone or not writable."""


@dataclass(slots=True)
class Journal:
    """One process's pen for a run folder. Threads may share it."""

    path: Path
    #: Tells the lines and files of several processes apart: ``main``, ``gw0``.
    writer: str = "main"
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    #: Digest → the file a command's output was spilled to, so that ``keep`` need not store it twice.
    _spilled: dict[str, Path] = field(default_factory=dict)
    _pending: list[JournalError] = field(default_factory=list)
    #: Size at which the transcript is emptied into a packed file.
    rotate_bytes: int = ROTATE_BYTES
    #: The folder itself: what was put in its place is another one.
    _inode: int = 0

    def __post_init__(self) -> None:
        self._inode = self.path.lstat().st_ino

    @classmethod
    def create(cls, root: Path, run_id: str) -> Journal:
        """A new run folder ``<utc>-<start of run_id>`` below ``root``; ``JournalError`` if that cannot be."""
        return cls.create_at(root / folder_name(run_id))

    @classmethod
    def create_at(cls, path: Path) -> Journal:
        """``create`` with a name that somebody chose."""
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
        """A pen for a folder that another process created, now or long ago; ``JournalError`` if there is none.

        Nor if it is not ours alone: what others could put there would be written to.
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
        """Take the seal off a folder that is written again: it would not be true any more. Harmless without one."""
        self._require_in_place()
        try:
            (self.path / SUMS).unlink(missing_ok=True)
            safe_files.sync(self.path)
        except OSError as error:
            refuse(self.path, error)

    def note(self, kind: str, **facts: object) -> None:
        """Append one event to the record; it is on disk when this returns, or ``JournalError`` was raised."""
        self._require_in_place()
        head = {"schema": SCHEMA, "kind": kind, "time": utc_now(), "writer": self.writer}
        _append(self.path / RECORDS, {**head, **facts, **head})
        self._raise_pending()

    def keep(self, name: str, data: bytes, folder: str = "fio") -> str:
        """Store raw evidence and return its name in the run folder.

        A name that is taken gets a number (``run-2.json.gz``): repeats must not overwrite each other. Characters
        that do not belong into a file name (serial numbers have blanks, models have slashes) become ``_``.
        ``JournalError`` if it cannot be stored whole; then nothing of it is left.
        """
        self._require_in_place()
        path = _claim(self.path / folder, name)
        spilled = self._spilled.pop(hashlib.sha256(data).hexdigest(), None)
        if spilled is None or not _link(spilled, path):
            _replace(path, data)
        self._raise_pending()
        return path.relative_to(self.path).as_posix()

    def write_manifest(self, record: Mapping[str, object]) -> None:
        """Write ``manifest.json`` anew; the old one stays until the new one is whole."""
        self._require_in_place()
        text = json.dumps(_plain(record), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        _replace(self.path / MANIFEST, safe_text.json_text(text).encode())

    def transcribe(self, machine_name: str) -> Callable[[Completed], None]:
        """An observer that writes down every command run on this machine.

        It never raises: it is called in the middle of clean-up too, where a full disk must not keep an array from
        being stopped. The next ``note`` or ``keep`` raises what went wrong here.
        """

        def observe(completed: Completed) -> None:
            try:
                self._transcribe(machine_name, completed)
            except JournalError as error:
                self._pending.append(error)

        return observe

    def seal(self) -> None:
        """Write ``SHA256SUMS`` over all files, for ``sha256sum --check``. The last thing done in a run folder.

        Files that somebody else has put there are listed, too; links are not followed.
        """
        self._require_in_place()
        try:
            text = checksums.text(self.path)
        except OSError as error:
            refuse(self.path, error)
        _replace(self.path / SUMS, text)

    def _require_in_place(self) -> None:
        """Raise ``JournalError`` if another folder, or a link to one, has taken the place of ours."""
        try:
            found = self.path.lstat()
        except OSError as error:
            refuse(self.path, error)
        if found.st_ino != self._inode or not stat.S_ISDIR(found.st_mode):
            raise JournalError(f"evidence cannot be kept in {self.path}: something else was put in its place")

    def _transcribe(self, machine_name: str, completed: Completed) -> None:
        self._require_in_place()
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
    """``<utc>-<start of run_id>``, for a folder that is made now; in order of time."""
    short = re.sub(r"[^A-Za-z0-9]", "", run_id)[:8] or "run"
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{short}"


def _append(path: Path, record: Mapping[str, object], *, limit_bytes: int | None = None) -> None:
    """One line, in one write to a file opened for appending and locked, for threads and processes alike.

    A writer that died or met a full disk may have left half a line. It is ended first, so that it stays the only
    one that is lost. Without the lock, a line that another one is still writing looks like half a line. It is on disk
    when this returns, unless the file is one that is emptied whenever it reaches ``limit_bytes``.
    """
    line = json.dumps(_plain(record), ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"
    data = safe_text.json_text(line).encode()
    try:
        # Never created here: in a folder that was deleted or unmounted meanwhile, lines would go astray.
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
                os.write(descriptor, data[written:])
                raise JournalError(f"{path} could not be written in one piece")
            if not limit_bytes:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        refuse(path, error)


def _claim(folder: Path, name: str) -> Path:
    """A new empty file of this name, or of this name with a number; ours alone, whoever else is writing."""
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
    """Give a file its content, all of it or nothing."""
    try:
        safe_files.write_whole(path, data)
        safe_files.sync(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            if path.stat().st_size == 0:  # only claimed
                path.unlink()
        refuse(path, error)


def _link(source: Path, path: Path) -> bool:
    """Make ``path`` a second name of ``source``; False where the file system has no such thing."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.hardlink_to(source)
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        return False
    return True


def _plain(value: object) -> object:
    """JSON has no infinity and no NaN: they become null, as an unbounded end of an interval does."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def refuse(path: Path, error: OSError) -> NoReturn:
    """``JournalError`` with what the system says."""
    raise JournalError(f"evidence cannot be kept in {path}: {error.strerror or error}") from error
