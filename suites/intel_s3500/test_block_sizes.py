"""The paper's workloads at 8 to 128 KiB, with the claims at 4 KiB; and sequential ones of all sizes and mixes.

A module of its own, because 80 random and 88 sequential workloads take 67 hours on each array under the protocol
``intel``.
Growth with parity needs chunks of 128 KiB or more, as that protocol has them: wider writes cover whole stripes.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_s3500

pytestmark = pytest.mark.ssd_workload(*intel_s3500.SIZES)

ARRAYS = pytest.mark.ssd_array(
    default="raid10x2,raid10x4,raid10x6,raid10x8,raid5x3,raid5x4,raid5x5,raid5x6,raid5x7,raid5x8"
)
MIRRORS = pytest.mark.ssd_array("raid10", widths=(2, 4, 6, 8))
PARITY = pytest.mark.ssd_array("raid5", widths=range(3, 9))


@pytest.mark.ssd_promise("throughput")
@ARRAYS
def test_throughput(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("throughput")
@pytest.mark.ssd_workload(*intel_s3500.SEQUENTIAL_SIZES)
@ARRAYS
def test_sequential_throughput(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


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
