"""Drives of one model are alike: side by side, none is far slower than the median one. The verdict names outliers.

Run this before building an array: an array is as fast as its slowest member.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

pytestmark = pytest.mark.ssd_array("drive")


@pytest.mark.ssd_promise("member_spread")
@pytest.mark.ssd_workload(*INTEL_RAID)
def test_no_drive_is_slower_than_the_others(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("latency_spread_between_members")
@pytest.mark.ssd_workload(*(each for each in INTEL_RAID if each.qd_per_drive == 8))
def test_no_drive_has_slower_stalls_than_the_others(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
