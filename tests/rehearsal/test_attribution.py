"""A known culprit in the lab, with real md: the verdict names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from support.lab.rehearsed import Server, Start, drives

from pytest_ssdqual.qual.measured.environment import ProcessEnvironment
from pytest_ssdqual.qual.records import from_plain

pytestmark = pytest.mark.lab  # not unhurried: the cause is found by rates and latencies, which a busy computer changes

QUICK = Path("quick")
READS = "test_steady_state_iops_match_the_data_sheet[raid5x4-randread_4k_qd8]"


def test_a_slow_drive_is_the_cause_by_its_serial_number(server: Server, start: Start) -> None:
    server.lab.vm.set_iops("SSDQ0003", 180)
    start.protocol = QUICK
    run = start(drives(4), "-o", "ssd_members=true", "-k", "raid5x4 and randread_4k_qd8 and steady_state").finish()
    assert run.status == 1, run.output
    assert set(run.results()) == {READS}
    found = run.properties(READS)
    assert found["ssd.outcome"] == "fail"
    assert (found["ssd.cause"], found["ssd.cause_drives"]) == ("drive", "SSDQ0003")
    assert "drive SSDQ0003 explains 1 of 1 failed promises" in run.output
    (measured,) = [each for each in run.folder.records("measured") if each.facts["geometry"] == "raid5x4"]
    (process, *_) = cast("list[dict[str, Any]]", measured.facts["runs"])
    seen = from_plain(ProcessEnvironment, process["seen"])
    waits = {drive.name: drive.queue.wait_ns for drive in seen.drives if drive.queue and drive.queue.wait_ns}
    assert max(waits, key=lambda name: waits[name]) == "SSDQ0003"
    assert all(drive.placement and drive.placement.scheduler and drive.placement.cpus for drive in seen.drives)
    assert seen.cpu
    assert len(seen.cpu.each) == seen.cpu.count
    assert seen.array
    assert seen.array.stripe_cache
    assert seen.array.stripe_cache.samples > 1
    assert server.left() == []
