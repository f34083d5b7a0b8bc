"""Each array does what an array of exactly its drives can do: a promise about md and the host, not about the drives.

The drives are measured bare before the arrays, and the prediction follows from their curves.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

pytestmark = pytest.mark.ssd_workload(*INTEL_RAID)


@pytest.mark.ssd_array("raid0")
@pytest.mark.ssd_promise("array_efficiency")
def test_raid0_does_what_its_drives_can(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_array("raid1")
@pytest.mark.ssd_promise("array_efficiency")
def test_raid1_does_what_its_drives_can(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_array("raid5")
@pytest.mark.ssd_promise("array_efficiency")
def test_raid5_does_what_its_drives_can(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_array("raid6")
@pytest.mark.ssd_promise("array_efficiency")
def test_raid6_does_what_its_drives_can(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_array("raid10")
@pytest.mark.ssd_promise("array_efficiency")
def test_raid10_does_what_its_drives_can(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
