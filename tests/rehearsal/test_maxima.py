"""Arrays of drives whose sheet has maxima of one depth, with real md: held to what the drives do by themselves.

A slow drive is the cause of what the array does not reach, by its serial number.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from support.lab.rehearsed import BRIEF, SERIALS, Finished, Server, Start, drives

from pytest_ssdqual.qual.measured.environment import ProcessEnvironment
from pytest_ssdqual.qual.records import from_plain

pytestmark = pytest.mark.lab  # not unhurried: rates are predicted from rates, which a busy computer changes

ARRAY = "raid5x3"
SLOW = SERIALS[2]
MAXIMUM = "test_drives_reach_the_published_maximum[drivex3-randread_4k_qd32-steady_iops]"
STEADY = f"test_steady_state_iops_match_the_data_sheet[{ARRAY}-randread_4k_qd8]"
TESTS = f"(published_maximum and randread) or (steady_state and {ARRAY} and randread_4k_qd8)"


@pytest.fixture
def begin(start: Start, tmp_path: Path) -> Start:
    """Runs by the lab's own sheet, of maxima at one depth, that measure bare drives before arrays."""
    start.protocol = tmp_path / "members.toml"
    start.protocol.write_text(BRIEF.read_text().replace('window = "0 s"', 'ramp = "1 s"\nwindow = "5 s"'))
    return start


@pytest.mark.nightly
def test_sound_array_and_its_drives_reach_their_maxima(server: Server, begin: Start) -> None:
    run = begin(drives(3), "-o", "ssd_members=true", "-k", TESTS).finish()
    assert run.status == 0, run.output
    assert {run.properties(name)["ssd.outcome"] for name in (MAXIMUM, STEADY)} == {"pass"}
    assert server.left() == []


def test_slow_drive_fails_its_maximum_and_its_array(server: Server, begin: Start) -> None:
    server.lab.vm.set_iops(SLOW, 180)
    run = begin(drives(3), "-o", "ssd_members=true", "-k", TESTS).finish()
    assert run.status == 1, run.output
    assert set(run.results()) == {MAXIMUM, STEADY}
    assert {run.properties(name)["ssd.outcome"] for name in (MAXIMUM, STEADY)} == {"fail"}
    of_array = run.properties(STEADY)
    assert (of_array["ssd.cause"], of_array["ssd.cause_drives"]) == ("drive", SLOW)
    require_environment(run)
    assert server.left() == []


def require_environment(run: Finished) -> None:
    """Require that the record has what the kernel reported of the drives, the CPUs and md during the measurement."""
    (measured,) = [record for record in run.folder.records("measured") if record.facts["geometry"] == ARRAY]
    (process, *_) = cast("list[dict[str, Any]]", measured.facts["runs"])
    environment = from_plain(ProcessEnvironment, process["seen"])
    waits = {drive.name: drive.queue.wait_ns for drive in environment.drives if drive.queue and drive.queue.wait_ns}
    assert max(waits, key=lambda name: waits[name]) == SLOW
    assert all(drive.placement and drive.placement.scheduler and drive.placement.cpus for drive in environment.drives)
    assert environment.cpu
    assert len(environment.cpu.each) == environment.cpu.count
    assert environment.array
    assert environment.array.stripe_cache
    assert environment.array.stripe_cache.samples > 1
