"""The drives reach the published maxima on which the limits of their arrays rest.

A sheet that does not state the depth of the arrays' members is judged at its own conditions, all drives side by side.
"""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.ssd_array("drive"), pytest.mark.ssd_figures(chained=True)]


def test_drives_reach_the_published_maximum(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
