"""Independent readers and writers at the same time: IOPS and latency of each."""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_910

pytestmark = [
    pytest.mark.ssd_array(default="raid0x4"),
    pytest.mark.ssd_published("intel-910-400gb"),
    pytest.mark.ssd_workload(*intel_910.STREAMS.workloads),
]


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


@pytest.mark.ssd_promise("steady_iops")
def test_both_together(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
