"""An array is redundant again within the promised time after members were replaced under load.

Until then another failure may cost the data. The time grows with the capacity of a drive, not of the array; md rebuilds
two members of a RAID 6 at once.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import Workload

#: A database that continues during the rebuild: one I/O outstanding per drive.
pytestmark = pytest.mark.ssd_workload(Workload("randrw", "4k", 1, read_percent=70))


@pytest.mark.ssd_promise("rebuild_time")
@pytest.mark.ssd_array("raid1", widths=[2], failed=1)
def test_rebuild_time_of_a_mirror_with_one_drive_replaced(ssd_rebuild, ssd_sla):
    verdict = ssd_sla.judge(ssd_rebuild)
    assert verdict


@pytest.mark.ssd_promise("rebuild_time")
@pytest.mark.ssd_array("raid10", failed=1, most=1)
def test_rebuild_time_of_a_raid10_with_one_drive_replaced(ssd_rebuild, ssd_sla):
    verdict = ssd_sla.judge(ssd_rebuild)
    assert verdict


@pytest.mark.ssd_promise("rebuild_time")
@pytest.mark.ssd_array("raid5", failed=1, most=1)
def test_rebuild_time_of_a_raid5_with_one_drive_replaced(ssd_rebuild, ssd_sla):
    verdict = ssd_sla.judge(ssd_rebuild)
    assert verdict


@pytest.mark.ssd_promise("rebuild_time")
@pytest.mark.ssd_array("raid6", failed=1, most=1)
def test_rebuild_time_of_a_raid6_with_one_drive_replaced(ssd_rebuild, ssd_sla):
    verdict = ssd_sla.judge(ssd_rebuild)
    assert verdict


@pytest.mark.ssd_promise("rebuild_time")
@pytest.mark.ssd_array("raid6", failed=2, most=1)
def test_rebuild_time_of_a_raid6_with_two_drives_replaced(ssd_rebuild, ssd_sla):
    verdict = ssd_sla.judge(ssd_rebuild)
    assert verdict
