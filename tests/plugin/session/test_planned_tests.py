"""Exit status and page of runs that leave tests out which an earlier session planned, or that damage a drive."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.builders.sheet import PRODUCT, promise

from pytest_ssdqual.report.run_folder.reader import RunReader

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

OK, FAILED, INCOMPLETE = (pytest.ExitCode[name] for name in ("OK", "TESTS_FAILED", "NO_TESTS_COLLECTED"))
DRIVES, QUICK = "--ssd-devices=root@dut1:/dev/nvme*", "--ssd-protocol=quick"
SUITE = """
import os, pytest
from pytest_ssdqual import Workload

READS, WRITES = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
pytestmark = [pytest.mark.ssd_array("raid5", widths=[3]), pytest.mark.ssd_workload(READS, WRITES)]

@pytest.mark.ssd_promise("steady_iops")
def test_iops(ssd_run, ssd_sla):
    assert ssd_sla.judge(ssd_run)

@pytest.mark.skipif("MAINTENANCE" in os.environ, reason="maintenance")
@pytest.mark.ssd_promise("p99_latency")
def test_p99(ssd_run, ssd_sla):
    assert ssd_sla.judge(ssd_run)
"""


@pytest.fixture
def suite(inner: Inner) -> str:
    """All IOPS keep their promise; every p99 breaks it. The option that names the spec."""
    (inner.pytester.path / "test_promises.py").write_text(SUITE)
    limits = promise(claim="steady_iops", at_least="100 IOPS"), promise(claim="p99_latency", at_most="1 ms")
    (inner.pytester.path / "acme.toml").write_text(PRODUCT + "".join(limits))
    return "--ssd-spec=acme.toml"


def two_bays(inner: Inner, monkeypatch: pytest.MonkeyPatch, *, failing: str) -> tuple[str, ...]:
    """The options of two bays, one of which does not keep its IOPS of reads."""
    spec = inner.pytester.path / "acme.toml"
    spec.write_text(spec.read_text().replace("100 IOPS", "700 IOPS"))
    monkeypatch.setenv("SIMULATED_ONLY", f"root@{failing}")
    monkeypatch.setenv("SIMULATED_MD", "500")
    return DRIVES, "--ssd-devices=root@dut2:/dev/nvme*", QUICK


def headline(folder: Path) -> str:
    return (folder / "summary.md").read_text().splitlines()[0]


def damage(folder: Path, kind: str) -> None:
    """Let the records of a kind be unreadable; add such a record if there is none."""
    file = folder / "records.jsonl"
    records = [json.loads(line) for line in file.read_text().splitlines()]
    if all(record["kind"] != kind for record in records):
        records.append({**records[-1], "kind": kind})
    damaged = (
        {**record, "severity": 3, "objections": None} if record["kind"] == kind else record for record in records
    )
    file.write_text("".join(json.dumps(record) + "\n" for record in damaged))


def test_a_lost_run_is_not_green_with_the_tests_that_pass(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_LOST_AT", "1")
    assert inner.run(DRIVES, QUICK, suite).ret == pytest.ExitCode.INTERRUPTED
    monkeypatch.delenv("SIMULATED_LOST_AT")
    resumed = (DRIVES, QUICK, suite, "--ssd-resume=last")
    assert inner.run(*resumed, "-k", "iops").ret == INCOMPLETE
    not_green = inner.all_cases()["not green"]
    assert not_green.outcome == "error"
    assert "test_promises.py::test_p99" in not_green.message
    manifest = inner.manifest()
    assert (manifest["exit_status"], manifest["judged"]["not_run"]) == (INCOMPLETE, 2)
    assert headline(inner.folder()).startswith("## No verdict")
    # A site may permit it.
    assert inner.run(*resumed, "-k", "iops", "-o", "ssd_require_verdicts=false").ret == OK
    assert headline(inner.folder()).startswith("## No verdict")
    # With all tests it is what it is, and nothing is missing any more.
    assert inner.run(*resumed).ret == FAILED
    assert inner.manifest()["judged"]["not_run"] == 0


def test_fewer_tests_from_the_beginning_are_a_whole_run(inner: Inner, suite: str) -> None:
    assert inner.run(DRIVES, QUICK, suite, "-k", "iops").ret == OK
    (planned,) = inner.records("tests_planned")
    assert planned["tests"] == [f"test_promises.py::test_iops[raid5x3-rand{kind}_4k_qd8]" for kind in ("write", "read")]


def test_an_earlier_failure_that_is_not_judged_again_is_not_green(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is left out or skipped; it is permitted as an expected failure."""
    assert inner.run(DRIVES, QUICK, suite).ret == FAILED
    args = (DRIVES, QUICK, suite, "--ssd-resume=last")
    assert inner.run(*args, "-k", "iops", "-o", "ssd_require_verdicts=false").ret == FAILED
    not_green = inner.all_cases()["not green"]
    assert not_green.outcome == "error"
    assert "test_promises.py::test_p99" in not_green.message
    manifest = inner.manifest()
    assert (manifest["exit_status"], manifest["judged"]["not_run"]) == (FAILED, 0)
    # What passed may be left out.
    assert "earlier session" not in inner.run(*args, "-k", "p99").stdout.str()
    monkeypatch.setenv("MAINTENANCE", "1")
    assert inner.run(*args).ret == FAILED
    assert inner.manifest()["exit_status"] == FAILED
    assert headline(inner.folder()).startswith("## Failed")
    monkeypatch.delenv("MAINTENANCE")
    file = inner.pytester.path / "test_promises.py"
    file.write_text(SUITE.replace('@pytest.mark.ssd_promise("p99', '@pytest.mark.xfail\n@pytest.mark.ssd_promise("p99'))
    assert inner.run(*args).ret == OK
    assert inner.run(*args, "-k", "iops").ret == OK


