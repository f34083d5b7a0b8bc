"""Whole runs against the session's virtual machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rehearsed import Server, Start

if TYPE_CHECKING:
    from conftest import LabHost


@pytest.fixture
def server(lab: LabHost) -> Iterator[Server]:
    """The machine under test; put in order again when the test has ended."""
    server = Server(lab)
    yield server
    server.reset()


@pytest.fixture
def start(server: Server, tmp_path: Path) -> Iterator[Start]:
    """Starts runs; those that still go on when the test ends are killed."""
    start = Start(server.lab, tmp_path)
    yield start
    start.close()
