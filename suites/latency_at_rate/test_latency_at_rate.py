"""Every drive answers at half, 70 and 90 % of its published maximum as promised, and keeps the rate.

I/Os begin at random times, whatever the drive does (open loop), and latency counts from then.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import Workload

#: I/Os that may be outstanding: more than any drive has at 90 %, and few enough that each repeats within a second.
DEPTHS = {"randread": 512, "randwrite": 128}
LOADS = [Workload(rw, "4k", depth, rate_percent=rate) for rw, depth in DEPTHS.items() for rate in (50, 70, 90)]
pytestmark = [pytest.mark.ssd_array("drive"), pytest.mark.ssd_workload(*LOADS)]


@pytest.mark.ssd_promise("rate_kept")
def test_rate_is_kept(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("p99_latency")
def test_p99_latency_at_the_rate(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("p99.9_latency")
def test_p99_9_latency_at_the_rate(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
