"""What goes wrong on the side of pytest: it is killed, or cannot keep its evidence."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fault_journey import Journey

pytestmark = pytest.mark.lab


def test_a_killed_controller(journey: Journey, tmp_path: Path) -> None:
    """Fio and the lease end by themselves; only who built the array may take it down."""
    from fault_journey import CHOSEN, WRITES
    from rehearsed import drives

    running = journey.begin()
    journey.until(running, WRITES)
    running.signal(signal.SIGKILL)
    run = journey.finish(running, "controller_killed")
    journey.await_nothing_left()
    seen = journey.observe("controller_killed", run, "nothing: there is nobody left to say it")
    print(seen)

    stranger = journey.start(drives(3), *CHOSEN, root=tmp_path / "elsewhere").finish()
    assert stranger.status == 4, stranger.output
    assert stranger.output.count("is held by /dev/md100 (raid5)") == 3
    assert journey.server.arrays() == ["md100"]


def test_a_full_disk(journey: Journey) -> None:
    """No evidence, so no verdict."""
    from fault_journey import WRITES, told

    if not journey.is_small:
        pytest.skip("this user may not mount a file system")
    running = journey.begin()
    journey.until(running, WRITES)
    with journey.full_disk():
        run = journey.finish(running, "disk_full")
    print(run.output)
    seen = journey.observe("disk_full", run, *told(run, WRITES))
    print(seen)
