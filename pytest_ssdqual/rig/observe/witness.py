"""A process on the machine that is asked again and again while fio runs, by a thread that never disturbs the run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pytest_ssdqual.rig.machine.machine import Machine
from pytest_ssdqual.rig.observe.live_stats import LineServer

#: Asks the process until the event is set.
Asking = Callable[[LineServer, threading.Event], None]


@contextmanager
def asked(machine: Machine, argv: Sequence[str], ask: Asking, answer_s: float) -> Iterator[None]:
    """Run ``ask`` in a thread until the block ends; any error of it or of the process ends the asking only.

    The process that answers within ``answer_s`` is started before the block, and ended after it. Without
    ``Machine.line_process``, or if it does not start, nothing is asked.
    """
    server: LineServer | None = None
    with contextlib.suppress(Exception):  # a witness's error must not end the measurement
        start = getattr(machine, "line_process", None)
        server = start and start(argv)
    if server is None:
        yield
        return
    ended = threading.Event()

    def work() -> None:
        with contextlib.suppress(Exception):
            ask(server, ended)

    thread = threading.Thread(target=work, name=f"ssdqual-{argv[3]}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(answer_s)
        with contextlib.suppress(Exception):
            server.close()
