"""Tests that would hide a failed promise or judge nothing, written as users write them."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import PRODUCT, promise

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

HEAD = """
import pytest
from pytest_ssdqual import Workload

READS = Workload("randread", "4k", 8)
pytestmark = [pytest.mark.ssd_array("raid5", widths=[3]), pytest.mark.ssd_workload(READS)]
"""
#: The simulated array does 900 IOPS; its p99 is 53 ms. Nothing is promised about its mean latency.
BROKEN, KEPT, ON_THE_LIMIT = "9000 IOPS", "100 IOPS", "900 IOPS"
TEST = "test_iops[raid5x3-randread_4k_qd8]"


def write(inner: Inner, body: str, limit: str) -> str:
    (inner.pytester.path / "test_promises.py").write_text(HEAD + textwrap.dedent(body))
    limits = promise(claim="steady_iops", at_least=limit), promise(claim="p99_latency", at_most="60 ms")
    unpromised = promise(claim="mean_latency", workload="randwrite_*", at_most="60 ms")
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + "".join((*limits, unpromised)))
    return "--ssd-spec=acme.toml"


HIDDEN = {
    "no assert": """
        @pytest.mark.ssd_promise("steady_iops")
        def test_iops(ssd_run, ssd_sla):
            ssd_sla.judge(ssd_run)
    """,
    "assert of another verdict": """
        @pytest.mark.ssd_promise("steady_iops", "p99_latency")
        def test_iops(ssd_run, ssd_sla):
            ssd_sla.judge("steady_iops", ssd_run)
            assert ssd_sla.judge("p99_latency", ssd_run)
    """,
    "skipped by a claim without a limit": """
        @pytest.mark.ssd_promise("steady_iops", "mean_latency")
        def test_iops(ssd_run, ssd_sla):
            first = ssd_sla.judge("steady_iops", ssd_run)
            second = ssd_sla.judge("mean_latency", ssd_run)
            assert first and second
    """,
    "judged in a fixture": """
        @pytest.fixture
        def judged(ssd_run, ssd_sla):
            assert ssd_sla.judge(ssd_run)

        @pytest.mark.ssd_promise("steady_iops")
        def test_iops(judged):
            pass
    """,
}


@pytest.mark.parametrize(
    ("body", "workers"),
    [*((body, ()) for body in HIDDEN.values()), (HIDDEN["judged in a fixture"], ("-n", "1"))],
    ids=[*HIDDEN, "xdist"],
)
def test_a_recorded_failure_is_never_green(inner: Inner, body: str, workers: tuple[str, ...]) -> None:
    result = inner.run("--ssd-devices=lab:3", write(inner, body, BROKEN), *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    case = inner.cases()[TEST]
    assert (case.outcome, case.message.partition("limit ")[2]) == ("failure", "9,000 IOPS: FAIL by 90.0 %")
    assert [each["outcome"] for each in inner.records("verdict")].count("fail") == 1


@pytest.mark.parametrize("name", HIDDEN)
def test_the_same_tests_with_a_kept_promise(inner: Inner, name: str) -> None:
    result = inner.run("--ssd-devices=lab:3", write(inner, HIDDEN[name], KEPT))
    skipped = pytest.ExitCode.NO_TESTS_COLLECTED, "skipped"
    expected = skipped if name.startswith("skipped") else (pytest.ExitCode.OK, "passed")
    assert (result.ret, inner.cases()[TEST].outcome) == expected


def test_a_failure_before_a_skipped_inconclusive_verdict(inner: Inner) -> None:
    body = """
        @pytest.mark.ssd_promise("steady_iops", "p99_latency")
        def test_iops(ssd_run, ssd_sla):
            first = ssd_sla.judge("p99_latency", ssd_run)
            second = ssd_sla.judge("steady_iops", ssd_run)
            assert first and second
    """
    spec = write(inner, body, ON_THE_LIMIT)
    path = inner.pytester.path / "acme.toml"
    path.write_text(path.read_text().replace("60 ms", "1 ms"))
    result = inner.run("--ssd-devices=lab:3", spec, "-o", "ssd_inconclusive=skip")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "FAIL by" in inner.cases()[TEST].message


@pytest.mark.parametrize("mark", ["", "@pytest.mark.xfail(strict=False)"])
@pytest.mark.parametrize("inconclusive", ["error", "skip"])
def test_an_inconclusive_verdict_that_a_test_catches_is_an_error(inner: Inner, inconclusive: str, mark: str) -> None:
    body = f"""
        @pytest.mark.ssd_promise("steady_iops")
        {mark}
        def test_iops(ssd_run, ssd_sla):
            with pytest.raises(BaseException):
                ssd_sla.judge(ssd_run)
    """
    spec = write(inner, body, ON_THE_LIMIT)
    result = inner.run("--ssd-devices=lab:3", spec, "-o", f"ssd_inconclusive={inconclusive}")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert (inner.cases()[TEST].outcome, "INCONCLUSIVE" in inner.cases()[TEST].message) == ("error", True)


UNJUDGED = {
    "behind a condition": """
        @pytest.mark.ssd_promise("steady_iops")
        def test_iops(ssd_run, ssd_sla):
            if ssd_run.iops < 0:
                assert ssd_sla.judge(ssd_run)
    """,
    "one of two claims": """
        @pytest.mark.ssd_promise("steady_iops", "p99_latency")
        def test_iops(ssd_run, ssd_sla):
            assert ssd_sla.judge("steady_iops", ssd_run)
    """,
    "with request": """
        @pytest.mark.ssd_promise("steady_iops")
        def test_iops(ssd_run, request):
            assert ssd_run.iops > 0
    """,
}


@pytest.mark.parametrize("body", UNJUDGED.values(), ids=UNJUDGED)
def test_a_test_that_does_not_judge_what_it_declares_is_an_error(inner: Inner, body: str) -> None:
    result = inner.run("--ssd-devices=lab:3", write(inner, body, KEPT))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    case = inner.cases()[TEST]
    assert (case.outcome, "without judging" in case.message) == ("error", True)


def test_a_test_that_declares_and_cannot_judge_is_refused(inner: Inner) -> None:
    body = """
        @pytest.mark.ssd_promise("steady_iops")
        def test_iops(ssd_run):
            assert ssd_run.iops > 0
    """
    result = inner.run("--ssd-devices=lab:3", write(inner, body, KEPT))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "has neither ssd_sla nor ssd_lot" in result.stderr.str()


def test_tests_of_a_module_that_declares_judge_one_claim_each(inner: Inner) -> None:
    body = """
        pytestmark.append(pytest.mark.ssd_promise("steady_iops", "p99_latency"))

        def test_iops(ssd_run, ssd_sla):
            assert ssd_sla.judge("steady_iops", ssd_run)

        def test_p99(ssd_run, ssd_sla):
            assert ssd_sla.judge("p99_latency", ssd_run)
    """
    assert inner.run("--ssd-devices=lab:3", write(inner, body, KEPT)).ret == pytest.ExitCode.OK


EXPECTED = """
    @pytest.mark.ssd_promise("steady_iops")
    @pytest.mark.xfail(reason="ticket 7")
    def test_iops(ssd_run, ssd_sla):
        assert ssd_sla.judge(ssd_run)

    @pytest.mark.ssd_promise("p99_latency")
    def test_p99(ssd_run, ssd_sla):
        assert ssd_sla.judge(ssd_run)
