"""Throughput: sequential reads and writes of one size after a fill with that size."""

from __future__ import annotations

import pytest

from pytest_ssdqual import snia

pytestmark = [pytest.mark.array(default="drive"), pytest.mark.loop(*snia.THROUGHPUT)]


def test_steady_state_is_reached(loop_result):
    assert loop_result


@pytest.mark.promise("throughput")
def test_throughput_of_the_cell(run, sla):
    verdict = sla.judge(run)
    assert verdict
