"""Running argv lists as root, with a deadline, wherever the machine is.

``local`` and ``ssh`` differ only in how an argv is wrapped and in how a lost machine shows itself; the rest
is here. The deadline is kept twice: by coreutils' ``timeout`` on the machine under test, so that nothing goes
on over there when we give up, and by us, for the case that the machine or the way to it hangs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pytest_ssdqual.rig.machine import (
    CommandFailed,
    Completed,
    DeadlineExceeded,
    MachineLost,
    Observer,
    RigError,
    utc_now,
)
from pytest_ssdqual.rig.tether import TetheredProcess, tether_argv

#: What is answered when ``timeout`` had to end the command (coreutils manual, "timeout invocation"): 124 after its
#: TERM; its KILL takes ``timeout`` itself along, which is -9 here, 137 through sudo and 255 through ssh. A command may
#: answer these too, so they count only when the time is over.
TIMED_OUT = (124, 137, -9, 255)
#: The words of tools are read by us, so they must be English.
ENGLISH = ("env", "LC_ALL=C")
#: Seconds between its TERM and its KILL, and how much longer we wait for the channel than for the command.
KILL_AFTER_S = 5
CHANNEL_GRACE_S = 20


@dataclass(slots=True)
class Channel:
    """A ``Machine``: commands go through ``wrap``; ``lost`` tells a dead machine from a failed command."""

    name: str
    #: Logical argv → the argv that this computer starts.
    wrap: Callable[[Sequence[str]], list[str]]
    #: Finished command → the sentence that says why the machine is lost, or None.
    lost: Callable[[Completed], str | None]
    #: Put in front of every command to be root there: empty, or ``sudo -n --``.
    become: tuple[str, ...] = ()
    observer: Observer | None = None
    on_close: Callable[[], None] | None = None
    _gone: str | None = None
    _tethers: list[TetheredProcess] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(
        self, argv: Sequence[str], *, deadline_s: float = 60.0, check: bool = True, stdin: bytes | None = None
    ) -> Completed:
        """See ``Machine.run``."""
        self._require_alive()
        there = [*self.become, *ENGLISH, "timeout", "-k", str(KILL_AFTER_S), f"{deadline_s:g}", *argv]
        done = self._execute(argv, self.wrap(there), deadline_s + KILL_AFTER_S + CHANNEL_GRACE_S, stdin)
        if self.observer:
            self.observer(done)
        self._raise_if_lost(done)
        if done.status in TIMED_OUT and done.elapsed_s >= deadline_s:
            raise DeadlineExceeded(f"{_short(argv)} on {self.name} did not end within {deadline_s:g} s and was ended")
        if check and done.status:
            raise CommandFailed(f"{_short(argv)} on {self.name} failed: {last_words(done)}", done)
        return done

    def tether(self, argv: Sequence[str], *, first_signal: str = "INT") -> TetheredProcess:
        """See ``Machine.tether``."""
        self._require_alive()
        there = [*self.become, *ENGLISH, *tether_argv(argv, first_signal)]
        process = TetheredProcess(argv, self.wrap(there), self._tether_ended)
        with self._lock:
            self._tethers.append(process)
        return process

    def close(self) -> None:
        """Cut every tether that is still held, then the connection."""
        for process in reversed(self._tethers):
            with contextlib.suppress(RigError):  # a lost machine lets go by itself
                process.cut()
        if self.on_close:
            self.on_close()
            self.on_close = None

    def _tether_ended(self, done: Completed) -> None:
        if self.observer:
            self.observer(done)
        self._raise_if_lost(done)

    def _require_alive(self) -> None:
        if self._gone:
            raise MachineLost(self._gone)

    def _raise_if_lost(self, done: Completed) -> None:
        why = self.lost(done)
        if why:
            self._gone = f"{self.name} is lost: {why}"
            raise MachineLost(self._gone)

    def _execute(self, argv: Sequence[str], here: list[str], limit_s: float, stdin: bytes | None) -> Completed:
        started, clock = utc_now(), time.monotonic()
        # A session of its own: Ctrl-C at the terminal is for pytest, which then ends things in order.
        process = subprocess.Popen(
            here,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(stdin, timeout=limit_s)
        except subprocess.TimeoutExpired:
            _end(process)
            self._gone = f"{self.name} is lost: it did not answer to {_short(argv)} within {limit_s:g} s"
            raise MachineLost(self._gone) from None
        except BaseException:
            _end(process)
            raise
        return Completed(tuple(argv), process.returncode, out, err, started, time.monotonic() - clock)


def _end(process: subprocess.Popen[bytes]) -> None:
    """``timeout`` passes TERM on to its command, and KILL later; an ssh lets go of the other side."""
    with contextlib.suppress(subprocess.TimeoutExpired, PermissionError):  # sudo's processes are not ours to signal
        process.terminate()
        process.communicate(timeout=KILL_AFTER_S + 1)
        return
    with contextlib.suppress(subprocess.TimeoutExpired, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=1)


def last_words(done: Completed) -> str:
    """The last line a failed command said, on either stream, or its exit status if it said nothing."""
    said = done.errors.strip() or done.text.strip()
    return said.splitlines()[-1].strip() if said else f"exit status {done.status}"


def _short(argv: Sequence[str]) -> str:
    text = " ".join(argv[:6]).split("\n", 1)[0]
    return text if len(text) <= 80 else text[:79] + "…"
