"""Demand variation (DIRTH, CBW): threads × depth after five minutes of writes, in rounds until steady."""

from __future__ import annotations

import pytest

from pytest_ssdqual import snia

pytestmark = [pytest.mark.ssd_array(default="drive"), pytest.mark.ssd_rounds(*snia.DEMAND_VARIATIONS)]


def test_steady_state_is_reached(ssd_rounds):
    assert ssd_rounds


@pytest.mark.ssd_promise("steady_iops")
def test_iops_of_the_cell(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("mean_latency")
def test_mean_latency_of_the_cell(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
