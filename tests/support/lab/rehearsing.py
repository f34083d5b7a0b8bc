"""A pytest plugin: the lab's one virtual machine, and whole runs against it. For ``tests`` and for ``suites/faults``.

Nothing is imported before it is asked for: every run that is started from a checkout loads this module.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.lab.bare_drives import Bench
    from support.lab.rehearsed import Lab, LabHost, Server, Start

#: Drives of the machine that rehearsals share: two widths of RAID 5, and one to play with.
LAB_DRIVES = 4
#: Environment variable with the Debian release of that machine, e.g. debian13; the host's if it is not set.
RELEASE = "PYTEST_SSDQUAL_RELEASE"


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHost]:
    """One VM for the whole session; whoever uses it leaves its drives blank and unused."""
    from pytest_ssdqual.lab import start
    from pytest_ssdqual.lab.drives import shelf
    from support.lab.rehearsed import LabHost

    with start(shelf(LAB_DRIVES), release=os.environ.get(RELEASE, "")) as vm:
        yield LabHost.of(vm, tmp_path_factory.mktemp("ssh") / "config")


@pytest.fixture(scope="module")
def here(lab: Lab) -> Iterator[Bench]:
    """Its drives for the tests of one module, without a run."""
    from support.lab.bare_drives import bench

    with bench(lab) as found:
        yield found


@pytest.fixture
def server(lab: Lab) -> Iterator[Server]:
    """The machine under test; put in order again when the test has ended."""
    from support.lab.rehearsed import Server

    server = Server(lab)
    yield server
    server.reset()


@pytest.fixture
def start(server: Server, tmp_path: Path) -> Iterator[Start]:
    """Starts runs; those that still go on when the test ends are killed."""
    from support.lab.rehearsed import Start

    start = Start(tmp_path, server.options)
    yield start
    start.close()
