"""Why the paper stops at depth 8: beyond it a drive answers later, and hardly more often."""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_s3500

pytestmark = [
    pytest.mark.array(default="drive"),
    pytest.mark.published("intel-dc-s3500-480gb"),
    pytest.mark.series(*intel_s3500.SINGLE_DRIVE),
]


@pytest.mark.promise("qd_knee")
def test_depth_until_which_iops_grow(runs, sla):
    verdict = sla.judge(runs)
    assert verdict
