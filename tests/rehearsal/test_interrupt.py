"""Ctrl-C, to pytest's process alone, while an array is filled: all is taken down in order and JUnit is written.

A cancelled job is in test_resume.py, and what follows from it.
"""

from __future__ import annotations

import signal

import pytest
from support.lab.rehearsed import Server, Start, drives

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]


def test_an_interrupted_run_ends_in_order(server: Server, start: Start) -> None:
    running = start(drives(3), "-k", "steady_state and randwrite_4k_qd8")
    running.await_record("array_created")
    server.await_fio()
    running.signal(signal.SIGINT)
    run = running.finish()
    assert run.status == 2, run.output
    assert run.cases() == {}
    assert server.left() == []
    folder = run.folder
    assert len(folder.records("array_stopped")) == 1
    assert not folder.records("measured")
    assert folder.manifest()["exit_status"] == 2
    assert folder.is_sealed()
    # Its drives need no consent.
    again = start(drives(3), "--collect-only").finish()
    assert again.status == 0, again.output
