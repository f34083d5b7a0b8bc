"""The lot of these drives reaches the published maxima, by the spec's sampling plan.

They are judged where the sheet does not state the depths of the other tests, at the sheet's own conditions. A figure of
depth 32 is also one of the steady IOPS; both tests judge the same measurement.
"""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.ssd_array("drive"), pytest.mark.ssd_figures(chained=True)]


def test_lot_is_accepted_by_its_published_maximum(ssd_run, ssd_lot):
    verdict = ssd_lot.judge(ssd_run)
    assert verdict
