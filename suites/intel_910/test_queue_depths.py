"""One job on the array, from 1 to 1024 outstanding: how far IOPS grow, and what the wait costs."""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_910

pytestmark = [
    pytest.mark.array(default="raid0x4"),
    pytest.mark.published("intel-910-400gb"),
]


@pytest.mark.promise("steady_iops")
@pytest.mark.workload(*intel_910.READS.workloads, *intel_910.WRITES.workloads)
def test_steady_iops(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("mean_latency")
@pytest.mark.workload(*intel_910.READS.workloads, *intel_910.WRITES.workloads)
def test_mean_latency(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("qd_knee")
@pytest.mark.series(intel_910.READS, intel_910.WRITES, *intel_910.USEFUL)
def test_depth_until_which_iops_grow(runs, sla):
    verdict = sla.judge(runs)
    assert verdict


@pytest.mark.promise("qd_gain")
@pytest.mark.series(intel_910.READS, intel_910.WRITES, *intel_910.USEFUL)
def test_iops_of_the_deepest_queue_over_the_shallowest(runs, sla):
    verdict = sla.judge(runs)
    assert verdict
