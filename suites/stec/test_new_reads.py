"""Reads of a new drive, which was written once in order, and of a working one."""

from __future__ import annotations

import pytest

from pytest_ssdqual import stec

pytestmark = pytest.mark.ssd_array(default="drive")


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_rounds(stec.NEW_READS)
def test_reads_of_a_new_drive(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_workload(*stec.READS)
def test_reads_of_a_working_drive(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
