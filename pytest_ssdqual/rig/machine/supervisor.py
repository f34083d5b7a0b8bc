"""A process on the machine under test that never outlives the controller, and survives a short loss of the connection.

Its remote end is ``keeper``, which receives a byte every few seconds. It ends the process when the bytes stop (the
controller was suspended, or the network stays down), or on request, which is also sent when the controller's process is
killed. Where the connection can be re-established, a thread of the controller reattaches to the process after a loss.
"""

from __future__ import annotations

import contextlib
import queue
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import IO, Protocol

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.rig.machine.keeper import TOLD_BYTES, WILL, Keeper
from pytest_ssdqual.rig.machine.machine import (
    Completed,
    DeadlineExceeded,
    MachineLost,
    MustFinish,
    RigError,
    StillRunning,
    utc_now,
)

#: How often we speak.
HEARTBEAT_S = 15
#: Silence after which a process is ended that no other connection can come back to.
SILENCE_S = 60
#: Of a line of an attachment, and of its words on standard error: another machine writes them.
LONGEST_LINE_BYTES, WORDS_BYTES = 1 << 16, 1 << 20
#: How long an attachment to what must finish may take to end.
LEAVE_S = 5.0
#: Attachments in a row that come to nothing although the machine answers, until we give up.
ATTEMPTS = 3


class SupervisorLine(Protocol):
    """The way to the machine."""

    @property
    def generation(self) -> int:
        """How often it was made anew."""
        ...

    def wrap(self, argv: Sequence[str]) -> list[str]:
        """The argv of this computer that runs ``argv`` over there."""
        ...

    def revive(self, generation: int, done: Completed) -> None:
        """After ``done``: if the machine was lost by it, make the way anew, unless that has happened since
        ``generation``; ``MachineLost`` if it cannot be.
        """
        ...

    def ended(self, done: Completed) -> None:
        """Told of every process that has ended."""
        ...


