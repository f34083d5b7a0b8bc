"""Every drive reaches the published maxima, all drives at the same time.

They are judged where the sheet does not state the depths of the other tests, at the sheet's own conditions. A figure of
depth 32 is also one of the steady IOPS; both tests judge the same measurement.
"""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.ssd_array("drive"), pytest.mark.ssd_figures(chained=True)]


def test_drives_reach_the_published_maximum(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
