"""An array reaches the IOPS that follow from the data sheet of one drive.

The law: X = N / (r/R + (1-r)(k_r/R + k_w/W)) IOPS, with N drives, read fraction r, one drive's published read and
write IOPS R and W, and k_r reads and k_w writes of members per small write (1 + 2 on three drives, 2 + 2 beyond;
Linux drivers/md/raid5.c, handle_stripe_dirtying). It bounds what a saturated array can do.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

pytestmark = [pytest.mark.ssd_array("raid5"), pytest.mark.ssd_workload(*INTEL_RAID)]


@pytest.mark.ssd_promise("steady_iops")
def test_steady_state_iops_match_the_data_sheet(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
