"""Random writes to a part of the range, while the rest stays purged as spare for the drive: IOPS, amplification.

Each part begins with a purge, a fill and conditioning of its own, none of which writes the rest. All drives at once,
each by itself.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ssdqual import Workload, WorkloadSet

WHOLE = Workload("randwrite", "4k", 32)
#: By the per cent of the range that is never written.
PARTS = {spare: replace(WHOLE, region_percent=100 - spare) for spare in (7, 15, 28)}
pytestmark = pytest.mark.ssd_array("drive")


@pytest.mark.ssd_workload_set(*(WorkloadSet(f"spare{spare}", (part, WHOLE)) for spare, part in PARTS.items()))
@pytest.mark.ssd_promise("spare_gain")
def test_gain_of_spare(ssd_runs, ssd_sla):
    verdict = ssd_sla.judge(ssd_runs)
    assert verdict


@pytest.mark.ssd_workload(WHOLE, *PARTS.values())
@pytest.mark.ssd_promise("write_amplification")
def test_write_amplification_with_spare(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
