"""From the first write on a purged drive until it has settled: what a fresh drive shows is not what it can do."""

from __future__ import annotations

import pytest

from pytest_ssdqual import stec

pytestmark = [
    pytest.mark.array(default="drive"),
    pytest.mark.published("stec-unnamed-sata-ssd"),
    pytest.mark.workload(stec.SATURATING),
]


def test_fresh_iops(saturation, sla):
    verdict = sla.judge("fresh_iops", saturation)
    assert verdict


def test_settled_iops(saturation, sla):
    verdict = sla.judge("settled_iops", saturation)
    assert verdict


def test_fresh_over_settled_iops(saturation, sla):
    verdict = sla.judge("fresh_to_steady", saturation)
    assert verdict


def test_written_before_the_cliff(saturation, sla):
    verdict = sla.judge("cliff_after", saturation)
    assert verdict
