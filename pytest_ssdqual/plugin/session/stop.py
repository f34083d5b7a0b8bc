"""Orderly ends of a run that is interrupted: a lost machine, Ctrl-C, a cancelled job, a closed terminal."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import ExitStack, suppress
from types import FrameType

from pytest_ssdqual.rig.machine.interrupts import ENDING, handle, ignore, leave_terminal
from pytest_ssdqual.rig.machine.machine import MachineLost


def unless_lost(give_back: Callable[[], None]) -> None:
    """Call ``give_back``, and ignore ``MachineLost``, which has been reported already."""
    with suppress(MachineLost):
        give_back()


def end_in_order(stack: ExitStack) -> None:
    """Treat ``ENDING`` as Ctrl-C until ``stack`` is closed: fio ends, the array stops, and JUnit is written."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            leave_terminal()
            # The kernel and the shell both send it, and the second one would interrupt the end.
            signal.signal(number, ignore)
        raise KeyboardInterrupt(signal.Signals(number).name)

    handle(stack, ENDING, interrupt)


def leave_ending_to_controller(stack: ExitStack) -> None:
    """Ignore ``ENDING`` on a worker of pytest-xdist: the controller, which gets it too, ends the workers in order.

    By a handler, since children would inherit that a signal is ignored. systemd, for one, sends SIGTERM to all
    processes of a service.
    """
    handle(stack, ENDING, ignore)
