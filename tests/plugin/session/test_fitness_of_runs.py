"""Verdict, coverage and exit status of whole runs: status 0 is that of a fit run, and of no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import PRODUCT, promise
from support.builders.suite import suite

from pytest_ssdqual.report.fleet.view import FleetView, together
from pytest_ssdqual.report.run_summary.fitness import Fitness
from pytest_ssdqual.report.run_summary.run_view import RunView

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

OK, FAILED, INTERRUPTED, NOTHING = (
    pytest.ExitCode[name] for name in ("OK", "TESTS_FAILED", "INTERRUPTED", "NO_TESTS_COLLECTED")
)
DUT = "--ssd-devices=root@dut1:/dev/nvme*"
COMMON = ("--ssd-protocol=quick", "--ssd-spec=acme.toml")
READS, WRITES = '"randread", "4k", 8', '"randwrite", "4k", 8'
KEPT, BROKEN, OPEN = "100 IOPS", "9999 IOPS", "900 IOPS"


def write(inner: Inner, iops: str = KEPT) -> None:
    """A suite of two claims. The spec promises the IOPS of writes in per cent of a figure that it does not publish."""
    (inner.pytester.path / "suites_of_mine").mkdir()
    (inner.pytester.path / "suites_of_mine" / "test_it.py").write_text(
        suite(
            '"raid5", widths=[3]',
            iops=("steady_iops", READS),
            p99=("p99_latency", READS),
            throughput=("throughput", WRITES),
            knee=("p50_latency", WRITES),
        )
    )
    (inner.pytester.path / "acme.toml").write_text(
        PRODUCT
        + promise(claim="steady_iops", at_least=iops)
        + promise(claim="p99_latency", at_most="1 s")
        + promise(claim="throughput", min_percent_of_spec=90)
        + promise(claim="p50_latency", at_most="1 s")
    )


def numbers(view: RunView) -> tuple[int, ...]:
    """Tests judged, all tests, those without a limit, drives judged, all drives."""
    return tuple(view.verdict.coverage.facts.values())


def verdict_of(inner: Inner, status: int, *args: str) -> RunView:
    result = inner.run(DUT, *COMMON, *args)
    assert result.ret == status, result.stdout.str()
    run = RunView.read(inner.folder())
    assert run.manifest.exit_status == status
    return run


@pytest.mark.parametrize(
    ("iops", "trouble", "args", "status", "fitness"),
    [
        (KEPT, {}, ("-k", "not throughput"), OK, Fitness.FIT),
        (KEPT, {}, (), NOTHING, Fitness.NO_VERDICT),
        (BROKEN, {}, (), FAILED, Fitness.NOT_FIT),
        (OPEN, {}, ("-k", "iops"), FAILED, Fitness.UNDECIDED),
        (OPEN, {}, ("-k", "not throughput", "-o", "ssd_inconclusive=skip"), NOTHING, Fitness.UNDECIDED),
        (KEPT, {"SIMULATED_BROKEN": "raid5x3"}, (), FAILED, Fitness.NO_VERDICT),
        (KEPT, {"SIMULATED_LOST_AT": "1"}, (), INTERRUPTED, Fitness.NO_VERDICT),
        (KEPT, {}, ("-k", "throughput"), NOTHING, Fitness.NO_VERDICT),
    ],
    ids=["pass", "hollow", "fail", "undecided", "undecided and skipped", "errors", "interrupted", "nothing judged"],
)
def test_only_a_fit_run_ends_with_status_0(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, iops: str, trouble: dict[str, str], args: tuple[str, ...],
    status: int, fitness: Fitness,
) -> None:  # fmt: skip
    write(inner, iops)
    for name, value in trouble.items():
        monkeypatch.setenv(name, value)
    found = verdict_of(inner, status, *args).verdict
    assert found.fitness is fitness
    assert (found.fitness is Fitness.FIT) is (status == OK)
    assert inner.suite_properties()["ssd.verdict"] == found.fitness.value


def test_a_hollow_promise_is_named_on_all_surfaces(inner: Inner) -> None:
    write(inner)
    result = inner.run(DUT, *COMMON, "-o", "ssd_page=true")
    folder = inner.folder()
    sentence = "throughput: its only test was not judged"
    assert sentence in inner.all_cases()["not green"].message
    for text in (result.stdout.str(), *((folder / name).read_text() for name in ("summary.md", "report.html"))):
        assert sentence.capitalize() in " ".join(text.split())
        assert "(1 more without" in " ".join(text.split())
    assert "not tested" in (folder / "report.html").read_text()


def test_a_run_of_plain_asserts_says_why_it_is_not_green(inner: Inner) -> None:
    write(inner)
    inner.pytester.makepyfile(test_plain="import pytest\n\n@pytest.mark.ssd_array('drive')\ndef test_plain(): pass")
    assert verdict_of(inner, NOTHING, "test_plain.py").verdict.fitness is Fitness.NO_VERDICT
    assert "No promise was" in inner.all_cases()["not green"].message


@pytest.mark.parametrize(
    ("required", "status", "missing"),
    [("p99_latency", OK, []), ("p99_latency max_latency", NOTHING, [("max_latency", 0)])],
)
def test_a_configuration_lists_what_must_be_judged(
    inner: Inner, required: str, status: int, missing: list[tuple[str, int]]
) -> None:
    write(inner)
    found = verdict_of(inner, status, "-o", f"ssd_required_claims={required}").verdict
    assert (found.fitness is Fitness.FIT) is (status == OK)
    # What is not required is named all the same.
    assert [(promise.claim, promise.tests) for promise in found.coverage.hollow] == [("throughput", 1)]
    assert [(promise.claim, promise.tests) for promise in found.coverage.missing] == missing
    assert ("not green" in inner.all_cases()) is bool(missing)


def test_a_required_claim_that_is_none_is_refused(inner: Inner) -> None:
    write(inner)
    assert "mean 'p99_latency'?" in inner.refused(DUT, *COMMON, "-o", "ssd_required_claims=p99_latncy")


def test_what_is_left_out_counts_over_the_sessions(inner: Inner) -> None:
    write(inner)
    args = ("-o", "ssd_required_claims=p99_latency")
    assert numbers(verdict_of(inner, OK, "-k", "p99", *args)) == (1, 4, 0, 3, 4)
    (plan,) = inner.records("tests_planned")
    assert (plan["claims"], plan["promised"], len(plan["left_out"])) == ([["p99_latency"]], ["p99_latency"], 3)
    again = verdict_of(inner, OK, "-k", "iops", *args, "--ssd-resume=last")
    assert (again.verdict.fitness, numbers(again)) == (Fitness.FIT, (2, 4, 0, 3, 4))


def test_arrays_that_the_drives_cannot_form_leave_a_run_fit(inner: Inner) -> None:
    """Three drives have one width of RAID 5: nothing can be said about scaling, and nothing is missing."""
    inner.pytester.makepyfile(
        test_it=suite('"raid5"', iops=("steady_iops", READS))
        + """

