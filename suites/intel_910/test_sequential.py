"""Large transfers, in order: two readers per device, one writer per device; the mean, and the worst second."""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_910

pytestmark = [
    pytest.mark.array(default="raid0x4"),
    pytest.mark.published("intel-910-400gb"),
]


@pytest.mark.promise("throughput")
@pytest.mark.workload(intel_910.SEQUENTIAL_READ, intel_910.SEQUENTIAL_WRITE)
def test_throughput(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("mean_latency")
@pytest.mark.workload(intel_910.SEQUENTIAL_READ)
def test_mean_latency_of_reads(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("worst_second")
@pytest.mark.workload(intel_910.SEQUENTIAL_WRITE)
def test_no_second_is_far_below_the_mean(run, sla):
    verdict = sla.judge(run)
    assert verdict