@pytest.mark.parametrize(("kind", "status"), [("verdict", FAILED), ("array_stopped", OK)])
def test_a_run_with_a_damaged_record_is_not_green(inner: Inner, suite: str, kind: str, status: pytest.ExitCode) -> None:
    """Not even where a run may be without verdicts: what cannot be read may be of a failure."""
    args = (DRIVES, QUICK, suite, "-o", "ssd_require_verdicts=false")
    assert inner.run(*args, *(() if status is FAILED else ("-k", "iops"))).ret == status
    damage(inner.folder(), kind)
    assert inner.run(*args, "--ssd-resume=last", "-k", "iops").ret == FAILED
    assert headline(inner.folder()).startswith("## No verdict")


def test_a_damaged_verdict_is_judged_again(inner: Inner, suite: str) -> None:
    args = (DRIVES, QUICK, suite, "-k", "iops")
    assert inner.run(*args).ret == OK
    damage(inner.folder(), "verdict")
    assert inner.run(*args, "--ssd-resume=last").ret == OK


def test_the_claims_of_a_later_session_count(inner: Inner, suite: str) -> None:
    inner.run(DRIVES, QUICK, suite, "-k", "iops and randread")
    inner.run(DRIVES, QUICK, suite, "--ssd-resume=last")
    inner.run(DRIVES, QUICK, suite, "--ssd-resume=last", "-k", "p99")
    assert [each["count"] for each in inner.records("claims_planned")] == [1, 4]


