"""IOPS: seven mixes × eight sizes, in rounds, until three of the cells are steady."""

from __future__ import annotations

import pytest

from pytest_ssdqual import snia

pytestmark = [pytest.mark.ssd_array(default="drive"), pytest.mark.ssd_rounds(snia.IOPS)]


def test_steady_state_is_reached(ssd_rounds):
    assert ssd_rounds


@pytest.mark.ssd_promise("steady_iops")
def test_iops_of_the_cell(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
