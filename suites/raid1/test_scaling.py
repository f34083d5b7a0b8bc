"""Every copy that is added to a mirror adds its share of reads, and costs no writes.

Every copy is written, so the share of a write is the same at every width: by the law (md's RAID 1 of N is an N-way
mirror) a perfect mirror of four writes as fast as one of two and reads twice as fast.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

DEEPEST = [each for each in INTEL_RAID if each.qd_per_drive == 8]
pytestmark = [pytest.mark.ssd_array("raid1", widths=range(2, 5)), pytest.mark.ssd_workload(*DEEPEST)]


@pytest.mark.ssd_promise("scaling_slope")
def test_iops_grow_by_the_share_of_each_added_drive(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict


@pytest.mark.ssd_promise("scaling_deviation")
def test_no_width_falls_short_of_the_line(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict
