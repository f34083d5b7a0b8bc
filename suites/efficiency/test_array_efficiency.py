"""Each array does what an array of exactly its drives can do: a promise about md and the host, not about the drives.

The drives are measured bare before the arrays, and the prediction follows from their curves. Every width is judged at
queue depth 8, and the narrowest and the widest at queue depth 1.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import INTEL_RAID

QD1 = pytest.mark.ssd_workload(*(each for each in INTEL_RAID if each.qd_per_drive == 1))
QD8 = pytest.mark.ssd_workload(*(each for each in INTEL_RAID if each.qd_per_drive == 8))


@QD8
@pytest.mark.ssd_array("raid0")
@pytest.mark.ssd_promise("array_efficiency")
def test_raid0_does_what_its_drives_can(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@QD1
@pytest.mark.ssd_array("raid0", most=2)
@pytest.mark.ssd_promise("array_efficiency")
def test_raid0_at_qd1_does_what_its_drives_can(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@QD8
@pytest.mark.ssd_array("raid1")
@pytest.mark.ssd_promise("array_efficiency")
def test_raid1_does_what_its_drives_can(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@QD1
@pytest.mark.ssd_array("raid1", most=2)
@pytest.mark.ssd_promise("array_efficiency")
def test_raid1_at_qd1_does_what_its_drives_can(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@QD8
@pytest.mark.ssd_array("raid5")
@pytest.mark.ssd_promise("array_efficiency")
def test_raid5_does_what_its_drives_can(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@QD1
@pytest.mark.ssd_array("raid5", most=2)
@pytest.mark.ssd_promise("array_efficiency")
def test_raid5_at_qd1_does_what_its_drives_can(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@QD8
@pytest.mark.ssd_array("raid6")
@pytest.mark.ssd_promise("array_efficiency")
def test_raid6_does_what_its_drives_can(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@QD1
@pytest.mark.ssd_array("raid6", most=2)
@pytest.mark.ssd_promise("array_efficiency")
def test_raid6_at_qd1_does_what_its_drives_can(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@QD8
@pytest.mark.ssd_array("raid10")
@pytest.mark.ssd_promise("array_efficiency")
def test_raid10_does_what_its_drives_can(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@QD1
@pytest.mark.ssd_array("raid10", most=2)
@pytest.mark.ssd_promise("array_efficiency")
def test_raid10_at_qd1_does_what_its_drives_can(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
