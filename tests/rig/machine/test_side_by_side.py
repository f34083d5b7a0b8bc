from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent import futures

import pytest
from support.fakes.scripted import ScriptedMachine

from pytest_ssdqual.rig.machine import side_by_side
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, Machine, RigError, StillRunning
from pytest_ssdqual.rig.machine.side_by_side import SIDE_BY_SIDE, PermittedMachine, each


def test_drives_are_worked_on_side_by_side_but_not_all_at_once() -> None:
    now, most, lock = 0, 0, threading.Lock()

    def work(machine: Machine, number: int) -> int:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= 1
        return number

    assert each(ScriptedMachine(), range(20), work) == list(range(20))
    assert 1 < most <= SIDE_BY_SIDE


def test_every_drive_is_finished_before_an_error_is_raised() -> None:
    finished: list[int] = []

    def work(machine: Machine, number: int) -> None:
        if not number:
            raise InvalidMeasurement("no")
        time.sleep(0.05)
        finished.append(number)

    with pytest.raises(InvalidMeasurement):
        each(ScriptedMachine(), range(20), work)
    assert len(finished) == 19


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """A signal comes while the main thread waits, once the event is set."""
    real, has_come, begun = futures.wait, False, threading.Event()

    def wait(working: Sequence[futures.Future[None]], timeout: float | None = None) -> object:
        nonlocal has_come
        if not has_come:
            has_come = True
            assert begun.wait(30)
            raise KeyboardInterrupt
        return real(working, timeout)

    monkeypatch.setattr(side_by_side, "wait", wait)
    monkeypatch.setattr(side_by_side, "LEAVE_EVERY_S", 0.01)
    return begun


def test_an_interrupt_leaves_no_command_behind(interrupted: threading.Event) -> None:
    """What runs ends before the interrupt is raised, and no other drive is touched after it."""
    machine, ended = ScriptedMachine().on("blkdiscard").on("wipefs"), list[int]()
    running = threading.Barrier(SIDE_BY_SIDE, action=interrupted.set)

    def work(permitted: Machine, number: int) -> None:
        permitted.run(["blkdiscard", str(number)])
        running.wait(30)
        time.sleep(0.2)
        ended.append(number)
        permitted.run(["wipefs", str(number)])

    with pytest.raises(KeyboardInterrupt):
        each(machine, range(20), work)
    begun = sorted(int(argv[1]) for argv in machine.asked)
    assert begun == sorted(ended) == list(range(SIDE_BY_SIDE))
    assert {argv[0] for argv in machine.asked} == {"blkdiscard"}


def test_an_interrupt_does_not_wait_for_what_must_finish(interrupted: threading.Event) -> None:
    """A sanitize takes hours and goes on by itself."""
    left = threading.Event()

    class Sanitizing(ScriptedMachine):
        def leave_unfinished(self) -> None:
            left.set()

    def work(permitted: Machine, number: int) -> None:
        interrupted.set()
        assert left.wait(30)
        raise StillRunning("it goes on")

    with pytest.raises(KeyboardInterrupt):
        each(Sanitizing(), range(2), work)


def test_no_command_begins_without_permission() -> None:
    machine, refusals = ScriptedMachine().on("blkdiscard"), list[str]()

    def permit() -> None:
        if refusals:
            raise RigError(refusals[0])

    permitted = PermittedMachine(machine, permit)
    permitted.run(["blkdiscard", "/dev/sdb"])
    refusals.append("the lease was lost")
    with pytest.raises(RigError, match="lease was lost"):
        permitted.run(["blkdiscard", "/dev/sdc"])
    with pytest.raises(RigError, match="lease was lost"):
        permitted.tether(["fio"])
    assert machine.asked == [("blkdiscard", "/dev/sdb")]
