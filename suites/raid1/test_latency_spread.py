"""The slowest I/Os stay close together, over time and between the narrowest and the widest array, and below a limit."""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

DEEPEST = [each for each in INTEL_RAID if each.qd_per_drive == 8]
pytestmark = [pytest.mark.ssd_array("raid1", widths=range(2, 5), most=2), pytest.mark.ssd_workload(*DEEPEST)]


@pytest.mark.ssd_promise("latency_spread_over_time")
def test_maximum_latency_is_even_over_time(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("max_latency")
def test_no_stall_is_long(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("latency_spread_between_widths")
def test_maximum_latency_is_alike_in_the_smallest_and_the_widest_array(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict
