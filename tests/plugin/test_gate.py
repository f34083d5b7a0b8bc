"""Exit status, messages and files of runs whose hardware tests judged nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import PRODUCT, promise

from pytest_ssdqual.report.run_summary.run_view import RunView

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

OK, FAILED, NOTHING = (pytest.ExitCode[name] for name in ("OK", "TESTS_FAILED", "NO_TESTS_COLLECTED"))
BOTH = pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
PERMITTED = ("-o", "ssd_require_verdicts=false")
UNIT = {"test_unit": "def test_unit(): pass"}


@BOTH
def test_gate_closes_without_drives(inner: Inner, promises: str, workers: tuple[str, ...]) -> None:
    inner.pytester.makepyfile(**UNIT)
    result = inner.run(*workers)
    result.assert_outcomes(passed=1, skipped=2)
    assert result.ret == NOTHING
    result.stdout.fnmatch_lines(["ssdqual: nothing was*--ssd-devices=*", "*ssd_require_verdicts = false*"])
    case = inner.all_cases()["nothing was judged"]
    assert (case.outcome, "--ssd-devices" in case.message) == ("error", True)
    properties = inner.suite_properties()
    assert (properties["ssd.judged"], properties["ssd.hardware_tests"]) == ("0", "2")


def test_gate_is_switched_off_by_the_ini_value(inner: Inner, promises: str) -> None:
    result = inner.run(*PERMITTED)
    assert result.ret == OK
    assert "nothing was judged" not in result.stdout.str()
    assert set(inner.outcomes().values()) == {"skipped"}


@pytest.mark.parametrize(
    ("source", "args", "status"),
    [
        ("def test_unit(): assert False", (), FAILED),
        ("def test_unit(): raise KeyboardInterrupt", (), pytest.ExitCode.INTERRUPTED),
        ("def test_unit(): pass", ("-k", "unit"), OK),
        ("def test_unit(): pass", ("--collect-only",), OK),
        ("def test_unit(): pass", ("--setup-only",), OK),
        ("def test_unit(): pass", ("-k", "nothing_of_this_name"), NOTHING),
        ("def test_unit(): assert False", ("-x",), FAILED),
    ],
)
def test_gate_leaves_other_statuses(
    inner: Inner, promises: str, source: str, args: tuple[str, ...], status: int
) -> None:
    inner.pytester.makepyfile(test_unit=source)
    assert inner.pytester.runpytest_inprocess(*args, no_reraise_ctrlc=True).ret == status


def test_gate_closes_with_too_few_drives(inner: Inner) -> None:
    result = inner.run("--ssd-devices=lab:2", inner.suite("raid5"), "-k", "not published", "-o", "ssd_page=true")
    assert result.ret == NOTHING
    few = "raid5 needs at least 3 drives, 2 given"
    healthy = "it judges the health of the drives only (1)"
    why = (
        f"all 34 hardware tests were skipped: {few} (21); needs two widths of raid5 (4 drives), 2 given (12); {healthy}"
    )
    assert why in result.stdout.str()
    found = inner.manifest()
    assert found["exit_status"] == NOTHING
    assert found["judged"] == {
        "hardware_tests": 34, "judged": 0, "in_error": 0, "nothing_judged": why, "not_run": 0,
    }  # fmt: skip
    folder = inner.folder()
    for name in ("report.html", "summary.md"):
        text = (folder / name).read_text()
        assert "No verdict" in text
        assert few in text
        assert f"  {name}\n" in (folder / "SHA256SUMS").read_text()
    assert inner.all_cases()["nothing was judged"].outcome == "error"


def test_published_maxima_do_not_open_the_gate_without_arrays(inner: Inner) -> None:
    """They are what the limits of arrays rest on, and with two drives there is no RAID 5."""
    assert inner.run("--ssd-devices=lab:2", inner.suite("raid5")).ret == NOTHING
    assert [record["outcome"] for record in inner.records("verdict")] == ["pass"] * 3
    missing = RunView.read(inner.folder()).verdict.coverage.hollow
    assert {each.claim for each in missing} >= {"p99_latency", "scaling_slope", "latency_spread_over_time"}


def test_gate_closes_if_nothing_is_promised(inner: Inner, promises: str) -> None:
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + promise(claim="p99_latency", at_most="1 s"))
    result = inner.run("--ssd-devices=lab:3", promises, "-k", "iops", "-o", "ssd_measure_unpromised=true")
    assert result.ret == NOTHING
    judged = inner.manifest()["judged"]
    assert (judged["hardware_tests"], judged["judged"]) == (2, 0)
    assert "no limit" in judged["nothing_judged"]


def test_gate_closes_if_all_is_undecided(inner: Inner, promises: str) -> None:
    few = ("--ssd-devices=lab:3", promises, "-o", "ssd_inconclusive=skip", "-k")
    result = inner.run(*few, "iops and randwrite")
    assert result.ret == NOTHING
    assert "(ssd_inconclusive = skip)" in inner.manifest()["judged"]["nothing_judged"]
    (inner.pytester.path / "ssdqual-runs").rename(inner.pytester.path / "before")
    inner.pytester.path.joinpath("acme.toml").write_text(PRODUCT + promise(claim="steady_iops", at_least="300 IOPS"))
    assert inner.run(*few, "iops").ret == NOTHING  # one of two is not enough


def test_gate_counts_reasons(inner: Inner) -> None:
    inner.pytester.makepyfile(
        "\n".join(
            ["import pytest", *(f"@pytest.mark.ssd_array('raid5')\n@pytest.mark.skip(reason='why {number % 5}')\n"
             f"def test_{number}(): pass" for number in range(9))]
        )
    )  # fmt: skip
    result = inner.run()
    result.stdout.fnmatch_lines(["*: why 0 (2); why 1 (2); why 2 (2); and 2 *"])


def test_gate_takes_xfail_as_judged(inner: Inner, promises: str) -> None:
    inner.pytester.makepyfile(
        test_expected="""
            import pytest
            from pytest_ssdqual import Workload

            READS = Workload("randread", "4k", 8)
            pytestmark = [pytest.mark.ssd_array("raid5", widths=[3]), pytest.mark.ssd_workload(READS)]

            @pytest.mark.ssd_promise("steady_iops")
            @pytest.mark.xfail
            def test_iops(ssd_run, ssd_sla):
                verdict = ssd_sla.judge(ssd_run)
                assert verdict
        """
    )
    result = inner.run("--ssd-devices=lab:3", promises, "test_expected.py")
    result.assert_outcomes(xfailed=1)
    assert result.ret == OK


def test_gate_closes_for_one_bay_without_verdict(inner: Inner, promises: str) -> None:
    two = ("--ssd-devices=root@dut1:/dev/nvme*", "--ssd-devices=root@dut2:/dev/nvme0n1,/dev/nvme1n1")
    args = (*two, promises, "--ssd-protocol=quick", "-n", "2", "-k", "iops and randread and (x4 or x2)")
    result = inner.run(*args)
    result.stdout.fnmatch_lines(["ssdqual: dut2: nothing*", "*exit status 5*"])
    assert result.ret == NOTHING
    assert "dut1: nothing" not in result.stdout.str()
    fleet = inner.folder()
    assert [inner.manifest(bay)["exit_status"] for bay in ("dut1", "dut2")] == [OK, NOTHING]
    assert inner.fleet()["exit_status"] == NOTHING
    assert inner.all_cases()["nothing was judged[dut2]"].outcome == "error"
    fleet.rename(inner.pytester.path / "before")
    assert inner.run(*args, *PERMITTED).ret == OK


def test_gate_leaves_pages_of_all_bays(inner: Inner, promises: str) -> None:
    two = [f"--ssd-devices=root@{bay}:/dev/nvme0n1,/dev/nvme1n1" for bay in ("dut1", "dut2")]
    result = inner.run(*two, promises, "--ssd-protocol=quick", "-n", "2", "-o", "ssd_page=true")
    assert result.ret == NOTHING
    fleet = inner.folder()
    for name in ("report.html", "summary.md", "bays/dut1/report.html", "bays/dut2/summary.md"):
        assert "2 given" in (fleet / name).read_text(), name


def test_gate_ignores_other_suites(inner: Inner) -> None:
    inner.pytester.makepyfile("import pytest\n\n@pytest.mark.skip\ndef test_other(): pass")
    result = inner.run()
    assert result.ret == OK
    assert "ssdqual" not in (inner.pytester.path / "junit.xml").read_text()


def test_gate_with_last_failed(inner: Inner, promises: str) -> None:
    args = ("--ssd-devices=lab:3", promises, "-k", "iops and randread")
    assert inner.run(*args).ret == FAILED
    assert inner.run(*args, "--lf").ret == FAILED
    assert Path(inner.pytester.path / "junit.xml").exists()


def test_gate_closes_if_no_hardware_test_is_selected(inner: Inner, promises: str) -> None:
    inner.pytester.makepyfile(**UNIT)
    result = inner.run("--ssd-devices=lab:3", promises, "-k", "unit")
    result.assert_outcomes(passed=1, deselected=4)
    assert result.ret == NOTHING
    result.stdout.fnmatch_lines(["ssdqual: nothing was*"])
    assert inner.manifest()["exit_status"] == NOTHING


@pytest.mark.parametrize("option", ["--setup-only", "--setup-plan"])
def test_drives_are_not_prepared_for_tests_that_do_not_run(inner: Inner, promises: str, option: str) -> None:
    result = inner.run("--ssd-devices=lab:3", promises, option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--collect-only" in "".join(result.errlines)
    assert not (inner.pytester.path / "ssdqual-runs").exists()


@pytest.mark.parametrize(("version", "is_read"), [((8, 4, 2), False), ((9, 0, 0), True)])
def test_settings_that_this_pytest_does_not_read_are_refused(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...], is_read: bool
) -> None:
    inner.pytester.makepyprojecttoml('[tool.pytest]\nssd_expect = "8"\n')
    monkeypatch.setattr(pytest, "version_tuple", version)
    result = inner.run("--ssd-devices=lab:3", promises, "-c", "tox.ini", "--rootdir=.", "--collect-only")
    refused = "does not read ssd_expect" in "".join(result.errlines)
    assert refused is not is_read


def test_a_truth_value_that_is_none_is_named(inner: Inner, promises: str) -> None:
    result = inner.run("--ssd-devices=lab:3", promises, "-o", "ssd_require_verdicts=maybe")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "ssd_require_verdicts" in "".join(result.errlines)


def test_a_plan_says_what_would_be_skipped(inner: Inner) -> None:
    result = inner.run("--ssd-devices=lab:2", inner.suite("raid5"), "--collect-only", "-q")
    assert result.ret == OK
    result.stdout.fnmatch_lines(["*33 of 36*"])


def test_the_suite_that_fails_on_purpose_runs_only_by_name(inner: Inner) -> None:
    raid5, meta = inner.suite("raid5"), inner.suite("meta")
    plan = ("--ssd-devices=lab:3", "--ssd-spec=meta/meta.toml", "--collect-only", "-q")
    assert "meta/" not in inner.run(*plan, ".").stdout.str()
    assert "meta/test_outcomes.py" in inner.run(*plan, raid5, meta).stdout.str()
