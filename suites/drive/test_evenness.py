"""A drive is nearly as good in its worst moment as on average: neither a single I/O nor a second stands out."""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

DEEPEST = [each for each in INTEL_RAID if each.qd_per_drive == 8]
pytestmark = [pytest.mark.ssd_array("drive"), pytest.mark.ssd_workload(*DEEPEST)]


@pytest.mark.ssd_promise("latency_spread_over_time")
def test_maximum_latency_is_even_over_time(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("max_latency")
def test_no_stall_is_long(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("worst_second")
def test_no_second_is_far_below_the_mean(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
