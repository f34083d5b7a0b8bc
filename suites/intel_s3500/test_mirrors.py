"""Mirrors of the paper, 2, 4, 6 and 8 drives: it calls all of them RAID 1, md RAID 10 (of two, one mirror)."""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_s3500

pytestmark = [
    pytest.mark.ssd_array(default="raid10x2,raid10x4,raid10x6,raid10x8"),
    pytest.mark.ssd_published("intel-dc-s3500-480gb"),
]


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_workload(*intel_s3500.PUBLISHED)
def test_steady_iops(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("mean_latency")
@pytest.mark.ssd_workload(*intel_s3500.PUBLISHED)
def test_mean_latency(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("qd_dependence")
@pytest.mark.ssd_workload_set(intel_s3500.WRITES)
def test_writes_do_not_depend_on_the_queue_depth(ssd_runs, ssd_sla):
    verdict = ssd_sla.judge(ssd_runs)
    assert verdict


@pytest.mark.ssd_promise("qd_gain")
@pytest.mark.ssd_workload_set(*intel_s3500.READS)
def test_reads_and_mixes_gain_by_the_queue_depth(ssd_runs, ssd_sla):
    verdict = ssd_sla.judge(ssd_runs)
    assert verdict


@pytest.mark.ssd_promise("throughput")
@pytest.mark.ssd_workload(*intel_s3500.SEQUENTIAL)
def test_sequential_throughput(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("times_one_drive")
@pytest.mark.ssd_workload(*intel_s3500.WRITES.workloads)
def test_writes_over_those_of_one_drive(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
