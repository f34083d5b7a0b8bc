"""The bathtub: mixes of reads and writes do worse than either alone; and drives of one model do alike."""

from __future__ import annotations

import pytest

from pytest_ssdqual import stec

pytestmark = [
    pytest.mark.array(default="drive"),
    pytest.mark.published("stec-unnamed-sata-ssd"),
]


@pytest.mark.promise("bathtub_depth")
@pytest.mark.series(stec.MIXES, *stec.SIZE_MIXES)
def test_no_mix_falls_far_below_pure_reads_and_pure_writes(runs, sla):
    verdict = sla.judge(runs)
    assert verdict


@pytest.mark.promise("steady_iops")
@pytest.mark.workload(*stec.MIXES.workloads)
def test_steady_iops(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("member_spread")
@pytest.mark.workload(*stec.MIXES.workloads)
def test_no_drive_is_slower_than_the_others(run, sla):
    verdict = sla.judge(run)
    assert verdict
