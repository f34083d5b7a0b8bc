"""IOPS: seven mixes × eight sizes, in rounds, until three of the cells are steady."""

from __future__ import annotations

import pytest

from pytest_ssdqual import snia

pytestmark = [pytest.mark.array(default="drive"), pytest.mark.loop(snia.IOPS)]


def test_steady_state_is_reached(loop_result):
    assert loop_result


@pytest.mark.promise("steady_iops")
def test_iops_of_the_cell(run, sla):
    verdict = sla.judge(run)
    assert verdict
