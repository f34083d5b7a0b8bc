"""A drive is nearly as good in its worst moment as on average: neither a single I/O nor a second stands out."""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

pytestmark = [pytest.mark.array("drive"), pytest.mark.workload(*INTEL_RAID)]


def test_maximum_latency_is_even_over_time(run, sla):
    verdict = sla.judge("latency_spread_over_time", run)
    assert verdict


def test_no_second_is_far_below_the_mean(run, sla):
    verdict = sla.judge("worst_second", run)
    assert verdict
