"""Faults of the controller: it is killed, or cannot write evidence."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.lab.fault_journey import Journey

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]


def test_a_killed_controller(journey: Journey, tmp_path: Path) -> None:
    """Fio and the lease end by themselves; only the run that built the array may stop it."""
    from support.lab.fault_journey import CHOSEN, ORDERLY, WRITES
    from support.lab.fault_table import Observed
    from support.lab.rehearsed import drives

    running = journey.begin()
    journey.until(running, WRITES)
    running.signal(signal.SIGKILL)
    run = journey.finish(running, "controller_killed")
    journey.await_nothing_left()
    seen = journey.observe("controller_killed", run, "nothing: no process is left to report it")
    left = ORDERLY | {"junit": "none", "folder": "readable, not sealed"}
    assert seen == Observed(seen.said, "ends, exit status -9", "left standing", **left)

    stranger = journey.start(drives(3), *CHOSEN, root=tmp_path / "elsewhere").finish()
    assert stranger.status == 4, stranger.output
    assert stranger.output.count("is held by /dev/md100 (raid5)") == 3
    assert journey.server.arrays() == ["md100"]


@pytest.mark.nightly
def test_a_full_disk(journey: Journey) -> None:
    """No evidence, so no verdict."""
    from support.lab.fault_journey import ORDERLY, STOPPED, WRITES, told
    from support.lab.fault_table import Observed

    if not journey.is_small:
        pytest.skip("this user may not mount a file system")
    running = journey.begin()
    journey.until(running, WRITES)
    with journey.full_disk():
        run = journey.finish(running, "disk_full")
    assert run.status == 2, run.output
    assert "INTERNALERROR" not in run.output
    assert "the run folder is not complete: evidence cannot be stored in" in run.output
    # Which file does not fit is chance.
    said = tuple(
        re.sub(rf"{re.escape(str(run.folder.path))}\S*(?=: )", "RUN_FOLDER/…", each) for each in told(run, WRITES)
    )
    seen = journey.observe("disk_full", run, *said)
    assert said == ("`<error>` evidence cannot be stored in RUN_FOLDER/…: No space left on device",)
    assert seen == Observed(said, "ends, exit status 2", STOPPED, **ORDERLY | {"folder": "readable, not sealed"})
