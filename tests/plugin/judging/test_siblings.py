"""Causes of promises that simulated drives side by side break, whose fault is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import PRODUCT, promise
from support.builders.suite import suite

from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.report.html import run_page
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.view import witnesses
from pytest_ssdqual.rig.observe import drive_failure

if TYPE_CHECKING:
    from support.fakes.inner_session import Case, Inner

#: Simulated drives do 300 IOPS.
SPEC = PRODUCT + promise(claim="steady_iops", at_least="285 IOPS") + promise(claim="member_spread", at_least=0.85)
HALF = 5, 6, 7, 8


def judged(inner: Inner, drives: int = 8, rw: str = "randread") -> tuple[Case, Case]:
    load = f'"{rw}", "4k", 8'
    inner.pytester.makepyfile(test_side=suite('"drive"', iops=("steady_iops", load), even=("member_spread", load)))
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    inner.run(f"--ssd-devices=lab:{drives}", "--ssd-spec=acme.toml", "--ssd-protocol=quick")
    found = {name.partition("[")[0]: case for name, case in inner.cases().items()}
    return found["test_iops"], found["test_even"]


def with_share(share: float, *numbers: int) -> str:
    return ",".join(f"{serial(number)}={share}" for number in numbers)


def serial(number: int) -> str:
    return f"SSDQ{number:04}"


def cause(case: Case) -> tuple[str, str, list[str]]:
    """Outcome, culprit, and the drives that are named."""
    drives = case.properties.get("ssd.cause_drives", "").split()
    return case.outcome, case.properties.get("ssd.cause", ""), drives


def summary(inner: Inner) -> str:
    folder = inner.folder()
    return (folder / "summary.md").read_text()


def test_one_slow_drive_is_the_cause_of_both_promises(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", with_share(0.6, 2))
    iops, even = judged(inner)
    assert cause(iops) == cause(even) == ("failure", "drive", ["SSDQ0002"])
    assert "2 of 2" in summary(inner)


@pytest.mark.parametrize(("share", "is_remarked"), [(0.99, False), (0.9, True)])
def test_a_drive_within_the_scatter_of_a_lot_does_not_stand_out(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, share: float, *, is_remarked: bool
) -> None:
    """Grubbs' test finds any difference, if the others are equal."""
    monkeypatch.setenv("SIMULATED_SLOW", with_share(share, 2))
    assert judged(inner, 4)[1].outcome == "passed"
    (even,) = (record for record in inner.records("verdict") if record["claim"] == "member_spread")
    assert any("stands out" in str(remark) for remark in even["remarks"]) is is_remarked


def test_what_all_drives_show_is_no_drive(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", with_share(0.8, *range(1, 9)))
    iops, even = judged(inner)
    assert cause(iops) == ("failure", "product", [])
    assert even.outcome == "passed"
    assert "Cause of" not in summary(inner)


def test_half_of_the_drives_as_slow_alone_are_named_together(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", with_share(0.8, *HALF))
    assert [cause(case) for case in judged(inner)] == [("failure", "drives", list(map(serial, HALF)))] * 2


def test_drives_that_are_faster_alone_are_slowed_by_a_path(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_PATH", with_share(0.75, 1, 2, 3, 4))
    iops, _ = judged(inner)
    assert cause(iops) == ("error", "path", list(map(serial, (1, 2, 3, 4))))


def test_a_path_does_not_excuse_the_drive_that_is_as_slow_alone(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_PATH", with_share(0.75, 1, 2, 3, 4))
    monkeypatch.setenv("SIMULATED_SLOW", with_share(0.6, 3))
    iops, _ = judged(inner, 4)
    assert iops.outcome == "failure"
    assert iops.properties["ssd.drive"] == "SSDQ0003"


def test_half_of_the_drives_behind_their_own_switch_do_not_fail(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", with_share(0.8, *HALF))
    monkeypatch.setenv("SIMULATED_SWITCHED", "nvme4n1 nvme5n1 nvme6n1 nvme7n1")
    iops, even = judged(inner, rw="randwrite")
    assert cause(iops) == cause(even) == ("error", "path", list(map(serial, HALF)))
    assert "PCIe switch" in iops.message


def test_how_much_of_a_shared_link_was_used_is_a_figure(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of four drives are behind a switch, so half of what all of them read goes over its link."""
    monkeypatch.setenv("SIMULATED_SWITCHED", "nvme1n1 nvme2n1")
    judged(inner, 4)
    story = RunReader.read(inner.folder())
    (row,) = witnesses.shared_links(story).rows
    assert (row[1], row[3]) == ("2", "31.5 GB/s")
    rates = [run["bytes_per_s"] for record in inner.records("measured", "member") for run in record["runs"]]
    assert row[4] == format_value(max(rates) / 2, Unit.BYTES_PER_SECOND)
    assert row[4] in run_page.text(story)


def test_a_cause_needs_no_measurement_of_members(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", with_share(0.6, 2))
    (inner.pytester.path / "pytest.ini").write_text("[pytest]\nssd_members = false\n")
    assert cause(judged(inner, 3)[0])[1:] == ("drive", ["SSDQ0002"])


@pytest.mark.parametrize(
    ("trouble", "word"),
    [("passthrough:SSDQ0002", "by its own count"), ("opened:SSDQ0002 uncounted", "sg_dd (pid 737)")],
)
def test_a_drive_that_another_program_uses_is_not_judged(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, trouble: str, word: str
) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", with_share(0.8, 2))
    monkeypatch.setenv("SIMULATED_TROUBLE", trouble)
    for case in judged(inner, 4):
        assert cause(case) == ("error", "", [])
        assert word in case.message
        assert "SSDQ0002" in case.message
        assert case.properties["ssd.drives"].split() == ["SSDQ0001", "SSDQ0003", "SSDQ0004"]


def test_an_open_node_without_commands_is_no_objection(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "opened:SSDQ0002")
    assert [case.outcome for case in judged(inner, 4)] == ["passed", "passed"]


def test_a_drive_in_a_self_test_is_waited_for_and_then_left_out(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", with_share(0.8, 2))
    monkeypatch.setenv("SIMULATED_TROUBLE", "selftest:SSDQ0002")
    monkeypatch.setattr(drive_failure, "SELF_TEST_S", 0.002)
    monkeypatch.setattr(drive_failure, "PAUSE_S", 0.001)
    for case in judged(inner, 4):
        assert cause(case) == ("error", "", [])
        assert "40 % left" in case.message
        assert "smartctl -X" in case.message
    (awaited,) = inner.records("self_test_awaited")
    assert list(awaited["drives"]) == ["SSDQ0002"]
