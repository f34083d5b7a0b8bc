"""One job on the array with 1 to 1024 outstanding I/Os: growth of IOPS, and mean latency."""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_910

pytestmark = [
    pytest.mark.ssd_array(default="raid0x4"),
    pytest.mark.ssd_published("intel-910-400gb"),
]


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_workload(*intel_910.READS.workloads, *intel_910.WRITES.workloads)
def test_steady_iops(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("mean_latency")
@pytest.mark.ssd_workload(*intel_910.READS.workloads, *intel_910.WRITES.workloads)
def test_mean_latency(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("throughput")
@pytest.mark.ssd_workload(*intel_910.LOW_LOAD)
def test_writes_are_faster_than_reads_at_low_load(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("qd_knee")
@pytest.mark.ssd_workload_set(intel_910.READS, intel_910.WRITES, *intel_910.USEFUL)
def test_depth_until_which_iops_grow(ssd_runs, ssd_sla):
    verdict = ssd_sla.judge(ssd_runs)
    assert verdict


@pytest.mark.ssd_promise("qd_knee")
@pytest.mark.ssd_array(default="drive")
@pytest.mark.ssd_workload_set(intel_910.PER_DEVICE)
def test_depth_of_each_device_until_which_iops_grow(ssd_runs, ssd_sla):
    verdict = ssd_sla.judge(ssd_runs)
    assert verdict


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_published("intel-910-promised")
@pytest.mark.ssd_workload(intel_910.PROMISED_WRITES)
def test_steady_iops_beside_intels_promise(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("qd_gain")
@pytest.mark.ssd_workload_set(intel_910.READS, intel_910.WRITES, *intel_910.USEFUL)
def test_iops_of_the_deepest_queue_over_the_shallowest(ssd_runs, ssd_sla):
    verdict = ssd_sla.judge(ssd_runs)
    assert verdict
