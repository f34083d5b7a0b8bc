from __future__ import annotations

import os
import signal
from contextlib import ExitStack

import pytest

from pytest_ssdqual.plugin.session.stop import leave_sigterm_to_controller, put_off


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
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


def test_a_worker_leaves_sigterm_to_its_controller() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with ExitStack() as stack:
        leave_sigterm_to_controller(stack)
        os.kill(os.getpid(), signal.SIGTERM)
        # What a child would inherit is the default, not that it is ignored.
        assert signal.getsignal(signal.SIGTERM) not in (signal.SIG_IGN, before)
    assert signal.getsignal(signal.SIGTERM) is before
