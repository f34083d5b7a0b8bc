"""No workload breaks a promise of the spec: searched at random around the plainest ones, within a budget of time."""

from __future__ import annotations

import pytest

from pytest_ssdqual import Workload

pytestmark = pytest.mark.array(default="drive")


@pytest.mark.workload(Workload("randread", "4k", 1))
def test_no_random_workload_breaks_a_promise(explore):
    verdict = explore.judge()
    assert verdict


@pytest.mark.workload(Workload("read", "128k", 1))
def test_no_sequential_workload_breaks_a_promise(explore):
    verdict = explore.judge()
    assert verdict
