"""Large transfers, in order: two readers per device, one writer per device; the mean, and the worst second."""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_910

pytestmark = [
    pytest.mark.array(default="raid0x4"),
    pytest.mark.published("intel-910-400gb"),
]


@pytest.mark.workload(intel_910.SEQUENTIAL_READ, intel_910.SEQUENTIAL_WRITE)
def test_throughput(run, sla):
    verdict = sla.judge("throughput", run)
    assert verdict


@pytest.mark.workload(intel_910.SEQUENTIAL_READ)
def test_mean_latency_of_reads(run, sla):
    verdict = sla.judge("mean_latency", run)
    assert verdict


@pytest.mark.workload(intel_910.SEQUENTIAL_WRITE)
def test_no_second_is_far_below_the_mean(run, sla):
    verdict = sla.judge("worst_second", run)
    assert verdict
