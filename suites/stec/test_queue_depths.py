"""Useful queue depths: 8 KiB unaligned, every mix, at growing depth."""

from __future__ import annotations

import pytest

from pytest_ssdqual import stec

pytestmark = [
    pytest.mark.ssd_array(default="drive"),
    pytest.mark.ssd_workload_set(*stec.DEPTH_SERIES),
]


@pytest.mark.ssd_promise("qd_knee")
def test_depth_until_which_iops_grow(ssd_runs, ssd_sla):
    verdict = ssd_sla.judge(ssd_runs)
    assert verdict


@pytest.mark.ssd_promise("qd_gain")
def test_iops_of_the_deepest_queue_over_the_shallowest(ssd_runs, ssd_sla):
    verdict = ssd_sla.judge(ssd_runs)
    assert verdict
