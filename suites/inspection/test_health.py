"""The drives are healthy by their own assessment and their own logs, and not warm at rest."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.ssd_array("drive")


def test_drives_pass_their_health_assessment(ssd_inspection):
    verdict = ssd_inspection.judge("health")
    assert verdict


def test_drives_have_no_media_defects(ssd_inspection):
    verdict = ssd_inspection.judge("media")
    assert verdict


def test_drives_logged_no_errors_of_their_media(ssd_inspection):
    verdict = ssd_inspection.judge("error_log")
    assert verdict


def test_drives_failed_no_self_test(ssd_inspection):
    verdict = ssd_inspection.judge("self_test")
    assert verdict


def test_drives_run_nothing_by_themselves(ssd_inspection):
    verdict = ssd_inspection.judge("activity")
    assert verdict


def test_drives_are_cool_at_rest(ssd_inspection):
    verdict = ssd_inspection.judge("temperature")
    assert verdict
