"""Drives that return data after a discard or a purge, and the certificate of erasure."""

from __future__ import annotations

import pytest
from support.fakes.inner_session import Inner

from pytest_ssdqual.qual.integrity.erasure import DISCARD
from pytest_ssdqual.report.html import certificate

pytestmark = pytest.mark.slow

ARGUMENTS = "--ssd-devices=/dev/nvme*", "--ssd-protocol=acceptance"
DISCARDS, PURGE = "test_discarded_blocks_of_drives[drivex4]", "test_purged_drives_return_no_data[drivex4]"
ARRAYS = {"raid0[raid0x2]", "mirror[raid1x2]", "raid10[raid10x4]"}


@pytest.fixture
def suite(inner: Inner) -> str:
    return inner.suite("erase")


def judged(inner: Inner) -> dict[str, str]:
    """Outcomes without the health at the end."""
    return {name: outcome for name, outcome in inner.outcomes().items() if "healthy" not in name}


def failed(inner: Inner) -> set[str]:
    return {name for name, outcome in judged(inner).items() if outcome == "failure"}


def test_sound_drives_pass_and_parity_is_skipped(inner: Inner, suite: str) -> None:
    inner.run(*ARGUMENTS, suite)
    outcomes = judged(inner)
    skipped = {name for name, outcome in outcomes.items() if outcome == "skipped"}
    assert {name.partition("[")[2] for name in skipped} == {"raid5x3]", "raid6x4]"}
    assert {outcome for name, outcome in outcomes.items() if name not in skipped} == {"passed"}
    assert {record["claim"] for record in inner.records("verdict")} >= {"discard", "erasure"}
    last = inner.records("erased")[-1]["drives"]
    assert [drive["method"] for drive in last] == [DISCARD] * 4
    assert all(drive["read_bytes"] > 400e9 and not drive["left"] for drive in last)
    erased = certificate.certificate(inner.folder(), {}).erased
    assert [(drive.name, drive.nist_class) for drive in erased] == [
        (f"SSDQ000{number}", "none") for number in range(1, 5)
    ]


def test_a_drive_that_returns_old_data_breaks_its_promise(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_LEFT", "SSDQ0002=discard")
    inner.run(*ARGUMENTS, suite)
    assert failed(inner) == {DISCARDS, *(f"test_discarded_blocks_of_a_{name}" for name in ARRAYS)}
    verdict = next(record for record in inner.records("verdict") if record["test"].endswith(DISCARDS))
    assert (verdict["value"], verdict["worst"]) == (1, "SSDQ0002")
    assert verdict["cause"]["drives"] == ["SSDQ0002"]


@pytest.mark.parametrize("promise", ["nothing", "stable"])
def test_old_data_without_a_promise_are_an_observation(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch, promise: str
) -> None:
    monkeypatch.setenv("SIMULATED_LEFT", "SSDQ0002=discard")
    monkeypatch.setenv("SIMULATED_PROMISE", promise)
    inner.run(*ARGUMENTS, suite, "-k", "blocks_of_drives")
    assert judged(inner) == {DISCARDS: "passed"}
    (record,) = inner.records("discarded")
    ranges = {target["name"]: [each["old_at"] for each in target["ranges"]] for target in record["targets"]}
    assert None not in ranges["SSDQ0002"]
    assert set(ranges["SSDQ0001"]) == {None}


@pytest.mark.parametrize(
    ("fault", "promise", "outcome"),
    [
        ("other", "ones", "failure"),
        ("other", "stable", "failure"),
        ("other", "nothing", "passed"),
        ("neighbours", "nothing", "failure"),
    ],
)
def test_other_data_and_lost_neighbours(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch, fault: str, promise: str, outcome: str
) -> None:
    monkeypatch.setenv("SIMULATED_LEFT", f"SSDQ0003={fault}")
    monkeypatch.setenv("SIMULATED_PROMISE", promise)
    inner.run(*ARGUMENTS, suite, "-k", "blocks_of_drives")
    assert judged(inner) == {DISCARDS: outcome}


def test_a_purge_that_left_data_fails(inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_LEFT", "SSDQ0004=purge")
    inner.run(*ARGUMENTS, suite, "-k", "purged_drives")
    assert judged(inner) == {PURGE: "failure"}
    last = inner.records("erased")[-1]["drives"]
    assert [bool(drive["left"]) for drive in last] == [False, False, False, True]
    (verdict,) = [record for record in inner.records("verdict") if record["claim"] == "erasure"]
    assert verdict["worst"] == "SSDQ0004"
    content = certificate.certificate(inner.folder(), {})
    assert [bool(drive.left) for drive in content.erased] == [False, False, False, True]
    assert all(drive.evidence in certificate.html(content) for drive in content.erased)
