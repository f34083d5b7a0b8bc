"""Latency: one I/O at a time; its mean and its worst."""

from __future__ import annotations

import pytest

from pytest_ssdqual import snia

pytestmark = [pytest.mark.array(default="drive"), pytest.mark.loop(snia.LATENCY)]


def test_steady_state_is_reached(loop_result):
    assert loop_result


def test_mean_latency_of_the_cell(run, sla):
    verdict = sla.judge("mean_latency", run)
    assert verdict


def test_maximum_latency_of_the_cell(run, sla):
    verdict = sla.judge("max_latency", run)
    assert verdict
