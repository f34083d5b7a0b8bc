"""Work on several drives at a time, in threads that never outlast the call.

A signal interrupts the main thread only. Threads that went on after it would write to drives whose lease the end of the
run has released, and another run may have taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.rig.machine.interrupts import put_off
from pytest_ssdqual.rig.machine.machine import Completed, Machine, MustFinish, RigError, Tethered

DriveT = TypeVar("DriveT")
T = TypeVar("T")

#: Commands at a time: sshd's default MaxSessions is 10; the lease and a running fio have one each.
SIDE_BY_SIDE = 6
#: Seconds between two requests, after an interrupt, to wait no longer for commands that must finish.
LEAVE_EVERY_S = 1.0


@frozen
class PermittedMachine:
    """A ``Machine`` on which each command needs a permission: ``permit`` raises if there is none."""

    machine: Machine
    permit: Callable[[], None]

    @property
    def name(self) -> str:
        return self.machine.name

    @property
    def token(self) -> str:
        return self.machine.token

    @property
    def generation(self) -> int:
        return self.machine.generation

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float = 60.0,
        check: bool = True,
        stdin: bytes | None = None,
        repeatable: bool = False,
        must_finish: MustFinish | None = None,
    ) -> Completed:
        """See ``Machine.run``."""
        self.permit()
        return self.machine.run(
            argv, deadline_s=deadline_s, check=check, stdin=stdin, repeatable=repeatable, must_finish=must_finish
        )

    def tether(self, argv: Sequence[str], *, first_signal: str = "INT", announces: bool = False) -> Tethered:
        """See ``Machine.tether``."""
        self.permit()
        return self.machine.tether(argv, first_signal=first_signal, announces=announces)

    def leave_unfinished(self) -> None:
        """See ``Machine.leave_unfinished``."""
        self.machine.leave_unfinished()


def each(machine: Machine, drives: Sequence[DriveT], work: Callable[[Machine, DriveT], T]) -> list[T]:
    """Call ``work`` for every drive, several at a time; the first error is raised when all have ended.

    ``work`` gets the machine for its commands. After an interrupt none of them begins any more: what has not begun is
    dropped, and what runs is awaited before the interrupt is raised. Commands that must finish go on by themselves.
    """
    is_stopped = False

    def permit() -> None:
        if is_stopped:
            raise RigError("the run was interrupted, so no further command was begun on this drive")

    permitted = PermittedMachine(machine, permit)
    pool = ThreadPoolExecutor(SIDE_BY_SIDE)
    working = []
    try:
        working += [pool.submit(work, permitted, drive) for drive in drives]
        wait(working)
    except BaseException:
        is_stopped = True
        with put_off():
            pool.shutdown(wait=False, cancel_futures=True)
            # ``wait`` never counts a call as done that was cancelled before it began (CPython 3.11).
            while wait([call for call in working if not call.cancelled()], LEAVE_EVERY_S).not_done:
                machine.leave_unfinished()
            pool.shutdown()
        raise
    pool.shutdown()
    return [done.result() for done in working]
