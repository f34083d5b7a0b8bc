"""Every drive that is added to a RAID 5 adds its share of IOPS.

The share is the level's: random writes cost 3 member I/Os on three drives and 4 on five and more, so a perfect
array of eight writes twice as fast as one of three, not 8/3 times (Linux md, raid5.c; Intel's paper measured +97 %).
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

DEEPEST = [each for each in INTEL_RAID if each.qd_per_drive == 8]
pytestmark = [pytest.mark.ssd_array("raid5"), pytest.mark.ssd_workload(*DEEPEST)]


@pytest.mark.ssd_promise("scaling_slope")
def test_iops_grow_by_the_share_of_each_added_drive(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict


@pytest.mark.ssd_promise("scaling_deviation")
def test_no_width_falls_short_of_the_line(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict
