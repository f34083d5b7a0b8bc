"""Signals that end a run: handled as Ctrl-C, or deferred until work that must not be left half done is over."""

from __future__ import annotations

import errno
import os
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType

#: Signals that end a run in order as Ctrl-C does: SIGTERM of a cancelled CI job, SIGHUP of a terminal that is closed.
ENDING = (signal.SIGTERM, signal.SIGHUP)
Handler = Callable[[int, FrameType | None], None]


@contextmanager
def put_off() -> Iterator[None]:
    """Defer Ctrl-C and ``ENDING`` to the end of the block; then raise ``KeyboardInterrupt``."""
    came: list[int] = []

    def defer(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            leave_terminal()
        came.append(number)

    with ExitStack() as stack:
        handle(stack, (signal.SIGINT, *ENDING), defer)
        yield
    if signal.SIGHUP in came and callable(signal.getsignal(signal.SIGHUP)):
        signal.signal(signal.SIGHUP, ignore)
    if came:
        raise KeyboardInterrupt(signal.Signals(came[0]).name)


def handle(stack: ExitStack, numbers: tuple[signal.Signals, ...], handler: Handler) -> None:
    """Install a handler until ``stack`` is closed; nohup has SIGHUP ignored, and it stays so."""
    for number in numbers:
        if number == signal.SIGHUP and signal.getsignal(number) in (signal.SIG_IGN, ignore):
            continue
        with suppress(ValueError):  # not the main thread: another program runs pytest
            stack.callback(signal.signal, number, signal.signal(number, handler))


def ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing."""


def leave_terminal() -> None:
    """Let output to a terminal that was closed go nowhere: each write would be an OSError in the middle of the end.

    A descriptor of a closed terminal no longer passes for one (``isatty``), so each is tried by a write of no bytes:
    Linux returns EIO (hung_up_tty_write, drivers/tty/tty_io.c).
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for path in Path("/proc/self/fd").iterdir():
        descriptor = int(path.name)
        with suppress(OSError):  # the directory's own is closed by now
            if stat.S_ISCHR(os.fstat(descriptor).st_mode) and _is_hung_up(descriptor):
                os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _is_hung_up(descriptor: int) -> bool:
    try:
        os.write(descriptor, b"")
    except OSError as error:
        return error.errno == errno.EIO
    return False
