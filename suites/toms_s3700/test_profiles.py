"""Web server, database, mail and file server, and 4 KiB reads and writes, at every intensity."""

from __future__ import annotations

import pytest

from pytest_ssdqual import toms_s3700

pytestmark = [
    pytest.mark.ssd_array(default="raid0x4,raid0x8,raid0x24"),
    pytest.mark.ssd_published("intel-dc-s3700-800gb"),
]


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_workload(*toms_s3700.MATRIX)
def test_steady_iops(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("throughput")
@pytest.mark.ssd_workload(*toms_s3700.MATRIX)
def test_throughput(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("qd_gain")
@pytest.mark.ssd_workload_set(*toms_s3700.INTENSITIES)
def test_iops_gain_by_intensity(ssd_runs, ssd_sla):
    verdict = ssd_sla.judge(ssd_runs)
    assert verdict


@pytest.mark.ssd_promise("qd_dependence")
@pytest.mark.ssd_workload_set(toms_s3700.EXCHANGE_INTENSITY)
def test_mail_does_not_depend_on_intensity(ssd_runs, ssd_sla):
    verdict = ssd_sla.judge(ssd_runs)
    assert verdict


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_workload(*toms_s3700.ON_SECTORS)
def test_steady_iops_aligned_on_sectors(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
