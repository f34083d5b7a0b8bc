"""Conditioning writes: their class and size."""

from __future__ import annotations

import pytest

from pytest_ssdqual.qual.methods import toms_s3500, toms_s3700
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.measure.precondition import conditioning


@pytest.mark.parametrize(
    ("workload", "writes"),
    [
        (toms_s3500.SUB_PAGE, "randwrite_4k_qd8"),
        (Workload("read", "512", 1), "write_4k_qd8"),
        (Workload("randread", "16k", 1), "randwrite_16k_qd8"),
        (toms_s3700.WEB_SERVER, "randwrite_4k_qd8"),
        (Workload("randwrite", "512/90:4k/10", 1, name="small"), "randwrite_4k_qd8"),
    ],
    ids=str,
)
def test_conditioning_writes_have_at_least_a_page(workload: Workload, writes: str) -> None:
    assert str(conditioning(workload)) == writes
