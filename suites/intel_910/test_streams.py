"""Readers and writers side by side, each at its own pace: what each gets, and how long it waits."""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_910

pytestmark = [
    pytest.mark.array(default="raid0x4"),
    pytest.mark.published("intel-910-400gb"),
    pytest.mark.workload(*intel_910.STREAMS.workloads),
]


@pytest.mark.promise("read_iops")
def test_reads_per_second(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("write_iops")
def test_writes_per_second(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("read_mean_latency")
def test_mean_latency_of_reads(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("steady_iops")
def test_both_together(run, sla):
    verdict = sla.judge(run)
    assert verdict
