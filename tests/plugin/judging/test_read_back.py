"""Bare drives that do not return what was written to them."""

from __future__ import annotations

import pytest
from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

TEST = "test_drives_return_what_was_written"
ARGUMENTS = "--ssd-devices=/dev/nvme*", "--ssd-protocol=acceptance"


@pytest.fixture
def suite(inner: Inner) -> str:
    return inner.suite("burn_in")


def test_sound_drives_are_filled_once_and_read_once(inner: Inner, suite: str) -> None:
    """Also if the run is resumed."""
    inner.run(*ARGUMENTS, suite)
    assert set(inner.outcomes().values()) == {"passed"}
    (filled,), (read,) = inner.records("filled"), inner.records("read_back")
    assert filled["pattern"].startswith("0x5351")
    assert [drive["wrong"] for drive in read["drives"]] == [None] * 4
    assert all(drive["read_bytes"] == drive["size_bytes"] for drive in read["drives"])
    inner.run(*ARGUMENTS, f"--ssd-resume={inner.folder()}", suite)
    assert set(inner.outcomes().values()) == {"passed"}
    assert len(inner.records("read_back")) == len(inner.records("purging")) == 1


def test_a_drive_that_returns_other_data_fails(inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_WRONG", "SSDQ0002=damaged")
    inner.run(*ARGUMENTS, suite)
    assert [name for name, outcome in inner.outcomes().items() if outcome != "passed"] == [f"{TEST}[drivex4]"]
    verdict = next(record for record in inner.records("verdict") if record["claim"] == "read_back")
    assert (verdict["value"], verdict["worst"], verdict["cause"]["drives"]) == (1, "SSDQ0002", ["SSDQ0002"])
    wrong = [drive["wrong"] and drive["wrong"]["kind"] for drive in inner.records("read_back")[0]["drives"]]
    assert wrong == [None, "damaged", None, None]


@pytest.mark.parametrize(("kind", "trouble"), [("unstable", ""), ("damaged", "writes:SSDQ0002")])
def test_wrong_data_that_prove_nothing_of_the_drive_are_an_error(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch, kind: str, trouble: str
) -> None:
    monkeypatch.setenv("SIMULATED_WRONG", f"SSDQ0002={kind}")
    monkeypatch.setenv("SIMULATED_TROUBLE", trouble)
    inner.run(*ARGUMENTS, suite)
    assert inner.outcomes()[f"{TEST}[drivex4]"] == "error"
    assert "read_back" not in [record["claim"] for record in inner.records("verdict")]
    (wrong,) = inner.records("wrong_data")
    assert (wrong["serial"], wrong["foreign_bytes"] > 0) == ("SSDQ0002", bool(trouble))


LOST_LINK = "nvme nvme0: frozen state error detected, reset controller"


@pytest.mark.parametrize(
    ("trouble", "wrong", "outcome"),
    [
        ("kernel:SSDQ0003", "", "error"),
        ("kernel:SSDQ0003", "SSDQ0002=damaged", "failure"),
        ("media:SSDQ0003", "", "failure"),
    ],
)
def test_data_of_a_drive_that_is_left_out_do_not_pass(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch, trouble: str, wrong: str, outcome: str
) -> None:
    """Its link failed, or it did; what is known of the others counts."""
    monkeypatch.setenv("SIMULATED_TROUBLE", trouble)
    monkeypatch.setenv("SIMULATED_KERNEL", LOST_LINK)
    monkeypatch.setenv("SIMULATED_WRONG", wrong)
    inner.run(*ARGUMENTS, suite)
    assert inner.outcomes()[f"{TEST}[drivex4]"] == outcome
    compared = {drive["serial"]: drive["wrong"] for drive in inner.records("read_back")[-1]["drives"]}
    assert set(compared) == {"SSDQ0001", "SSDQ0002", "SSDQ0004"}
    assert bool(compared["SSDQ0002"]) is bool(wrong)


@pytest.mark.parametrize(("kind", "outcome"), [("slow", "failure"), ("paused", "passed")])
def test_a_part_that_is_slow_twice_fails(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch, kind: str, outcome: str
) -> None:
    """Writes of others do not matter, because all data are right."""
    monkeypatch.setenv("SIMULATED_WRONG", f"SSDQ0003={kind}")
    monkeypatch.setenv("SIMULATED_TROUBLE", "writes:SSDQ0002" if outcome == "passed" else "")
    inner.run(*ARGUMENTS, suite)
    assert inner.outcomes()[f"{TEST}[drivex4]"] == outcome
    slow = [drive["slow"] for drive in inner.records("read_back")[0]["drives"]]
    assert [bool(zones) for zones in slow] == [False, False, kind == "slow", False]
    for zone in slow[2]:
        assert zone["bytes_per_s"] == pytest.approx(0.1 * zone["usual_bytes_per_s"])


def test_what_was_compared_is_not_measured(inner: Inner) -> None:
    """Nor is what was measured compared: the drives are filled for each."""
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
    assert kinds == ["filled", "read_back", "filled", "conditioned", "measured"]
