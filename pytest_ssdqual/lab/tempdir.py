"""A directory that cannot outlive its owner for long: where a machine's drives, sockets and keys are."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_ssdqual.rig.machine.owned_directory import OwnedDirectory

_PREFIX = "ssdqual-lab-"
_MEMORY = Path("/dev", "shm")
#: Left free beside the drives.
_RESERVE_BYTES = 64 << 20


@contextmanager
def scratch_directory(size_bytes: int) -> Iterator[Path]:
    """A new directory with room for so much, in memory if it fits there, else among the temporary files.

    It is removed at the end; what owners left that were killed is removed first.
    """
    directory = OwnedDirectory.make(roomiest(size_bytes), _PREFIX)
    try:
        yield directory.path
    finally:
        directory.remove()


def roomiest(size_bytes: int, memory: Path | None = None) -> Path:
    """Memory if the drives fit there even when they are full, else the directory for temporary files."""
    memory = memory or _MEMORY
    if memory.is_dir() and shutil.disk_usage(memory).free > size_bytes + _RESERVE_BYTES:
        return memory
    return Path(tempfile.gettempdir())
