"""Keeps a process on the machine under test while the connection to it may fail: three shell scripts and their callers.

A *keeper* on that machine starts the process, detached from the connection, and reads a byte from a FIFO every few
seconds. When none has come for too long, or on request, it ends the process and all its descendants: first gently the
process itself (INT lets fio write its results), then TERM, then KILL to all. An *attachment* runs inside a connection:
it passes bytes on to the FIFO, and reports how the process ended. A connection may be lost and another made; the
process does not notice.

A process that *must finish* is never ended by its keeper: no request, no silence and no signal to the keeper reaches
it. Its keeper only waits for it, holds the lock file that marks it, and reports how it ended if an attachment is left.
It and its keeper get a clean environment, because CI runners end every process that carries their variables (Jenkins:
BUILD_ID, GitHub: RUNNER_TRACKING_ID).

An environment variable marks the descendants of a process, not the process group: fio's workers call setsid() and
survive a signal to the group (fio 3.33 backend.c; killing fio's parent left them writing).

POSIX sh, util-linux' flock and setsid, and coreutils or busybox.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import MustFinish

#: Where it keeps what it needs, on tmpfs on every systemd distribution, so that nothing survives a boot.
DIRECTORY = "/run/pytest-ssdqual"
#: Of what the process writes to each of its streams, at most the last so many bytes are told.
TOLD_BYTES = 4 << 20

KEEPER = scripts.text("keeper.sh")
START, ATTACH = map(scripts.text, ("keeper_start.sh", "keeper_attach.sh"))
WILL = scripts.text("will.sh")


@dataclass(frozen=True, slots=True)
class Keeper:
    """How one process is kept, as the argv lists that start it and that come back to it."""

    #: Of the process; not yet as root.
    argv: tuple[str, ...]
    #: How it is ended at first: ``INT``, ``TERM``; empty: it must finish, and is never ended.
    first_signal: str
    #: Silence after which it is ended.
    silence_s: float
    #: Whether another connection may come back to it; otherwise the end of the stream is its end.
    survives: bool
    #: Its first line is told as soon as it is there.
    announces: bool
    directory: str
    token: str
    #: Of what must finish.
    work: MustFinish | None = None

    @classmethod
    def of(
        cls,
        argv: Sequence[str],
        first_signal: str = "INT",
        *,
        silence_s: float,
        survives: bool = False,
        announces: bool = False,
        directory: str = DIRECTORY,
    ) -> Keeper:
        """With a token of its own."""
        return cls(tuple(argv), first_signal, silence_s, survives, announces, directory, secrets.token_hex(8))

    @classmethod
    def until_finished(
        cls, argv: Sequence[str], work: MustFinish, *, silence_s: float, directory: str = DIRECTORY
    ) -> Keeper:
        """Of a command that nothing of ours ends; ``silence_s`` is how long its outcome is kept for a listener."""
        return cls(tuple(argv), "", silence_s, True, False, directory, secrets.token_hex(8), work)

    @property
    def start(self) -> list[str]:
        """Starts it and attaches to it."""
        words = [self.directory, self.token, f"{self.silence_s:g}", self.first_signal, *self._manner, KEEPER]
        words += [self.work.lock, self.work.note] if self.work else ["", ""]
        return ["sh", "-c", START + ATTACH, "tether", *words, *self.argv]

    @property
    def attach(self) -> list[str]:
        """Comes back to it."""
        return ["sh", "-c", ATTACH, "tether", f"{self.directory}/tether-{self.token}", *self._manner]

    @property
    def _manner(self) -> list[str]:
        return ["wait" if self.survives else "end", "first" if self.announces else "", str(TOLD_BYTES)]
