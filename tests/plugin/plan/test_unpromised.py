"""What has no limit is counted and not measured; a model without a sheet is refused where a sheet would judge."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support.builders import drives
from support.builders.sheet import figure, promise
from support.builders.suite import suite

from pytest_ssdqual.plugin.bay.sheets import alike, nearest
from pytest_ssdqual.qual.spec import toml

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

RUN = ("--ssd-devices=/dev/nvme*", "--ssd-protocol=quick")
EVERYTHING = ("-o", "ssd_measure_unpromised=true")
PRODUCT = '[product]\nname = "ACME 9"\nmodels = ["*"]\n'

LOADS = '"randread", "4k", 8', '"randwrite", "4k", 8'
SUITE = suite('"raid5", widths=[4]', iops=("steady_iops", *LOADS), p99=("p99_latency", *LOADS))
NEEDED = promise(claim="steady_iops", workload="randrw99_4k_qd1", at_least="1 IOPS")


def write(inner: Inner, *promises: str, tests: str = SUITE) -> str:
    """Write a spec with these promises of its own and no other about the two claims; return its option."""
    inner.pytester.makepyfile(test_suite=tests)
    of_p99 = promise(claim="p99_latency", workload="randrw99_4k_qd1", at_most="1 s")
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + "".join(promises) + NEEDED + of_p99)
    return "--ssd-spec=acme.toml"


def needs(claim: str) -> tuple[str, ...]:
    """Ask for verdicts about this claim alone: of the other one, the spec promises what no test here judges."""
    return ("-o", f"ssd_required_claims={claim}")


def refused(inner: Inner, *args: str) -> str:
    """What pytest says about a run that does not begin."""
    result = inner.run(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    return result.stderr.str()


def measured(inner: Inner) -> list[str]:
    return [each["workload"] for each in inner.records("measured")]


def test_what_has_no_limit_is_skipped_and_not_measured(inner: Inner) -> None:
    """Reads have a limit of one claim, whose measurement shows the other one; nothing is known of writes."""
    option = write(inner, promise(claim="p99_latency", workload="randread_*", at_most="1 s"))
    assert inner.run(*RUN, *needs("p99_latency"), option).ret == pytest.ExitCode.OK
    assert {name: case.outcome for name, case in inner.cases().items()} == {
        "test_iops[raid5x4-randwrite_4k_qd8]": "skipped",
        "test_p99[raid5x4-randwrite_4k_qd8]": "skipped",
        "test_iops[raid5x4-randread_4k_qd8]": "skipped",
        "test_p99[raid5x4-randread_4k_qd8]": "passed",
    }
    assert measured(inner) == ["randread_4k_qd8"]
    (shown,) = inner.records("observation")
    assert (shown["claim"], shown["limit"]) == ("steady_iops", None)
    assert "no steady IOPS" in inner.cases()["test_iops[raid5x4-randwrite_4k_qd8]"].message


def test_no_array_is_built_without_a_limit_and_no_run_is_green(inner: Inner) -> None:
    option = write(inner)
    result = inner.run(*RUN, option)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["*ssd_measure_unpromised = true*"])
    assert inner.records("array_created", "filled", "purging", "measured") == []


def test_everything_is_measured_where_that_is_asked_for(inner: Inner) -> None:
    result = inner.run(*RUN, *EVERYTHING, write(inner))
    assert sorted(measured(inner)) == ["randread_4k_qd8", "randwrite_4k_qd8"]
    assert len(inner.records("observation")) == 4
    assert "4 of 4" in result.stdout.str()


def test_a_promise_in_per_cent_of_a_run_needs_the_run(inner: Inner) -> None:
    option = write(inner, promise(claim="steady_iops", min_percent_of_baseline=90))
    assert inner.run(*RUN, option).ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert "--ssd-baseline" in inner.cases()["test_iops[raid5x4-randread_4k_qd8]"].message
    assert measured(inner) == []


def test_what_a_promise_compares_with_needs_no_limit_of_its_own(inner: Inner) -> None:
    relative = promise(claim="steady_iops", workload="randwrite_*", relative_to="randread_4k_qd8", at_least="2 %")
    assert inner.run(*RUN, *needs("steady_iops"), write(inner, relative)).ret == pytest.ExitCode.OK
    assert sorted(measured(inner)) == ["randread_4k_qd8", "randwrite_4k_qd8"]
    assert inner.outcomes()["test_iops[raid5x4-randwrite_4k_qd8]"] == "passed"
    assert len(inner.records("observation")) == 3


SPLIT = suite('"raid5", widths=[4]', iops=("steady_iops", '"randread", "256k", 8', '"randread", "128k", 8'))


def test_a_percentage_of_the_sheet_limits_arrays_by_the_law(inner: Inner) -> None:
    """A transfer of two chunks is two I/Os of members, so drives that are bound by IOPS do half of the law."""
    option = write(
        inner,
        promise(claim="steady_iops", min_percent_of_spec=90),
        figure(rw="randread", bs=["128k", "256k"], queue_depths=[8], iops=300),
        tests=SPLIT,
    )
    shipped = toml.text("quick", "protocols")
    (inner.pytester.path / "own.toml").write_text(f'{shipped}\n[array]\nchunk = "128k"\n')
    inner.run(RUN[0], "--ssd-protocol=own.toml", option)
    (verdict,) = inner.records("verdict")
    assert (verdict["workloads"], verdict["outcome"]) == (["randread_128k_qd8"], "pass")
    assert inner.outcomes()["test_iops[raid5x4-randread_256k_qd8]"] == "skipped"


@pytest.mark.parametrize("more", [(), ("-n", "2")])
def test_a_model_without_a_sheet_is_refused_with_three_ways_out(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.setenv("SIMULATED_MODEL", "SAMSUNG MZQL2960HCJR-00A07")
    inner.pytester.makepyfile(test_suite=SUITE)
    result = inner.run(*RUN, *more)
    # xdist reports what its workers refuse as a failure.
    assert result.ret == (pytest.ExitCode.TESTS_FAILED if more else pytest.ExitCode.USAGE_ERROR)
    said = result.stdout.str() + result.stderr.str()
    for words in ("MZQL2960HCJR", "samsung-pm9a3-7t68", "--ssd-spec=FILE", "ssdqual spec --from", "--ssd-spec=default"):
        assert words in said
    assert inner.records("array_created", "filled", "purging", "measured", "array_planned") == []


@pytest.mark.parametrize(
    ("model", "near"), [("ACME X", ": --ssd-spec=default"), ("KIOXIA KCD8XRUG7T68", "kioxia-cd8-r-3t84")]
)
def test_a_run_without_a_sheet_says_so_where_it_was_asked_for(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, model: str, near: str
) -> None:
    monkeypatch.setenv("SIMULATED_MODEL", model)
    inner.pytester.makepyfile(test_suite=SUITE)
    result = inner.run(*RUN, "--ssd-spec=default")
    result.stdout.fnmatch_lines([f"*{model}*{near}*"])
    assert inner.manifest()["without_sheet"] == [model]


@pytest.mark.parametrize("selected", ["p99", "not iops"])
def test_limits_for_any_drive_need_no_sheet(inner: Inner, monkeypatch: pytest.MonkeyPatch, selected: str) -> None:
    monkeypatch.setenv("SIMULATED_MODEL", "ACME X")
    inner.pytester.makepyfile(test_suite=SUITE)
    inner.run(*RUN, "-k", selected)
    assert measured(inner) == ["randwrite_4k_qd8", "randread_4k_qd8"]
    assert inner.manifest()["without_sheet"] == ["ACME X"]


def test_suites_that_judge_no_figure_of_a_sheet_need_none(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_MODEL", "ACME X")
    suites = [inner.suite(name) for name in ("efficiency", "inspection", "integrity", "explore")]
    assert inner.run(*RUN, "--collect-only", "--import-mode=importlib", *suites).ret == pytest.ExitCode.OK


@pytest.mark.parametrize("suite", ["raid5", "datasheet", "snia"])
def test_suites_that_judge_figures_of_a_sheet_need_one(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, suite: str
) -> None:
    monkeypatch.setenv("SIMULATED_MODEL", "ACME X")
    assert "--ssd-spec=default" in refused(inner, *RUN, "--collect-only", inner.suite(suite))


def test_one_model_of_two_without_a_sheet_is_refused(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_MODEL", "SSDQUAL-SM300|ACME X")
    said = refused(inner, *RUN, "--ssd-mixed", inner.suite("drive"))
    assert "for ACME X" in said


@pytest.mark.parametrize(
    ("model", "sheet"),
    [
        ("SAMSUNG MZQL2960HCJR-00A07", "samsung-pm9a3-7t68"),
        ("Micron_7450_MTFDKCC3T8TFR", "micron-7450-pro-7t68"),
        # The series is nearer than the capacity.
        ("KIOXIA KCD8XRUG7T68", "kioxia-cd8-r-3t84"),
        ("SOLIDIGM SBFPF2BV307T", "solidigm-d5-p5336-61t44"),
        ("Dell Ent NVMe P5336 RI ISE 30.72TB", "solidigm-d5-p5336-61t44"),
        ("SAMSUNG MZ7L3480HCHQ-00A07", "samsung-pm893-3t84"),
        ("INTEL SSDPE2KX040T8", "solidigm-d7-p5520-7t68"),
        # A word that all drives have is no likeness, nor are HPE's numbers.
        ("Samsung SSD 990 PRO 2TB", None),
        ("VK003840GZXRR", None),
        ("VO007680KYDMV", None),
        ("ACME X", None),
        ("", None),
    ],
)
def test_the_sheet_of_a_similar_product_is_named(model: str, sheet: str | None) -> None:
    found = nearest(model)
    assert (found and found.key) == sheet


@pytest.mark.parametrize(
    ("max_link", "terabytes", "named"),
    [
        ("16.0 GT/s PCIe", 7.68, "samsung-pm9a3-7t68"),
        ("32.0 GT/s PCIe", 7.68, "kioxia-cm7-r-7t68"),
        ("16.0 GT/s PCIe", 0.123, ""),
    ],
)
def test_a_model_without_a_maker_has_the_sheets_of_its_class(max_link: str, terabytes: float, named: str) -> None:
    model = "VO007680KYDMV"
    drive = replace(drives.drive(1, model, round(terabytes * 1e12)), max_link=max_link)
    near = alike([drive], [model])
    assert near.startswith(" (shipped sheets") if named else near == ""
    assert named in near
    assert "micron-5400" not in near
