"""``suites/datasheet``: a test for each published figure, and a reason for each that the sheet lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import PRODUCT, figure, promise

if TYPE_CHECKING:
    from support.fakes.inner_session import Case, Inner

STEADY, FRESH = "test_published_figure_is_reached", "test_published_figure_from_the_purged_state_is_reached"


def run(inner: Inner, *tables: str, args: tuple[str, ...] = ()) -> dict[str, Case]:
    """The cases by the name of the test and its parameters; the simulated drives do 300 IOPS at depth 8."""
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + "".join(tables))
    inner.run("--ssd-devices=lab:3", "--ssd-spec=acme.toml", inner.suite("datasheet"), *args)
    return inner.cases()


def test_each_published_figure_is_one_test_under_its_conditions(inner: Inner) -> None:
    cases = run(
        inner,
        figure(rw="randread", bs="4k", queue_depths=[4, 8], iops=100),
        figure(workload="randwrite_4k_t2xqd4", iops=250, mean_latency="1 s"),
        figure(workload="randwrite_4k_qd8", fresh_iops=200),
    )
    assert {name for name, case in cases.items() if case.outcome == "passed"} == {
        f"{STEADY}[drivex3-randread_4k_qd4-steady_iops]",
        f"{STEADY}[drivex3-randread_4k_qd8-steady_iops]",
        f"{STEADY}[drivex3-randwrite_4k_t2xqd4-steady_iops]",
        f"{STEADY}[drivex3-randwrite_4k_t2xqd4-mean_latency]",
        f"{FRESH}[drivex3-randwrite_4k_qd8-fresh_iops]",
    }
    assert {str(record["asked"]["threads"]) for record in inner.records("measured")} == {"None", "2"}


def test_a_drive_below_its_published_figure_fails(inner: Inner) -> None:
    cases = run(inner, figure(rw="randread", bs="4k", queue_depths=[8], iops=400, p99_latency="1 ms"))
    for claim in ("steady_iops", "p99_latency"):
        case = cases[f"{STEADY}[drivex3-randread_4k_qd8-{claim}]"]
        assert case.outcome == "failure", claim
    # What is published decides, not the default of 10 ms.
    assert "limit 1 ms" in case.message


def test_what_the_sheet_does_not_publish_is_skipped(inner: Inner) -> None:
    cases = run(inner, figure(rw="randread", bs="4k", queue_depths=[8], iops=100))
    skipped = {name: case.message for name, case in cases.items() if case.outcome == "skipped"}
    for name in (f"{STEADY}[drive-randwrite_iops]", f"{FRESH}[drive-from_purged_state]"):
        assert "publishes no" in skipped[name]
    assert f"{STEADY}[drive-randread_iops]" not in cases


def test_a_figure_of_an_array_is_judged_on_that_array(inner: Inner) -> None:
    cases = run(
        inner,
        figure(workload="randread_4k_qd8", array=["raid0x2", "raid0x8"], iops=100),
        promise(claim="steady_iops", min_percent_of_spec=90),
    )
    assert cases[f"{STEADY}[raid0x2-randread_4k_qd8-steady_iops]"].outcome == "passed"
    assert cases[f"{STEADY}[raid0x8-randread_4k_qd8-steady_iops]"].message.startswith("needs 8")


def test_a_profile_is_skipped_because_its_id_does_not_define_it(inner: Inner) -> None:
    cases = run(inner, figure(workload="webserver_qd8", iops=100))
    assert "is a profile" in cases[f"{STEADY}[drivex3-webserver_qd8-steady_iops]"].message


@pytest.mark.parametrize("spec", ["acme.toml", "default"])
def test_a_sheet_without_figures_is_not_green(inner: Inner, spec: str) -> None:
    (inner.pytester.path / "acme.toml").write_text(PRODUCT)
    result = inner.run("--ssd-devices=lab:3", f"--ssd-spec={spec}", inner.suite("datasheet"))
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert {case.outcome for case in inner.cases().values()} == {"skipped"}
    assert not inner.records("measured")


def test_without_drives_the_suite_is_skipped_as_a_whole(inner: Inner) -> None:
    result = inner.run(inner.suite("datasheet"))
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert all("needs drives" in case.message for case in inner.cases().values())


def test_the_mark_needs_a_measurement_that_a_figure_can_be_about(inner: Inner) -> None:
    inner.pytester.makepyfile(
        test_one="""
        import pytest

        @pytest.mark.ssd_array("drive")
        @pytest.mark.ssd_figures
        def test_nothing(ssd_sla):
            pass
        """
    )
    assert "of the fixtures" in inner.run("--ssd-devices=lab:3").stderr.str()


@pytest.mark.parametrize("mark", ["ssd_figures(chain=True)", 'ssd_figures("chained")', "ssd_figures(chained=1)"])
def test_a_misspelt_mark_is_a_usage_error(inner: Inner, mark: str) -> None:
    inner.pytester.makepyfile(
        test_it=f"""
        import pytest

        @pytest.mark.ssd_array("drive")
        @pytest.mark.{mark}
        def test_figure(ssd_run, ssd_sla):
            assert ssd_sla.judge(ssd_run)
        """
    )
    result = inner.run("--ssd-devices=lab:3", "--ssd-spec=ssdqual-sm300")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert any("ssd_figures(chained=True)" in line for line in [*result.errlines, *result.outlines])
