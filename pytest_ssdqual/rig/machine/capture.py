"""Collects the output of a process, within limits of time and memory: another machine decides how much it sends."""

from __future__ import annotations

import contextlib
import io
import os
import select
import selectors
import subprocess
import time
from typing import IO

#: The output of fio is the largest answer: 2 GB for hours of 24 drives, which gzip packs to a twelfth.
MOST_BYTES = 512 << 20
#: Of one read or write; a pipe holds so much (pipe(7)).
PIECE_BYTES = 1 << 16


class TooMuch(Exception):
    """The process wrote more than may be held."""


def communicate(
    process: subprocess.Popen[bytes], stdin: bytes | None, limit_s: float, most_bytes: int | None = None
) -> tuple[bytes, bytes]:
    """``Popen.communicate`` with a bound on each stream (``MOST_BYTES`` unless told).

    Raises ``subprocess.TimeoutExpired`` or ``TooMuch``; then the streams are closed, and the caller ends the process.
    """
    most_bytes = MOST_BYTES if most_bytes is None else most_bytes
    end = time.monotonic() + limit_s
    # BytesIO gives its buffer away as bytes without a copy.
    kept = {stream: io.BytesIO() for stream in (process.stdout, process.stderr) if stream}
    left = memoryview(stdin or b"")
    try:
        with selectors.DefaultSelector() as ready:
            for stream in kept:
                ready.register(stream, selectors.EVENT_READ)
            if process.stdin:
                ready.register(process.stdin, selectors.EVENT_WRITE)
            while ready.get_map():
                events = ready.select(max(0.0, end - time.monotonic()))
                if not events:
                    raise subprocess.TimeoutExpired(process.args, limit_s)
                for key, _ in events:
                    if key.fileobj is process.stdin:
                        left = left[_written(key.fd, left) :]
                        is_over = not left
                    else:
                        is_over = not _read(key.fd, kept[key.fileobj], most_bytes)  # type: ignore[index]
                    if is_over:
                        ready.unregister(key.fileobj)
                        _close(key.fileobj)  # type: ignore[arg-type]
        process.wait(max(0.0, end - time.monotonic()))
    finally:
        for each in (process.stdin, process.stdout, process.stderr):
            if each:
                _close(each)
    out, err = (kept[stream].getvalue() if stream else b"" for stream in (process.stdout, process.stderr))
    return out, err


def _read(descriptor: int, into: io.BytesIO, most_bytes: int) -> int:
    data = os.read(descriptor, PIECE_BYTES)
    if into.tell() + len(data) > most_bytes:
        raise TooMuch
    return into.write(data)


def _written(descriptor: int, data: memoryview) -> int:
    """How much the process has taken; all of it if it reads no more."""
    try:
        # A pipe that is ready takes so much without blocking (POSIX).
        return os.write(descriptor, data[: select.PIPE_BUF]) if data else 0
    except BrokenPipeError:
        return len(data)


def _close(stream: IO[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError):
        stream.close()
