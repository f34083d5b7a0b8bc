"""Eight sizes × seven mixes, two jobs of depth 32 on the whole array."""

from __future__ import annotations

import pytest

from pytest_ssdqual import toms_s3500

pytestmark = [
    pytest.mark.ssd_array(default="raid0x6"),
    pytest.mark.ssd_published("intel-dc-s3500-raid0"),
]


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_workload(*toms_s3500.MATRIX)
def test_steady_iops(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("throughput")
@pytest.mark.ssd_workload(*toms_s3500.LARGE)
def test_throughput_at_the_bandwidth_limit(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("bathtub_depth")
@pytest.mark.ssd_workload_set(*toms_s3500.MIX_SERIES)
def test_no_mix_falls_far_below_pure_reads_and_pure_writes(ssd_runs, ssd_sla):
    verdict = ssd_sla.judge(ssd_runs)
    assert verdict


@pytest.mark.ssd_promise("mix_rise")
@pytest.mark.ssd_workload_set(*toms_s3500.SMALL_MIX_SERIES)
def test_iops_fall_with_the_share_of_reads(ssd_runs, ssd_sla):
    verdict = ssd_sla.judge(ssd_runs)
    assert verdict


@pytest.mark.ssd_promise("balanced_gain")
@pytest.mark.ssd_workload_set(*toms_s3500.LARGE_MIX_SERIES)
def test_balanced_mixes_of_large_transfers_have_the_most_bandwidth(ssd_runs, ssd_sla):
    verdict = ssd_sla.judge(ssd_runs)
    assert verdict
