"""The drives are healthy at the end: none failed under the load, and none reports errors or a finding of its own."""

from __future__ import annotations

import pytest


@pytest.mark.ssd_array("drive")
def test_drives_are_healthy(ssd_health):
    assert ssd_health