class TetheredProcess:
    """The near end of a tether; see ``Tethered`` for what its methods promise."""

    def __init__(self, keeper: Keeper, line: SupervisorLine, become: Sequence[str] = ()) -> None:
        """Start it. ``become`` is put in front of what is run over there."""
        self._keeper, self._line, self._become = keeper, line, list(become)
        self._argv = keeper.argv
        self._started, self._clock = utc_now(), time.monotonic()
        self._said: queue.Queue[bytes] = queue.Queue()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ending = self._told = False
        self._result: Completed | RigError | None = None
        self._is_away, self._away_s = False, 0.0
        self._has_said = False
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
            line = self._said.get(timeout=deadline_s)
        except queue.Empty:
            raise DeadlineExceeded(f"{self._argv[0]} said nothing within {deadline_s:g} s") from None
        if not line:
            self._said.put(line)  # the end stays the end, however often one asks
        return line.decode("utf-8", "backslashreplace")

    def wait(self, deadline_s: float) -> Completed:
        """See ``Tethered.wait``; the time for which the way to the machine was lost is not counted."""
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
        """Whether it must finish and, as far as is known, has not."""
        return bool(self.work) and (self._result is None or isinstance(self._result, (StillRunning, MachineLost)))

    @property
    def elapsed_s(self) -> float:
        """Time since the start."""
        return time.monotonic() - self._clock

    def cut(self, deadline_s: float = 30.0) -> Completed:
        """See ``Tethered.cut``; of what must finish, only the attachment ends: ``StillRunning``."""
        with self._lock:
            self._ending = True
            self._send(b"q\n")
        if self.work:
            self._settle(StillRunning(f"{self.work.what} goes on by itself"))
            self._drop_input()
            # The connection may be closed next, and the word has to arrive before.
            self._attending.join(LEAVE_S)
            return self._finish()
        if not self._over.wait(deadline_s):
            # Over there it is ended all the same, when nothing was heard for long enough.
            self._settle(self._completed(-9, b"", b"it did not answer\n"))
            self._drop()
        return self._finish()

    def _too_late(self, deadline_s: float) -> DeadlineExceeded:
        if self.work:
            return DeadlineExceeded(f"{self.work.what} did not end within {deadline_s:g} s and goes on")
        self.cut()
        return DeadlineExceeded(f"{self._argv[0]} did not end within {deadline_s:g} s and was ended")

    def _finish(self) -> Completed:
        result = self._result
        if isinstance(result, Completed):
            if not self._told:
                self._told = True
                self._line.ended(result)
            return result
        raise result or MachineLost(f"{self._argv[0]} was given up")

    def _settle(self, result: Completed | RigError) -> None:
        with self._lock:
            if self._result is None:
                self._result = result
        lines = result.stdout.splitlines(keepends=True) if isinstance(result, Completed) else []
        for line in [*lines[1 if self._has_said else 0 :], b""]:
            self._said.put(line)
        self._over.set()

    def _completed(self, status: int, out: bytes, err: bytes) -> Completed:
        return Completed(self._argv, status, out, err, self._started, time.monotonic() - self._clock)

    def _attend(self) -> None:
        """Be attached, as often as it takes."""
        vain = 0
        while not self._over.is_set():
            generation = self._line.generation
            try:
                found, done = self._attached(self._keeper.attach if vain else self._keeper.start)
                if found:
                    self._settle(found)
                if self._over.is_set():
                    return
                self._come_back(generation, done)
                vain = vain + 1 if generation == self._line.generation else 1
                if vain > ATTEMPTS:
                    raise MachineLost(f"{self._argv[0]} does not answer any more, though its machine does")
            except RigError as error:
                self._settle(error)
            except (OSError, ValueError) as error:  # nothing was started here, or no keeper speaks over there
                self._settle(RigError(f"{self._argv[0]} cannot be kept on the machine under test: {error}"))

    def _come_back(self, generation: int, done: Completed) -> None:
        lost_at, self._is_away = time.monotonic(), True
        try:
            self._line.revive(generation, done)
        finally:
            self._away_s += time.monotonic() - lost_at
            self._is_away = False

    def _attached(self, there: Sequence[str]) -> tuple[Completed | None, Completed]:
        """One attachment, until it ends: how the process ended, if that was told, and how the attachment did."""
        here = self._line.wrap([*self._become, *there])
        here = ["sh", "-c", WILL, "will", *here] if self._keeper.survives else here
        # A session of its own: Ctrl-C at the terminal is for pytest, which then ends things in order.
        pipe = subprocess.PIPE
        process = subprocess.Popen(here, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        with self._lock:
            self._process = process
            if self._ending:
                self._send(b"q\n")
                if self.work:
                    self._close_input(process)
        try:
            found, was_here = self._listen(process)
        finally:
            with self._lock:
                self._send(b"a\n")
                self._close_input(process)
            with process.stderr or contextlib.nullcontext() as stream:
                words = _last_of(stream) if stream else b""
            done = self._completed(process.wait(), b"", words)
        if not found and not was_here and there == self._keeper.start and 0 < done.status < 255:
            found = done  # it was never started, and this is why
        return found, done

    def _listen(self, process: subprocess.Popen[bytes]) -> tuple[Completed | None, bool]:
        """What is told on standard output, see ``keeper.ATTACH``; and whether anybody was there."""
        was_here = False
        with process.stdout or contextlib.nullcontext() as stream:
            while stream and (line := stream.readline(LONGEST_LINE_BYTES)):
                word, _, rest = line.partition(b" ")
                if word.strip() == b"here":
                    was_here = True
                elif word.strip() == b"gone":
                    raise MachineLost(
                        f"{self._argv[0]} was ended over there, because nothing was heard from here for "
                        f"{self._keeper.silence_s:g} s, or by somebody else"
                    )
                elif word == b"said" and not self._has_said:
                    self._has_said = True
                    self._said.put(rest)
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
        """To whoever is attached; the lock is held."""
        stream = self._process.stdin if self._process else None
        if stream and not stream.closed:
            with contextlib.suppress(OSError):  # it ended, or the connection did
                stream.write(word)
                stream.flush()

    def _close_input(self, process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(OSError):
            if process.stdin:
                process.stdin.close()

    def _drop_input(self) -> None:
        """End the attachment: it ends when its input does."""
        with self._lock:
            if self._process:
                self._close_input(self._process)

    def _drop(self) -> None:
        """Let go of an attachment that does not end."""
        with self._lock:
            process = self._process
            if process:
                process.kill()
                self._close_input(process)


def _last_of(stream: IO[bytes]) -> bytes:
    """The end of what comes, all of which is read."""
    words = b""
    while piece := stream.read(WORDS_BYTES):
        words = (words + piece)[-WORDS_BYTES:]
    return words
