"""How a run ends when it does not end by itself: a lost machine, a cancelled job."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from pytest_ssdqual.rig.machine.machine import MachineLost


def unless_lost(give_back: Callable[[], None]) -> None:
    """On a machine that is lost nothing can be given back; the error that said so is the whole story."""
    with suppress(MachineLost):
        give_back()


def end_in_order_on_sigterm(stack: ExitStack) -> None:
    """A cancelled CI job sends SIGTERM; treated as Ctrl-C, fio ends, the array stops and JUnit is written."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt("SIGTERM")

    with suppress(ValueError):  # not the main thread: somebody runs pytest inside of something else
        stack.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, interrupt))


@contextmanager
def put_off() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until what is written inside is whole; then ``KeyboardInterrupt`` is raised."""
    came: list[int] = []
    with ExitStack() as stack:
        with suppress(ValueError):  # as above: then neither of them comes here
            for number in (signal.SIGINT, signal.SIGTERM):
                stack.callback(signal.signal, number, signal.signal(number, lambda number, frame: came.append(number)))
        yield
    if came:
        raise KeyboardInterrupt(signal.Signals(came[0]).name)
