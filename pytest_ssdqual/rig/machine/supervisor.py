"""A process on the machine under test that never outlives the controller, and survives a short loss of the connection.

A *keeper* on that machine starts the process, detached from the connection, and reads a byte from a FIFO every few
seconds. When none has come for too long (the controller was suspended, or the network stays down), or on request, which
is also sent when the controller's process is killed, it ends the process and all its descendants: first gently the
process itself (INT lets fio write its results), then TERM, then KILL to all. An *attachment* runs inside a connection:
it passes bytes on to the FIFO, and reports how the process ended. A connection may be lost and another made; the
process does not notice. Where the connection can be re-established, a thread of the controller reattaches after a loss.

A process that *must finish* is never ended by its keeper: no request, no silence and no signal to the keeper reaches
it. Its keeper only waits for it, holds the lock file that marks it, and reports how it ended if an attachment is left.
It and its keeper get a clean environment, because CI runners end every process that carries their variables (Jenkins:
BUILD_ID, GitHub: RUNNER_TRACKING_ID).

An environment variable marks the descendants of a process, not the process group: fio's workers call setsid() and
survive a signal to the group (fio 3.33 backend.c; killing fio's parent left them writing).

POSIX sh, util-linux' flock and setsid, and coreutils or busybox.
"""

from __future__ import annotations

import contextlib
import queue
import secrets
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import field
from typing import IO, Protocol

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import (
    Completed,
    DeadlineExceeded,
    MachineLost,
    MustFinish,
    RigError,
    StillRunning,
    utc_now,
)

#: Directory of the keepers' files, on tmpfs on every systemd distribution, so that nothing survives a boot.
DIRECTORY = "/run/pytest-ssdqual"
#: Limit of what is reported of each stream of the process: its last bytes.
TOLD_BYTES = 4 << 20

KEEPER = scripts.text("keeper.sh")
START, ATTACH = map(scripts.text, ("keeper_start.sh", "keeper_attach.sh"))
WILL = scripts.text("will.sh")
#: Seconds between two heartbeats.
HEARTBEAT_S = 15
#: Seconds without a heartbeat after which a process is ended to which no other connection can attach.
SILENCE_S = 60
#: Limits of a line of an attachment, and of its standard error: another machine writes them.
LONGEST_LINE_BYTES, WORDS_BYTES = 1 << 16, 1 << 20
#: Seconds that an attachment to work that must finish may take to end.
LEAVE_S = 5.0
#: Failed attachments in a row, although the machine answers, after which the process is given up.
ATTEMPTS = 3


@frozen
class Keeper:
    """One process and its keeper, as the argv lists that start it and that attach to it again."""

    #: Command of the process, without the prefix that makes it root.
    argv: Sequence[str]
    #: First signal that ends it: ``INT``, ``TERM``; none ends a process that must finish.
    first_signal: str = "INT"
    #: Seconds without a heartbeat after which the keeper ends it; the outcome of work that must finish is available to
    #: an attachment for so long.
    silence_s: float = SILENCE_S
    #: True if another connection may attach to it; otherwise it ends with the stream.
    survives: bool = False
    #: True if its first line is reported immediately.
    announces: bool = False
    directory: str = DIRECTORY
    #: Set for a process that must finish.
    work: MustFinish | None = None
    token: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def start(self) -> list[str]:
        """The argv that starts the process and attaches to it."""
        signal = "" if self.work else self.first_signal
        words = [self.directory, self.token, f"{self.silence_s:g}", signal, *self._manner, KEEPER]
        words += [" ".join(self.work.locks), self.work.note] if self.work else ["", ""]
        return ["sh", "-c", START + ATTACH, "tether", *words, *self.argv]

    @property
    def attach(self) -> list[str]:
        """The argv that attaches to the process again."""
        return ["sh", "-c", ATTACH, "tether", f"{self.directory}/tether-{self.token}", *self._manner]

    @property
    def _manner(self) -> list[str]:
        return ["wait" if self.survives else "end", "first" if self.announces else "", str(TOLD_BYTES)]


class SupervisorLine(Protocol):
    """The connection to the machine."""

    @property
    def generation(self) -> int:
        """Number of reconnections."""

    def wrap(self, argv: Sequence[str]) -> list[str]:
        """Return the controller's argv that runs ``argv`` on the machine under test."""

    def revive(self, generation: int, done: Completed) -> None:
        """Reconnect if the machine was lost by ``done``, unless that has happened since ``generation``.

        ``MachineLost`` if that fails.
        """

    def ended(self, done: Completed) -> None:
        """Is called for every process that has ended."""


