"""Write saturation: random 4 KiB writes from the purged state, four capacities or the protocol's time."""

from __future__ import annotations

import pytest

from pytest_ssdqual import snia

pytestmark = [pytest.mark.array(default="drive"), pytest.mark.workload(snia.SATURATING)]


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
