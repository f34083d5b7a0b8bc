"""Host idle recovery (HIR): 4 KiB writes with pauses of 5 to 50 seconds, and without pauses after each of them."""

from __future__ import annotations

import pytest

from pytest_ssdqual import snia

pytestmark = [pytest.mark.ssd_array(default="drive"), pytest.mark.ssd_rounds(snia.HOST_IDLE)]


def test_steady_state_is_reached(ssd_rounds):
    assert ssd_rounds


@pytest.mark.ssd_promise("steady_iops")
def test_iops_of_the_bursts_and_between(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