"""


def test_an_expected_failure_is_a_failed_promise(inner: Inner) -> None:
    assert inner.run("--ssd-devices=lab:3", write(inner, EXPECTED, BROKEN)).ret == pytest.ExitCode.OK
    assert inner.cases()[TEST].outcome == "skipped"


def test_an_expected_failure_is_no_measurement_without_a_verdict(inner: Inner) -> None:
    result = inner.run("--ssd-devices=lab:3", write(inner, EXPECTED, ON_THE_LIMIT))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    case = inner.cases()[TEST]
    assert (case.outcome, "INCONCLUSIVE" in case.message) == ("error", True)


def test_each_claim_of_subtests_counts_once(inner: Inner) -> None:
    pytest.importorskip("_pytest.subtests", reason="pytest before 9 has no subtests")
    body = """
        @pytest.mark.ssd_promise("steady_iops", "p99_latency")
        def test_iops(ssd_run, ssd_sla, subtests):
            for claim in ("steady_iops", "p99_latency"):
                with subtests.test(claim):
                    ssd_sla.judge(claim, ssd_run)
    """
    assert inner.run("--ssd-devices=lab:3", write(inner, body, KEPT)).ret == pytest.ExitCode.OK
    assert len(inner.records("verdict")) == 2
    assert inner.run("--ssd-devices=lab:3", write(inner, body, BROKEN)).ret == pytest.ExitCode.TESTS_FAILED


REPORT_HOOK = """
    import pytest

    @pytest.hookimpl({how})
    def pytest_runtest_makereport(item, call):
        report = yield
        if report.when == "call" and report.failed:
            {change}
        return report
