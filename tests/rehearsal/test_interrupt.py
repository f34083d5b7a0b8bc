"""Ctrl-C and a cancelled CI job, to pytest's process alone: all is taken down in order and JUnit is written."""

from __future__ import annotations

import signal

import pytest
from rehearsed import Server, Start, drives

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]


@pytest.mark.parametrize(
    ("number", "after"),
    [
        pytest.param(signal.SIGINT, "array_created", id="ctrl-c-while-filling"),
        pytest.param(signal.SIGTERM, "conditioned", id="term-while-measuring"),
    ],
)
def test_an_interrupted_run_ends_in_order(number: signal.Signals, after: str, server: Server, start: Start) -> None:
    running = start(drives(3), "-k", "steady_state and randwrite_4k_qd8")
    running.await_record(after)
    server.await_fio()
    running.signal(number)
    run = running.finish()
    assert run.status == 2, run.output
    assert run.cases() == {}
    assert server.left() == []
    folder = run.folder
    assert len(folder.records("array_stopped")) == 1
    assert not folder.records("measured")
    assert folder.manifest()["exit_status"] == 2
    assert folder.is_sealed()
