"""What applications ask for, by the paper's table 1: sizes, share of random addresses, share of reads."""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_s3500

pytestmark = [
    pytest.mark.array(default="raid1x2,raid10x8,raid5x8"),
    pytest.mark.workload(*intel_s3500.APPLICATIONS),
]


@pytest.mark.promise("steady_iops")
def test_steady_iops(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("mean_latency")
def test_mean_latency(run, sla):
    verdict = sla.judge(run)
    assert verdict
