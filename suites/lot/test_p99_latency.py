"""The lot of these drives answers 99 of 100 I/Os within the limit, by the spec's sampling plan."""

from __future__ import annotations

import pytest

from pytest_ssdqual import Workload

pytestmark = [
    pytest.mark.ssd_array("drive"),
    pytest.mark.ssd_workload(Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)),
]


@pytest.mark.ssd_promise("p99_latency")
def test_lot_is_accepted_by_its_p99_latency(ssd_run, ssd_lot):
    verdict = ssd_lot.judge(ssd_run)
    assert verdict
