"""A reader and a writer at the same time, each of its own depth, as the demonstration ran."""

from __future__ import annotations

import pytest

from pytest_ssdqual import stec

pytestmark = [pytest.mark.ssd_array(default="drive"), pytest.mark.ssd_workload(stec.TWO_WINDOWS)]


@pytest.mark.ssd_promise("read_iops")
def test_reads_per_second(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("write_iops")
def test_writes_per_second(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("read_mean_latency")
def test_mean_latency_of_reads(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
