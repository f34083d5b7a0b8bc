from __future__ import annotations

import os
import signal

import pytest

from pytest_ssdqual.rig.machine.interrupts import ENDING, put_off

pytestmark = pytest.mark.usefixtures("hangup")


@pytest.mark.parametrize("number", [signal.SIGINT, *ENDING])
def test_what_would_interrupt_waits_until_all_is_written(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    written: list[str] = []

    def write() -> None:
        with put_off():
            os.kill(os.getpid(), number)
            written.append("all of it")

    with pytest.raises(KeyboardInterrupt, match=number.name):
        write()
    assert written == ["all of it"]
    assert signal.getsignal(number) == before


def test_an_error_is_not_lost_over_it() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ValueError, match="broken"), put_off():
        raise ValueError("broken")
    assert signal.getsignal(signal.SIGINT) == before
