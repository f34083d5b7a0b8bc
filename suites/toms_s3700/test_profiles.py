"""Web server, database, mail and file server, and 4 KiB reads and writes, at every intensity."""

from __future__ import annotations

import pytest

from pytest_ssdqual import toms_s3700

pytestmark = [
    pytest.mark.array(default="raid0x4,raid0x8,raid0x24"),
    pytest.mark.published("intel-dc-s3700-800gb"),
]


@pytest.mark.promise("steady_iops")
@pytest.mark.workload(*toms_s3700.MATRIX)
def test_steady_iops(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("throughput")
@pytest.mark.workload(*toms_s3700.MATRIX)
def test_throughput(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("qd_gain")
@pytest.mark.series(*toms_s3700.INTENSITIES)
def test_iops_gain_by_intensity(runs, sla):
    verdict = sla.judge(runs)
    assert verdict


@pytest.mark.promise("qd_dependence")
@pytest.mark.series(toms_s3700.EXCHANGE_INTENSITY)
def test_mail_does_not_depend_on_intensity(runs, sla):
    verdict = sla.judge(runs)
    assert verdict
