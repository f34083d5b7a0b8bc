"""Write saturation from the purged state: 4 KiB writes and two optional workloads, four capacities or a time limit.

Latencies are those of the last 20 minutes of the steady state.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import snia

pytestmark = [pytest.mark.ssd_array(default="drive"), pytest.mark.ssd_workload(*snia.SATURATIONS)]


@pytest.mark.ssd_promise("fresh_iops")
def test_fresh_iops(ssd_saturation, ssd_sla):
    verdict = ssd_sla.judge(ssd_saturation)
    assert verdict


@pytest.mark.ssd_promise("settled_iops")
def test_settled_iops(ssd_saturation, ssd_sla):
    verdict = ssd_sla.judge(ssd_saturation)
    assert verdict


@pytest.mark.ssd_promise("fresh_to_steady")
def test_fresh_over_settled_iops(ssd_saturation, ssd_sla):
    verdict = ssd_sla.judge(ssd_saturation)
    assert verdict


@pytest.mark.ssd_promise("cliff_after")
def test_written_before_the_cliff(ssd_saturation, ssd_sla):
    verdict = ssd_sla.judge(ssd_saturation)
    assert verdict


@pytest.mark.ssd_promise("mean_latency")
def test_mean_latency_of_the_steady_state(ssd_saturation, ssd_sla):
    verdict = ssd_sla.judge(ssd_saturation)
    assert verdict


@pytest.mark.ssd_promise("p99.999_latency")
def test_five_nines_latency_of_the_steady_state(ssd_saturation, ssd_sla):
    verdict = ssd_sla.judge(ssd_saturation)
    assert verdict


@pytest.mark.ssd_promise("max_latency")
def test_maximum_latency_of_the_steady_state(ssd_saturation, ssd_sla):
    verdict = ssd_sla.judge(ssd_saturation)
    assert verdict
