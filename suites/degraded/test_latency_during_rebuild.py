"""Ninety-nine of a hundred I/Os are answered within the limit while members are rebuilt.

Only I/Os that lie wholly within the rebuild count.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import Workload

#: A database that continues during the rebuild: one I/O outstanding per drive.
pytestmark = pytest.mark.ssd_workload(Workload("randrw", "4k", 1, read_percent=70))


@pytest.mark.ssd_promise("p99_latency")
@pytest.mark.ssd_array("raid1", widths=[2], failed=1)
def test_p99_latency_of_a_mirror_while_one_drive_is_rebuilt(ssd_rebuild, ssd_sla):
    verdict = ssd_sla.judge(ssd_rebuild.foreground)
    assert verdict


@pytest.mark.ssd_promise("p99_latency")
@pytest.mark.ssd_array("raid10", failed=1, most=1)
def test_p99_latency_of_a_raid10_while_one_drive_is_rebuilt(ssd_rebuild, ssd_sla):
    verdict = ssd_sla.judge(ssd_rebuild.foreground)
    assert verdict


@pytest.mark.ssd_promise("p99_latency")
@pytest.mark.ssd_array("raid5", failed=1, most=1)
def test_p99_latency_of_a_raid5_while_one_drive_is_rebuilt(ssd_rebuild, ssd_sla):
    verdict = ssd_sla.judge(ssd_rebuild.foreground)
    assert verdict


@pytest.mark.ssd_promise("p99_latency")
@pytest.mark.ssd_array("raid6", failed=1, most=1)
def test_p99_latency_of_a_raid6_while_one_drive_is_rebuilt(ssd_rebuild, ssd_sla):
    verdict = ssd_sla.judge(ssd_rebuild.foreground)
    assert verdict


@pytest.mark.ssd_promise("p99_latency")
@pytest.mark.ssd_array("raid6", failed=2, most=1)
def test_p99_latency_of_a_raid6_while_two_drives_are_rebuilt(ssd_rebuild, ssd_sla):
    verdict = ssd_sla.judge(ssd_rebuild.foreground)
    assert verdict
