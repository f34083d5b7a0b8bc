"""The whole session with parts of pytest switched off, stopped early, or run again."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.fakes.inner_session import Case, Inner

META = Path(__file__).parents[3] / "suites" / "meta"
EXPECTED = {"randread": "failure", "randwrite": "error"}


def as_expected(cases: dict[str, Case]) -> None:
    expected = tomllib.loads((META / "outcomes.toml").read_text())
    assert {name: case.outcome for name, case in cases.items()} == {
        name: each["outcome"] for name, each in expected.items()
    }
    for name, each in expected.items():
        assert fnmatchcase(cases[name].message, each.get("message", ""))


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_the_meta_suite_has_the_outcomes_it_must_have(inner: Inner, workers: tuple[str, ...]) -> None:
    result = inner.run("--ssd-devices=lab:3", "--ssd-spec=meta/meta.toml", inner.suite("meta"), *workers)
    as_expected(inner.cases())
    result.assert_outcomes(passed=2, failed=2, errors=2, skipped=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert len({record["message"] for record in inner.records("error")}) == 2


@pytest.mark.parametrize(
    "without", [("no:terminal",), ("no:cacheprovider",), ("no:xdist",), ("no:capture",), ("no:terminal", "no:xdist")]
)
def test_verdicts_do_not_need_the_rest_of_pytest(inner: Inner, promises: str, without: tuple[str, ...]) -> None:
    options = [part for each in without for part in ("-p", each)]
    inner.run("--ssd-devices=lab:3", promises, "-k", "iops", *options)
    assert {name.split("-")[1].split("_")[0]: outcome for name, outcome in inner.outcomes().items()} == EXPECTED
    assert len(inner.records("verdict")) == 2


def test_without_junit_the_journal_has_the_verdicts(inner: Inner, promises: str) -> None:
    args = "-p", "support.simulator.simulated_rig", "-p", "no:junitxml", "--ssd-devices=lab:3", promises
    inner.pytester.runpytest_inprocess(*args).assert_outcomes(failed=1, errors=1, skipped=2)
    assert [record["outcome"] for record in inner.records("verdict")] == ["inconclusive", "fail"]


def test_quiet_and_talkative(inner: Inner, promises: str) -> None:
    args = "--ssd-devices=lab:3", promises, "-k", "iops"
    quiet, normal, verbose = (inner.run(*args, *more).stdout.str() for more in (["-q"], [], ["-v"]))
    for text in (quiet, normal, verbose):
        assert "storage qualification =" in text
    assert "ssdqual: 3 ×" not in quiet
    assert "ssdqual: 3 ×" in normal
    assert len(verbose) > len(quiet)


def test_stop_at_the_first_failure(inner: Inner, promises: str) -> None:
    inner.run("--ssd-devices=lab:4", promises, "-x").assert_outcomes(errors=1)
    assert len(inner.records("array_stopped")) == len(inner.records("array_created")) == 1
    (ended,) = inner.records("run_ended")
    assert ended["exit_status"] == pytest.ExitCode.TESTS_FAILED


def test_only_what_failed_last_time(inner: Inner, promises: str) -> None:
    args = "--ssd-devices=lab:4", promises
    inner.run(*args).assert_outcomes(passed=3, failed=1, errors=2)
    inner.run(*args, "--lf").assert_outcomes(failed=1, errors=2)
    assert list(inner.cases()) == [
        "test_iops[raid5x3-randwrite_4k_qd8]", "test_iops[raid5x3-randread_4k_qd8]",
        "test_iops[raid5x4-randwrite_4k_qd8]",
    ]  # fmt: skip


def test_foreign_tests_come_first_and_need_no_bay(inner: Inner, promises: str) -> None:
    inner.pytester.makepyfile(test_zzz="def test_zzz(): assert False")
    inner.run("--ssd-devices=lab:3", promises)
    assert next(iter(inner.cases())) == "test_zzz"
    case = inner.cases()["test_zzz"]
    assert (case.outcome, case.properties) == ("failure", {})


def test_a_skipped_test_without_a_figure_is_noted_with_a_reason(inner: Inner, promises: str) -> None:
    inner.pytester.makepyfile(
        test_more="""
            import pytest
            from pytest_ssdqual import Workload

            READS = Workload("randread", "4k", 8)

            @pytest.mark.ssd_promise("mean_latency")
            @pytest.mark.ssd_array("raid5")
            @pytest.mark.ssd_workload(READS)
            def test_observed(ssd_run, ssd_sla):
                ssd_sla.judge(ssd_run)

            @pytest.mark.skip(reason="not today")
            def test_skipped():
                pass
        """
    )
    inner.run("--ssd-devices=lab:3", promises, "test_more.py", "-o", "ssd_measure_unpromised=true")
    assert inner.records("skipped") == [
        {**each, "test": "test_more.py::test_skipped", "reason": "not today"} for each in inner.records("skipped")
    ]
    assert len(inner.records("skipped")) == 1
    assert len(inner.records("observation")) == 1
