"""One holder per drive, for as long as the holder lives, kept on the machine under test.

A scheduler cannot guarantee that two runs, perhaps of two controllers, do not meet on one drive; ``flock`` there
can. All locks of a set are held by one process at the end of a tether: when we die, however, it ends and the
locks are free. Drives are named by WWN or serial, never by /dev/sdX, which is given out anew at every boot.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import socket
from collections.abc import Iterable
from types import TracebackType

from pytest_ssdqual.rig.keeper import DIRECTORY
from pytest_ssdqual.rig.machine import LeaseTaken, Machine, RigError, Tethered, utc_now

#: What our ``flock`` answers when somebody else holds the lock (EX_TEMPFAIL).
CONFLICT = 75

#: $1 who we are, then the lock files: note it in each, say so, and live until the tether is cut.
HOLDER = 'who=$1; shift; for f; do printf "%s\\n" "$who" >"$f"; done; echo held; exec sleep 2147483647'
#: Which of the lock files somebody else holds, and who.
WHO = 'for f; do flock --nonblock "$f" true || printf "%s: %s\\n" "${f##*/}" "$(cat "$f")"; done'


class LeaseLost(RigError):
    """The lease ended under us: nothing may be written any more."""


class Lease:
    """All drives of a set, or none; held from construction until ``release``."""

    def __init__(self, machine: Machine, identities: Iterable[str]) -> None:
        """Take the lease.

        Raises ``LeaseTaken`` naming each drive that is held, and by whom.
        """
        self._files = lock_files(identities)
        self._machine = machine
        machine.run(["mkdir", "-p", "-m", "0700", DIRECTORY])
        who = f"{getpass.getuser()}@{socket.gethostname()} pid {os.getpid()} since {utc_now()}"
        self._holder: Tethered = machine.tether(holder_argv(self._files, who), first_signal="TERM", announces=True)
        if self._holder.read_line(60.0).strip() != "held":
            done = self._holder.cut()
            if done.status == CONFLICT:
                held = machine.run(["sh", "-c", WHO, "who", *self._files]).text.strip()
                raise LeaseTaken(f"another run holds drives on {machine.name}: " + "; ".join(held.splitlines()))
            raise RigError(f"cannot take the lease on {machine.name}: {done.errors.strip() or done.status}")

    def require(self) -> None:
        """Raise ``LeaseLost`` unless the lease is held now."""
        if not self._holder.alive():
            raise LeaseLost(f"the lease on {self._machine.name} was lost: something ended its holder")

    def release(self) -> None:
        """Let go; harmless if it is gone already."""
        self._holder.cut()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def lock_files(identities: Iterable[str]) -> tuple[str, ...]:
    """One file per drive, sorted, so that two runs that want overlapping sets cannot deadlock."""
    return tuple(sorted({f"{DIRECTORY}/{_file_name(name)}.lock" for name in identities}))


def _file_name(identity: str) -> str:
    """The identity where it can be a file's name; otherwise what can, and a digest: no two drives share a lock."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", identity)[:100]
    return plain if plain == identity else f"{plain}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


def holder_argv(files: Iterable[str], who: str) -> list[str]:
    """One process that holds the lock on every file: each ``flock`` becomes the next one by exec (--no-fork)."""
    files = tuple(files)
    locks = [
        part
        for file in files
        for part in ("flock", "--no-fork", "--nonblock", "--conflict-exit-code", str(CONFLICT), file)
    ]
    return [*locks, "sh", "-c", HOLDER, "lease", who, *files]
