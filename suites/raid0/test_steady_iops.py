"""An array reaches the IOPS that follow from the data sheet of one drive.

The law: X = N / (r/R + (1-r)/W) IOPS, with N drives, read fraction r, and one drive's published read and
write IOPS R and W. It bounds what a saturated array can do.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

pytestmark = [pytest.mark.ssd_array("raid0"), pytest.mark.ssd_workload(*INTEL_RAID)]


@pytest.mark.ssd_promise("steady_iops")
def test_steady_state_iops_match_the_data_sheet(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
