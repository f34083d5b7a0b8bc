"""pytest's own sections on the terminal: one test of each cause, the others as a number."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from support.builders.sheet import PRODUCT, promise
from support.builders.suite import suite

from pytest_ssdqual.plugin.session import folded
from pytest_ssdqual.qual.validity.attribution import Cause, Culprit
from pytest_ssdqual.report.evidence.evidence import attach
from pytest_ssdqual.report.evidence.health import counted

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


def heads(result: pytest.RunResult) -> list[str]:
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
    names = [name.partition("[")[0].split()[0] for name in heads(result)]
    assert names == ["test_own", "test_other", "test_other", "test_other", "test_iops"], "subtests are failures, too"
    text = result.stdout.str()
    assert text.count("2 more tests") == 1
    assert "assert verdict" not in text
    assert text.count("FAILED test_side.py::test_iops") == 1


def test_who_asks_for_more_gets_each_test(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ0002=0.2")
    result = run(inner, "-v")
    assert len([name for name in heads(result) if "test_iops" in name]) == 3
    assert "same reason" not in result.stdout.str()


def test_a_failed_drive_is_one_error_for_all_tests_that_need_it(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "pulled:SSDQ0002")
    inner.pytester.makepyfile(test_wide=suite('"raid0", widths=[2, 3]', iops=("steady_iops", *LOADS)))
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + promise(claim="steady_iops", at_least="70 IOPS"))
    result = inner.run("--ssd-devices=lab:3", "--ssd-spec=acme.toml", "--ssd-protocol=quick")
    result.assert_outcomes(failed=1, errors=5)
    assert [name.partition("[")[0] for name in heads(result)] == ["ERROR at setup of test_iops", "test_iops"]
    assert set(inner.outcomes().values()) == {"failure", "error"}, "JUnit has each"


def test_a_traceback_of_another_test_keeps_the_exceptions_before_its_own(inner: Inner) -> None:
    inner.pytester.makepyfile(
        test_side=suite('"drive"', iops=("steady_iops", LOADS[0]))
        + """

def test_own():
    try:
        raise ValueError("the first")
    except ValueError as error:
        raise RuntimeError("the second") from error
"""
    )
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + promise(claim="steady_iops", at_least="1 IOPS"))
    result = inner.run("--ssd-devices=lab:3", "--ssd-spec=acme.toml", "--ssd-protocol=quick")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*ValueError: the first", "*RuntimeError: the second"])


@pytest.mark.parametrize(
    ("verbosity", "style", "is_default"), [(0, "auto", True), (1, "auto", False), (0, "long", False)]
)
def test_only_a_default_report_is_folded(verbosity: int, style: str, *, is_default: bool) -> None:
    config: Any = SimpleNamespace(get_verbosity=lambda: verbosity, option=SimpleNamespace(tbstyle=style))
    assert folded._is_default(config) is is_default


@pytest.mark.parametrize(("culprit", "shown"), [(Culprit.MD, 1), (Culprit.UNKNOWN, 2), (Culprit.UNEXPLAINED, 2)])
def test_promises_without_a_known_cause_are_not_folded(culprit: Culprit, shown: int) -> None:
    verdict = counted("drive_health", "drivex1", "", {"S1": ["failed"]}, sentence="failed", remarks=())
    reports = [pytest.TestReport(name, ("", 0, ""), {}, "failed", None, "call") for name in ("one", "two")]
    for report in reports:
        attach(report, [replace(verdict, cause=Cause(culprit, "evidence"))])
    assert len(list(folded._examples(reports))) == shown
