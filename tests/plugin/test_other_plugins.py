"""Verdicts, errors and exit status with the plugins that people have installed beside this one.

script/setup installs them beside the project's own environment, whose tests they would change: ``PLUGINS``.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import PRODUCT, promise
from support.fakes import warm_python

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

PLUGINS = Path(sys.prefix) / "plugins"
#: What is loaded, and what switches it on. Plugins that do not hinder each other are loaded together.
OPTIONS = {
    "pytest_rerunfailures": (),
    "pytest_retry.retry_plugin": (),
    "pytest_html.plugin+allure_pytest.plugin+pytest_jsonreport.plugin+pytest_reportlog.plugin": (
        "-p", "pytest_metadata.plugin", "--html=report.html", "--alluredir=allure", "--json-report",
        "--report-log=log.json",
    ),
    "pytest_timeout+pytest_randomly+pytest_repeat+pytest_cov.plugin+pytest_asyncio.plugin+pytest_order.plugin"
    "+pytest_flakefinder+pytest_check.plugin": ("--timeout=864000",),
    "pytest_instafail+pytest_github_actions_annotate_failures.plugin": ("--instafail",),
    "xdist.plugin": ("-n", "1", "-p", "xdist.looponfail"),
    "pytest_sugar": (),
    "pytest_tldr": (),
    "flaky.flaky_pytest_plugin": (),
    "pytest_custom_exit_code": ("--suppress-tests-failed-exit-code",),
    "pytest_rich.plugin": ("--rich",),
    "pytest_run_parallel.plugin": (),
    "by_phase": (),
    "reporting": (),
}  # fmt: skip
#: In the shape of plugins that keep accounts by phase, and of one that sends each report to a server.
FAKES = {
    "by_phase": """
        import pytest

        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_makereport(item, call):
            outcome = yield
            report = outcome.get_result()
            assert report.when == call.when
            assert not (report.passed and call.excinfo)
            if report.when == "setup":
                item.seen = {}
            item.seen[report.when] = report.outcome
    """,
    "reporting": """
        import json
        import pytest

        class Service:
            started = None

            @pytest.hookimpl(hookwrapper=True)
            def pytest_runtest_protocol(self, item, nextitem):
                self.started, self.status = item.nodeid, None
                yield
                with open("sent.jsonl", "a") as file:
                    print(json.dumps([self.started, self.status]), file=file)
                self.started = None

            @pytest.hookimpl(hookwrapper=True)
            def pytest_runtest_makereport(self, item, call):
                report = (yield).get_result()
                assert self.started == report.nodeid
                if report.when == "setup" and report.outcome != "passed":
                    self.status = report.outcome
                if report.when == "call" and self.status is None:
                    self.status = report.outcome

        def pytest_configure(config):
            config.pluginmanager.register(Service())
    """,
}
#: The simulated array does 900 IOPS; the fourth drive is pulled while the array of four measures.
SUITE = """
    import pytest
    from pytest_ssdqual import Workload

    READS = Workload("randread", "4k", 8)

    @pytest.fixture
    def judged(ssd_run, ssd_sla):
        assert ssd_sla.judge(ssd_run)

    @pytest.mark.ssd_array("raid5", widths=[3])
    @pytest.mark.ssd_workload(READS)
    class TestThree:
        @pytest.mark.ssd_promise("p99_latency")
        def test_kept(self, ssd_run, ssd_sla):
            assert ssd_sla.judge(ssd_run)

        @pytest.mark.ssd_promise("steady_iops")
        def test_broken(self, ssd_run, ssd_sla):
            assert ssd_sla.judge(ssd_run)

        @pytest.mark.ssd_promise("steady_iops")
        def test_broken_in_a_fixture(self, judged):
            pass

        @pytest.mark.ssd_promise("steady_iops")
        def test_broken_without_assert(self, ssd_run, ssd_sla):
            ssd_sla.judge(ssd_run)

        @pytest.mark.ssd_promise("mean_latency")
        def test_undecided(self, ssd_run, ssd_sla):
            assert ssd_sla.judge(ssd_run)

    @pytest.mark.ssd_promise("p99_latency")
    @pytest.mark.ssd_array("raid5", widths=[4])
    @pytest.mark.ssd_workload(READS, Workload("randread", "4k", 1))
    def test_dead(ssd_run, ssd_sla):
        assert ssd_sla.judge(ssd_run)
