from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from pytest_ssdqual.plugin.session.stop import end_in_order, leave_ending_to_controller
from pytest_ssdqual.rig.machine.interrupts import ENDING, put_off

pytestmark = pytest.mark.usefixtures("hangup")


@pytest.mark.parametrize("number", ENDING)
def test_a_worker_leaves_the_end_to_its_controller(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with ExitStack() as stack:
        leave_ending_to_controller(stack)
        os.kill(os.getpid(), number)
        # What a child would inherit is the default, not that it is ignored.
        assert signal.getsignal(number) not in (signal.SIG_IGN, before)
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", ENDING)
def test_signal_that_ends_a_run_is_an_interrupt(number: signal.Signals) -> None:
    with ExitStack() as stack:
        end_in_order(stack)
        with pytest.raises(KeyboardInterrupt, match=number.name):
            os.kill(os.getpid(), number)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


@pytest.mark.parametrize("is_deferred", [False, True])
def test_second_hangup_does_not_interrupt_the_end(is_deferred: bool) -> None:
    """The kernel and the shell both send one."""
    with ExitStack() as stack:
        end_in_order(stack)
        with pytest.raises(KeyboardInterrupt), put_off() if is_deferred else ExitStack():
            os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGHUP)
        with put_off():
            os.kill(os.getpid(), signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


def test_hangup_stays_ignored_below_nohup() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with ExitStack() as stack:
        end_in_order(stack)
        with put_off():
            os.kill(os.getpid(), signal.SIGHUP)
        leave_ending_to_controller(stack)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


RUN = """
import fcntl, signal, sys, termios
from contextlib import ExitStack
from pathlib import Path
from pytest_ssdqual.plugin.session.stop import end_in_order
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
with ExitStack() as stack:
    end_in_order(stack)
    try:
        print("ready", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        print("the run ends", flush=True)
        print("the run ends", file=sys.stderr, flush=True)
        Path(sys.argv[1]).write_text("restored")
"""


def test_run_whose_terminal_is_closed_ends_in_order(tmp_path: Path) -> None:
    """Its output goes nowhere: a write to the terminal would be an error in the middle of the end."""
    restored = tmp_path / "restored"
    terminal, its = pty.openpty()
    argv = [sys.executable, "-c", RUN, str(restored)]
    with subprocess.Popen(argv, stdin=its, stdout=its, stderr=its, start_new_session=True) as run:
        os.close(its)
        assert b"ready" in os.read(terminal, 1024)
        os.close(terminal)
        assert run.wait(timeout=60) == 0
    assert restored.read_text() == "restored"
