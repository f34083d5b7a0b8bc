"""A drive that fails under the load is a failure that names it; a path that fails is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import PRODUCT, promise
from support.builders.suite import suite

from pytest_ssdqual.report.run_summary.fitness import Fitness
from pytest_ssdqual.rig.md import mdadm

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

READS = '"randread", "4k", 8', '"randread", "4k", 1'
SPEC = PRODUCT + promise(claim="steady_iops", at_least="1 IOPS")


HEALTH = """

@pytest.mark.ssd_array("drive")
def test_health(ssd_health):
    assert ssd_health
"""


def run(
    inner: Inner, array: str, *more: str, health: bool = False, protocol: str = "quick", limits: str = ""
) -> pytest.RunResult:
    inner.pytester.makepyfile(test_promise=suite(array, iops=("steady_iops", *READS)) + HEALTH * health)
    (inner.pytester.path / "acme.toml").write_text(SPEC + limits)
    return inner.run("--ssd-devices=lab:4", "--ssd-spec=acme.toml", f"--ssd-protocol={protocol}", *more)


@pytest.mark.parametrize(("trouble", "word"), [("pulled", "dropped out"), ("media", "media errors")])
def test_drive_that_fails_in_an_array_is_a_failure_that_names_it(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, trouble: str, word: str
) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", f"{trouble}:SSDQ0002")
    run(inner, '"raid5", widths=[4]', health=True).assert_outcomes(failed=2, errors=1)
    cases = inner.cases()
    assert "SSDQ0002" in cases.pop("test_health").message
    failure, error = sorted(cases.values(), key=lambda case: case.outcome, reverse=True)
    assert failure.outcome == "failure"
    assert "SSDQ0002" in failure.message
    assert word in failure.message
    assert failure.properties["ssd.drives_failed"] == "SSDQ0002"
    assert error.outcome == "error"
    assert "SSDQ0002" in error.message
    assert failure.name in error.message
    (record,) = inner.records("measurement_failed")
    assert record["origin"] == "drive"


@pytest.mark.parametrize("array", ['"raid5", widths=[4]', '"drive"'])
def test_a_resumed_run_reports_a_failure_in_the_same_test(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, array: str
) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "pulled:SSDQ0002")
    run(inner, array)
    before = inner.cases()
    (first,) = (name for name, case in before.items() if case.outcome == "failure")
    (other,) = before.keys() - {first}
    workload = other.rpartition("-")[2].removesuffix("]")
    run(inner, array, "--ssd-resume=last", "-k", workload)
    assert inner.cases()[other].outcome == before[other].outcome
    run(inner, array, "--ssd-resume=last")
    assert {name: case.outcome for name, case in inner.cases().items()} == {
        name: case.outcome for name, case in before.items()
    }
    verdicts = [record["test"] for record in inner.records("verdict") if record["claim"] == "failed_drives"]
    assert [str(test).rpartition("::")[2] for test in verdicts] == [first]


@pytest.mark.parametrize("array", ['"raid5", widths=[4]', '"drive"'])
def test_adapter_reset_that_takes_all_drives_stays_an_error(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, array: str
) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "hba")
    run(inner, array).assert_outcomes(errors=2)
    assert {record["origin"] for record in inner.records("measurement_failed")} == {"path"}
    assert "failed at once" in next(iter(inner.cases().values())).message


def test_other_arrays_are_measured_without_the_failed_drive(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Narrow arrays consist of the first drives."""
    monkeypatch.setenv("SIMULATED_TROUBLE", "pulled:SSDQ0004")
    result = run(inner, '"raid5"')
    result.assert_outcomes(passed=2, failed=1, errors=1)
    assert [line for line in result.outlines if line.startswith("FAILED ") and "SSDQ0004" in line]
    (worsened,) = inner.records("drive_worsened")
    assert "SSDQ0004" in str(worsened["findings"])


def test_failed_assessment_is_a_failure_of_the_health_promise(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "assessment:SSDQ0003")
    run(inner, '"raid5", widths=[4]', health=True).assert_outcomes(passed=2, failed=1)
    case = inner.cases()["test_health"]
    assert case.outcome == "failure"
    assert "SSDQ0003" in case.message
    assert "assessment" in case.message
    assert case.properties["ssd.drives_failed"] == "SSDQ0003"
    assert case.properties["ssd.claim"] == "drive_health"
    assert inner.verdict().fitness is Fitness.NOT_FIT


