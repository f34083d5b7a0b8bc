from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.rig import lease as leases
from pytest_ssdqual.rig.channel import Channel
from pytest_ssdqual.rig.lease import DIRECTORY, Lease, LeaseLost, holder_argv, lock_files
from pytest_ssdqual.rig.machine import LeaseTaken, RigError

#: A run that holds drives and never says goodbye.
CONTROLLER = """
import signal, sys
from pytest_ssdqual.rig import lease
from pytest_ssdqual.rig.channel import Channel
lease.DIRECTORY = sys.argv[1]
held = lease.Lease(Channel("dut7", wrap=list, lost=lambda done: None), sys.argv[2:])
print("held", flush=True)
signal.pause()
"""

identities = st.lists(st.text(st.characters(codec="utf-8"), min_size=1), max_size=5)


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where leases are kept during this test."""
    directory = tmp_path / "locks"
    monkeypatch.setattr(leases, "DIRECTORY", str(directory))
    return directory


@pytest.fixture
def machine(unprivileged: Channel, locks: Path) -> Channel:
    unprivileged.name = "dut7"
    return unprivileged


@given(identities)
def test_lock_files_stay_in_their_directory_and_in_order(names: list[str]) -> None:
    files = lock_files(names)
    assert list(files) == sorted(files)
    assert len(files) == len(set(names))
    for file in files:
        folder, _, name = file.rpartition("/")
        assert folder == DIRECTORY
        assert name.endswith(".lock")
        assert name not in (".", "..")


@given(st.permutations(["SSDQ0001", "eui.0025385b71b0a2c1", "0x5000c5009d3f1a2b"]))
def test_the_order_of_the_locks_is_not_the_users(names: list[str]) -> None:
    assert lock_files(names) == lock_files(sorted(names))


def test_the_holder_takes_every_lock_or_none() -> None:
    argv = holder_argv(["/a", "/b"], "me")
    flock = ["flock", "--no-fork", "--nonblock", "--conflict-exit-code", "75"]
    assert argv == [*flock, "/a", *flock, "/b", "sh", "-c", leases.HOLDER, "lease", "me", "/a", "/b"]


def test_a_drive_has_one_holder(machine: Channel) -> None:
    with Lease(machine, ["A", "B"]) as held:
        held.require()
        with pytest.raises(LeaseTaken) as taken:
            Lease(machine, ["B", "C"])
        message = str(taken.value)
        assert message.startswith("another run holds drives on dut7: B.lock: ")
        assert f" pid {os.getpid()} since 2" in message
        assert "A.lock" not in message
        with Lease(machine, ["C"]) as other:  # the failed attempt kept nothing
            other.require()
    with Lease(machine, ["A", "B", "C"]) as again:
        again.require()


def test_every_drive_that_is_held_is_named(machine: Channel) -> None:
    with Lease(machine, ["A"]), Lease(machine, ["B"]), pytest.raises(LeaseTaken, match=r"A\.lock: .*; B\.lock: "):
        Lease(machine, ["A", "B", "C"])


def test_a_killed_run_holds_nothing(machine: Channel, locks: Path) -> None:
    argv = [sys.executable, "-c", CONTROLLER, str(locks), "A", "B"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as controller:
        assert controller.stdout is not None
        assert controller.stdout.readline() == b"held\n"
        with pytest.raises(LeaseTaken, match=f" pid {controller.pid} since "):
            Lease(machine, ["B"])
        controller.kill()
    # It waits for the lock here, so that it is not a matter of how long the watcher takes.
    machine.run(["flock", "--wait", "60", str(locks / "B.lock"), "true"], deadline_s=90)
    with Lease(machine, ["A", "B"]) as held:
        held.require()


def test_a_lease_that_was_lost_is_noticed(machine: Channel, locks: Path) -> None:
    held = Lease(machine, ["A"])
    pids = _openers(locks / "A.lock")
    assert pids
    for pid in pids:
        machine.run(["kill", "-s", "KILL", pid], check=False)
    machine.run(["flock", "--wait", "60", str(locks / "A.lock"), "true"], deadline_s=90)
    held._holder.wait(60)
    with pytest.raises(LeaseLost, match=r"^the lease on dut7 was lost: something ended its holder$"):
        held.require()


def _openers(file: Path) -> list[str]:
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if link.readlink() == file:
                found.append(link.parts[2])
        except OSError:
            continue
    return found


def test_a_released_lease_is_not_held(machine: Channel) -> None:
    held = Lease(machine, ["A"])
    held.release()
    held.release()
    with pytest.raises(LeaseLost):
        held.require()


def test_a_lease_that_cannot_be_taken_says_why(unprivileged: Channel, locks: Path) -> None:
    locks.mkdir()
    (locks / "A.lock").symlink_to("/nowhere/at/all")
    with pytest.raises(RigError, match=r"^cannot take the lease on here: flock: "):
        Lease(unprivileged, ["A"])
