"""The lot of these drives reaches the IOPS of the data sheet, by the spec's sampling plan."""

from __future__ import annotations

import pytest

from pytest_ssdqual import Workload

#: The depth for which data sheets state random IOPS.
DATA_SHEET = (Workload("randread", "4k", 32), Workload("randwrite", "4k", 32))

pytestmark = [pytest.mark.ssd_array("drive"), pytest.mark.ssd_workload(*DATA_SHEET)]


@pytest.mark.ssd_promise("steady_iops")
def test_lot_is_accepted_by_its_steady_iops(ssd_run, ssd_lot):
    verdict = ssd_lot.judge(ssd_run)
    assert verdict
