"""pytest's own sections on the terminal: one test of each cause, the others as a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import PRODUCT, promise
from support.builders.suite import suite

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

LOADS = tuple(f'"randread", "4k", {depth}' for depth in (2, 4, 8))
OWN = """

def test_own():
    assert 1 == 2, "mine"


def test_other(subtests):
    for number in (1, 2):
        with subtests.test(number=number):
            assert number == 3, "mine"
"""


def failed(result: pytest.RunResult) -> list[str]:
    """The head lines of pytest's sections of failures and errors."""
    return [line.strip("_ ") for line in result.outlines if line.startswith("_") and " test_" in line]


def run(inner: Inner, *options: str) -> pytest.RunResult:
    """Three promises that drive SSDQ0002 breaks, and two tests without drives that fail."""
    inner.pytester.makepyfile(test_side=suite('"drive"', iops=("steady_iops", *LOADS)) + OWN)
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + promise(claim="steady_iops", at_least="70 IOPS"))
    return inner.run("--ssd-devices=lab:3", "--ssd-spec=acme.toml", "--ssd-protocol=quick", *options)


def test_a_cause_is_shown_once_with_the_number_of_its_tests(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ0002=0.2")
    result = run(inner)
    names = [name.partition("[")[0].split()[0] for name in failed(result)]
    assert names == ["test_own", "test_other", "test_other", "test_other", "test_iops"], "subtests are failures, too"
    text = result.stdout.str()
    assert text.count("2 more tests for the same reason") == 1
    assert "assert verdict" not in text
    assert text.count("FAILED test_side.py::test_iops") == 1


@pytest.mark.parametrize("option", ["-v", "--tb=long"])
def test_who_asks_for_more_gets_each_test(inner: Inner, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ0002=0.2")
    result = run(inner, option)
    assert len([name for name in failed(result) if "test_iops" in name]) == 3
    assert "for the same reason" not in result.stdout.str()


def test_a_failed_drive_is_one_error_for_all_tests_that_need_it(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "pulled:SSDQ0002")
    inner.pytester.makepyfile(test_wide=suite('"raid0", widths=[2, 3]', iops=("steady_iops", *LOADS)))
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + promise(claim="steady_iops", at_least="70 IOPS"))
    result = inner.run("--ssd-devices=lab:3", "--ssd-spec=acme.toml", "--ssd-protocol=quick")
    result.assert_outcomes(failed=1, errors=5)
    assert [name.partition("[")[0] for name in failed(result)] == ["ERROR at setup of test_iops", "test_iops"]
    assert set(inner.outcomes().values()) == {"failure", "error"}, "JUnit has each"


def test_causes_that_are_unknown_are_not_one(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the drives are slow under writes, and nobody can tell why."""
    monkeypatch.setenv("SIMULATED_SLOW", ",".join(f"SSDQ000{number}=0.6" for number in (5, 6, 7, 8)))
    loads = (load.replace("randread", "randwrite") for load in LOADS)
    inner.pytester.makepyfile(test_half=suite('"drive"', iops=("steady_iops", *loads)))
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + promise(claim="steady_iops", at_least="285 IOPS"))
    result = inner.run("--ssd-devices=lab:8", "--ssd-spec=acme.toml", "--ssd-protocol=quick")
    causes = {record["cause"]["culprit"] for record in inner.records("verdict") if record["outcome"] == "fail"}
    assert causes == {"unknown"}
    assert len(failed(result)) == 3
