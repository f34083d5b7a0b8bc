"""Ninety-nine of a hundred I/Os are answered within the limit while members are rebuilt.

Only I/Os that lie wholly within the rebuild count.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import Workload

#: A database at work, as far as it must not stop for a drive: one I/O outstanding per drive.
pytestmark = pytest.mark.workload(Workload("randrw", "4k", 1, read_percent=70))


@pytest.mark.promise("p99_latency")
@pytest.mark.array("raid1", widths=range(2, 5), failed=1)
def test_p99_latency_of_a_mirror_while_one_drive_is_rebuilt(rebuild, sla):
    verdict = sla.judge(rebuild.foreground)
    assert verdict


@pytest.mark.promise("p99_latency")
@pytest.mark.array("raid10", failed=1)
def test_p99_latency_of_a_raid10_while_one_drive_is_rebuilt(rebuild, sla):
    verdict = sla.judge(rebuild.foreground)
    assert verdict


@pytest.mark.promise("p99_latency")
@pytest.mark.array("raid5", failed=1)
def test_p99_latency_of_a_raid5_while_one_drive_is_rebuilt(rebuild, sla):
    verdict = sla.judge(rebuild.foreground)
    assert verdict


@pytest.mark.promise("p99_latency")
@pytest.mark.array("raid6", failed=1)
def test_p99_latency_of_a_raid6_while_one_drive_is_rebuilt(rebuild, sla):
    verdict = sla.judge(rebuild.foreground)
    assert verdict


@pytest.mark.promise("p99_latency")
@pytest.mark.array("raid6", failed=2)
def test_p99_latency_of_a_raid6_while_two_drives_are_rebuilt(rebuild, sla):
    verdict = sla.judge(rebuild.foreground)
    assert verdict
