"""Discarded ranges return what the drives promise about them, and their neighbours stay as written.

Bare drives side by side, and the arrays that pass discards to their members. RAID 5 and 6 do so only if raid456 has the
parameter devices_handle_discard_safely.
"""

from __future__ import annotations

import pytest


@pytest.mark.ssd_array("drive")
def test_discarded_blocks_of_drives(ssd_discard):
    assert ssd_discard


@pytest.mark.ssd_array("raid0", widths=[2])
def test_discarded_blocks_of_a_raid0(ssd_discard):
    assert ssd_discard


@pytest.mark.ssd_array("raid1", widths=[2])
def test_discarded_blocks_of_a_mirror(ssd_discard):
    assert ssd_discard


@pytest.mark.ssd_array("raid10", widths=[4])
def test_discarded_blocks_of_a_raid10(ssd_discard):
    assert ssd_discard


@pytest.mark.ssd_array("raid5", widths=[3])
def test_discarded_blocks_of_a_raid5(ssd_discard):
    assert ssd_discard


@pytest.mark.ssd_array("raid6", widths=[4])
def test_discarded_blocks_of_a_raid6(ssd_discard):
    assert ssd_discard
