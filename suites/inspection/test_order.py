"""The drives are those that were ordered, each with a name of its own, and all alike."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.ssd_array("drive")


def test_drives_are_of_the_ordered_model(ssd_inspection):
    verdict = ssd_inspection.judge("model")
    assert verdict


def test_drives_have_an_allowed_firmware(ssd_inspection):
    verdict = ssd_inspection.judge("firmware")
    assert verdict


def test_drives_have_the_ordered_capacity(ssd_inspection):
    verdict = ssd_inspection.judge("capacity")
    assert verdict


def test_drives_have_the_ordered_sector_format(ssd_inspection):
    verdict = ssd_inspection.judge("sector_format")
    assert verdict


def test_drives_have_unique_serials_and_wwns(ssd_inspection):
    verdict = ssd_inspection.judge("identity")
    assert verdict


def test_drives_are_alike(ssd_inspection):
    verdict = ssd_inspection.judge("alike")
    assert verdict


def test_drives_have_one_namespace(ssd_inspection):
    verdict = ssd_inspection.judge("namespaces")
    assert verdict


def test_drives_have_the_ordered_write_cache(ssd_inspection):
    verdict = ssd_inspection.judge("write_cache")
    assert verdict


def test_drives_queue_enough(ssd_inspection):
    verdict = ssd_inspection.judge("queue_depth")
    assert verdict


def test_drives_have_the_ordered_log_pages(ssd_inspection):
    verdict = ssd_inspection.judge("log_pages")
    assert verdict
