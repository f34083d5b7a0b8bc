"""A directory that cannot outlive its owner for long: where a machine's drives, sockets and keys are."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "ssdqual-lab-"
_MEMORY = Path("/dev", "shm")
#: Left free beside the drives.
_RESERVE_BYTES = 64 << 20


@contextmanager
def scratch_directory(size_bytes: int) -> Iterator[Path]:
    """A new directory with room for so much, in memory if it fits there, else among the temporary files.

    It is removed at the end. Whoever holds the lock on its file ``owner`` is alive; what owners left that were
    killed is removed first.
    """
    place = roomiest(size_bytes)
    sweep(place)
    # hidden from others' sweeps until it is locked
    directory = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=place))
    try:
        with (directory / "owner").open("w") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX)
            directory = directory.rename(directory.with_name(directory.name[1:]))
            yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def roomiest(size_bytes: int, memory: Path | None = None) -> Path:
    """Memory if the drives fit there even when they are full, else the directory for temporary files."""
    memory = memory or _MEMORY
    if memory.is_dir() and shutil.disk_usage(memory).free > size_bytes + _RESERVE_BYTES:
        return memory
    return Path(tempfile.gettempdir())


def sweep(place: Path) -> None:
    """Remove what killed owners left."""
    for directory in place.glob(f"{_PREFIX}*"):
        try:
            with (directory / "owner").open("r") as owner:
                fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory, ignore_errors=True)
        except OSError:
            # alive, somebody else's, or being made or removed this moment
            continue
