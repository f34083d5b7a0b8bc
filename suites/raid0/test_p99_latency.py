"""Ninety-nine of a hundred I/Os are answered within the limit, at eight outstanding per drive."""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

pytestmark = pytest.mark.ssd_array("raid0")


@pytest.mark.ssd_promise("p99_latency")
@pytest.mark.ssd_workload(*(each for each in INTEL_RAID if each.qd_per_drive == 8))
def test_p99_latency_at_qd8(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
