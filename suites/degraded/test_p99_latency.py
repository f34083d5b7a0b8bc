"""Ninety-nine of a hundred I/Os are answered within the limit with members missing, at eight outstanding per drive.

A read of a missing member's data waits for the slowest of all other members.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

pytestmark = pytest.mark.ssd_workload(*(each for each in INTEL_RAID if each.qd_per_drive == 8))


@pytest.mark.ssd_promise("p99_latency")
@pytest.mark.ssd_array("raid1", widths=range(2, 5), failed=1, most=2)
def test_p99_latency_at_qd8_of_a_mirror_with_one_drive_missing(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("p99_latency")
@pytest.mark.ssd_array("raid10", failed=1, most=2)
def test_p99_latency_at_qd8_of_a_raid10_with_one_drive_missing(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("p99_latency")
@pytest.mark.ssd_array("raid5", failed=1, most=2)
def test_p99_latency_at_qd8_of_a_raid5_with_one_drive_missing(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("p99_latency")
@pytest.mark.ssd_array("raid6", failed=1, most=2)
def test_p99_latency_at_qd8_of_a_raid6_with_one_drive_missing(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("p99_latency")
@pytest.mark.ssd_array("raid6", failed=2, most=2)
def test_p99_latency_at_qd8_of_a_raid6_with_two_drives_missing(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
