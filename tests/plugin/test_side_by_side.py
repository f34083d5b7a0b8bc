"""A drive side by side that fails or never settles ends its own tests only; the others are measured without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import PRODUCT, promise
from support.builders.suite import suite

from pytest_ssdqual.report.run_folder.journal import Journal
from pytest_ssdqual.report.run_folder.lock import FolderLock
from pytest_ssdqual.report.run_folder.reader import read_records
from pytest_ssdqual.report.run_summary.fitness import Fitness

if TYPE_CHECKING:
    from support.fakes.inner_session import Case, Inner

LOADS = '"randread", "4k", 1', '"randread", "4k", 8'
ONLY_IOPS = suite('"drive"', iops=("steady_iops", *LOADS))
SUITE = (
    suite('"drive"', iops=("steady_iops", *LOADS), even=("member_spread", *LOADS))
    + """

def test_health(ssd_health):
    assert ssd_health
"""
)
SPEC = PRODUCT + promise(claim="steady_iops", at_least="1 IOPS") + promise(claim="member_spread", at_least=0.5)
#: In the order in which they are measured.
SHALLOW, DEEP = "randread_4k_qd1", "randread_4k_qd8"


def run(inner: Inner, *options: str, devices: str = "lab:4", tests: str = SUITE, spec: str = SPEC) -> pytest.RunResult:
    inner.pytester.makepyfile(test_side=tests)
    (inner.pytester.path / "acme.toml").write_text(spec)
    return inner.run(f"--ssd-devices={devices}", "--ssd-spec=acme.toml", "--ssd-protocol=quick", *options)


def cases_of(inner: Inner, name: str, drives: int = 4) -> tuple[Case, Case]:
    cases = inner.cases()
    return cases[f"{name}[drivex{drives}-{SHALLOW}]"], cases[f"{name}[drivex{drives}-{DEEP}]"]


def measured_on(inner: Inner) -> list[list[str]]:
    return [list(each["members"]) for record in inner.records("measured") for each in record["runs"]]


@pytest.mark.parametrize(
    ("machine_id", "is_alive", "is_removed"),
    [("0123456789abcdef", False, True), ("another", False, False), ("0123456789abcdef", True, False)],
)
def test_empty_name_of_a_killed_runs_array_is_removed(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, machine_id: str, is_alive: bool, is_removed: bool
) -> None:
    """Only names that a run of this program gave on this machine are removed, and none of a run that still writes."""
    monkeypatch.setenv("SIMULATED_EMPTY_ARRAYS", "md101 md102")
    journal = Journal.create(inner.pytester.path / "ssdqual-runs", "aaaaaaaa")
    journal.note("array_planned", uuid="1:2:3:4", device="/dev/md101", members=[], machine_id=machine_id)
    lock = FolderLock(journal.path, "main")
    if not is_alive:
        lock.release()
    run(inner, tests="def test_nothing(): pass", devices="/dev/nvme*")
    lock.release()
    (folder,) = set((inner.pytester.path / "ssdqual-runs").iterdir()) - {journal.path}
    removed = [record.facts["files"] for record in read_records(folder, "leftovers_removed")]
    assert removed == [["/dev/md101"]] * is_removed


def test_drive_unplugged_in_its_purge_is_named_as_lost(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "unplugged:SSDQ0003")
    run(inner, tests=ONLY_IOPS)
    first, _ = cases_of(inner, "test_iops")
    assert first.outcome == "failure"
    for word in ("SSDQ0003", "purge", "controller is down"):
        assert word in first.message
    for serial in ("SSDQ0001", "SSDQ0002", "SSDQ0004"):
        assert serial not in first.message
    (record,) = inner.records("measurement_failed")
    assert "purge" in str(record["error"])


def test_drive_without_an_answer_is_tried_again_by_the_next_test(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is busy with the discard of its purge; udev's process, which waits for it, is only a symptom."""
    monkeypatch.setenv("SIMULATED_SILENT", "SSDQ0003=1")
    run(inner, tests=ONLY_IOPS).assert_outcomes(passed=1, errors=1)
    first, second = cases_of(inner, "test_iops")
    assert (first.outcome, second.outcome) == ("error", "passed")
    assert "does not answer" in first.message
    assert "SSDQ0003" in first.message
    assert "open for reading" not in first.message
    assert second.properties["ssd.drives"].split() == ["SSDQ0001", "SSDQ0002", "SSDQ0003", "SSDQ0004"]


