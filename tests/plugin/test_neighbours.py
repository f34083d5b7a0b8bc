"""The shipped suite ``neighbour``: the verdict of each drive is about its own reads, beside writes and alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fakes.inner_session import Case, Inner

P99, IOPS = "test_p99_latency_beside_a_neighbour", "test_iops_beside_a_neighbour"
NEIGHBOURS = ("write_128k_qd16", "trimwrite_128k_qd16", "randwrite_4k_fsync1_qd1")


@pytest.fixture
def rig(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> Inner:
    """Three Samsung PM9A3."""
    monkeypatch.setenv("SIMULATED_SHEET", "samsung-pm9a3-7t68")
    monkeypatch.setenv("SIMULATED_MODEL", "SAMSUNG MZQL27T6HBLA-00A07")
    return inner


def judged(rig: Inner, starved: str = "") -> dict[str, Case]:
    """The tests of p99 by the shipped limits, by the neighbour; each has passed or failed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIMULATED_STARVED", starved)
        options = ("--ssd-spec=samsung-pm9a3-7t68", "--ssd-protocol=acceptance", "--import-mode=importlib")
        rig.run("--ssd-devices=lab:3", *options, rig.suite("neighbour"))
    return {each: rig.cases()[f"{P99}[drivex3-beside_{each}]"] for each in NEIGHBOURS}


def test_sound_drives_serve_reads_beside_a_neighbour(rig: Inner) -> None:
    assert {case.outcome for case in judged(rig).values()} == {"passed"}
    assert rig.cases()[f"{IOPS}[drivex3-beside_{NEIGHBOURS[0]}]"].outcome == "skipped", "without a promise"
    conditioned = {record["pattern"] for record in rig.records("conditioned")}
    assert conditioned == {"random", "sequential"}, "each by the writes beside the reads"


def test_a_drive_that_starves_reads_is_named(rig: Inner) -> None:
    for case in judged(rig, "SSDQ0002=0.02").values():
        assert case.outcome == "failure"
        assert "SSDQ0002" in case.message
        assert "SSDQ0001" not in case.message


def test_the_neighbours_own_io_is_none_of_the_reads(rig: Inner) -> None:
    """A drive that is slow in all it does has the ratio of a sound one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIMULATED_SLOW", "SSDQ0002=0.3")
        assert {case.outcome for case in judged(rig).values()} == {"passed"}
