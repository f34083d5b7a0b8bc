"""Whole runs against the session's virtual machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rehearsed import Lab, Server, Start


@pytest.fixture
def server(lab: Lab) -> Iterator[Server]:
    """The machine under test; put in order again when the test has ended."""
    server = Server(lab)
    yield server
    server.reset()


@pytest.fixture
def start(server: Server, tmp_path: Path) -> Iterator[Start]:
    """Starts runs; those that still go on when the test ends are killed."""
    start = Start(tmp_path, server.options)
    yield start
    start.close()
