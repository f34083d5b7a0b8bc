"""The same at 8 to 128 KiB: what holds at 4 KiB holds at every size.

80 workloads on each array: under the protocol ``intel`` 32 hours for each, which is why they are not among the others.
Growth with parity needs chunks of 128 KiB or more, as that protocol has them: wider writes cover whole stripes.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_s3500

pytestmark = pytest.mark.workload(*intel_s3500.SIZES)


@pytest.mark.promise("throughput")
@pytest.mark.array(default="raid1x2,raid10x4,raid10x6,raid10x8,raid5x3,raid5x4,raid5x5,raid5x6,raid5x7,raid5x8")
def test_throughput(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("scaling_slope")
@pytest.mark.array("raid10", widths=(4, 6, 8))
def test_iops_of_mirrors_grow_with_every_pair(sweep, sla):
    verdict = sla.judge(sweep)
    assert verdict


@pytest.mark.promise("scaling_slope")
@pytest.mark.array("raid5", widths=range(3, 9))
def test_iops_of_parity_grow_with_every_drive(sweep, sla):
    verdict = sla.judge(sweep)
    assert verdict
