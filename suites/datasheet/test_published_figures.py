"""The drives reach every figure that their data sheet publishes, under the conditions for which it is published.

Each figure is one test: block size, mix, queue depth and threads are the sheet's. Figures that sheets usually have and
this one lacks are skipped tests that say so.
"""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.ssd_array("drive"), pytest.mark.ssd_figures]


def test_published_figure_is_reached(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


def test_published_figure_from_the_purged_state_is_reached(ssd_saturation, ssd_sla):
    verdict = ssd_sla.judge(ssd_saturation)
    assert verdict
