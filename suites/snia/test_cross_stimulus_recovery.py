"""Cross stimulus recovery (XSR): large sequential writes before and after small random ones, 22 hours."""

from __future__ import annotations

import pytest

from pytest_ssdqual import snia

pytestmark = [pytest.mark.ssd_array(default="drive"), pytest.mark.ssd_rounds(snia.CROSS_STIMULUS)]


@pytest.mark.ssd_promise("throughput")
def test_throughput_of_the_stimulus(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("mean_latency")
def test_mean_latency_of_the_stimulus(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("max_latency")
def test_maximum_latency_of_the_stimulus(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
