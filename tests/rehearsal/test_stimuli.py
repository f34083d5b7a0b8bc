"""Stimuli after steady rounds, with pauses and without, on two drives side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from support.lab.rehearsed import BRIEF, Server, Start, drives

# tests/rig/fio/ has bursts of the real fio in each run of script/test.
pytestmark = [pytest.mark.lab, pytest.mark.unhurried, pytest.mark.nightly]

SUITE = """
from dataclasses import replace

import pytest

from pytest_ssdqual import Rounds, Stimulus, Tracked, Workload

WRITES = Workload("randwrite", "4k", 8, threads=1)
LOOP = Rounds(
    "idle", (WRITES,), (Tracked(WRITES, "steady_iops"),), fill_bs="1m", fill_passes=0,
    after=(Stimulus(replace(WRITES, burst_s=1, idle_s=2), 4, 2), Stimulus(replace(WRITES, name="again"), 2, 3)),
)
pytestmark = [pytest.mark.ssd_array(default="drive"), pytest.mark.ssd_rounds(LOOP)]


@pytest.mark.ssd_promise("steady_iops")
def test_iops(ssd_run, ssd_sla):
    assert ssd_sla.judge(ssd_run)
"""


def test_bursts_are_measured_apart_from_their_pauses(server: Server, tmp_path: Path) -> None:
    suite, protocol = tmp_path / "test_idle.py", tmp_path / "protocol.toml"
    suite.write_text(SUITE)
    protocol.write_text(f'{BRIEF.read_text()}window = 3\n[loop]\ncell = "3 s"\nmax_rounds = 6\n')
    start = Start(tmp_path, server.options, str(suite), protocol)
    run = start(drives(2)).finish()
    assert run.status == 0, run.output
    names = ["randwrite_4k_t1xqd8", "randwrite_4k_on1s_idle2s_t1xqd8", "again_t1xqd8"]
    assert set(run.results()) == {f"test_iops[drivex2-idle-{name}]" for name in names}
    (loop,) = run.folder.records("loop")
    paused, again = cast("list[list[dict[str, Any]]]", loop.facts["after"])
    assert [(len(each["round_iops"]), each["window_s"]) for each in paused] == [(1, 2.0), (1, 2.0)]
    # Of the time of the bursts, a third of all; both drives together.
    for each in paused:
        assert each["iops"] == pytest.approx(600, rel=0.25)
        assert each["ios"] == pytest.approx(600 * 2, rel=0.25)
    assert [len(each["round_iops"]) for each in again] == [3]
    assert "again_t1xqd8 was back" in str(loop.facts["recoveries"])
    assert server.left() == []
