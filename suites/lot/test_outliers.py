"""Drives of one lot are alike: none is far slower than the median one. The verdict names outliers.

A sample with an outlier is not a sample of one process: find the reason before judging the lot.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import Workload

pytestmark = [
    pytest.mark.ssd_array("drive"),
    pytest.mark.ssd_workload(Workload("randread", "4k", 32), Workload("randwrite", "4k", 32)),
]


@pytest.mark.ssd_promise("member_spread")
def test_no_drive_is_an_outlier(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
