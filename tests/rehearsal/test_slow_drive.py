"""One drive at 60 % of its speed: what it touches fails, in one sentence, and nothing else does."""

from __future__ import annotations

import pytest
from rehearsed import Server, Start

pytestmark = pytest.mark.lab


def test_a_slow_drive_fails_the_promises_it_touches(server: Server, start: Start) -> None:
    server.lab.vm.set_iops("SSDQ0004", 180)
    run = start(4, "-k", "randread_4k_qd8 and (steady_state or scaling or p99)").finish()
    results = run.results()
    assert run.status == 1, run.output
    assert results == {}