@pytest.mark.parametrize(
    ("trouble", "word"),
    [("media", "media errors"), ("returns", "I/O errors")],
)
def test_failed_drive_is_one_failure_and_the_others_are_judged(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, trouble: str, word: str
) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", f"{trouble}:SSDQ0002")
    run(inner).assert_outcomes(passed=1, failed=2, errors=2)
    others = ["SSDQ0001", "SSDQ0003", "SSDQ0004"]
    struck, later = cases_of(inner, "test_iops")
    assert struck.outcome == "failure"
    assert struck.message.startswith("drive SSDQ0002 failed")
    assert word in struck.message
    assert "SSDQ0001" not in struck.message
    assert later.outcome == "passed"
    assert later.properties["ssd.drives"].split() == others
    assert measured_on(inner) == [others, others]
    verdicts = [record for record in inner.records("verdict") if record["claim"] == "steady_iops"]
    assert [record["outcome"] for record in verdicts] == ["pass", "pass"]
    assert all("SSDQ0002" in str(record["sentence"]) for record in verdicts)
    for uneven in cases_of(inner, "test_even"):
        assert uneven.outcome == "error"
        assert "SSDQ0002" in uneven.message
    (left_out,) = inner.records("drives_left_out")
    assert left_out["failed"] == ["SSDQ0002"]
    assert inner.verdict().fitness is Fitness.NOT_FIT


def test_failed_drive_is_a_failure_also_of_an_expected_failure(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "pulled:SSDQ0002")
    tests = ONLY_IOPS.replace("def test_iops", '@pytest.mark.xfail(reason="slow")\ndef test_iops')
    spec = PRODUCT + promise(claim="steady_iops", at_least="9000000 IOPS")
    result = run(inner, tests=tests, spec=spec)
    struck, later = cases_of(inner, "test_iops")
    assert (struck.outcome, later.outcome) == ("failure", "skipped")
    assert struck.message.startswith("drive SSDQ0002 failed")
    result.assert_outcomes(failed=1, xfailed=1)


def test_drive_that_never_settles_is_inconclusive_alone(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "restless:SSDQ0003")
    run(inner).assert_outcomes(passed=1, errors=4)
    others = ["SSDQ0001", "SSDQ0002", "SSDQ0004"]
    for case in cases_of(inner, "test_iops"):
        assert case.outcome == "error"
        assert "SSDQ0003 (did not" in case.message
        assert case.properties["ssd.drives"].split() == others
        assert "ssd.drives_failed" not in case.properties
    assert measured_on(inner) == [others, others]
    assert inner.cases()["test_health"].outcome == "passed"
    (left_out,) = inner.records("drives_left_out")
    assert (list(left_out["drives"]), left_out["failed"]) == (["SSDQ0003"], [])


def test_failure_of_the_others_is_reported_beside_a_failed_drive(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "pulled:SSDQ0002")
    monkeypatch.setenv("SIMULATED_SLOW", "SSDQ0004=0.5")
    spec = PRODUCT + promise(claim="steady_iops", at_least="200 IOPS")
    run(inner, spec=spec)
    struck, later = cases_of(inner, "test_iops")
    assert struck.outcome == later.outcome == "failure"
    assert "drive SSDQ0002 failed" in struck.message
    assert "SSDQ0004" in struck.message
    assert "SSDQ0004" in later.message
    assert later.properties["ssd.drives_failed"] == "SSDQ0004"


