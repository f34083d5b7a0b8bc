"""The drives are new: neither hours, nor data, nor wear, nor the traces of an earlier owner."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.ssd_array("drive")


def test_drives_were_hardly_powered_on(ssd_inspection):
    verdict = ssd_inspection.judge("power_on_hours")
    assert verdict


def test_drives_had_few_power_cycles(ssd_inspection):
    verdict = ssd_inspection.judge("power_cycles")
    assert verdict


def test_drives_had_hardly_any_data_written(ssd_inspection):
    verdict = ssd_inspection.judge("written")
    assert verdict


def test_drives_are_not_worn(ssd_inspection):
    verdict = ssd_inspection.judge("wear")
    assert verdict


def test_drives_have_all_spare_blocks(ssd_inspection):
    verdict = ssd_inspection.judge("spare")
    assert verdict


def test_drives_have_no_password(ssd_inspection):
    verdict = ssd_inspection.judge("security")
    assert verdict


def test_drives_are_not_being_sanitized(ssd_inspection):
    verdict = ssd_inspection.judge("sanitize")
    assert verdict