class TetheredProcess:
    """The controller's end of a tether; ``Tethered`` documents its methods."""

    def __init__(self, keeper: Keeper, line: SupervisorLine, become: Sequence[str] = ()) -> None:
        """Start it. ``become`` precedes every command on the machine under test."""
        self._keeper, self._line, self._become = keeper, line, list(become)
        self._argv = tuple(keeper.argv)
        self._started, self._clock = utc_now(), time.monotonic()
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ending = self._is_reported = False
        self._result: Completed | RigError | None = None
        self._is_away, self._away_s = False, 0.0
        self._has_announced = False
        self._attending = threading.Thread(target=self._attend, daemon=True)
        for thread in (self._attending, threading.Thread(target=self._speak, daemon=True)):
            thread.start()

    def alive(self) -> bool:
        """See ``Tethered.alive``."""
        return not self._over.is_set()

    def rest(self, seconds: float) -> bool:
        """See ``Tethered.rest``."""
        return not self._over.wait(seconds)

    def read_line(self, deadline_s: float) -> str:
        """See ``Tethered.read_line``."""
        try:
            line = self._lines.get(timeout=deadline_s)
        except queue.Empty:
            raise DeadlineExceeded(f"{self._argv[0]} printed nothing within {deadline_s:g} s") from None
        if not line:
            self._lines.put(line)  # every later call gets the end, too
        return line.decode("utf-8", "backslashreplace")

    def wait(self, deadline_s: float) -> Completed:
        """See ``Tethered.wait``; the time without a connection to the machine is not counted."""
        end = time.monotonic() + deadline_s
        try:
            while not self._over.wait(max(0.0, end + self._away_s - time.monotonic()) if not self._is_away else 1.0):
                if not self._is_away and time.monotonic() >= end + self._away_s:
                    raise self._too_late(deadline_s)
        except KeyboardInterrupt:
            with contextlib.suppress(StillRunning):
                self.cut()
            raise
        return self._finish()

    @property
    def work(self) -> MustFinish | None:
        """Set for a process that must finish."""
        return self._keeper.work

    @property
    def is_unfinished(self) -> bool:
        """True if it must finish and, as far as is known, has not."""
        return bool(self.work) and (self._result is None or isinstance(self._result, (StillRunning, MachineLost)))

    @property
    def elapsed_s(self) -> float:
        """Time since the start."""
        return time.monotonic() - self._clock

    def cut(self, deadline_s: float = 30.0) -> Completed:
        """See ``Tethered.cut``; of work that must finish, only the attachment ends: ``StillRunning``."""
        with self._lock:
            self._ending = True
            self._send(b"q\n")
        if self.work:
            self._settle(StillRunning(f"{self.work.what} goes on by itself"))
            with self._lock:
                if self._process:
                    self._close_input(self._process)  # the attachment ends on EOF of its input
            # The connection may be closed next, and the request has to arrive before.
            self._attending.join(LEAVE_S)
            return self._finish()
        if not self._over.wait(deadline_s):
            # The keeper ends it anyway when it has received no heartbeat for long enough.
            self._settle(self._completed(-9, b"", b"it did not answer\n"))
            with self._lock:
                if self._process:
                    self._process.kill()
                    self._close_input(self._process)
        return self._finish()

    def _too_late(self, deadline_s: float) -> DeadlineExceeded:
        if self.work:
            return DeadlineExceeded(f"{self.work.what} did not end within {deadline_s:g} s and goes on")
        said = self.cut().errors.split("\n")
        last = next((f": {safe_text.line(each.strip())}" for each in reversed(said) if each.strip()), "")
        return DeadlineExceeded(f"{self._argv[0]} did not end within {deadline_s:g} s and was ended{last}")

    def _finish(self) -> Completed:
        result = self._result
        if isinstance(result, Completed):
            if not self._is_reported:
                self._is_reported = True
                self._line.ended(result)
            return result
        raise result or MachineLost(f"{self._argv[0]} was given up")

    def _settle(self, result: Completed | RigError) -> None:
        with self._lock:
            if self._result is None:
                self._result = result
        lines = result.stdout.splitlines(keepends=True) if isinstance(result, Completed) else []
        for line in [*lines[1 if self._has_announced else 0 :], b""]:
            self._lines.put(line)
        self._over.set()

    def _completed(self, status: int, out: bytes, err: bytes) -> Completed:
        return Completed(self._argv, status, out, err, self._started, time.monotonic() - self._clock)

    def _attend(self) -> None:
        """Attach to the process, again after each loss, until it has ended."""
        attempts = 0
        while not self._over.is_set():
            generation = self._line.generation
            try:
                outcome, done = self._attached(self._keeper.attach if attempts else self._keeper.start)
                if outcome:
                    self._settle(outcome)
                if self._over.is_set():
                    return
                self._come_back(generation, done)
                attempts = attempts + 1 if generation == self._line.generation else 1
                if attempts > ATTEMPTS:
                    raise MachineLost(f"{self._argv[0]} no longer answers, although its machine does")
            except RigError as error:
                self._settle(error)
            except (OSError, ValueError) as error:  # ssh could not be started, or the answer is not a keeper's
                self._settle(RigError(f"{self._argv[0]} cannot be run by a keeper on the machine under test: {error}"))

    def _come_back(self, generation: int, done: Completed) -> None:
        lost_at, self._is_away = time.monotonic(), True
        try:
            self._line.revive(generation, done)
        finally:
            self._away_s += time.monotonic() - lost_at
            self._is_away = False

    def _attached(self, remote_argv: Sequence[str]) -> tuple[Completed | None, Completed]:
        """Run one attachment to its end; return how the process ended, if reported, and how the attachment did."""
        local_argv = self._line.wrap([*self._become, *remote_argv])
        local_argv = ["sh", "-c", WILL, "will", *local_argv] if self._keeper.survives else local_argv
        # In its own session: Ctrl-C at the terminal goes to pytest only, which then ends processes in order.
        pipe = subprocess.PIPE
        process = subprocess.Popen(local_argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        with self._lock:
            self._process = process
            if self._ending:
                self._send(b"q\n")
                if self.work:
                    self._close_input(process)
        try:
            outcome, was_here = self._listen(process)
        finally:
            with self._lock:
                self._send(b"a\n")
                self._close_input(process)
            with process.stderr or contextlib.nullcontext() as stream:
                words = _last_of(stream) if stream else b""
            done = self._completed(process.wait(), b"", words)
        if not outcome and not was_here and remote_argv == self._keeper.start and 0 < done.status < 255:
            outcome = done  # the process was never started, and this is the reason
        return outcome, done

    def _listen(self, process: subprocess.Popen[bytes]) -> tuple[Completed | None, bool]:
        """Read standard output (format: ``keeper.ATTACH``): how the process ended, and True if the keeper was there."""
        was_here = False
        with process.stdout or contextlib.nullcontext() as stream:
            while stream and (line := stream.readline(LONGEST_LINE_BYTES)):
                word, _, rest = line.partition(b" ")
                if word.strip() == b"here":
                    was_here = True
                elif word.strip() == b"gone":
                    raise MachineLost(
                        f"the machine under test ended {self._argv[0]}: it received no heartbeat for "
                        f"{self._keeper.silence_s:g} s, or another process ended it"
                    )
                elif word == b"said" and not self._has_announced:
                    self._has_announced = True
                    self._lines.put(rest)
                elif word == b"ended":
                    status, *sizes = map(int, rest.split())
                    if len(sizes) != 2 or not all(0 <= size <= TOLD_BYTES for size in sizes):
                        raise ValueError(f"its keeper reports {safe_text.line(rest.decode('ascii', 'replace'), 80)}")
                    out, err = (stream.read(size) for size in sizes)
                    if len(out) + len(err) == sum(sizes):
                        return self._completed(status, out, err), True
        return None, was_here

    def _speak(self) -> None:
        while not self._over.wait(HEARTBEAT_S):
            with self._lock:
                self._send(b"b\n")

    def _send(self, word: bytes) -> None:
        """Send a word to the current attachment; the caller holds the lock."""
        stream = self._process.stdin if self._process else None
        if stream and not stream.closed:
            with contextlib.suppress(OSError):  # the attachment or the connection ended
                stream.write(word)
                stream.flush()

    def _close_input(self, process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(OSError):
            if process.stdin:
                process.stdin.close()


def _last_of(stream: IO[bytes]) -> bytes:
    """Read a stream to its end and return its last bytes."""
    words = b""
    while piece := stream.read(WORDS_BYTES):
        words = (words + piece)[-WORDS_BYTES:]
    return words
