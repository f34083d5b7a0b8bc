from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_ssdqual.rig.guard import lease
from pytest_ssdqual.rig.guard.lease import Lease
from pytest_ssdqual.rig.machine import run_files
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.run_files import sweep

#: A run that holds a drive, has a process and a file of fio's on the machine, and is killed.
RUN = """
import signal, sys
from pathlib import Path
from pytest_ssdqual.rig.guard import lease
from pytest_ssdqual.rig.machine import run_files
from pytest_ssdqual.rig.machine.channel import Channel
lease.DIRECTORY = run_files.DIRECTORY = sys.argv[1]
machine = Channel("dut7", wrap=list, lost=lambda done: None, directory=sys.argv[1])
held = lease.Lease(machine, {sys.argv[2]: sys.argv[2]})
process = machine.tether(["sh", "-c", "echo $PPID; exec sleep 600"], first_signal="TERM", announces=True)
keeper = process.read_line(60).strip()
path = run_files.path(machine, "fio")
Path(path).write_text("{}")
print(keeper, path, flush=True)
signal.pause()
"""
LONG_AGO_S = 3600.0


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in (lease, run_files):
        monkeypatch.setattr(module, "DIRECTORY", str(tmp_path / "run"))
    return tmp_path / "run"


@pytest.fixture
def machine(directory: Path) -> Iterator[Channel]:
    channel = Channel("dut7", wrap=list, lost=lambda done: None, directory=str(directory))
    yield channel
    channel.close()


def age(directory: Path) -> None:
    """Nothing is in the making any more."""
    for path in directory.iterdir():
        with contextlib.suppress(FileNotFoundError):  # a keeper that ends takes its own away
            os.utime(path, (time.time() - LONG_AGO_S,) * 2, follow_symlinks=False)


@contextmanager
def run(directory: Path, identity: str) -> Iterator[tuple[subprocess.Popen[str], int, Path]]:
    argv = [sys.executable, "-c", RUN, str(directory), identity]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        keeper, path = process.stdout.readline().split()
        try:
            yield process, int(keeper), Path(path)
        finally:
            process.kill()


def await_end(machine: Channel, directory: Path, identity: str) -> None:
    machine.run(["flock", "--wait", "60", str(directory / f"{identity}.lock"), "true"], deadline_s=90)


def test_files_of_a_killed_run_go_and_those_of_a_live_one_stay(machine: Channel, directory: Path) -> None:
    with run(directory, "A") as (killed, _, left), run(directory, "B") as (_, _, used):
        killed.kill()
        killed.wait()
        await_end(machine, directory, "A")
        assert left.exists()
        assert sweep(machine) == ()  # all of it is too young
        age(directory)
        removed = sweep(machine)
        assert left.name in removed
        assert not left.exists()
        assert used.exists()
        assert f"run-{used.name.split('-')[1]}.lock" in {path.name for path in directory.iterdir()}


def test_directory_goes_with_a_killed_keeper_only(machine: Channel, directory: Path) -> None:
    with run(directory, "A") as (_, keeper, _):
        before = set(directory.glob("tether-*"))
        os.killpg(keeper, 9)
        (directory / "tether-0123.over").mkdir()  # it was killed while it cleared away
        time.sleep(0.1)
        age(directory)
        removed = [name for name in sweep(machine) if name.startswith("tether-")]
        assert "tether-0123.over" in removed
        left = set(directory.glob("tether-*"))
        assert len(before - left) == 1
        assert len(left) >= 1  # that of the lease


def test_own_files_stay_as_long_as_the_lease(machine: Channel, directory: Path) -> None:
    with Lease(machine, {"A": "A"}), Lease(machine, {"B": "B"}):
        mine = Path(run_files.path(machine, "fio"))
        mine.write_text("{}")
        age(directory)
        assert sweep(machine) == ()
        assert mine.exists()
    age(directory)
    assert mine.name in sweep(machine)


def test_links_and_other_names_are_left_alone(machine: Channel, directory: Path, tmp_path: Path) -> None:
    directory.mkdir(mode=0o700)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").write_text("")
    (directory / "tether-ab").symlink_to(tmp_path / "elsewhere")
    (directory / "run-ab.lock").symlink_to(tmp_path / "elsewhere" / "kept")
    (directory / "fio-ab-1").write_text("")
    (directory / "A.lock").write_text("")
    (directory / "other").write_text("")
    age(directory)
    assert sweep(machine) == ()
    assert len(list(directory.iterdir())) == 5
    assert (tmp_path / "elsewhere" / "kept").exists()


def test_machine_without_the_directory_has_nothing_left(machine: Channel, directory: Path) -> None:
    assert sweep(machine) == ()
    assert not directory.exists()
