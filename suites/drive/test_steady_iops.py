"""Every drive does what the data sheet promises, all of them at the same time."""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID, Workload

#: The depth for which data sheets state random IOPS.
DATA_SHEET = (Workload("randread", "4k", 32), Workload("randwrite", "4k", 32))

pytestmark = [pytest.mark.array("drive"), pytest.mark.workload(*INTEL_RAID, *DATA_SHEET)]


@pytest.mark.promise("steady_iops")
def test_steady_state_iops_match_the_data_sheet(run, sla):
    verdict = sla.judge(run)
    assert verdict
