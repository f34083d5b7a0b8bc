"""Writes are even over the members of an array, by the kernel's counters of each of them."""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_s3500

pytestmark = pytest.mark.ssd_array(
    default="raid10x2,raid10x4,raid10x6,raid10x8,raid5x3,raid5x4,raid5x5,raid5x6,raid5x7,raid5x8"
)


@pytest.mark.ssd_promise("write_spread_between_members")
@pytest.mark.ssd_workload(*intel_s3500.WRITES.workloads)
def test_members_are_written_alike(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
