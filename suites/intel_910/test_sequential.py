"""Large sequential transfers, two readers or one writer per device: the mean, the slowest and the fastest second."""

from __future__ import annotations

import pytest

from pytest_ssdqual import intel_910

pytestmark = [
    pytest.mark.ssd_array(default="raid0x4"),
    pytest.mark.ssd_published("intel-910-400gb"),
]


@pytest.mark.ssd_promise("throughput")
@pytest.mark.ssd_workload(intel_910.SEQUENTIAL_READ, intel_910.SEQUENTIAL_WRITE)
def test_throughput(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("mean_latency")
@pytest.mark.ssd_workload(intel_910.SEQUENTIAL_READ)
def test_mean_latency_of_reads(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("worst_second")
@pytest.mark.ssd_workload(intel_910.SEQUENTIAL_WRITE)
def test_no_second_is_far_below_the_mean(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("slowest_second")
@pytest.mark.ssd_workload(intel_910.SEQUENTIAL_WRITE)
def test_bytes_of_the_slowest_second(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("fastest_second")
@pytest.mark.ssd_workload(intel_910.SEQUENTIAL_WRITE)
def test_bytes_of_the_fastest_second(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("fastest_to_slowest_second")
@pytest.mark.ssd_workload(intel_910.SEQUENTIAL_WRITE)
def test_fastest_over_slowest_second(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("throughput")
@pytest.mark.ssd_published("intel-910-promised")
@pytest.mark.ssd_workload(intel_910.SEQUENTIAL_READ, intel_910.SEQUENTIAL_WRITE)
def test_throughput_beside_intels_promise(ssd_run, ssd_sla):
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
