"""The whole volume, small blocks, for hours: older drives dip to a tenth, the 910 to a third."""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_910

pytestmark = pytest.mark.workload(intel_910.SATURATING)


@pytest.mark.promise("fresh_to_steady")
@pytest.mark.array(default="raid0x4")
@pytest.mark.published("intel-910-400gb")
def test_fresh_over_settled_iops(saturation, sla):
    verdict = sla.judge(saturation)
    assert verdict


@pytest.mark.promise("fresh_iops")
@pytest.mark.array(default="drive")
@pytest.mark.published("intel-320")
def test_fresh_iops_beside_an_older_drive(saturation, sla):
    verdict = sla.judge(saturation)
    assert verdict


@pytest.mark.promise("settled_iops")
@pytest.mark.array(default="drive")
@pytest.mark.published("intel-320")
def test_settled_iops_beside_an_older_drive(saturation, sla):
    verdict = sla.judge(saturation)
    assert verdict
