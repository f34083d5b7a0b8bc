"""The shipped suite ``neighbour``: the verdict of each drive is about its own reads, beside writes and alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

P99, IOPS = "test_p99_latency_beside_a_neighbour", "test_iops_beside_a_neighbour"
NEIGHBOURS = ("write_128k_qd16", "trimwrite_128k_qd16", "randwrite_4k_fsync1_qd1")


@pytest.fixture
def rig(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> Inner:
    """Three Samsung PM9A3."""
    monkeypatch.setenv("SIMULATED_SHEET", "samsung-pm9a3-7t68")
    monkeypatch.setenv("SIMULATED_MODEL", "SAMSUNG MZQL27T6HBLA-00A07")
    return inner


def judged(rig: Inner, starved: str = "") -> dict[str, str]:
    """Outcomes of the tests of p99 by the shipped limits, by the neighbour; without a limit they are skipped."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIMULATED_STARVED", starved)
        options = ("--ssd-spec=samsung-pm9a3-7t68", "--ssd-protocol=acceptance", "--import-mode=importlib")
        rig.run("--ssd-devices=lab:3", *options, rig.suite("neighbour"))
    return {name: rig.outcomes()[f"{P99}[drivex3-beside_{name}]"] for name in NEIGHBOURS}


def of_writes(outcome: str) -> dict[str, str]:
    return {**dict.fromkeys(NEIGHBOURS, "skipped"), "write_128k_qd16": outcome}


def test_sound_drives_serve_reads_beside_a_neighbour(rig: Inner) -> None:
    assert judged(rig) == of_writes("passed")
    assert rig.outcomes()[f"{IOPS}[drivex3-beside_{NEIGHBOURS[0]}]"] == "skipped", "without a promise"
    conditioned = {record["pattern"] for record in rig.records("conditioned")}
    assert conditioned == {"random", "sequential"}, "each by the writes beside the reads"


def test_a_drive_that_starves_reads_is_named(rig: Inner) -> None:
    assert judged(rig, "SSDQ0002=0.02") == of_writes("failure")
    (verdict,) = (record for record in rig.records("verdict") if record["claim"] == "neighbour_p99")
    assert verdict["worst"] == "SSDQ0002"
    assert [part["outcome"] for part in verdict["members"]] == ["pass", "fail", "pass"]


def test_the_neighbours_own_io_is_none_of_the_reads(rig: Inner) -> None:
    """A drive that is slow in all it does has the ratio of a sound one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIMULATED_SLOW", "SSDQ0002=0.3")
        assert judged(rig) == of_writes("passed")
