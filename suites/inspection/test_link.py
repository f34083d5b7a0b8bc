"""The drives are connected as fast as drive and slot can, without errors of the connection."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.ssd_array("drive")


def test_drives_have_the_full_link_speed(ssd_inspection):
    verdict = ssd_inspection.judge("link_speed")
    assert verdict


def test_drives_have_the_full_link_width(ssd_inspection):
    verdict = ssd_inspection.judge("link_width")
    assert verdict


def test_drives_have_no_link_errors(ssd_inspection):
    verdict = ssd_inspection.judge("link_errors")
    assert verdict
