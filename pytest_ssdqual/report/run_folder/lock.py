"""Lock of a writer of a run folder: a running run must not be resumed, nor resumed twice.

The lock is a ``flock``, so it ends with its process in any case. Lock files begin with a dot: they are no evidence, and
``SHA256SUMS`` does not list them.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.journal import JournalError, refuse
from pytest_ssdqual.rig.machine.machine import own_name, utc_now


class StillWritten(JournalError):
    """Another process writes into the run folder."""


class FolderLock:
    """Exclusive right to write into ``folder`` as ``writer``, until ``release`` or the end of the process."""

    def __init__(self, folder: Path, writer: str) -> None:
        """Raises ``StillWritten`` if a process holds it, ``JournalError`` if the folder cannot be written."""
        self._folder = folder
        self._path = folder / f".{writer}.lock"
        self._descriptor = _locked(folder, self._path)
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{own_name()} pid {os.getpid()} since {utc_now()}".encode(), 0)
        except OSError as error:  # a full disk
            self.release()
            refuse(folder, error)

    def require_alone(self) -> None:
        """Raise ``StillWritten`` if another writer is active: a worker may outlive its parent process."""
        for path in _locks(self._folder):
            if path != self._path:
                os.close(_locked(self._folder, path))

    def release(self) -> None:
        """Release the lock; harmless the second time."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def is_in_use(folder: Path) -> bool:
    """Return True if a process writes into ``folder``, this one included, or if that cannot be determined."""
    try:
        for path in _locks(folder):
            os.close(_locked(folder, path))
    except JournalError:
        return True
    return False


def _locks(folder: Path) -> list[Path]:
    return sorted(folder.glob(".*.lock"))


def _locked(folder: Path, path: Path) -> int:
    try:
        # O_NOFOLLOW: the name of the writer must not be written to the target of a link.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, safe_files.FILE_MODE)
    except OSError as error:
        refuse(folder, error)
    try:
        os.fchmod(descriptor, safe_files.FILE_MODE)  # whatever the umask
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        who = safe_text.line(os.pread(descriptor, 200, 0).decode("utf-8", "replace")) or "another process"
        os.close(descriptor)
        raise StillWritten(f"{folder} is in use by {who}: wait until that run has ended") from None
    except OSError as error:
        os.close(descriptor)
        raise JournalError(f"{folder} cannot be locked: {error.strerror or error}") from error
    return descriptor
