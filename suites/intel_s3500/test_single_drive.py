"""The paper's reason to stop at depth 8: beyond it the mean latency rises sharply."""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_s3500

pytestmark = [
    pytest.mark.ssd_array(default="drive"),
    pytest.mark.ssd_published("intel-dc-s3500-480gb"),
    pytest.mark.ssd_workload_set(intel_s3500.SINGLE_DRIVE),
]


@pytest.mark.ssd_promise("qd_latency_knee")
def test_depth_beyond_which_latency_rises_sharply(ssd_runs, ssd_sla):
    verdict = ssd_sla.judge(ssd_runs)
    assert verdict