def test_failed_drive_is_a_failure_also_without_a_promise(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "pulled:SSDQ0002")
    unpromised = "-o", "ssd_measure_unpromised=true"
    run(inner, "-k", "test_iops", *unpromised, spec=PRODUCT).assert_outcomes(failed=1, skipped=1)
    struck, later = cases_of(inner, "test_iops")
    assert "drive SSDQ0002 failed" in struck.message
    assert "SSDQ0002" in later.message


def test_one_drive_that_is_left_is_judged_by_itself(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "media:SSDQ0001")
    run(inner, devices="lab:2")
    struck, later = cases_of(inner, "test_iops", drives=2)
    assert (struck.outcome, later.outcome) == ("failure", "passed")
    assert measured_on(inner) == [["SSDQ0002"]] * 2
    for case in cases_of(inner, "test_even", drives=2):
        assert case.outcome == "error"
        assert "SSDQ0001" in case.message
    assert [list(record["drives"]) for record in inner.records("drives_left_out")] == [["SSDQ0001"]]


def test_loss_of_all_drives_is_a_failure_once(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "media:SSDQ0001 media:SSDQ0002")
    run(inner, devices="lab:2").assert_outcomes(failed=2, errors=3)
    struck, later = cases_of(inner, "test_iops", drives=2)
    assert (struck.outcome, later.outcome) == ("failure", "error")
    assert struck.name in later.message


def test_resumed_run_does_not_use_a_drive_that_failed(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_TROUBLE", "pulled:SSDQ0002")
    run(inner, "-k", f"test_iops and {SHALLOW}").assert_outcomes(failed=1)
    monkeypatch.delenv("SIMULATED_TROUBLE")
    result = run(inner, "--ssd-resume=last")
    result.assert_outcomes(passed=1, failed=2, errors=2)
    assert any("SSDQ0002 failed in" in line for line in result.outlines)
    struck, later = cases_of(inner, "test_iops")
    assert (struck.outcome, later.outcome) == ("failure", "passed")
    assert measured_on(inner) == [["SSDQ0001", "SSDQ0003", "SSDQ0004"]] * 2
    (record,) = inner.records("run_resumed")
    assert record["failed"] == ["SSDQ0002"]


LOT = """
    import pytest
    from pytest_ssdqual import Workload

    @pytest.mark.ssd_array("drive")
    @pytest.mark.ssd_promise("steady_iops")
    @pytest.mark.ssd_workload(Workload("randread", "4k", 8))
    def test_lot(ssd_run, ssd_lot):
        verdict = ssd_lot.judge(ssd_run)
        assert verdict

    def test_health(ssd_health):
        assert ssd_health

    test_health = pytest.mark.ssd_array("drive")(test_health)
"""


def test_lot_of_50_with_two_dead_drives_is_decided_by_its_plan(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_DRIVES", "50")
    monkeypatch.setenv("SIMULATED_TROUBLE", "pulled:SSDQ0007 media:SSDQ0031")
    plan = "[lot]\nsize = 500\nsample = 50\naccept = 2\n\n"
    run(inner, devices="/dev/nvme*", tests=LOT, spec=PRODUCT + plan + promise(claim="steady_iops", at_least="1 IOPS"))
    cases = inner.cases()
    lot = cases[f"test_lot[drivex50-{DEEP}]"]
    assert lot.outcome == "passed"
    assert cases["test_health"].outcome == "failure"
    (record,) = inner.records("verdict")[:1]
    assert record["figures"]["nonconforming_drives"] == 2
    assert "SSDQ0007" in str(record["sentence"])
    assert "SSDQ0031" in str(record["sentence"])
    assert lot.properties["ssd.drives_failed"].split() == ["SSDQ0007", "SSDQ0031"]
    assert len(measured_on(inner)[0]) == 48
