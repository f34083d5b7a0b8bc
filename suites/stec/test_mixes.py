"""The bathtub curve: mixes of reads and writes are slower than either alone; and drives of one model are alike."""

from __future__ import annotations

import pytest

from pytest_ssdqual import stec

pytestmark = [
    pytest.mark.ssd_array(default="drive"),
    pytest.mark.ssd_published("stec-unnamed-sata-ssd"),
]


@pytest.mark.ssd_promise("bathtub_depth")
@pytest.mark.ssd_workload_set(stec.MIXES, *stec.SIZE_MIXES)
def test_no_mix_falls_far_below_pure_reads_and_pure_writes(ssd_runs, ssd_sla):
    verdict = ssd_sla.judge(ssd_runs)
    assert verdict


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_workload(*stec.MIXES.workloads)
def test_steady_iops(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("member_spread")
@pytest.mark.ssd_workload(*stec.MIXES.workloads)
def test_no_drive_is_slower_than_the_others(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
