"""The rig breaks while it measures: an error that says so, never a verdict, and what can go on goes on."""

from __future__ import annotations

import pytest
from rehearsed import Server, Start

pytestmark = pytest.mark.lab


def test_a_killed_worker_and_a_pulled_drive_are_errors_and_the_run_goes_on(server: Server, start: Start) -> None:
    chosen = "randwrite_4k_qd8 or randrw70_4k_qd8 or randread_4k_qd8"
    running = start(3, "-k", f"steady_state and ({chosen})")
    running.await_record("conditioned")
    server.await_fio()
    server.ask("sh", "-c", "set -- $(pidof fio); kill -KILL $1")
    running.await_record("measured")
    server.await_fio()
    server.lab.vm.pull("SSDQ0002")
    run = running.finish()
    server.lab.vm.plug("SSDQ0002")
    assert run.status == 1, run.output
    assert run.results() == {}
    assert server.left() == []


def test_a_machine_that_goes_away_ends_the_run_with_one_sentence(server: Server, start: Start) -> None:
    running = start(3, "-k", "(steady_state or scaling or p99) and randwrite_4k_qd8")
    running.await_record("conditioned")
    server.await_fio()
    server.lab.vm.pause()
    try:
        run = running.finish()
    finally:
        server.lab.vm.cont()
    assert run.status == 2, run.output
    assert run.results() == {}
