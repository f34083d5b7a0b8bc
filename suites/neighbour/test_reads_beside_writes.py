"""A tenant's reads keep their latency and their rate while another one writes, discards or flushes on the same drive.

All drives at once, each by itself. The reads alone are the reference, and all other I/Os of the drive are the
neighbour's.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ssdqual import Workload, WorkloadSet

READS = Workload("randread", "4k", 1)
#: A copy or a backup; files that are deleted and written again; the log of a database.
NEIGHBOURS = ("write_128k_qd16", "trimwrite_128k_qd16", "randwrite_4k_fsync1_qd1")

pytestmark = [
    pytest.mark.ssd_array("drive"),
    pytest.mark.ssd_workload_set(
        *(WorkloadSet(f"beside_{neighbour}", (replace(READS, beside=neighbour), READS)) for neighbour in NEIGHBOURS)
    ),
]


@pytest.mark.ssd_promise("neighbour_p99")
def test_p99_latency_beside_a_neighbour(ssd_runs, ssd_sla):
    verdict = ssd_sla.judge(ssd_runs)
    assert verdict


@pytest.mark.ssd_promise("neighbour_iops")
def test_iops_beside_a_neighbour(ssd_runs, ssd_sla):
    verdict = ssd_sla.judge(ssd_runs)
    assert verdict
