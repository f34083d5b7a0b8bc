"""Write saturation from the first write on a purged drive to steady state: fresh IOPS are not lasting IOPS."""

from __future__ import annotations

import pytest

from pytest_ssdqual import stec

pytestmark = [
    pytest.mark.ssd_array(default="drive"),
    pytest.mark.ssd_published("stec-unnamed-sata-ssd"),
    pytest.mark.ssd_workload(*stec.SATURATIONS),
]


@pytest.mark.ssd_promise("fresh_iops")
def test_fresh_iops(ssd_saturation, ssd_sla):
    verdict = ssd_sla.judge(ssd_saturation)
    assert verdict


@pytest.mark.ssd_promise("settled_iops")
def test_settled_iops(ssd_saturation, ssd_sla):
    verdict = ssd_sla.judge(ssd_saturation)
    assert verdict


@pytest.mark.ssd_promise("fresh_to_steady")
@pytest.mark.ssd_workload(*stec.PURE_WRITES)
def test_fresh_over_settled_iops(ssd_saturation, ssd_sla):
    verdict = ssd_sla.judge(ssd_saturation)
    assert verdict


@pytest.mark.ssd_promise("cliff_after")
def test_written_before_the_cliff(ssd_saturation, ssd_sla):
    verdict = ssd_sla.judge(ssd_saturation)
    assert verdict
