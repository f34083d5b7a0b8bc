"""Eight sizes × seven mixes, two jobs of depth 32 on the whole array."""

from __future__ import annotations

import pytest

from pytest_ssdqual import toms_s3500

pytestmark = [
    pytest.mark.array(default="raid0x6"),
    pytest.mark.published("intel-dc-s3500-raid0"),
]


@pytest.mark.promise("steady_iops")
@pytest.mark.workload(*toms_s3500.MATRIX)
def test_steady_iops(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("throughput")
@pytest.mark.workload(*toms_s3500.LARGE)
def test_throughput_at_the_bandwidth_limit(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("bathtub_depth")
@pytest.mark.series(*toms_s3500.MIX_SERIES)
def test_no_mix_falls_far_below_pure_reads_and_pure_writes(runs, sla):
    verdict = sla.judge(runs)
    assert verdict
