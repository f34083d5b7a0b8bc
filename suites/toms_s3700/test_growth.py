"""Scaling from 4 drives to 8 and 24, as in the article."""

from __future__ import annotations

import pytest

from pytest_ssdqual import toms_s3700

pytestmark = [
    pytest.mark.ssd_array("raid0", widths=toms_s3700.WIDTHS),
    pytest.mark.ssd_workload(*toms_s3700.MATRIX),
]


@pytest.mark.ssd_promise("scaling_slope")
def test_iops_grow_with_every_drive(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict


@pytest.mark.ssd_promise("scaling_deviation")
def test_no_array_falls_short_of_the_line(ssd_sweep, ssd_sla):
    verdict = ssd_sla.judge(ssd_sweep)
    assert verdict
