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


IN_A_FIXTURE = """
    @pytest.fixture
    def judged(ssd_run, ssd_sla):
        assert ssd_sla.judge(ssd_run)

    @pytest.mark.ssd_promise("steady_iops")
    def test_iops(judged):
        pass
"""
HIDDEN = (
    textwrap.dedent(IN_A_FIXTURE)
    + """
@pytest.mark.ssd_promise("steady_iops")
def test_without_assert(ssd_run, ssd_sla):
    ssd_sla.judge(ssd_run)

@pytest.mark.ssd_promise("steady_iops", "p99_latency")
def test_assert_of_another_verdict(ssd_run, ssd_sla):
    ssd_sla.judge("steady_iops", ssd_run)
    assert ssd_sla.judge("p99_latency", ssd_run)

@pytest.mark.ssd_promise("steady_iops", "mean_latency")
def test_skipped_by_a_claim_without_a_limit(ssd_run, ssd_sla):
    first = ssd_sla.judge("steady_iops", ssd_run)
    second = ssd_sla.judge("mean_latency", ssd_run)
    assert first and second
"""
)


def outcomes(inner: Inner) -> dict[str, str]:
    """By the name of the function."""
    return {name.partition("[")[0]: outcome for name, outcome in inner.outcomes().items()}


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_recorded_failure_is_never_green(inner: Inner, workers: tuple[str, ...]) -> None:
    result = inner.run("--ssd-devices=lab:3", write(inner, HIDDEN, BROKEN), *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    ended = outcomes(inner)
    assert (len(ended), set(ended.values())) == (4, {"failure"})
    assert [each["outcome"] for each in inner.records("verdict")].count("fail") == 4


def test_the_same_tests_with_a_kept_promise(inner: Inner) -> None:
    spec = write(inner, HIDDEN, KEPT)
    assert inner.run("--ssd-devices=lab:3", spec).ret == pytest.ExitCode.NO_TESTS_COLLECTED
    skipped = "test_skipped_by_a_claim_without_a_limit"
    ended = outcomes(inner)
    assert ended.pop(skipped) == "skipped"
    assert set(ended.values()) == {"passed"}
    assert inner.run("--ssd-devices=lab:3", spec, "-k", "not without_a_limit").ret == pytest.ExitCode.OK


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


@pytest.mark.parametrize("inconclusive", ["error", "skip"])
def test_an_inconclusive_verdict_that_a_test_catches_is_an_error(inner: Inner, inconclusive: str) -> None:
    body = """
        @pytest.mark.ssd_promise("steady_iops")
        {mark}
        def test_{name}(ssd_run, ssd_sla):
            with pytest.raises(BaseException):
                ssd_sla.judge(ssd_run)
    """
    both = body.format(mark="", name="plain") + body.format(mark="@pytest.mark.xfail(strict=False)", name="expected")
    spec = write(inner, both, ON_THE_LIMIT)
    result = inner.run("--ssd-devices=lab:3", spec, "-o", f"ssd_inconclusive={inconclusive}")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert outcomes(inner) == {"test_plain": "error", "test_expected": "error"}
    assert {each["outcome"] for each in inner.records("verdict")} == {"inconclusive"}


UNJUDGED = """
    @pytest.mark.ssd_promise("steady_iops")
    def test_behind_a_condition(ssd_run, ssd_sla):
        if ssd_run.iops < 0:
            assert ssd_sla.judge(ssd_run)

    @pytest.mark.ssd_promise("steady_iops", "p99_latency")
    def test_one_of_two_claims(ssd_run, ssd_sla):
        assert ssd_sla.judge("steady_iops", ssd_run)

    @pytest.mark.ssd_promise("steady_iops")
    def test_with_request(ssd_run, request):
        assert ssd_run.iops > 0
"""


def test_a_test_that_does_not_judge_what_it_declares_is_an_error(inner: Inner) -> None:
    result = inner.run("--ssd-devices=lab:3", write(inner, UNJUDGED, KEPT))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    cases = inner.cases().values()
    assert [(case.outcome, "without judging" in case.message) for case in cases] == [("error", True)] * 3


def test_a_test_that_declares_and_cannot_judge_is_refused(inner: Inner) -> None:
    body = """
        @pytest.mark.ssd_promise("steady_iops")
        def test_iops(ssd_run):
            assert ssd_run.iops > 0
    """
    result = inner.run("--ssd-devices=lab:3", write(inner, body, KEPT))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "neither ssd_sla nor" in result.stderr.str()


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
    return inner.run("--ssd-devices=lab:3", write(inner, IN_A_FIXTURE, limit), *args)


FIRST, LAST = "wrapper=True, tryfirst=True", "wrapper=True, trylast=True"
#: Beside the test of a broken promise, one that is on its limit.
UNDECIDED = """
@pytest.mark.ssd_promise("throughput")
def test_undecided(ssd_run, ssd_sla):
    assert ssd_sla.judge(ssd_run)
"""


@pytest.mark.parametrize(
    ("how", "change"), [*((FIRST, change) for change in CHANGES), ("wrapper=True", "passed"), (LAST, "passed")]
)
def test_a_hook_cannot_turn_what_failed_into_anything_else(inner: Inner, how: str, change: str) -> None:
    inner.pytester.makeconftest(textwrap.dedent(REPORT_HOOK).format(how=how, change=CHANGES[change]))
    spec = write(inner, textwrap.dedent(IN_A_FIXTURE) + UNDECIDED, BROKEN)
    with (inner.pytester.path / "acme.toml").open("a") as file:
        file.write(promise(claim="throughput", at_least="3.6864 MB/s"))
    assert inner.run("--ssd-devices=lab:3", spec).ret == pytest.ExitCode.TESTS_FAILED
    assert outcomes(inner) == {"test_iops": "failure", "test_undecided": "error"}
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
PARAMETERS = {
    "workload": (
        'pytest.mark.ssd_array("raid5", widths=[3]), pytest.mark.ssd_workload(Workload("randread", "4k", 1), READS)'
    ),
    "width": 'pytest.mark.ssd_array("raid5", widths=[3, 4]), pytest.mark.ssd_workload(READS)',
    "array": 'pytest.mark.ssd_array(default="drive,raid5x3"), pytest.mark.ssd_workload(READS)',
}


def test_a_test_judges_what_its_own_fixtures_measured(inner: Inner) -> None:
    """Not what another test of its module has measured: with another workload, width or array."""
    spec = write(inner, FOREIGN, KEPT)
    path = inner.pytester.path / "test_promises.py"
    head = path.read_text().partition("pytestmark")[0]
    path.unlink()
    for name, parameters in PARAMETERS.items():
        module = inner.pytester.path / f"test_{name}.py"
        module.write_text(f"{head}pytestmark = [{parameters}]\n{textwrap.dedent(FOREIGN)}")
    result = inner.run("--ssd-devices=lab:4", spec)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=3, errors=3)
    errors = inner.records("error")
    assert {str(each["test"]).partition(".py")[0] for each in errors} == {f"test_{name}" for name in PARAMETERS}
    assert all("own fixtures" in str(each["message"]) for each in errors)
