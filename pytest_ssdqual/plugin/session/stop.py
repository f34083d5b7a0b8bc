"""Orderly ends of a run that is interrupted: a lost machine, Ctrl-C, a cancelled job."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from pytest_ssdqual.rig.machine.machine import MachineLost


def unless_lost(give_back: Callable[[], None]) -> None:
    """Call ``give_back``, and ignore ``MachineLost``, which has been reported already."""
    with suppress(MachineLost):
        give_back()


def end_in_order_on_sigterm(stack: ExitStack) -> None:
    """Treat SIGTERM, which a cancelled CI job sends, as Ctrl-C: fio ends, the array stops, and JUnit is written."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt("SIGTERM")

    with suppress(ValueError):  # not the main thread: another program runs pytest
        stack.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, interrupt))


def leave_sigterm_to_controller(stack: ExitStack) -> None:
    """Ignore SIGTERM on a worker of pytest-xdist: the controller, which gets it too, ends the workers in order.

    By a handler, since children would inherit that a signal is ignored. systemd, for one, sends it to all processes of
    a service.
    """
    with suppress(ValueError):  # not the main thread
        stack.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, lambda number, frame: None))


@contextmanager
def put_off() -> Iterator[None]:
    """Defer Ctrl-C and SIGTERM to the end of the block; then raise ``KeyboardInterrupt``."""
    came: list[int] = []
    with ExitStack() as stack:
        with suppress(ValueError):  # not the main thread, which gets the signals
            for number in (signal.SIGINT, signal.SIGTERM):
                stack.callback(signal.signal, number, signal.signal(number, lambda number, frame: came.append(number)))
        yield
    if came:
        raise KeyboardInterrupt(signal.Signals(came[0]).name)
