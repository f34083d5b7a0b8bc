"""``SHA256SUMS``: the digests of a run folder's files, as coreutils' ``sha256sum`` writes and checks them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from pytest_ssdqual.report.run_folder import safe_files

SUMS = "SHA256SUMS"
#: coreutils manual, "md5sum invocation": with a backslash in front, the name has escapes.
LINE = re.compile(rb"(\\?)([0-9a-f]{64}) [ *](.+)")
ESCAPES = {b"\\": b"\\\\", b"\n": b"\\n", b"\r": b"\\r"}


def text(folder: Path) -> bytes:
    """Return the lines of every file below ``folder`` except hidden ones and itself; links are skipped. ``OSError``."""
    every = [path for path in safe_files.files_below(folder) if not path.name.startswith(".")]
    return b"".join(line(digest(path), path.relative_to(folder)) for path in every if path != folder / SUMS)


def line(sha256: str, path: Path) -> bytes:
    """Return the line of a file; characters of its name that would break the line are escaped."""
    name = os.fsencode(path)
    plain = re.sub(rb"[\\\n\r]", lambda found: ESCAPES[found[0]], name)
    return (b"" if plain == name else b"\\") + sha256.encode() + b"  " + plain + b"\n"


def read(folder: Path) -> dict[str, str]:
    """Return digests by name; empty if the folder was not sealed. Invalid lines are skipped."""
    found = {}
    try:
        for each in filter(None, map(LINE.fullmatch, safe_files.read_lines(folder / SUMS))):
            name = _unescaped(each[3]) if each[1] else each[3]
            found[os.fsdecode(name)] = each[2].decode()
    except OSError:
        return {}
    return found


def changed(folder: Path, written_again: Collection[str] = (), required: Sequence[str] = ()) -> tuple[str, ...]:
    """Return a phrase for each difference of the files from ``SHA256SUMS``; empty if all are as they were.

    ``written_again`` are names that may differ, ``required`` are names that must be listed.
    """
    listed = read(folder)
    if not listed:
        return (f"{SUMS} is missing or has no line",)
    found = [f"{name} is not in {SUMS}" for name in required if name not in listed]
    for name, sha256 in listed.items():
        if name not in written_again:
            try:
                is_same = digest(folder / name) == sha256
            except OSError as error:
                found.append(f"{name} cannot be read ({error.strerror})")
            else:
                found += [] if is_same else [f"{name} has changed"]
    return tuple(found)


def changed_among(folder: Path, names: Sequence[str]) -> str:
    """Return the first of these files that is not as ``SHA256SUMS`` lists it; empty if all are, or if it lists none."""
    listed = read(folder)
    for name in names:
        try:
            if name in listed and digest(folder / name) != listed[name]:
                return f"{name} has changed"
        except OSError as error:
            return f"{name} cannot be read ({error.strerror})"
    return ""


def digest(path: Path) -> str:
    """Return the SHA-256 of a regular file; ``OSError`` for anything else."""
    with open(safe_files.open_regular(path), "rb") as file:  # noqa: PTH123 (a descriptor)
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unescaped(name: bytes) -> bytes:
    back = {escape: plain for plain, escape in ESCAPES.items()}
    return re.sub(rb"\\[\\nr]", lambda found: back[found[0]], name)
