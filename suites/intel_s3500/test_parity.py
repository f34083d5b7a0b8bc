"""Parity arrays of the paper: RAID 5 of 3 to 8 drives.

Besides the paper's figures, p99 latency and the spread of the slowest I/Os are judged at the deepest queue.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_s3500

pytestmark = [
    pytest.mark.ssd_array(default="raid5x3,raid5x4,raid5x5,raid5x6,raid5x7,raid5x8"),
    pytest.mark.ssd_published("intel-dc-s3500-800gb"),
]

DEEPEST = [each for each in intel_s3500.PUBLISHED if each.qd_per_drive == 8]


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


@pytest.mark.ssd_promise("p99_latency")
@pytest.mark.ssd_workload(*DEEPEST)
def test_p99_latency_at_qd8(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("latency_spread_over_time")
@pytest.mark.ssd_workload(*DEEPEST)
def test_maximum_latency_is_even_over_time(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("qd_gain")
@pytest.mark.ssd_workload_set(intel_s3500.WRITES)
def test_writes_gain_by_the_queue_depth(ssd_runs, ssd_sla):
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
