"""No workload breaks a promise of the spec: a random search near the plainest workloads, with a time budget."""

from __future__ import annotations

import pytest

from pytest_ssdqual import Workload

pytestmark = pytest.mark.ssd_array(default="drive")


@pytest.mark.ssd_workload(Workload("randread", "4k", 1))
def test_no_random_workload_breaks_a_promise(ssd_explore):
    verdict = ssd_explore.judge()
    assert verdict


@pytest.mark.ssd_workload(Workload("read", "128k", 1))
def test_no_sequential_workload_breaks_a_promise(ssd_explore):
    verdict = ssd_explore.judge()
    assert verdict
