"""Every drive that is added to a RAID 6 adds its share of IOPS.

The share is the level's: random writes cost 4 member I/Os on four drives, 5 on five and 6 on six and more, so a perfect
array of eight writes 4/3 times as fast as one of four, not twice (Linux md, raid5.c).
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

DEEPEST = [each for each in INTEL_RAID if each.qd_per_drive == 8]
pytestmark = [pytest.mark.ssd_array("raid6"), pytest.mark.ssd_workload(*DEEPEST)]


@pytest.mark.ssd_promise("scaling_slope")
def test_iops_grow_by_the_share_of_each_added_drive(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict


@pytest.mark.ssd_promise("scaling_deviation")
def test_no_width_falls_short_of_the_line(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict
