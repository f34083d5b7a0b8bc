"""Write saturation: random 4 KiB writes from the purged state, four capacities or the protocol's time."""

from __future__ import annotations

import pytest

from pytest_ssdqual import snia

pytestmark = [pytest.mark.array(default="drive"), pytest.mark.workload(snia.SATURATING)]


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
