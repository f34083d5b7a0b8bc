"""A site's switch, for ``-p power_switch``: asks whoever has the machine, through a folder, to cut its power."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

DEADLINE_S = 120.0
#: In the folder that ``POWER_SWITCH`` names: what is asked, and what is answered.
ASKED, DONE = "asked", "done"


@pytest.hookimpl
def pytest_ssdqual_power_cut(machine: str) -> bool | None:
    folder = Path(os.environ["POWER_SWITCH"])
    (folder / ASKED).write_text(machine)
    end = time.monotonic() + DEADLINE_S
    while not (folder / DONE).exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    (folder / DONE).unlink()
    return True
