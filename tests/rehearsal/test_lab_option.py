"""``--ssd-devices=lab:3``: a machine of the run's own, also with workers, and gone with it however it ends."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.lab.rehearsed import LENIENTLY, Running, Start, await_that

pytestmark = pytest.mark.lab


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    start = Start(tmp_path)
    yield start
    start.close()


@pytest.mark.nightly
def test_workers_share_a_machine_of_the_runs_own(start: Start) -> None:
    running = start("lab:3", "-n", "2", "-k", "steady_state and (randread_4k_qd8 or randread_4k_qd4)", *LENIENTLY)
    running.await_record("run_started")
    (machine,) = _machines(running)
    place = _directory_of(machine)
    assert place.is_dir()
    run = running.finish()
    assert run.status == 0, run.output
    assert "SSDQUAL SM300, whatever" in run.output
    assert list(run.results().values()) == [[], []]
    assert len(run.folder.records("array_created")) == 1
    assert len({each.facts["writer"] for each in run.folder.records("measured")} - {"main"}) == 1
    assert run.folder.is_sealed()
    assert not _is_alive(machine)
    assert not place.exists()


@pytest.mark.nightly
def test_the_machine_dies_with_a_killed_controller(start: Start) -> None:
    """As with any other owner: tests/lab/test_boot.py."""
    running = start("lab:3")
    running.await_record("run_started")
    (machine,) = _machines(running)
    running.await_output("spec SSDQUAL SM300 scale model")
    running.signal(signal.SIGKILL)
    running.finish()
    await_that(lambda: not _is_alive(machine), "the virtual machine to end")


def _machines(running: Running) -> list[int]:
    """Process ids of the virtual machines that a run has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
        except OSError:  # it has ended
            continue
        if name.startswith("qemu-system") and int(rest.split()[1]) == running.process.pid:
            found.append(int(path.parent.name))
    return found


def _directory_of(machine: int) -> Path:
    """Of the machine's own: its drives, its sockets."""
    found = re.search(r"file,id=console,path=([^\0]+)/console", Path(f"/proc/{machine}/cmdline").read_text())
    assert found
    return Path(found[1])


def _is_alive(machine: int) -> bool:
    try:
        return Path(f"/proc/{machine}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
