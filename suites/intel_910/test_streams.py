"""Readers and writers side by side, each at its own pace: what each gets, and how long it waits."""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_910

pytestmark = [
    pytest.mark.array(default="raid0x4"),
    pytest.mark.published("intel-910-400gb"),
    pytest.mark.workload(*intel_910.STREAMS.workloads),
]


def test_reads_per_second(run, sla):
    verdict = sla.judge("read_iops", run)
    assert verdict


def test_writes_per_second(run, sla):
    verdict = sla.judge("write_iops", run)
    assert verdict


def test_mean_latency_of_reads(run, sla):
    verdict = sla.judge("read_mean_latency", run)
    assert verdict


def test_both_together(run, sla):
    verdict = sla.judge("steady_iops", run)
    assert verdict