def test_a_new_defect_that_no_test_reports_is_not_green(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_WORSENED", "1")
    monkeypatch.setenv("SIMULATED_WORN", "SSDQ0002")
    args = (DRIVES, QUICK, suite, "-k", "iops", "-o", "ssd_require_verdicts=false")
    assert inner.run(*args).ret == FAILED
    case = inner.all_cases()["not green"]
    assert (case.outcome, "new defect" in case.message) == ("error", True)
    # It stays a finding of the run, whatever a later session reads.
    monkeypatch.delenv("SIMULATED_WORN")
    monkeypatch.delenv("SIMULATED_WORSENED")
    assert inner.run(*args, "--ssd-resume=last").ret == FAILED


def test_an_earlier_failure_that_is_not_judged_is_not_green(inner: Inner, suite: str) -> None:
    file = inner.pytester.path / "test_promises.py"
    both = SUITE.replace('("steady_iops")', '("steady_iops", "p99_latency")').replace(
        "assert ssd_sla.judge(ssd_run)", "assert all(ssd_sla.judge(each, ssd_run) for each in CLAIMS)", 1
    )
    file.write_text('CLAIMS = ["steady_iops", "p99_latency"]\n' + both)
    assert inner.run(DRIVES, QUICK, suite, "-k", "iops").ret == FAILED
    file.write_text('CLAIMS = ["steady_iops"]\n' + both.replace(', "p99_latency"', "", 1))
    assert inner.run(DRIVES, QUICK, suite, "--ssd-resume=last", "-k", "iops").ret == FAILED


OWN = """
def test_own(ssd_run):
    assert "BROKEN" not in os.environ and ssd_run.iops > 10

def test_own_in_parts(ssd_run, subtests):
    with subtests.test("a"):
        assert "BROKEN" not in os.environ
    with subtests.test("b"):
        assert ssd_run.iops > 10
"""


def test_tests_without_a_verdict_count_until_they_pass(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test of a drive, a subtest beside others that pass, and a test of no drive."""
    pytest.importorskip("_pytest.subtests", reason="pytest has subtests since 9.0")
    (inner.pytester.path / "test_promises.py").write_text(SUITE + OWN)
    plain = 'import os\n\ndef test_own_of_no_drive():\n    assert "BROKEN" not in os.environ\n'
    (inner.pytester.path / "test_plain.py").write_text(plain)
    args = (DRIVES, QUICK, suite)
    monkeypatch.setenv("BROKEN", "1")
    assert inner.run(*args, "-k", "iops or own").ret == FAILED
    assert inner.records("passed") == []
    resumed = (*args, "--ssd-resume=last", "-k")
    assert inner.run(*resumed, "iops").ret == FAILED
    assert "and 4 more" in inner.all_cases()["not green"].message
    monkeypatch.delenv("BROKEN")
    assert inner.run(*resumed, "iops or own").ret == OK
    assert not headline(inner.folder()).startswith("## No verdict")
    assert inner.run(*resumed, "iops").ret == OK


def test_only_the_promise_that_failed_as_expected_is_marked(inner: Inner, suite: str) -> None:
    """The verdicts stay readable, for the page and for comparisons."""
    file = inner.pytester.path / "test_promises.py"
    file.write_text(
        SUITE.replace("@pytest.mark.ssd_promise", "@pytest.mark.xfail(strict=False)\n@pytest.mark.ssd_promise")
    )
    assert inner.run(DRIVES, QUICK, suite).ret == OK
    verdicts = inner.records("verdict")
    assert {(each["outcome"], each.get("xfail", False)) for each in verdicts} == {("pass", False), ("fail", True)}
    story = RunReader.read(inner.folder())
    assert (story.unreadable, len(story.judged)) == (0, len(verdicts))


def test_the_failure_of_a_bay_outlives_sessions_of_other_bays(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = (*two_bays(inner, monkeypatch, failing="dut2"), suite, "-n", "1")
    assert inner.run(*both, "-k", "iops and randread").ret == FAILED
    more = (*both, "--ssd-resume=last", "-o", "ssd_require_verdicts=false")
    assert inner.run(*more, "-k", "iops and randread and dut1").ret == FAILED
    fleet = inner.folder()
    bay = fleet / "bays" / "dut2" / "manifest.json"
    assert json.loads(bay.read_text())["exit_status"] == FAILED
    # As of a session that was killed after that failure.
    bay.write_text(json.dumps({**json.loads(bay.read_text()), "exit_status": None}))
    assert inner.run(*more, "--ssd-bay=dut1", "-k", "iops and randread").ret == FAILED
    assert inner.fleet()["exit_status"] == FAILED


def test_a_bay_with_a_damaged_record_is_not_permitted(
    inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = (*two_bays(inner, monkeypatch, failing="neither"), suite, "-n", "1", "-k", "iops and randread")
    assert inner.run(*both).ret == OK
    folder = inner.folder() / "bays" / "dut2"
    damage(folder, "array_stopped")
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "exit_status": None}))
    permit = ("--ssd-resume=last", "-o", "ssd_require_verdicts=false", "--ssd-bay=dut1")
    assert inner.run(*both, *permit).ret == FAILED


@pytest.mark.parametrize("source", ["import nothing_of_this_name", "raise KeyboardInterrupt"])
def test_a_run_that_began_nothing_is_not_continued(inner: Inner, suite: str, source: str) -> None:
    inner.pytester.makepyfile(test_wrong=source)
    result = inner.pytester.runpytest_inprocess(
        "-p", "support.simulator.simulated_rig", DRIVES, QUICK, "--ssd-spec=default", no_reraise_ctrlc=True
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "continue with" not in result.stdout.str()


def test_a_run_elsewhere_is_continued_by_its_path(inner: Inner, suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_LOST_AT", "1")
    inner.run(DRIVES, QUICK, suite, "-k", "iops", "--ssd-run-dir=elsewhere")
    (folder,) = (inner.pytester.path / "elsewhere").iterdir()
    result = inner.run(DRIVES, QUICK, suite, "-k", "iops", f"--ssd-resume={folder}")
    (command,) = (line for line in result.outlines if "continue with" in line)
    monkeypatch.delenv("SIMULATED_LOST_AT")
    words = shlex.split(command.partition("pytest ")[2])
    own = [word for word in words if word.startswith("--ssd-resume")]
    assert inner.run(DRIVES, QUICK, suite, "-k", "iops", *own).ret == OK
