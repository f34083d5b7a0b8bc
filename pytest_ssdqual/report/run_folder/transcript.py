"""The transcript: a line for each command, in a file that is emptied into a packed one when it has grown large.

At every moment each line is in at least one of the files. A crash in between leaves lines in both, which the next
rotation and every reader detect.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import struct
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pytest_ssdqual.report.run_folder import safe_files

TRANSCRIPT = "transcript.jsonl"
#: Packed parts, ``transcript-001.jsonl.gz`` first.
PACKED = re.compile(r"transcript-(\d{3,9})\.jsonl\.gz", re.ASCII)
#: Size at which it is emptied, after some days: a long measurement runs a hundred commands an hour, 5 kB each.
ROTATE_BYTES = 64 << 20
PIECE_BYTES = 1 << 20
#: A command's number and its writer, as ``Journal`` writes them.
HEAD = re.compile(rb'\{"schema":\d+,"number":(\d{1,15}),"writer":"([^"\\]*)",')


def make_room(path: Path, descriptor: int, more_bytes: int, limit_bytes: int) -> None:
    """Empty the transcript if ``more_bytes`` exceed ``limit_bytes``; the caller holds the exclusive lock.

    On a full disk it is tried again when the file has grown by the same size once more.
    """
    size = os.lseek(descriptor, 0, os.SEEK_END)
    if size // limit_bytes < (size + more_bytes) // limit_bytes:
        with contextlib.suppress(OSError):
            _rotate(path, descriptor, size)


def packed(folder: Path) -> list[Path]:
    """Return the packed files of the transcript in the order in which they were written."""
    found = [(int(match[1]), path) for path in folder.iterdir() if (match := PACKED.fullmatch(path.name))]
    return [path for _, path in sorted(found)]


def last_number(folder: Path, writer: str) -> int:
    """Return the number of the writer's last command; 0 without one. ``OSError`` without a transcript."""
    heads = (HEAD.match(line) for line in _lines(folder))
    return max((int(head[1]) for head in heads if head and head[2] == writer.encode()), default=0)


def read(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield every command of a run folder once, in the order of their ends. ``OSError`` without a transcript."""
    seen: set[tuple[str, str]] = set()
    for line in _lines(folder):
        try:
            command = json.loads(line)
            key = str(command["writer"]), str(command["number"])
        except (ValueError, TypeError, KeyError, RecursionError):
            continue  # cut short by a crash or a full disk
        if key not in seen:
            seen.add(key)
            yield command


def _lines(folder: Path) -> Iterator[bytes]:
    for path in packed(folder):
        with (
            os.fdopen(safe_files.open_regular(path), "rb") as file,
            gzip.open(file) as lines,
            contextlib.suppress(EOFError, zlib.error, gzip.BadGzipFile),  # what can be read of a damaged one
        ):
            yield from iter(partial(lines.readline, safe_files.LONGEST_LINE_BYTES), b"")
    yield from safe_files.read_lines(folder / TRANSCRIPT)


def _rotate(path: Path, descriptor: int, size: int) -> None:
    before = packed(path.parent)
    begin = _packed_already(descriptor, size, before[-1]) if before else 0
    if begin < size:
        number = 1 + (int(PACKED.fullmatch(before[-1].name)[1]) if before else 0)  # type: ignore[index]
        _pack(descriptor, begin, size, path.with_name(f"transcript-{number:03}.jsonl.gz"))
    os.ftruncate(descriptor, 0)


def _pack(descriptor: int, begin: int, end: int, target: Path) -> None:
    """Write the packed file; its name appears only when all of it is on disk."""
    part = target.with_name(f".{target.name}.part")
    with os.fdopen(safe_files.create(part, replace=True), "wb") as file:
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as out:
            for data in _pieces(descriptor, begin, end):
                out.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(target)
    safe_files.sync(target.parent)


def _packed_already(descriptor: int, size: int, last: Path) -> int:
    """Return the number of bytes at the start that ``last`` has: its writer died before truncating."""
    with os.fdopen(safe_files.open_regular(last), "rb") as file:
        file.seek(-8, os.SEEK_END)
        digest, length = struct.unpack("<II", file.read(8))  # RFC 1952: CRC-32 and length, at the end of a member
    if not 0 < length <= size:
        return 0
    found = 0
    for data in _pieces(descriptor, 0, length):
        found = zlib.crc32(data, found)
    return int(length) if found == digest else 0


def _pieces(descriptor: int, begin: int, end: int) -> Iterator[bytes]:
    while begin < end:
        data = os.pread(descriptor, min(PIECE_BYTES, end - begin), begin)
        if not data:
            raise OSError("another process has truncated the transcript")
        begin += len(data)
        yield data
