"""The capacity is that of all drives but two, which are parity.

md reserves up to 0.8 % of very small members, and far less of larger ones.
"""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.ssd_array("raid6")


def test_capacity_is_that_of_the_data_drives(ssd_array):
    smallest = min(drive.size_bytes for drive in ssd_array.members)
    assert ssd_array.size_bytes == pytest.approx(ssd_array.geometry.data_drives * smallest, rel=0.01)
