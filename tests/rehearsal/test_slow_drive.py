"""One drive at 60 % of its speed: what it touches fails, in one sentence, and nothing else does."""

from __future__ import annotations

import re

import pytest
from support.lab.rehearsed import Server, Start, drives

pytestmark = [pytest.mark.lab, pytest.mark.nightly]

STEADY = "test_steady_state_iops_match_the_data_sheet"


def test_a_slow_drive_fails_the_promises_it_touches(server: Server, start: Start) -> None:
    server.lab.vm.set_iops("SSDQ0004", 180)
    run = start(drives(4), "-k", "randread_4k_qd8 and (steady_state or scaling)").finish()
    assert run.status == 1, run.output
    failures = {name: results for name, results in run.results().items() if results}
    assert set(run.results()) - set(failures) == {f"{STEADY}[raid5x3-randread_4k_qd8]"}
    assert set(failures) == {
        f"{STEADY}[raid5x4-randread_4k_qd8]",
        "test_iops_grow_by_the_share_of_each_added_drive[raid5-randread_4k_qd8]",
        "test_no_width_falls_short_of_the_line[raid5-randread_4k_qd8]",
    }
    assert all(len(results) == 1 for results in failures.values())
    (sentence,) = failures[f"{STEADY}[raid5x4-randread_4k_qd8]"]
    assert re.fullmatch(
        r"failure: steady IOPS of raid5x4 randread_4k_qd8: \S+ IOPS \(.+ IOPS\), limit [\d,]+ IOPS: FAIL by \d+\.\d %",
        sentence,
    )
    assert run.properties(f"{STEADY}[raid5x4-randread_4k_qd8]")["ssd.outcome"] == "fail"
    assert server.left() == []
