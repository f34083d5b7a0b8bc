"""Files and folders that only their owner can read or write.

Folders are created with mode 0700 and files with 0600, whatever the umask; a symbolic link is never followed inside of
a run folder; and every refusal is an ``OSError`` whose text is the reason.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

FOLDER_MODE, FILE_MODE = 0o700, 0o600
#: Mode of a new folder of run folders; other users may list it.
ROOT_MODE = 0o755
#: Permissions by which other users could change a file.
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
#: Maximum length of a file name without number and suffix of a partial file; file systems allow 255 bytes.
NAME_BYTES = 160
#: A record with thousands of rounds is 1 MB; longer lines are not from a run.
LONGEST_LINE_BYTES = 16 << 20


def make_root(root: Path) -> None:
    """Create the folder of run folders; refuse one whose content other users could replace."""
    for path in reversed([root, *root.parents]):
        if not path.exists():
            path.mkdir(exist_ok=True)
            path.chmod(ROOT_MODE)
    found = root.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if found.st_uid not in {*_ourselves(), 0}:
        raise _refused(f"{root} belongs to another user (uid {found.st_uid}), who could replace what is in it")
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        raise _refused(f"{root} may be written by everybody, who could replace what is in it: chmod o-w {root}")


def make_folder(path: Path) -> None:
    """Create a folder for the owner alone."""
    path.mkdir(mode=FOLDER_MODE)
    path.chmod(FOLDER_MODE)  # the umask may have removed permissions


def create(path: Path, *, replace: bool = False) -> int:
    """Return a descriptor of a new file for the owner alone; with ``replace`` an old file is truncated."""
    once = os.O_TRUNC if replace else os.O_EXCL
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | once, FILE_MODE)
    os.fchmod(descriptor, FILE_MODE)
    return descriptor


def write_whole(path: Path, data: bytes, *, for_others: bool = False) -> None:
    """Write a file atomically; on an error an old file is unchanged.

    It is for the owner alone, or, ``for_others``, for all whom the umask allows to read it.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if for_others:
            part.unlink(missing_ok=True)
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_EXCL, 0o666)
        else:
            descriptor = create(part, replace=True)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        part.replace(path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def sync(folder: Path) -> None:
    """Sync a folder, without which a new name in it is not on disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # CIFS and some FUSE file systems cannot do that to a folder
            raise
    finally:
        os.close(descriptor)


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a regular file; a link, or a FIFO without a writer, is refused."""
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _refused(f"{path} is not a file")
    return descriptor


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a regular file, ended by line feeds only; lines beyond ``LONGEST_LINE_BYTES`` are skipped."""
    with open(open_regular(path), "rb") as file:
        while line := file.readline(LONGEST_LINE_BYTES):
            if len(line) == LONGEST_LINE_BYTES and not line.endswith(b"\n"):
                while (rest := file.readline(LONGEST_LINE_BYTES)) and not rest.endswith(b"\n"):
                    pass
                continue
            yield line.removesuffix(b"\n")


def files_below(folder: Path) -> list[Path]:
    """Return every regular file in order; links are not followed and not listed."""
    found = []
    for path, _, names in os.walk(folder, onerror=_raise):
        found += [Path(path, name) for name in names]
    return sorted(path for path in found if (seen := _seen(path)) and stat.S_ISREG(seen.st_mode))


def require_ours(folder: Path) -> None:
    """Raise unless a run folder belongs to the user alone, and contains only files and folders.

    What other users can write to, or own, may lead anywhere; so may a link that came with an archive.
    """
    below = (Path(at, name) for at, *names in os.walk(folder, onerror=_raise) for each in names for name in each)
    for path, found in itertools.chain([(folder, folder.lstat())], ((each, _seen(each)) for each in below)):
        if found is None:
            continue
        if not stat.S_ISDIR(found.st_mode) and not stat.S_ISREG(found.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "neither a file nor a folder"
            raise _refused(f"{path} is {kind}, which no run creates")
        if found.st_uid not in _ourselves():
            raise _refused(f"{path} belongs to another user (uid {found.st_uid}): copy the run folder to continue it")
        if found.st_mode & WRITABLE_BY_OTHERS:
            raise _refused(f"{path} may be written by others: look through the run folder, then chmod -R go-w it")


def _seen(path: Path) -> os.stat_result | None:
    """Return the status, or None if the path has gone since: other writers of the run pack their transcript."""
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def file_name(name: str) -> str:
    """Return a name that any file system accepts; a long one is cut, with a digest and its end."""
    plain = re.sub(r"[^\w.,:+=-]|^[.-]", "_", name, flags=re.ASCII) or "_"
    if len(plain) <= NAME_BYTES:
        return plain
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{plain[: NAME_BYTES // 2]}-{digest}-{plain[-NAME_BYTES // 3 :]}"


def is_ours(folder: Path) -> bool:
    """Return True for a folder that only its owner can write to; a link is none."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid in _ourselves() and not found.st_mode & WRITABLE_BY_OTHERS


def _ourselves() -> set[int]:
    """Return the user ids of this process; under sudo also the user who called it, for runs made without root."""
    me, asked = os.geteuid(), os.environ.get("SUDO_UID", "")
    return {me, int(asked)} if me == 0 and asked.isdecimal() and len(asked) < 12 else {me}


def _refused(reason: str) -> OSError:
    return PermissionError(errno.EPERM, reason)


def _raise(error: OSError) -> None:
    raise error
