"""Whole runs against the session's virtual machine."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import LabHost
from rehearsed import BRIEF, Running, Server, pytest_argv

#: Starts a run: number of drives, then pytest's arguments.
Start = Callable[..., Running]


@pytest.fixture
def server(lab: LabHost) -> Iterator[Server]:
    """The machine under test; put in order again when the test has ended."""
    server = Server(lab)
    yield server
    server.reset()


@pytest.fixture
def start(server: Server, tmp_path: Path) -> Iterator[Start]:
    """``start(3, "-k", "randread_4k_qd8")``: a run on the first drives; ``root`` is where its run folder goes."""
    begun: list[Running] = []
    numbers = itertools.count()

    def begin(drives: int, *arguments: str, root: Path | None = None) -> Running:
        place = tmp_path / f"run-{next(numbers)}"
        place.mkdir()
        root = root or tmp_path / "runs"
        devices = f"lab:/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_SSDQ000[1-{drives}]"
        argv = pytest_argv(
            devices, f"--ssd-ssh-config={server.lab.ssh_config}", "--ssd-spec=ssdqual-sm300",
            f"--ssd-protocol={BRIEF}", f"--ssd-run-dir={root}", "suites/raid5", *arguments,
        )  # fmt: skip
        begun.append(Running(argv, place, root))
        return begun[-1]

    yield begin
    for run in begun:
        run.stop()
