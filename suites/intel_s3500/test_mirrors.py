"""Mirrors of the paper: a pair, and 4, 6 and 8 drives as a RAID 10 (the paper calls all of them RAID 1)."""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_s3500

pytestmark = [
    pytest.mark.array(default="raid1x2,raid10x4,raid10x6,raid10x8"),
    pytest.mark.published("intel-dc-s3500-480gb"),
]


@pytest.mark.promise("steady_iops")
@pytest.mark.workload(*intel_s3500.PUBLISHED)
def test_steady_iops(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("mean_latency")
@pytest.mark.workload(*intel_s3500.PUBLISHED)
def test_mean_latency(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("qd_dependence")
@pytest.mark.series(intel_s3500.WRITES)
def test_writes_do_not_depend_on_the_queue_depth(runs, sla):
    verdict = sla.judge(runs)
    assert verdict


@pytest.mark.promise("qd_gain")
@pytest.mark.series(*intel_s3500.READS)
def test_reads_and_mixes_gain_by_the_queue_depth(runs, sla):
    verdict = sla.judge(runs)
    assert verdict


@pytest.mark.promise("throughput")
@pytest.mark.workload(*intel_s3500.SEQUENTIAL)
def test_sequential_throughput(run, sla):
    verdict = sla.judge(run)
    assert verdict
