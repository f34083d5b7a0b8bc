"""The rig breaks while it measures: an error that says so, never a verdict, and what can go on goes on."""

from __future__ import annotations

import pytest
from rehearsed import Server, Start, await_that, drives

pytestmark = pytest.mark.lab

#: A promise that is kept on the busiest of computers.
EVEN = "test_maximum_latency_is_even_over_time"


def test_a_killed_worker_and_a_pulled_drive_are_errors_and_the_run_goes_on(server: Server, start: Start) -> None:
    chosen = "randwrite_4k_qd8 or randrw70_4k_qd8 or randread_4k_qd8"
    running = start(drives(3), "-k", f"even_over_time and ({chosen})")
    running.await_record("conditioned")
    server.await_fio()
    server.ask("sh", "-c", "set -- $(pidof fio); kill -KILL $1")
    running.await_record("measured")
    server.await_fio()
    server.lab.vm.pull("SSDQ0002")
    run = running.finish()
    server.lab.vm.plug("SSDQ0002")
    assert run.status == 1, run.output
    assert run.results() == {
        f"{EVEN}[raid5x3-randwrite_4k_qd8]": ['error: failed on setup with "a worker of fio was killed by signal 9"'],
        f"{EVEN}[raid5x3-randrw70_4k_qd8]": [],
        f"{EVEN}[raid5x3-randread_4k_qd8]": [
            'error: failed on setup with "raid5x3 cannot be measured: degraded by 1 member"'
        ],
    }
    assert [each.facts["workloads"] for each in run.folder.records("verdict")] == [["randrw70_4k_qd8"]]
    assert run.folder.is_sealed()
    # A drive that is away cannot be erased: back again, it still bears the array's superblock.
    assert server.left() == ["not blank: /dev/nvme1n1"]


def test_a_machine_that_goes_away_ends_the_run_with_one_sentence(server: Server, start: Start) -> None:
    running = start(drives(3), "--ssd-reconnect=0", "-k", "raid5x3 and randwrite_4k_qd8")
    running.await_record("conditioned")
    server.await_fio()
    server.lab.vm.pause()
    try:
        run = running.finish()
    finally:
        server.lab.vm.cont()
    assert run.status == 2, run.output
    ((name, results),) = run.results().items()
    assert name.endswith("[raid5x3-randwrite_4k_qd8]")
    assert len(results) == 1
    assert results[0].startswith('error: failed on setup with "lab is lost: ')
    assert "Interrupted: lab is lost: " in run.output
    assert not run.folder.records("verdict")
    assert run.folder.is_sealed()
    # It was only the way to it that was lost: over there fio is ended all the same, and the lease is free.
    await_that(lambda: not [line for line in server.left() if "fio is running" in line or "held" in line], "fio to end")
    assert server.arrays() == ["md100"]