def test_health_of_good_drives_is_judged_last_and_passes(inner: Inner) -> None:
    result = run(inner, '"raid5", widths=[4]', health=True)
    result.assert_outcomes(passed=3)
    assert list(inner.cases())[-1] == "test_health"
    assert inner.records("drive_worsened") == []


def test_drive_that_got_worse_is_never_fit(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "assessment:SSDQ0003")
    run(inner, '"raid5", widths=[4]').assert_outcomes(passed=2)
    assert inner.verdict().fitness is Fitness.NOT_FIT


def test_heat_is_shown_and_decides_nothing(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "warm:SSDQ0003")
    result = run(inner, '"raid5", widths=[4]', health=True)
    result.assert_outcomes(passed=3)
    (record,) = inner.records("drive_worsened")
    assert record["defects"] == []
    assert inner.verdict().fitness is Fitness.FIT


def test_a_drive_that_cannot_be_read_is_an_error_and_no_finding(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "unread:SSDQ0003")
    run(inner, '"raid5", widths=[4]', health=True).assert_outcomes(passed=2, errors=1)
    case = inner.cases()["test_health"]
    assert case.outcome == "error"
    assert "SSDQ0003" in case.message


def test_healthy_drives_alone_do_not_make_a_run_green(inner: Inner) -> None:
    inner.pytester.makepyfile(test_promise="import pytest\n" + HEALTH)
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    result = inner.run("--ssd-devices=lab:4", "--ssd-spec=acme.toml", "--ssd-protocol=quick")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert inner.verdict().fitness is Fitness.NO_VERDICT


@pytest.mark.parametrize("given", ["none", "/dev/nvme0n1=none"])
def test_health_that_is_not_read_is_not_judged_and_stops_nothing(inner: Inner, given: str) -> None:
    run(inner, '"raid5", widths=[4]', f"--ssd-smart-type={given}", health=True).assert_outcomes(passed=2, skipped=1)
    drives = 4 if given == "none" else 1
    case = inner.cases()["test_health"]
    assert case.outcome == "skipped"
    assert len(inner.records("health")) == 2 * (4 - drives)
    verdict = inner.verdict()
    assert verdict.counts.unread == drives
    assert any("health" in each for each in verdict.remarks)
    assert verdict.fitness is Fitness.FIT


def test_a_drive_without_health_that_fails_is_a_failure(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "pulled:SSDQ0002")
    run(inner, '"raid5", widths=[4]', "--ssd-smart-type=none", health=True).assert_outcomes(failed=2, errors=1)
    assert "SSDQ0002" in inner.cases()["test_health"].message
    assert {record["drive"] for record in inner.records("drive_worsened")} == {"SSDQ0002"}


def test_a_defect_is_a_failure_beside_a_drive_without_health(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "assessment:SSDQ0003")
    result = run(inner, '"raid5", widths=[4]', "--ssd-smart-type=/dev/nvme0n1=none", health=True)
    result.assert_outcomes(passed=2, failed=1)


@pytest.mark.parametrize(("limits", "fails"), [("", False), ("[health]\nunsafe_shutdowns = 0\n", True)])
def test_a_counter_decides_by_the_limit_of_the_spec(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, limits: str, fails: bool
) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "shutdown:SSDQ0003")
    result = run(inner, '"raid5", widths=[4]', health=True, limits=limits)
    result.assert_outcomes(passed=2 if fails else 3, failed=int(fails))
    (record,) = inner.records("drive_worsened")
    assert len(record["findings"]) == 1
    assert bool(record["defects"]) is fails
    assert inner.verdict().fitness is (Fitness.NOT_FIT if fails else Fitness.FIT)


#: What the kernel says of the struck drive, the origin, and a word of what a person can do.
NOT_DEFECTIVE = {
    "locked": (
        "nvme0n1: Write(0x1) @ LBA 2048, 256 blocks, Access Denied (sct 0x2 / sc 0x86) DNR\n"
        "critical medium error, dev nvme0n1, sector 2048 op 0x1:(WRITE) flags 0x8800 phys_seg 32 prio class 2",
        "refused",
        "sedutil-cli",
    ),
    "vendor": ("nvme0n1: Read(0x2) @ LBA 8, 8 blocks, Vendor Specific (sct 0x7 / sc 0xc1) DNR", "unknown", "SSDQ0002"),
}


