"""Small writes to the whole volume for hours: fresh and settled IOPS, beside an Intel 320 that falls to a seventh."""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_910

pytestmark = pytest.mark.ssd_workload(intel_910.SATURATING)


@pytest.mark.ssd_promise("fresh_to_steady")
@pytest.mark.ssd_array(default="raid0x4")
def test_fresh_over_settled_iops(ssd_saturation, ssd_sla):
    verdict = ssd_sla.judge(ssd_saturation)
    assert verdict


@pytest.mark.ssd_promise("fresh_iops")
@pytest.mark.ssd_array(default="drive")
@pytest.mark.ssd_published("intel-320")
def test_fresh_iops_beside_an_older_drive(ssd_saturation, ssd_sla):
    verdict = ssd_sla.judge(ssd_saturation)
    assert verdict


@pytest.mark.ssd_promise("settled_iops")
@pytest.mark.ssd_array(default="drive")
@pytest.mark.ssd_published("intel-320")
def test_settled_iops_beside_an_older_drive(ssd_saturation, ssd_sla):
    verdict = ssd_sla.judge(ssd_saturation)
    assert verdict