@pytest.mark.ssd_workload(Workload("randread", "4k", 8))
@pytest.mark.ssd_promise("scaling_slope")
def test_scaling(ssd_sweep, ssd_sla):
    assert ssd_sla.judge(ssd_sweep)
"""
    )
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + promise(claim="steady_iops", at_least=KEPT))
    args = ("--ssd-devices=lab:3", *COMMON)
    assert inner.run(*args).ret == OK
    assert numbers(RunView.read(inner.folder())) == (1, 1, 0, 3, 3)
    inner.folder().rename(inner.pytester.path / "before")
    # Of a suite of its own it is the promise that nothing was judged of.
    assert inner.run(*args, "-o", "ssd_required_claims=scaling_slope").ret == NOTHING


def test_a_suite_for_more_drives_is_not_green_beside_another_one(inner: Inner) -> None:
    write(inner)
    (inner.pytester.path / "wide").mkdir()
    (inner.pytester.path / "wide" / "test_wide.py").write_text(
        suite('"raid5", widths=[8]', wide=("steady_iops", READS))
    )
    found = verdict_of(inner, NOTHING, "-k", "iops or wide").verdict
    assert [(each.claim, each.suites) for each in found.coverage.missing] == [("steady_iops", ("wide",))]


def test_the_coverage_of_bays_is_the_sum(inner: Inner) -> None:
    write(inner)
    two = (DUT, "--ssd-devices=root@dut2:/dev/nvme*", "-n", "1", "-k", "p99 or iops and dut1")
    assert inner.run(*two, *COMMON).ret == OK
    folder = inner.folder()
    found = together(FleetView.read(folder))
    assert (found.fitness, tuple(found.coverage.facts.values())) == (Fitness.FIT, (3, 8, 0, 6, 8))
    properties = inner.suite_properties()
    judged = [properties[f"ssd.{bay}.tests_judged"] for bay in ("dut1", "dut2")]
    assert (judged, properties["ssd.dut2.tests_all"]) == (["2", "1"], "4")
    assert found.headline in (folder / "summary.md").read_text()


def test_a_summary_names_a_page_only_if_there_is_one(inner: Inner) -> None:
    inner.pytester.makepyfile(
        "import pytest\n\n@pytest.mark.ssd_array('drive')\n@pytest.mark.skip\ndef test_it(): pass"
    )
    inner.run(DUT, "--ssd-protocol=quick")
    assert "in records.jsonl" in (inner.folder() / "summary.md").read_text()
    inner.run(DUT, "--ssd-protocol=quick", "--ssd-resume=last", "--ssd-page=yes")
    assert "in report.html" in (inner.folder() / "summary.md").read_text()
