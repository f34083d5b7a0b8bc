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

#: Limit of one stream. fio's output is the largest: 2 GB for hours of 24 drives, which gzip packs to a twelfth.
MOST_BYTES = 512 << 20
#: Size of one read or write: the capacity of a pipe (pipe(7)).
PIECE_BYTES = 1 << 16


class TooMuch(Exception):
    """The process wrote more than the limit."""


def communicate(process: subprocess.Popen[bytes], stdin: bytes | None, limit_s: float) -> tuple[bytes, bytes]:
    """``Popen.communicate`` with a limit for each stream, ``MOST_BYTES``.

    Raises ``subprocess.TimeoutExpired`` or ``TooMuch``; then the streams are closed, and the caller ends the process.
    """
    end = time.monotonic() + limit_s
    # BytesIO returns its buffer as bytes without a copy.
    captured = {stream: io.BytesIO() for stream in (process.stdout, process.stderr) if stream}
    unsent = memoryview(stdin or b"")
    try:
        with selectors.DefaultSelector() as ready:
            for stream in captured:
                ready.register(stream, selectors.EVENT_READ)
            if process.stdin:
                ready.register(process.stdin, selectors.EVENT_WRITE)
            while ready.get_map():
                events = ready.select(max(0.0, end - time.monotonic()))
                if not events:
                    raise subprocess.TimeoutExpired(process.args, limit_s)
                for key, _ in events:
                    if key.fileobj is process.stdin:
                        unsent = unsent[_written(key.fd, unsent) :]
                        is_over = not unsent
                    else:
                        is_over = not _read(key.fd, captured[key.fileobj])  # type: ignore[index]
                    if is_over:
                        ready.unregister(key.fileobj)
                        _close(key.fileobj)  # type: ignore[arg-type]
        process.wait(max(0.0, end - time.monotonic()))
    finally:
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                _close(pipe)
    out, err = (captured[stream].getvalue() if stream else b"" for stream in (process.stdout, process.stderr))
    return out, err


def _read(descriptor: int, into: io.BytesIO) -> int:
    data = os.read(descriptor, PIECE_BYTES)
    if into.tell() + len(data) > MOST_BYTES:
        raise TooMuch
    return into.write(data)


def _written(descriptor: int, data: memoryview) -> int:
    """Write to the process and return the number of bytes that it took; all of them if it no longer reads."""
    try:
        # A pipe that is ready takes PIPE_BUF bytes without blocking (POSIX).
        return os.write(descriptor, data[: select.PIPE_BUF]) if data else 0
    except BrokenPipeError:
        return len(data)


def _close(stream: IO[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError):
        stream.close()
