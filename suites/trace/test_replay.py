"""The drives hold your trace (--ssd-trace) at its own speed, at one and a half times, and at twice."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.ssd_array(default="drive"), pytest.mark.ssd_replay(100, 150, 200)]


@pytest.mark.ssd_promise("replay_pace")
def test_replay_keeps_its_pace(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("p99_latency")
def test_p99_latency_of_the_replay(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
