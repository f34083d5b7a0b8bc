"""From the first write on a purged drive until it has settled: what a fresh drive shows is not what it can do."""

from __future__ import annotations

import pytest

from pytest_ssdqual import stec

pytestmark = [
    pytest.mark.array(default="drive"),
    pytest.mark.published("stec-unnamed-sata-ssd"),
    pytest.mark.workload(stec.SATURATING),
]


@pytest.mark.promise("fresh_iops")
def test_fresh_iops(saturation, sla):
    verdict = sla.judge(saturation)
    assert verdict


@pytest.mark.promise("settled_iops")
def test_settled_iops(saturation, sla):
    verdict = sla.judge(saturation)
    assert verdict


@pytest.mark.promise("fresh_to_steady")
def test_fresh_over_settled_iops(saturation, sla):
    verdict = sla.judge(saturation)
    assert verdict


@pytest.mark.promise("cliff_after")
def test_written_before_the_cliff(saturation, sla):
    verdict = sla.judge(saturation)
    assert verdict
