"""Drives of one model are alike: side by side, none is far slower than the median one. Who is, is named.

An array is as fast as its slowest member; so this is what to test before one is built.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

pytestmark = pytest.mark.array("drive")


@pytest.mark.promise("member_spread")
@pytest.mark.workload(*INTEL_RAID)
def test_no_drive_is_slower_than_the_others(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("latency_spread_between_members")
@pytest.mark.workload(*(each for each in INTEL_RAID if each.qd_per_drive == 8))
def test_no_drive_has_slower_stalls_than_the_others(run, sla):
    verdict = sla.judge(run)
    assert verdict
