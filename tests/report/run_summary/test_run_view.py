from __future__ import annotations

from typing import Any

import pytest
from support.builders.evidence import claimed
from support.builders.report_page import WriteRun, judged, record

from pytest_ssdqual.report.run_summary.fitness import Fitness
from pytest_ssdqual.report.run_summary.run_view import RunView


@pytest.mark.parametrize(
    ("facts", "defective"),
    [
        ({"findings": ["unsafe shutdowns: 40, now 41"], "defects": []}, 0),
        ({"findings": ["media errors: 0, now 3"], "defects": ["media errors: 0, now 3"]}, 1),
    ],
)
def test_drives_with_a_new_defect_are_counted(write_run: WriteRun, facts: dict[str, Any], defective: int) -> None:
    run = RunView.read(write_run(record("drive_worsened", drive="S1", name="ACME 1", **facts)))
    assert run.verdict.counts.worsened == defective
    assert len(run.worsened) == 1


@pytest.mark.parametrize("kind", ["drive_worsened", "tests_planned", "claims_planned", "array_stopped"])
def test_a_run_with_a_damaged_record_is_not_green(write_run: WriteRun, kind: str) -> None:
    run = RunView.read(write_run(judged(claimed(value=100_000)), record(kind, severity=3)))
    assert (run.verdict.fitness, run.verdict.counts.passed) == (Fitness.NO_VERDICT, 1)
    assert run.verdict.gaps


def test_each_finding_about_a_drive_is_a_sentence(write_run: WriteRun) -> None:
    worse = record("drive_worsened", drive="S1", name="ACME 1", findings=["2 media errors", "the test failed"])
    assert RunView.read(write_run(worse)).worsened == ("ACME 1: 2 media errors", "ACME 1: the test failed")


def test_a_run_without_the_kernel_s_words_says_so_and_passes(write_run: WriteRun) -> None:
    kept, heard = judged(claimed(value=100_000)), record("environment", unknown=["cpu_throttled_percent"])
    assert RunView.read(write_run(kept, heard)).verdict.remarks == ()
    verdict = RunView.read(write_run(kept, heard, record("environment", unknown=["host_faults"]))).verdict
    assert (verdict.fitness, verdict.counts.unlogged, len(verdict.remarks)) == (Fitness.FIT, 1, 1)
