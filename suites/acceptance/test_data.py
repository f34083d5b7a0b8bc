"""Bare drives return the data that were written to them: whole drives are written, read and compared, side by side.

Found are a drive that holds less than it says, lost and misplaced writes, flipped bits, slow parts, and sectors that
cannot be read.
"""

from __future__ import annotations

import pytest


@pytest.mark.ssd_array("drive")
def test_drives_return_what_was_written(ssd_read_back):
    assert ssd_read_back
