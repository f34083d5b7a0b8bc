"""Unaligned transfers: a drive reads, changes and writes two pages for each."""

from __future__ import annotations

import pytest

from pytest_ssdqual import stec

pytestmark = [
    pytest.mark.ssd_array(default="drive"),
    pytest.mark.ssd_workload_set(*stec.ALIGNMENTS),
]


@pytest.mark.ssd_promise("unaligned_penalty")
def test_price_of_an_unaligned_transfer(ssd_runs, ssd_sla):
    verdict = ssd_sla.judge(ssd_runs)
    assert verdict