"""
SPEC = (
    PRODUCT
    + promise(claim="p99_latency", at_most="1 s")
    + promise(claim="steady_iops", at_least="9000 IOPS")
    + promise(claim="mean_latency", at_most="26.6 ms")
)


def run(
    inner: Inner, plugin: str, monkeypatch: pytest.MonkeyPatch, *args: str, first: bool = False
) -> pytest.RunResult:
    if plugin not in FAKES and not PLUGINS.is_dir():
        pytest.skip("script/setup installs the plugins")
    monkeypatch.setenv("PYTHONPATH", str(PLUGINS), prepend=os.pathsep)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name, text in FAKES.items():
        inner.pytester.makepyfile(**{name: text})
    inner.pytester.makepyfile(test_promises=SUITE)
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    plugins = plugin.split("+")
    order = [*plugins, "pytest_ssdqual.plugin"] if first else ["pytest_ssdqual.plugin", *plugins]
    loaded = [word for each in order for word in ("-p", each)]
    return inner.pytester.runpytest_subprocess(
        *loaded, "-p", "support.simulator.simulated_rig", "--junitxml=junit.xml", "-o", "filterwarnings=default",
        "-o", "pythonpath=.", "--ssd-devices=lab:4", "--ssd-spec=acme.toml", *OPTIONS.get(plugin, ()), *args,
    )  # fmt: skip


@pytest.mark.parametrize("first", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["after", "before"])
@pytest.mark.parametrize("plugin", OPTIONS)
def test_each_test_has_one_verdict_of_the_right_kind(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, plugin: str, first: bool
) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "pulled:SSDQ0004")
    result = run(inner, plugin, monkeypatch, first=first)
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    found = {name.partition("[")[0]: case.outcome for name, case in inner.cases().items() if "test_dead" not in name}
    assert found == {
        "test_kept": "passed",
        "test_broken": "failure",
        "test_broken_in_a_fixture": "failure",
        "test_broken_without_assert": "failure",
        "test_undecided": "error",
    }
    dead = [case for name, case in inner.cases().items() if "test_dead" in name]
    assert Counter(case.outcome for case in dead) == {"failure": 1, "error": 1}
    assert all("SSDQ0004" in case.message for case in dead)
    assert len(inner.records("verdict")) == 6


@pytest.mark.nightly
@pytest.mark.parametrize("plugin", OPTIONS)
def test_what_passes_passes(inner: Inner, monkeypatch: pytest.MonkeyPatch, plugin: str) -> None:
    assert run(inner, plugin, monkeypatch, "-k", "kept").ret == pytest.ExitCode.OK
    assert set(inner.outcomes().values()) == {"passed"}


REPEATED = {
    "--reruns=2": "pytest_rerunfailures",
    "--force-reruns=1": "pytest_rerunfailures",
    "--retries=1": "pytest_retry.retry_plugin",
    "--count=2": "pytest_repeat",
    "--force-flaky": "flaky.flaky_pytest_plugin",
    "--flake-finder": "pytest_flakefinder",
    "--parallel-threads=auto": "pytest_run_parallel.plugin",
}


@pytest.mark.parametrize("option", REPEATED)
def test_options_that_repeat_tests_are_refused(inner: Inner, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    result = run(inner, REPEATED[option], monkeypatch, option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"{option.partition('=')[0]}" in result.stderr.str()
    assert "counts once" in result.stderr.str()


@pytest.mark.parametrize("line", ["reruns = 2", "retries = 2"])
def test_ini_values_that_repeat_tests_are_refused(inner: Inner, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    plugin = REPEATED[f"--{'reruns=2' if 'reruns' in line else 'retries=1'}"]
    result = run(inner, plugin, monkeypatch, "-o", line.replace(" ", ""))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "counts once" in result.stderr.str()


@pytest.mark.parametrize(
    ("mark", "plugin"),
    [
        ("flaky(reruns=2)", "pytest_rerunfailures"),
        ("flaky(retries=2)", "pytest_retry.retry_plugin"),
        ("repeat(2)", "pytest_repeat"),
    ],
)
def test_marks_that_repeat_tests_are_refused(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, mark: str, plugin: str
) -> None:
    monkeypatch.setattr(f"{__name__}.SUITE", SUITE.replace("class Test", f"@pytest.mark.{mark}\n    class Test"))
    result = run(inner, plugin, monkeypatch)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert mark.partition("(")[0] in result.stderr.str()


def test_a_plugin_that_repeats_tests_in_its_own_way_makes_errors(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    inner.pytester.makeconftest(
        """
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item, nextitem):
            for again in (item, nextitem):
                runtestprotocol(item, nextitem=again)
            return True
        """
    )
    result = run(inner, "by_phase", monkeypatch, "-k", "kept")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (verdict,) = inner.records("verdict")
    assert verdict["outcome"] == "pass"
    (error,) = inner.records("error")
    assert "has run" in error["message"]


@pytest.mark.parametrize(
    ("args", "workers"),
    [
        (("--timeout=60",), ()),
        (("-o", "timeout=60"), ()),
        (("--timeout=60",), ("-n", "1", "-p", "xdist.plugin")),
    ],
    ids=["option", "ini", "xdist"],
)
def test_a_time_limit_below_the_longest_step_is_refused(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], workers: tuple[str, ...]
) -> None:
    if workers:  # they have the path that xdist saw when it was imported
        monkeypatch.setattr(sys, "executable", warm_python.REAL)
    result = run(inner, "pytest_timeout", monkeypatch, *args, *workers)
    # xdist reports what its workers refuse as a failure.
    assert result.ret == (pytest.ExitCode.TESTS_FAILED if workers else pytest.ExitCode.USAGE_ERROR)
    said = result.stderr.str() + result.stdout.str()
    assert "timeout=0" in said
    assert inner.records("array_planned") == []


@pytest.mark.parametrize(
    ("mark", "option", "status"),
    [
        ("timeout(60)", "--timeout=0", pytest.ExitCode.USAGE_ERROR),
        ("timeout(864000)", "--timeout=60", pytest.ExitCode.OK),
        ("timeout(60, func_only=True)", "--timeout=0", pytest.ExitCode.OK),
    ],
)
def test_a_mark_comes_before_the_option(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, mark: str, option: str, status: int
) -> None:
    monkeypatch.setattr(f"{__name__}.SUITE", SUITE.replace("class Test", f"@pytest.mark.{mark}\n    class Test"))
    assert run(inner, "pytest_timeout", monkeypatch, option, "-k", "kept").ret == status


def test_a_test_that_a_time_limit_ends_is_no_verdict(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = "assert __import__('time').sleep(30) or ssd_sla.judge(ssd_run)"
    monkeypatch.setattr(f"{__name__}.SUITE", SUITE.replace("assert ssd_sla.judge(ssd_run)", slow))
    ended = run(inner, "pytest_timeout", monkeypatch, "--timeout=1", "-o", "timeout_func_only=true", "-k", "kept")
    assert ended.ret == pytest.ExitCode.TESTS_FAILED
    (case,) = inner.cases().values()
    assert (case.outcome, "Timeout" in case.message) == ("error", True)
