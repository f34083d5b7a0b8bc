"""Workloads of applications, by the paper's table 1: sizes, share of random addresses, share of reads."""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_s3500

pytestmark = [
    pytest.mark.ssd_array(default="raid10x2,raid10x8,raid5x8"),
    pytest.mark.ssd_workload(*intel_s3500.APPLICATIONS),
]


@pytest.mark.ssd_promise("steady_iops")
def test_steady_iops(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("mean_latency")
def test_mean_latency(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
