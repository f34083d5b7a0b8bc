"""Growth of IOPS and latency with the number of drives: the paper's curves.

Growth is judged against what the level can do, so the paper's +58 % and +97 % of RAID 5 writes (from 3 to 6 and to 8
drives) are a slope of about 1. Mirrors begin with the pair, which on md is a RAID 10 of two. The slope weighs wide
arrays most; that the first doubling counts, too, is judged by the deviation of each array from the line.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_s3500

MIRRORS = pytest.mark.ssd_array("raid10", widths=(2, 4, 6, 8))
PARITY = pytest.mark.ssd_array("raid5", widths=range(3, 9))

pytestmark = pytest.mark.ssd_workload(*intel_s3500.PUBLISHED)


@pytest.mark.ssd_promise("scaling_slope")
@MIRRORS
def test_iops_of_mirrors_grow_with_every_pair(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict


@pytest.mark.ssd_promise("scaling_deviation")
@MIRRORS
def test_no_mirrors_fall_short_of_the_line(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict


@pytest.mark.ssd_promise("latency_growth_between_widths")
@MIRRORS
def test_mean_latency_of_mirrors_does_not_grow_with_the_array(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict


@pytest.mark.ssd_promise("latency_spread_between_widths")
@MIRRORS
def test_maximum_latencies_of_mirrors_lie_close_together(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict


@pytest.mark.ssd_promise("scaling_slope")
@PARITY
def test_iops_of_parity_grow_with_every_drive(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict


@pytest.mark.ssd_promise("scaling_deviation")
@PARITY
def test_no_parity_array_falls_short_of_the_line(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict


@pytest.mark.ssd_promise("latency_growth_between_widths")
@PARITY
def test_mean_latency_of_parity_does_not_grow_beyond_measure(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict


@pytest.mark.ssd_promise("latency_spread_between_widths")
@PARITY
def test_maximum_latencies_of_parity_lie_close_together(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict
