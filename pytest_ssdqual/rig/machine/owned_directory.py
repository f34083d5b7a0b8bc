"""A temporary directory of the controller that is removed soon even if its owner was killed.

Its file ``owner`` is locked as long as a process uses the directory; the next start removes directories whose lock is
free. Other users can make directories of the same names in /tmp, so nothing is opened, waited for or removed except
directories and regular files of the current user.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

#: The file that is locked.
OWNER = "owner"
#: A directory is created under a hidden name, and renamed when it is locked; that takes milliseconds.
UNNAMED_S = 3600.0


@dataclass(slots=True)
class OwnedDirectory:
    """A new directory of this process; ``remove`` it, or the next ``sweep`` does when its owner has ended."""

    path: Path
    #: Descriptor of the locked file. A child process that inherits it owns the directory, too.
    descriptor: int

    @classmethod
    def make(cls, place: Path, prefix: str) -> OwnedDirectory:
        """Create one whose name begins with ``prefix``, after removing those that killed owners left."""
        sweep(place, prefix)
        hidden = Path(tempfile.mkdtemp(prefix=f".{prefix}", dir=place))
        try:
            descriptor = os.open(hidden / OWNER, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            return cls(hidden.rename(hidden.with_name(hidden.name[1:])), descriptor)
        except BaseException:
            shutil.rmtree(hidden, ignore_errors=True)
            raise

    def remove(self) -> None:
        """Remove it with its content; harmless if it is already gone."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def sweep(place: Path, prefix: str) -> None:
    """Remove the directories that killed owners left."""
    for directory in place.glob(f"{prefix}*"):
        # An error means that it is in use, another user's, or just being removed.
        with contextlib.suppress(OSError):
            _remove_if_left(directory)
    for directory in place.glob(f".{prefix}*"):
        with contextlib.suppress(OSError):
            status = directory.lstat()
            if _is_own(status, stat.S_ISDIR(status.st_mode)) and time.time() - status.st_mtime > UNNAMED_S:
                shutil.rmtree(directory, ignore_errors=True)


def _remove_if_left(directory: Path) -> None:
    status = directory.lstat()
    if not _is_own(status, stat.S_ISDIR(status.st_mode)):
        return
    # Without O_NONBLOCK, opening a FIFO would block until another process opens it, too.
    owner = os.open(directory / OWNER, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        owner_status = os.fstat(owner)
        if _is_own(owner_status, stat.S_ISREG(owner_status.st_mode)):
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory, ignore_errors=True)
    finally:
        os.close(owner)


def _is_own(status: os.stat_result, is_right_kind: bool) -> bool:
    return is_right_kind and status.st_uid == os.geteuid()
