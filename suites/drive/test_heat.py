"""Every drive stays below the promised temperature and throttles no longer than promised; skipped without a promise."""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

#: Pure reads and pure writes with the deepest queues: one of them heats a drive most.
DEEPEST = [each for each in INTEL_RAID if each.qd_per_drive == 8 and each.read_fraction in (0.0, 1.0)]
pytestmark = [pytest.mark.ssd_array("drive"), pytest.mark.ssd_workload(*DEEPEST)]


@pytest.mark.ssd_promise("sustained_temperature")
def test_temperature_stays_below_the_limit(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("throttled_time")
def test_heat_does_not_throttle(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
