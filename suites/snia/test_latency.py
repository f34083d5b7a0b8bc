"""Latency: one I/O at a time; its mean and its worst."""

from __future__ import annotations

import pytest

from pytest_ssdqual import snia

pytestmark = [pytest.mark.array(default="drive"), pytest.mark.loop(snia.LATENCY)]


def test_steady_state_is_reached(loop_result):
    assert loop_result


@pytest.mark.promise("mean_latency")
def test_mean_latency_of_the_cell(run, sla):
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("max_latency")
def test_maximum_latency_of_the_cell(run, sla):
    verdict = sla.judge(run)
    assert verdict
