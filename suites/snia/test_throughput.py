"""Throughput: sequential reads and writes of one size after a fill with that size."""

from __future__ import annotations

import pytest

from pytest_ssdqual import snia

pytestmark = [pytest.mark.ssd_array(default="drive"), pytest.mark.ssd_rounds(*snia.THROUGHPUT)]


def test_steady_state_is_reached(ssd_rounds):
    assert ssd_rounds


@pytest.mark.ssd_promise("throughput")
def test_throughput_of_the_cell(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