"""
CHANGES = {
    "passed": 'report.outcome, report.longrepr = "passed", None',
    "skipped": 'report.outcome, report.longrepr = "skipped", ("x", 1, "known")',
    "expected": 'report.outcome, report.wasxfail = "skipped", "known issue"',
    "other report": 'report = pytest.TestReport(item.nodeid, item.location, {}, "passed", None, "call")',
}
SWALLOWED = """
    import pytest

    class Plugin:
        @pytest.hookimpl(tryfirst=True)
        def {hook}:
            {body}

    def pytest_configure(config):
        config.pluginmanager.register(Plugin())
"""


def hides(inner: Inner, conftest: str, limit: str = BROKEN, *args: str) -> pytest.RunResult:
    inner.pytester.makeconftest(conftest)
    return inner.run("--ssd-devices=lab:3", write(inner, HIDDEN["judged in a fixture"], limit), *args)


FIRST, LAST = "wrapper=True, tryfirst=True", "wrapper=True, trylast=True"


@pytest.mark.parametrize(
    ("how", "change", "limit"),
    [
        *((FIRST, change, limit) for change in CHANGES for limit in (BROKEN, ON_THE_LIMIT)),
        ("wrapper=True", "passed", BROKEN),
        (LAST, "passed", BROKEN),
    ],
)
def test_a_hook_cannot_turn_what_failed_into_anything_else(inner: Inner, how: str, change: str, limit: str) -> None:
    conftest = textwrap.dedent(REPORT_HOOK).format(how=how, change=CHANGES[change])
    assert hides(inner, conftest, limit).ret == pytest.ExitCode.TESTS_FAILED
    assert inner.cases()[TEST].outcome == ("failure" if limit == BROKEN else "error")
    assert not any(each.get("xfail") for each in inner.records("verdict"))


IN_THE_LOG = "pytest_runtest_logreport(self, report)", 'report.outcome, report.longrepr = "passed", None'


@pytest.mark.parametrize(
    ("hook", "body", "workers"),
    [
        (*IN_THE_LOG, ()),
        (*IN_THE_LOG, ("-n", "1")),
        ("pytest_sessionfinish(self, session)", "session.exitstatus = 0", ()),
        ("pytest_unconfigure(self, config)", 'config.pluginmanager.get_plugin("session").exitstatus = 0', ()),
    ],
    ids=["in the log", "in the log of xdist", "at the end", "after the end"],
)
def test_the_exit_status_agrees_with_the_records(inner: Inner, hook: str, body: str, workers: tuple[str, ...]) -> None:
    conftest = textwrap.dedent(SWALLOWED).format(hook=hook, body=body)
    result = hides(inner, conftest, BROKEN, *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    if "logreport" in hook:
        (case,) = (case for name, case in inner.all_cases().items() if name == "not green")
        assert TEST in case.message


def test_a_test_that_another_plugin_fails_is_no_verdict(inner: Inner) -> None:
    change = 'report.outcome, report.longrepr = "failed", "it took too long"'
    conftest = textwrap.dedent(REPORT_HOOK).format(how="wrapper=True", change=change)
    assert hides(inner, conftest.replace("report.failed", "report.passed"), KEPT).ret == pytest.ExitCode.TESTS_FAILED
    assert (inner.cases()[TEST].outcome, [each["kind"] for each in inner.records("error")]) == ("error", ["error"])


FOREIGN = """
    KEPT = []

    @pytest.mark.ssd_promise("steady_iops")
    def test_iops(ssd_run, ssd_sla):
        KEPT.append(ssd_run)
        assert ssd_sla.judge(KEPT[0])
"""


@pytest.mark.parametrize(
    "parameters",
    [
        'pytest.mark.ssd_array("raid5", widths=[3]), pytest.mark.ssd_workload(Workload("randread", "4k", 1), READS)',
        'pytest.mark.ssd_array("raid5", widths=[3, 4]), pytest.mark.ssd_workload(READS)',
        'pytest.mark.ssd_array(default="drive,raid5x3"), pytest.mark.ssd_workload(READS)',
    ],
    ids=["workload", "width", "array"],
)
def test_a_test_judges_what_its_own_fixtures_measured(inner: Inner, parameters: str) -> None:
    spec = write(inner, FOREIGN, KEPT)
    path = inner.pytester.path / "test_promises.py"
    path.write_text(
        path.read_text().partition("pytestmark")[0] + f"pytestmark = [{parameters}]\n" + textwrap.dedent(FOREIGN)
    )
    result = inner.run("--ssd-devices=lab:4", spec)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    outcomes = [case.outcome for case in inner.cases().values()]
    assert outcomes == ["passed", "error"]
    assert "its own fixtures" in next(case.message for case in inner.cases().values() if case.outcome == "error")
