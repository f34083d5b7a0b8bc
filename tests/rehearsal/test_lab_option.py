"""``--ssd-devices=lab:3``: a machine of the run's own, also with workers, and gone with it however it ends."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from rehearsed import Start, await_that

pytestmark = pytest.mark.lab

ONE = ("-k", "steady_state and randread_4k_qd8")


@pytest.fixture
def start(tmp_path: Path) -> Start: ...
