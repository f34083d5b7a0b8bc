"""An array does its share of what the data sheet promises of one drive.

The law: X = N / (r/R + (1-r)/W) IOPS, with N drives, read fraction r, and one drive's published read and
write IOPS R and W. It bounds what a saturated array can do.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

pytestmark = [pytest.mark.array("raid0"), pytest.mark.workload(*INTEL_RAID)]


@pytest.mark.promise("steady_iops")
def test_steady_state_iops_match_the_data_sheet(run, sla):
    verdict = sla.judge(run)
    assert verdict
