"""Short self-tests of all drives before the fill, and extended ones at the end."""

from __future__ import annotations

import pytest
from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

ARGUMENTS = "--ssd-devices=/dev/nvme*", "--ssd-protocol=acceptance"
FIRST, LAST = (f"test_drives_pass_their_self_tests[{when}]" for when in ("first", "extended"))


@pytest.fixture
def suite(inner: Inner) -> str:
    return inner.suite("burn_in")


def test_sound_drives_are_tested_before_the_fill_and_at_the_end(inner: Inner, suite: str) -> None:
    """Again if the run is resumed, which reads nothing again."""
    assert inner.run(*ARGUMENTS, suite).ret == pytest.ExitCode.OK
    records = inner.records("purging", "self_test", "read_back")
    assert [record["kind"] for record in records] == ["self_test", "purging", "read_back", "self_test"]
    assert set(records[-1]["results"].values()) == {"passed"}
    assert [set(record.get("extended_s", {}).values()) for record in (records[0], records[-1])] == [set(), {1800}]
    assert [record["claim"] for record in inner.records("verdict")] == [
        "self_test", "read_back", "self_test", "drive_health",
    ]  # fmt: skip
    assert inner.run(*ARGUMENTS, f"--ssd-resume={inner.folder()}", suite).ret == pytest.ExitCode.OK
    assert len(inner.records("read_back")) == 1
    assert inner.outcomes()[LAST] == "passed"


@pytest.mark.parametrize(
    ("ends", "outcome", "failed_by"),
    [
        ("SSDQ0002=failed SSDQ0003=aborted", "failure", "SSDQ0002"),
        ("SSDQ0002=none", "passed", ""),
        ("SSDQ0001=none SSDQ0002=none SSDQ0003=none SSDQ0004=none", "skipped", None),
        ("SSDQ0003=endless", "error", None),
        ("SSDQ0003=ignored", "error", None),
        ("SSDQ0003=lost", "passed", ""),
        ("SSDQ0003=aborted", "error", None),
        ("SSDQ0003=refused", "error", None),
    ],
)
def test_the_end_of_a_self_test_decides(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch, ends: str, outcome: str, failed_by: str | None
) -> None:
    monkeypatch.setenv("SIMULATED_SELF_TESTS", ends)
    inner.run(*ARGUMENTS, suite, "-k", "first or healthy")
    assert inner.outcomes()[FIRST] == outcome
    verdicts = [record["worst"] for record in inner.records("verdict") if record["claim"] == "self_test"]
    assert verdicts == ([] if failed_by is None else [failed_by])
    assert len(inner.records("self_test")[0]["results"]) == 4


@pytest.mark.parametrize("minutes", ["0", "600"])
def test_an_extended_self_test_that_does_not_fit_is_a_short_one(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch, minutes: str
) -> None:
    monkeypatch.setenv("SIMULATED_SELF_TESTS", f"SSDQ0003={minutes}")
    inner.run(*ARGUMENTS, suite, "-k", "extended or healthy")
    (record,) = inner.records("self_test")
    assert set(record["results"].values()) == {"passed"}
    assert set(record["extended_s"]) == {"SSDQ0001", "SSDQ0002", "SSDQ0004"}
    (verdict,) = (record for record in inner.records("verdict") if record["claim"] == "self_test")
    assert [remark.partition(":")[0] for remark in verdict["remarks"]] == ["SSDQ0003"]


def test_an_extended_self_test_has_twice_its_time(inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SELF_TESTS", "SSDQ0003=endless")
    result = inner.run(*ARGUMENTS, suite, "-k", "extended")
    result.assert_outcomes(errors=1)
    # Simulated drives have 100 s for a short one, and say that an extended one takes half an hour.
    assert "3700 s" in inner.records("self_test")[0]["results"]["SSDQ0003"]


def test_the_plan_says_that_it_has_no_time_for_extended_self_tests(inner: Inner, suite: str) -> None:
    for tests, times in (("first", 0), ("extended", 1)):
        text = inner.run(*ARGUMENTS, suite, "-k", f"{tests} or return", "--collect-only").stdout.str()
        assert text.count("extended self-tests") == times


def test_self_tests_alone_make_no_run_fit(inner: Inner, suite: str) -> None:
    assert inner.run(*ARGUMENTS, suite, "-k", "self_tests").ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert set(inner.outcomes().values()) == {"passed"}
    assert not inner.records("purging")


def test_a_failed_self_test_is_not_forgotten(inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SELF_TESTS", "SSDQ0002=failed")
    inner.run(*ARGUMENTS, suite)
    monkeypatch.delenv("SIMULATED_SELF_TESTS")
    inner.run(*ARGUMENTS, f"--ssd-resume={inner.folder()}", suite)
    assert inner.outcomes()[FIRST] == inner.outcomes()[LAST] == "failure"
