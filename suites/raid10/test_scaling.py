"""Every pair of drives that is added to a RAID 10 adds its share of IOPS.

Intel's paper on the DC S3500 in RAID found 2, 3 and 4 times the IOPS of one mirror with 2, 3 and 4 of them, for reads
and for writes (329903-001US; its "RAID 1" of four and more drives is a striped mirror).
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

DEEPEST = [each for each in INTEL_RAID if each.qd_per_drive == 8]
pytestmark = [pytest.mark.ssd_array("raid10"), pytest.mark.ssd_workload(*DEEPEST)]


@pytest.mark.ssd_promise("scaling_slope")
def test_iops_grow_by_the_share_of_each_added_drive(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict


@pytest.mark.ssd_promise("scaling_deviation")
def test_no_width_falls_short_of_the_line(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict
