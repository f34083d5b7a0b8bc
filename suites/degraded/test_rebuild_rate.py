"""A drive that is replaced under load is written at the promised rate.

The rate is that of the writes to each new member, from its addition until md has finished. md keeps the rate between
sync_speed_min and sync_speed_max (the kernel's defaults are 1,000 and 200,000 KiB per second and member; the protocol
may set others), and yields to the load above the lower one.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import Workload

#: A database that continues during the rebuild: one I/O outstanding per drive.
pytestmark = pytest.mark.ssd_workload(Workload("randrw", "4k", 1, read_percent=70))


@pytest.mark.ssd_promise("rebuild_rate")
@pytest.mark.ssd_array("raid1", widths=[2], failed=1)
def test_rebuild_rate_of_a_mirror_with_one_drive_replaced(ssd_rebuild, ssd_sla):
    verdict = ssd_sla.judge(ssd_rebuild)
    assert verdict


@pytest.mark.ssd_promise("rebuild_rate")
@pytest.mark.ssd_array("raid10", failed=1, most=1)
def test_rebuild_rate_of_a_raid10_with_one_drive_replaced(ssd_rebuild, ssd_sla):
    verdict = ssd_sla.judge(ssd_rebuild)
    assert verdict


@pytest.mark.ssd_promise("rebuild_rate")
@pytest.mark.ssd_array("raid5", failed=1, most=1)
def test_rebuild_rate_of_a_raid5_with_one_drive_replaced(ssd_rebuild, ssd_sla):
    verdict = ssd_sla.judge(ssd_rebuild)
    assert verdict


@pytest.mark.ssd_promise("rebuild_rate")
@pytest.mark.ssd_array("raid6", failed=1, most=1)
def test_rebuild_rate_of_a_raid6_with_one_drive_replaced(ssd_rebuild, ssd_sla):
    verdict = ssd_sla.judge(ssd_rebuild)
    assert verdict


@pytest.mark.ssd_promise("rebuild_rate")
@pytest.mark.ssd_array("raid6", failed=2, most=1)
def test_rebuild_rate_of_a_raid6_with_two_drives_replaced(ssd_rebuild, ssd_sla):
    verdict = ssd_sla.judge(ssd_rebuild)
    assert verdict
