"""Bare drives keep what they have acknowledged and flushed when their power is cut at a random moment under writes.

The site's commands ``--ssd-power-off`` and ``--ssd-power-on`` cut and restore it. Lost, shorn, misplaced and
damaged writes are counted, and drives that do not come back (docs/integrity.md).
"""

from __future__ import annotations

import pytest


@pytest.mark.ssd_array("drive")
def test_drives_keep_flushed_data(ssd_power_cuts):
    assert ssd_power_cuts
