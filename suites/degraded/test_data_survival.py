"""Nothing is lost when members fail, are replaced and are rebuilt under load.

A pattern is written before the first member fails, and read back from the degraded array and from the rebuilt one;
then md compares all data with all their copies or parity (a check), and nothing may differ.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import Workload

#: A database that continues during the rebuild: one I/O outstanding per drive.
pytestmark = pytest.mark.ssd_workload(Workload("randrw", "4k", 1, read_percent=70))


@pytest.mark.ssd_array("raid1", widths=[2], failed=1)
def test_a_mirror_survives_the_loss_of_one_drive(ssd_intact):
    assert ssd_intact


@pytest.mark.ssd_array("raid10", failed=1, most=1)
def test_a_raid10_survives_the_loss_of_one_drive(ssd_intact):
    assert ssd_intact


@pytest.mark.ssd_array("raid5", failed=1, most=1)
def test_a_raid5_survives_the_loss_of_one_drive(ssd_intact):
    assert ssd_intact


@pytest.mark.ssd_array("raid6", failed=1, most=1)
def test_a_raid6_survives_the_loss_of_one_drive(ssd_intact):
    assert ssd_intact


@pytest.mark.ssd_array("raid6", failed=2, most=1)
def test_a_raid6_survives_the_loss_of_two_drives(ssd_intact):
    assert ssd_intact
