"""The slowest I/Os stay close together: from round to round, and between the smallest and the widest array."""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

DEEPEST = [each for each in INTEL_RAID if each.qd_per_drive == 8]
pytestmark = [pytest.mark.array("raid1", widths=range(2, 5)), pytest.mark.workload(*DEEPEST)]


@pytest.mark.promise("latency_spread_over_time")
def test_maximum_latency_is_even_over_time(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("latency_spread_between_widths")
def test_maximum_latency_is_alike_in_the_smallest_and_the_widest_array(sweep, sla):
    verdict = sla.judge(sweep)
    assert verdict
