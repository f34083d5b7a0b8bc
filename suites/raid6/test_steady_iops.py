"""An array reaches the IOPS that follow from the data sheet of one drive.

The law: X = N / (r/R + (1-r)(k_r/R + 3/W)) IOPS, with N drives, read fraction r, one drive's published read and
write IOPS R and W, and k_r reads of members per small write (1 on four drives, 2 on five, 3 beyond; Linux
drivers/md/raid5.c, handle_stripe_dirtying). It bounds what a saturated array can do.

Every width is judged at queue depth 8, and the narrowest and the widest at queue depth 1.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_array("raid6")
@pytest.mark.ssd_workload(*(each for each in INTEL_RAID if each.qd_per_drive == 8))
def test_steady_state_iops_match_the_data_sheet(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_array("raid6", most=2)
@pytest.mark.ssd_workload(*(each for each in INTEL_RAID if each.qd_per_drive == 1))
def test_steady_state_iops_at_qd1_match_the_data_sheet(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
