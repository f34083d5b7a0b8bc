"""``--collect-only``: what would be done, for how long, and what it would cost; the drives are only looked at."""

from __future__ import annotations

import pytest
from support.lab.rehearsed import SERIALS, Server, Start, drives

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]


def test_the_plan_is_told_and_nothing_is_written(server: Server, start: Start) -> None:
    before = [server.lab.vm.backing_file(serial).stat().st_mtime_ns for serial in SERIALS]
    run = start(drives(4), "--collect-only", "-k", "randread_4k_qd8").finish()
    assert run.status == 0, run.output
    assert "for 4 drives," in run.output
    assert [line.split()[:2] for line in run.output.splitlines() if line.strip().startswith("raid5x")] == [
        ["raid5x3", "1"], ["raid5x4", "1"]
    ]  # fmt: skip
    assert "will be destroyed" in run.output
    assert not start.root.exists()
    assert [server.lab.vm.backing_file(serial).stat().st_mtime_ns for serial in SERIALS] == before
