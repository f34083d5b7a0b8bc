"""Does the gate itself say what it should? These tests must pass, fail, error and be skipped, on any rig.

    pytest --ssd-devices=lab:3 --ssd-spec=suites/meta/meta.toml suites/meta

Two pass, two fail, two are errors, two are skipped, and pytest exits with 1; ``outcomes.toml`` has it in full. An
error that shows as a failure would blame a drive for its rig; a failure that shows as a pass would buy it.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import Workload
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, RigError

pytestmark = pytest.mark.array("raid5", widths=[3])

READS = Workload("randread", "4k", 8)
WRITES = Workload("randwrite", "4k", 8)


@pytest.mark.promise("steady_iops")
@pytest.mark.workload(READS)
def test_promise_that_any_drive_keeps(run, sla):
    """Passes: at least 1 IOPS."""
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("p50_latency")
@pytest.mark.workload(READS)
def test_latency_that_any_drive_keeps(run, sla):
    """Passes: half of all I/Os within 17 s. A median is never refused for too few slow rounds."""
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("steady_iops")
@pytest.mark.workload(WRITES)
def test_promise_that_no_drive_keeps(run, sla):
    """Fails: at least 1,000,000,000 IOPS."""
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("p50_latency")
@pytest.mark.workload(WRITES)
def test_latency_that_no_drive_keeps(run, sla):
    """Fails: half of all I/Os within 1 µs."""
    verdict = sla.judge(run)
    assert verdict


@pytest.fixture
def broken_rig(array):
    raise RigError("the cable was pulled")


def test_rig_that_breaks_before_the_test(geometry, broken_rig):
    """Is an error: the rig broke while it was set up."""


def test_rig_that_breaks_inside_of_the_test():
    """Is an error: what the rig's own exception says is never the drive's failure, wherever it is raised."""
    raise InvalidMeasurement("the clock ran backwards")


@pytest.mark.promise("latency_spread_over_time")
@pytest.mark.workload(READS)
def test_what_is_not_promised(run, sla):
    """Is skipped: the spec promises no spread for reads, so it is measured and not judged."""
    verdict = sla.judge(run)
    assert verdict


@pytest.mark.promise("steady_iops")
@pytest.mark.array("raid5", widths=[999])
@pytest.mark.workload(READS)
def test_array_that_is_too_wide(run, sla):
    """Is skipped: nobody has 999 drives."""
    verdict = sla.judge(run)
    assert verdict
