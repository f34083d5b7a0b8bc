"""Bare drives that do not return what was written to them."""

from __future__ import annotations

import pytest
from support.fakes.inner_session import Inner

from pytest_ssdqual.qual.integrity.read_back import WrongKind

TEST = "test_drives_return_what_was_written"
ARGUMENTS = "--ssd-devices=/dev/nvme*", "--ssd-protocol=acceptance"


@pytest.fixture
def suite(inner: Inner) -> str:
    return inner.suite("burn_in")


def test_sound_drives_are_filled_once_and_read_once(inner: Inner, suite: str) -> None:
    inner.run(*ARGUMENTS, suite)
    assert set(inner.outcomes().values()) == {"passed"}
    (filled,), (read,) = inner.records("filled"), inner.records("read_back")
    assert filled["pattern"].startswith("0x5351")
    assert [drive["wrong"] for drive in read["drives"]] == [None] * 4
    assert all(drive["read_bytes"] == drive["size_bytes"] for drive in read["drives"])
    assert len(inner.records("purging")) == 1


@pytest.mark.parametrize("kind", [kind.value for kind in WrongKind])
def test_a_drive_that_returns_other_data_fails(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("SIMULATED_WRONG", f"SSDQ0002={kind}")
    inner.run(*ARGUMENTS, suite)
    assert inner.outcomes() == {f"{TEST}[drivex4]": "failure", "test_drives_are_healthy": "passed"}
    verdict = next(record for record in inner.records("verdict") if record["claim"] == "read_back")
    assert (verdict["value"], verdict["worst"], verdict["cause"]["drives"]) == (1, "SSDQ0002", ["SSDQ0002"])
    wrong = [drive["wrong"] and drive["wrong"]["kind"] for drive in inner.records("read_back")[0]["drives"]]
    assert wrong == [None, kind, None, None]


@pytest.mark.parametrize(("kind", "outcome"), [("slow", "failure"), ("paused", "passed")])
def test_a_part_that_is_slow_twice_fails(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch, kind: str, outcome: str
) -> None:
    monkeypatch.setenv("SIMULATED_WRONG", f"SSDQ0003={kind}")
    inner.run(*ARGUMENTS, suite)
    assert inner.outcomes()[f"{TEST}[drivex4]"] == outcome
    slow = [len(drive["slow"]) for drive in inner.records("read_back")[0]["drives"]]
    assert [count > 0 for count in slow] == [False, False, kind == "slow", False]


def test_conditioning_follows_on_the_same_fill(inner: Inner) -> None:
    """And what was written since is not read back: the drives are filled again."""
    inner.pytester.makepyfile(
        """
        import pytest
        from pytest_ssdqual import Workload

        pytestmark = pytest.mark.ssd_array("drive")

        @pytest.mark.ssd_workload(Workload("randread", "4k", 8))
        @pytest.mark.ssd_promise("steady_iops")
        def test_iops(ssd_run, ssd_sla):
            assert ssd_sla.judge(ssd_run)

        def test_data(ssd_read_back):
            assert ssd_read_back
        """
    )
    inner.run(*ARGUMENTS, "--ssd-spec=default", "-o", "ssd_measure_unpromised=true")
    kinds = [record["kind"] for record in inner.records("filled", "read_back", "conditioned", "measured")]
    assert kinds == ["filled", "read_back", "conditioned", "measured"]


def test_a_resumed_run_reads_nothing_again(inner: Inner, suite: str) -> None:
    inner.run(*ARGUMENTS, suite)
    inner.run(*ARGUMENTS, f"--ssd-resume={inner.folder()}", suite)
    assert set(inner.outcomes().values()) == {"passed"}
    assert len(inner.records("read_back")) == 1
