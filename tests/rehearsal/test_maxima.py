"""Arrays of drives whose sheet has two maxima and no depth, with real md: held to what the drives do by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.lab.rehearsed import Server, Start, drives

pytestmark = pytest.mark.lab  # not unhurried: rates are predicted from rates, which a busy computer changes

MAXIMUM = "test_drives_reach_the_published_maximum[drivex4-{}_4k_qd32-steady_iops]"
STEADY = "test_steady_state_iops_match_the_data_sheet[raid5x4-{}_4k_qd8]"
TESTS = "published_maximum or (steady_state and raid5x4 and (randread_4k_qd8 or randwrite_4k_qd8))"
KINDS = ("randread", "randwrite")


@pytest.fixture
def maker(start: Start) -> Start:
    start.options = (start.options[0], f"--ssd-spec={Path(__file__).with_name('maxima.toml')}", "--ssd-force-spec")
    start.protocol = Path("quick")
    return start


def test_arrays_of_sound_drives_pass(server: Server, maker: Start) -> None:
    run = maker(drives(4), "-o", "ssd_members=true", "-k", TESTS).finish()
    assert run.status == 0, run.output
    assert {run.properties(name.format(kind))["ssd.outcome"] for name in (MAXIMUM, STEADY) for kind in KINDS} == {
        "pass"
    }
    assert server.left() == []


def test_a_slow_drive_misses_its_maximum_and_the_array_with_it(server: Server, maker: Start) -> None:
    server.lab.vm.set_iops("SSDQ0003", 180)
    run = maker(drives(4), "-o", "ssd_members=true", "-k", "published_maximum and randread or " + TESTS).finish()
    assert run.status == 1, run.output
    for name in (MAXIMUM, STEADY):
        found = run.properties(name.format("randread"))
        assert found["ssd.outcome"] == "fail", name
    assert run.properties(STEADY.format("randread"))["ssd.cause_drives"] == "SSDQ0003"
    assert server.left() == []
