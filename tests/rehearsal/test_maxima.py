"""Arrays of drives whose sheet has two maxima and no depth, with real md: held to what the drives do by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.lab.rehearsed import Server, Start, drives

pytestmark = pytest.mark.lab  # not unhurried: rates are predicted from rates, which a busy computer changes

MAXIMUM = "test_drives_reach_the_published_maximum[drivex4-randread_4k_qd32-steady_iops]"
STEADY = "test_steady_state_iops_match_the_data_sheet[raid5x4-randread_4k_qd8]"
TESTS = "(published_maximum and randread) or (steady_state and raid5x4 and randread_4k_qd8)"


@pytest.mark.parametrize(
    ("slow", "outcome"), [pytest.param("", "pass", marks=pytest.mark.nightly), ("SSDQ0003", "fail")]
)
def test_an_array_is_held_to_its_drives_and_they_to_their_maxima(
    server: Server, start: Start, slow: str, outcome: str
) -> None:
    if slow:
        server.lab.vm.set_iops(slow, 180)
    start.options = (start.options[0], f"--ssd-spec={Path(__file__).with_name('maxima.toml')}", "--ssd-force-spec")
    start.protocol = Path("quick")
    run = start(drives(4), "-o", "ssd_members=true", "-k", TESTS).finish()
    assert run.status == (1 if slow else 0), run.output
    assert {run.properties(name)["ssd.outcome"] for name in (MAXIMUM, STEADY)} == {outcome}
    if slow:
        assert run.properties(STEADY)["ssd.cause_drives"] == slow
    assert server.left() == []
