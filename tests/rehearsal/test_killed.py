"""The controller is killed: fio and the lease end by themselves, and only who built the array may take it down."""

from __future__ import annotations

import hashlib
import re
import signal
from pathlib import Path

import pytest
from rehearsed import SERIALS, Server, Start, await_that, drives

pytestmark = pytest.mark.lab

#: A promise that is kept on the busiest of computers.
ONE = ("-k", "even_over_time and randwrite_4k_qd8")


def test_what_a_killed_run_left_is_recognised_by_the_next_one(server: Server, start: Start, tmp_path: Path) -> None:
    running = start(drives(3), *ONE)
    running.await_record("conditioned")
    server.await_fio()
    running.signal(signal.SIGKILL)
    assert running.finish().status == -signal.SIGKILL
    await_that(lambda: not _held(server), "fio and the holder of the lease to end")
    assert server.arrays() == ["md100"]

    stranger = start(drives(3), *ONE, root=tmp_path / "elsewhere").finish()
    assert stranger.status == 4, stranger.output
    assert stranger.output.count("is held by /dev/md100 (raid5)") == 3
    assert server.arrays() == ["md100"]

    run = start(drives(3), *ONE).finish()
    assert run.status == 0, run.output
    (remark,) = re.findall(
        r"^ssdqual: stopped /dev/md100 of (.*), left over from an earlier run$", run.output, re.MULTILINE
    )
    assert set(remark.split(", ")) == {"/dev/nvme0n1", "/dev/nvme1n1", "/dev/nvme2n1"}
    assert [each.facts.get("leftover", False) for each in run.folder.records("array_stopped")] == [True, False]
    # What fio had written for the killed run is nobody's now; /run forgets it with the next boot.
    assert [line for line in server.left() if "/run/pytest-ssdqual/fio-" not in line] == []


def test_an_array_of_somebody_else_is_refused_and_not_touched(server: Server, start: Start) -> None:
    members = server.ask("sh", "-c", "ls /dev/nvme[0-9]n1").split()[:3]
    server.ask("mdadm", "--create", "/dev/md7", "--run", "--level=5", "--raid-devices=3", "--assume-clean", *members)
    server.ask("sh", "-c", "until grep -qx clean /sys/block/md7/md/array_state; do sleep 0.1; done; sync")
    before = _content(server)
    run = start(drives(3), *ONE, f"--ssd-wipe={','.join(SERIALS[:3])}").finish()
    assert run.status == 4, run.output
    assert run.output.count("is held by /dev/md7 (raid5)") == 3
    assert _content(server) == before
    assert server.arrays() == ["md7"]


def _held(server: Server) -> list[str]:
    return [line for line in server.left() if not line.startswith(("md", "not blank", "file"))]


def _content(server: Server) -> list[str]:
    found = []
    for serial in SERIALS[:3]:
        with server.lab.vm.backing_file(serial).open("rb") as file:
            found.append(hashlib.file_digest(file, "blake2b").hexdigest())
    return found
