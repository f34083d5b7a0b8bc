"""A long-running process on the machine under test that answers each line it is sent with a line."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Callable, Sequence

from pytest_ssdqual.rig.machine.machine import Completed, utc_now

#: No answer has longer lines.
LONGEST_BYTES = 1 << 16
END_S = 2.0


class Conversation:
    """See the module. It ends over there when its input does, so also when we are killed or the connection is lost."""

    def __init__(self, argv: Sequence[str], here: list[str], ended: Callable[[Completed], None]) -> None:
        """``here`` is what this computer starts so that ``argv`` runs over there; ``ended`` is told when it is over.

        ``OSError`` if it cannot be started.
        """
        self._argv, self._ended = tuple(argv), ended
        self._started, self._clock = utc_now(), time.monotonic()
        self._said = b""
        # A session of its own: Ctrl-C at the terminal is for pytest, which then ends things in order.
        self._process = subprocess.Popen(
            here,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )

    def ask(self, text: str, answers: int, deadline_s: float) -> list[str] | None:
        """Send a line; as many lines as are said then, or None if they are not there in time or it has ended."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            return None
        try:
            stdin.write(f"{text}\n".encode())
            end = time.monotonic() + deadline_s
            while self._said.count(b"\n") < answers:
                ready, _, _ = select.select([stdout], [], [], max(0.0, end - time.monotonic()))
                data = os.read(stdout.fileno(), LONGEST_BYTES) if ready else b""
                if not data or len(self._said) > LONGEST_BYTES:
                    return None
                self._said += data
        except (OSError, ValueError):  # it has ended, or was closed meanwhile
            return None
        *lines, self._said = self._said.split(b"\n", answers)
        return [line.decode("ascii", "replace") for line in lines]

    def close(self) -> None:
        """End it; harmless the second time."""
        process = self._process
        if process.stdin is None or process.stdin.closed:
            return
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(PermissionError, subprocess.TimeoutExpired):
                process.kill()
                process.wait(END_S)
        if process.stdout:
            process.stdout.close()
        elapsed_s = time.monotonic() - self._clock
        self._ended(Completed(self._argv, process.returncode or 0, b"", b"", self._started, elapsed_s))
