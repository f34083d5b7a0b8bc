"""A purge leaves no data: whole drives are filled, purged as before each array, and read to their last block."""

from __future__ import annotations

import pytest


@pytest.mark.ssd_array("drive")
def test_purged_drives_return_no_data(ssd_erasure):
    assert ssd_erasure