@pytest.mark.parametrize("name", NOT_DEFECTIVE)
def test_a_request_that_failed_for_another_reason_is_an_error(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    words, origin, cure = NOT_DEFECTIVE[name]
    monkeypatch.setenv("SIMULATED_TROUBLE", "kernel:SSDQ0002")
    monkeypatch.setenv("SIMULATED_KERNEL", words)
    run(inner, '"raid5", widths=[4]').assert_outcomes(errors=2)
    assert all(cure in case.message for case in inner.cases().values())
    records = inner.records("measurement_failed")
    assert {record["origin"] for record in records} == {origin}
    assert all(record["failed"] == [] for record in records)


def test_a_locked_drive_side_by_side_is_left_out(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "kernel:SSDQ0002")
    monkeypatch.setenv("SIMULATED_KERNEL", NOT_DEFECTIVE["locked"][0])
    run(inner, '"drive"').assert_outcomes(errors=2)
    others = ["SSDQ0001", "SSDQ0003", "SSDQ0004"]
    for case in inner.cases().values():
        assert case.outcome == "error"
        assert "SSDQ0002" in case.message
        assert "sedutil-cli" in case.text + str(case.properties)
        assert case.properties["ssd.drives"].split() == others
    verdicts = inner.records("verdict")
    assert [record["outcome"] for record in verdicts] == ["inconclusive"] * 2
    judged = [{part["name"]: part["outcome"] for part in record["members"]} for record in verdicts]
    assert judged == [dict.fromkeys(others, "pass")] * 2
    assert [run["members"] for record in inner.records("measured") for run in record["runs"]] == [others] * 2
    (left_out,) = inner.records("drives_left_out")
    assert (list(left_out["drives"]), left_out["of"]) == (["SSDQ0002"], "conditioning")


def test_a_member_that_md_dropped_unseen_makes_no_run_green(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mdadm, "final_objections", lambda machine, path, missing: ("degraded by 1 member",))
    result = run(inner, '"raid5", widths=[4]')
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert any("degraded by 1" in case.message for case in inner.all_cases().values())


@pytest.mark.parametrize(
    ("trouble", "word", "smart_type"),
    [("retries", "failed or retried commands", "auto"), ("iucrc", "iuCRC error", "none")],
)
def test_repairs_of_the_kernel_are_shown_and_fail_nothing(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, trouble: str, word: str, smart_type: str
) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", f"{trouble}:SSDQ0003")
    result = run(inner, '"drive"', f"--ssd-smart-type={smart_type}", "-o", "ssd_page=true", health=True)
    assert result.parseoutcomes().keys() <= {"passed", "skipped"}
    shown = {name: (inner.folder() / name).read_text() for name in ("summary.md", "report.html")}
    for name, text in {**shown, "terminal": result.stdout.str()}.items():
        assert "its link" in text, name
        assert word in text, name
    findings = inner.suite_properties()["ssd.health_findings"]
    assert "SSDQ0003" in findings
    assert word in findings
    assert "SSDQ0002" not in findings
    assert inner.verdict().fitness is Fitness.FIT
    health = [record for record in inner.records("verdict") if record["test"].endswith("::test_health")]
    assert [any("its link" in remark for remark in each["remarks"]) for each in health] == [True] * len(health)
    assert len(health) == (smart_type == "auto")


@pytest.mark.parametrize(("trouble", "smart_type"), [("retries", "none"), ("iucrc", "auto")])
def test_repaired_errors_fail_by_the_limit_of_the_spec(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, trouble: str, smart_type: str
) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", f"{trouble}:SSDQ0003")
    limits = "[health]\nretried_errors = 10\n"
    result = run(inner, '"drive"', f"--ssd-smart-type={smart_type}", health=True, limits=limits)
    result.assert_outcomes(passed=2, failed=1)
    assert "SSDQ0003" in inner.cases()["test_health"].message
    assert inner.verdict().fitness is Fitness.NOT_FIT


def test_a_locked_drive_is_refused_in_the_plan_with_the_cure(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "locked:SSDQ0003")
    result = run(inner, '"drive"')
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*SSDQ0003*is locked*sedutil-cli*"])
