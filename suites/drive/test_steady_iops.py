"""Every drive reaches the IOPS of the data sheet, all drives at the same time."""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID, Workload

#: The depth for which data sheets state random IOPS.
DATA_SHEET = (Workload("randread", "4k", 32), Workload("randwrite", "4k", 32))

pytestmark = [pytest.mark.ssd_array("drive"), pytest.mark.ssd_workload(*INTEL_RAID, *DATA_SHEET)]


@pytest.mark.ssd_promise("steady_iops")
def test_steady_state_iops_match_the_data_sheet(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
