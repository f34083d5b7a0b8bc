"""A process on the machine under test that cannot outlive us.

Its standard input is the tether: we send a byte every few seconds. When the bytes stop (we were killed, the
network went away, a laptop was closed) or the stream ends, a watcher *on that machine* ends the process and
everything it started: gently to the process itself (INT lets fio write its results), then TERM, then KILL to all.

Who belongs to it is told by an environment variable, not by the process group: fio's workers call setsid() and
survive a signal to the group (fio 3.33 backend.c; killing fio's parent left them writing).
"""

from __future__ import annotations

import contextlib
import queue
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Sequence

from pytest_ssdqual.rig.machine import Completed, DeadlineExceeded, utc_now

#: Silence after which the other side lets go, and how often we speak.
SILENCE_S = 60
HEARTBEAT_S = 5

#: Whom it starts is looked for twice: in the middle of an exec a process shows no environment.
#: $1 seconds of silence allowed, $2 token, $3 first signal, rest: the command. POSIX sh and coreutils or busybox.
SCRIPT = r"""
limit=$1 token=$2 gently=$3; shift 3
exec 3<&0
members() { grep -lzsxF "PYTEST_SSDQUAL_TETHER=$token" /proc/[0-9]*/environ | cut -d/ -f3; }
over() { [ ! -e "/proc/$child/exe" ]; }
nobody() { [ -z "$(members)" ]; }
gone() { over && nobody && sleep 0.1 && nobody; }
await() { n=0; until "$1"; do [ "$n" -lt "$2" ] || return 1; sleep 0.2; n=$((n + 1)); done; }
end() {
    kill -s "$gently" "$child" 2>/dev/null; await over 50; gone && return
    kill -s TERM $(members) 2>/dev/null; await gone 25 && return
    kill -s KILL $(members) 2>/dev/null; await gone 25
}
PYTEST_SSDQUAL_TETHER=$token setsid "$@" </dev/null 3<&- &
child=$!
(
    trap '' INT HUP
    while [ -n "$(timeout "$limit" head -c 1 <&3)" ]; do :; done
    end
) >/dev/null 2>&1 &
watcher=$!
trap 'end' HUP INT TERM
wait "$child"; status=$?
kill -s KILL "$watcher" 2>/dev/null
gone || end
exit "$status"
"""


def tether_argv(argv: Sequence[str], first_signal: str = "INT", silence_s: int = SILENCE_S) -> list[str]:
    """The argv that runs ``argv`` under a watcher on the machine where it is started."""
    return ["sh", "-c", SCRIPT, "tether", str(silence_s), secrets.token_hex(8), first_signal, *argv]


class TetheredProcess:
    """The near end of a tether; see ``Tethered`` for what its methods promise."""

    def __init__(self, argv: Sequence[str], here: list[str], ended: Callable[[Completed], None]) -> None:
        """Start ``here``, an argv of this computer, which runs ``argv`` over there; tell ``ended`` when it is over."""
        self._argv = tuple(argv)
        self._ended = ended
        self._started, self._clock = utc_now(), time.monotonic()
        self._process = subprocess.Popen(
            here, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._out: list[bytes] = []
        self._err: list[bytes] = []
        self._completed: Completed | None = None
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._read_out, self._read_err, self._speak)
        ]
        for thread in self._threads:
            thread.start()

    def alive(self) -> bool:
        return self._process.poll() is None

    def read_line(self, deadline_s: float) -> str:
        """See ``Tethered.read_line``."""
        try:
            line = self._lines.get(timeout=deadline_s)
        except queue.Empty:
            raise DeadlineExceeded(f"{self._argv[0]} said nothing within {deadline_s:g} s") from None
        if not line:
            self._lines.put(line)  # the end stays the end, however often one asks
        return line.decode("utf-8", "backslashreplace")

    def wait(self, deadline_s: float) -> Completed:
        """See ``Tethered.wait``."""
        try:
            self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            self.cut()
            raise DeadlineExceeded(f"{self._argv[0]} did not end within {deadline_s:g} s and was ended") from None
        except BaseException:
            self.cut()
            raise
        return self._finish()

    def cut(self, deadline_s: float = 30.0) -> Completed:
        """See ``Tethered.cut``."""
        if self._completed:
            return self._completed
        self._let_go()
        try:
            self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            # The far side's own watcher has seen the end of the stream or will see the silence.
            self._process.kill()
            self._process.wait()
        return self._finish()

    def _finish(self) -> Completed:
        if self._completed is None:
            self._let_go()
            for thread in self._threads:
                thread.join(5.0)
            elapsed = time.monotonic() - self._clock
            self._completed = Completed(
                self._argv, self._process.returncode, b"".join(self._out), b"".join(self._err), self._started, elapsed
            )
            self._ended(self._completed)
        return self._completed

    def _let_go(self) -> None:
        if self._process.stdin:
            with contextlib.suppress(BrokenPipeError):  # it ended first
                self._process.stdin.close()

    def _speak(self) -> None:
        while self._process.poll() is None:
            try:
                if self._process.stdin is None or self._process.stdin.closed:
                    return
                self._process.stdin.write(b".")  # not a newline: $(…) strips those and would see the end
                self._process.stdin.flush()
            except (OSError, ValueError):
                return  # closed by us or by the other side
            for _ in range(HEARTBEAT_S * 4):
                if self._process.poll() is not None or self._process.stdin.closed:
                    return
                time.sleep(0.25)

    def _read_out(self) -> None:
        # Closed here: who closes a stream that somebody reads waits for the reader, and that one for a survivor.
        with self._process.stdout or contextlib.nullcontext() as stream:
            for line in stream or ():
                self._out.append(line)
                self._lines.put(line)
        self._lines.put(b"")

    def _read_err(self) -> None:
        with self._process.stderr or contextlib.nullcontext() as stream:
            self._err.extend(stream or ())
