"""Fixtures that several rooms' tests share: the lab's one virtual machine, and hypothesis' profiles."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from rehearsed import LabHost

#: Drives of the machine that rehearsals share: two widths of RAID 5, and one to play with.
LAB_DRIVES = 4

# A slow machine is not a bug of the code under test.
settings.register_profile("ssdqual", deadline=None, print_blob=True)
settings.load_profile("ssdqual")


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHost]:
    """One VM for the whole session; whoever uses it leaves its drives blank and unused."""
    from pytest_ssdqual.lab import start

    with start(LAB_DRIVES) as vm:
        yield LabHost.of(vm, tmp_path_factory.mktemp("ssh") / "config")
