"""A long-running process on the machine under test that answers each line it is sent with a line."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Callable, Sequence

from pytest_ssdqual.rig.machine.machine import Completed, utc_now

#: Longest line of an answer.
LONGEST_BYTES = 1 << 16
END_S = 2.0


class LineProcess:
    """A process that answers lines; it exits on EOF of stdin, also when this process dies or the connection drops."""

    def __init__(self, argv: Sequence[str], local_argv: list[str], ended: Callable[[Completed], None]) -> None:
        """Start it: ``here`` is the controller's argv for ``argv``; ``ended`` is called when the process has ended.

        ``OSError`` if it cannot be started.
        """
        self._argv, self._ended = tuple(argv), ended
        self._started, self._clock = utc_now(), time.monotonic()
        self._received = b""
        # In its own session: Ctrl-C at the terminal goes to pytest only, which then ends processes in order.
        self._process = subprocess.Popen(
            local_argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )

    def ask(self, text: str, answers: int, deadline_s: float) -> list[str] | None:
        """Send a line and return ``answers`` lines, or None if they do not arrive in time or the process has ended."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            return None
        try:
            stdin.write(f"{text}\n".encode())
            end = time.monotonic() + deadline_s
            while self._received.count(b"\n") < answers:
                ready, _, _ = select.select([stdout], [], [], max(0.0, end - time.monotonic()))
                data = os.read(stdout.fileno(), LONGEST_BYTES) if ready else b""
                if not data or len(self._received) > LONGEST_BYTES:
                    return None
                self._received += data
        except (OSError, ValueError):  # the process has ended, or was closed meanwhile
            return None
        *lines, self._received = self._received.split(b"\n", answers)
        return [line.decode("ascii", "replace") for line in lines]

    def close(self) -> None:
        """End the process; harmless the second time."""
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
