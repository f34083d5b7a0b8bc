"""The promises of an array, at eight outstanding I/Os per drive: steady IOPS, p99, maxima and their spread, growth.

RAID 5 of the narrowest, a middle and the widest width; ``--ssd-arrays=raid6`` names another level. The widest array is
judged at queue depth 1, too.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

DEEPEST = [each for each in INTEL_RAID if each.qd_per_drive == 8]
SHALLOWEST = [each for each in INTEL_RAID if each.qd_per_drive == 1]
pytestmark = [pytest.mark.ssd_array(default="raid5", most=3), pytest.mark.ssd_workload(*DEEPEST)]


@pytest.mark.ssd_promise("steady_iops")
def test_steady_iops(ssd_run, ssd_sla):
    assert ssd_sla.judge(ssd_run)


@pytest.mark.ssd_promise("p99_latency")
def test_p99_latency(ssd_run, ssd_sla):
    assert ssd_sla.judge(ssd_run)


@pytest.mark.ssd_promise("scaling_slope")
def test_iops_grow_with_each_drive(ssd_sweep, ssd_sla):
    assert ssd_sla.judge(ssd_sweep)


@pytest.mark.ssd_promise("scaling_deviation")
def test_no_width_falls_short(ssd_sweep, ssd_sla):
    assert ssd_sla.judge(ssd_sweep)


@pytest.mark.ssd_promise("latency_spread_over_time")
@pytest.mark.ssd_array(default="raid5", most=2)
def test_maximum_latency_is_even_over_time(ssd_run, ssd_sla):
    assert ssd_sla.judge(ssd_run)


@pytest.mark.ssd_promise("max_latency")
@pytest.mark.ssd_array(default="raid5", most=2)
def test_no_stall_is_long(ssd_run, ssd_sla):
    assert ssd_sla.judge(ssd_run)


@pytest.mark.ssd_promise("latency_spread_between_widths")
@pytest.mark.ssd_array(default="raid5", most=2)
def test_maximum_latency_is_alike_between_widths(ssd_sweep, ssd_sla):
    assert ssd_sla.judge(ssd_sweep)


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_array(default="raid5")
@pytest.mark.ssd_workload(*SHALLOWEST)
def test_steady_iops_of_single_ios(ssd_run, ssd_sla):
    assert ssd_sla.judge(ssd_run)
