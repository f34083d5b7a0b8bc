"""Random writes to a part of the range, while the rest stays purged as spare for the drive: IOPS, p99, amplification.

Each part begins with a purge, a fill and conditioning of its own, none of which writes the rest.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import Workload

#: Per cent of the range that are never written; 0 is the reference.
SPARE_PERCENTS = (0, 7, 15, 28)
WRITES = [Workload("randwrite", "4k", 32, region_percent=100 - spare) for spare in SPARE_PERCENTS]
pytestmark = [pytest.mark.ssd_array("drive"), pytest.mark.ssd_workload(*WRITES)]


@pytest.mark.ssd_promise("steady_iops")
def test_steady_iops_with_spare(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("p99_latency")
def test_p99_latency_with_spare(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("write_amplification")
def test_write_amplification_with_spare(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
