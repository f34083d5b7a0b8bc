"""Fixtures of the rehearsals of faults, which need modules of ``tests`` and boot a lab."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.lab.fault_journey import Journey
    from support.lab.fault_table import Ledger
    from support.lab.rehearsed import Lab


def has_tests() -> bool:
    """Return True if the modules of ``tests`` that rehearsals need can be imported."""
    try:
        return find_spec("support.lab.rehearsing") is not None
    except ModuleNotFoundError:
        return False


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore this folder without ``tests``, and in a run with drives, which these tests must not use."""
    del collection_path
    return None if has_tests() and not config.getoption("--ssd-devices", None) else True


#: The first four modules share one run (drives that fail have runs of their own); the last one compares the table.
ORDER = ("test_drives", "test_machine", "test_controller", "test_connection", "test_table")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put these tests last, in their order."""
    here = Path(__file__).parent
    items.sort(key=lambda item: ORDER.index(item.path.stem) + 1 if item.path.parent == here else 0)


@pytest.fixture(scope="session")
def ledger() -> Ledger:
    """The observations of each fault."""
    from support.lab.fault_table import Ledger

    return Ledger()


@pytest.fixture(scope="package")
def journey(lab: Lab, ledger: Ledger, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journey]:
    """One run with one fault after another; restores the machine at the end."""
    from support.lab.fault_journey import BYSTANDER, PROTOCOL, Bystander, Journey, small_disk
    from support.lab.rehearsed import Server, Start

    place, server = tmp_path_factory.mktemp("faults"), Server(lab)
    start = Start(place, server.options, protocol=PROTOCOL)
    disk, elsewhere = place / "disk", place / "mirror"
    for each in (disk, elsewhere):
        each.mkdir()
    mirror = Start(elsewhere, server.options, "suites/degraded", PROTOCOL)
    bystander = Bystander(lab.vm.backing_file(BYSTANDER))
    with small_disk(disk) as is_small:
        yield Journey(server, start, mirror, ledger, bystander, disk / "runs", is_small)
        start.close()
        mirror.close()
    bystander.erase()
    server.reset()
