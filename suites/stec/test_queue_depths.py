"""Which depth is of use: 8 KiB un-aligned, every mix, deeper and deeper."""

from __future__ import annotations

import pytest

from pytest_ssdqual import stec

pytestmark = [
    pytest.mark.array(default="drive"),
    pytest.mark.series(*stec.DEPTH_SERIES),
]


@pytest.mark.promise("qd_knee")
def test_depth_until_which_iops_grow(runs, sla):
    verdict = sla.judge(runs)
    assert verdict


@pytest.mark.promise("qd_gain")
def test_iops_of_the_deepest_queue_over_the_shallowest(runs, sla):
    verdict = sla.judge(runs)
    assert verdict
