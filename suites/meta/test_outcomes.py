"""Checks the plugin's outcomes: these tests must pass, fail, be an error and be skipped, on any rig.

    pytest --ssd-devices=lab:3 --ssd-spec=suites/meta/meta.toml suites/meta

Two pass, two fail, two are errors, two are skipped, and pytest exits with 1; ``outcomes.toml`` has all of them. An
error reported as a fail would blame the drive for a fault of the rig; a fail reported as a pass would accept the drive.
"""

from __future__ import annotations

import pytest

from pytest_ssdqual import Workload
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, RigError

pytestmark = pytest.mark.ssd_array("raid5", widths=[3])

READS = Workload("randread", "4k", 8)
WRITES = Workload("randwrite", "4k", 8)


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_workload(READS)
def test_promise_that_any_drive_keeps(ssd_run, ssd_sla):
    """Passes: at least 1 IOPS."""
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("p50_latency")
@pytest.mark.ssd_workload(READS)
def test_latency_that_any_drive_keeps(ssd_run, ssd_sla):
    """Passes: half of all I/Os within 17 s. A median is never refused for too few slow rounds."""
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_workload(WRITES)
def test_promise_that_no_drive_keeps(ssd_run, ssd_sla):
    """Fails: at least 1,000,000,000 IOPS."""
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("p50_latency")
@pytest.mark.ssd_workload(WRITES)
def test_latency_that_no_drive_keeps(ssd_run, ssd_sla):
    """Fails: half of all I/Os within 1 µs."""
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.fixture
def broken_rig(ssd_array):
    raise RigError("the cable was pulled")


def test_rig_that_breaks_before_the_test(ssd_geometry, broken_rig):
    """Is an error: the rig broke while it was set up."""


def test_rig_that_breaks_inside_of_the_test():
    """Is an error: an exception of the rig is never the drive's failure, wherever it is raised."""
    raise InvalidMeasurement("the clock ran backwards")


@pytest.mark.ssd_promise("latency_spread_over_time")
@pytest.mark.ssd_workload(READS)
def test_what_is_not_promised(ssd_run, ssd_sla):
    """Is skipped: the spec promises no spread for reads, so it is measured and not judged."""
    verdict = ssd_sla.judge(ssd_run)
    assert verdict


@pytest.mark.ssd_promise("steady_iops")
@pytest.mark.ssd_array("raid5", widths=[999])
@pytest.mark.ssd_workload(READS)
def test_array_that_is_too_wide(ssd_run, ssd_sla):
    """Is skipped: no rig has 999 drives."""
    verdict = ssd_sla.judge(ssd_run)
    assert verdict
