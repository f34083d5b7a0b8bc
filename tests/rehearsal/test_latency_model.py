"""An emulated drive with the Intel 910's published parallelism, measured as the 910 was: the sweep shows its shape.

Its latency of one read (0.127 ms) and its most IOPS (148,500) are scaled by 500, so that emulation costs little of it:
64 ms and 297 IOPS. By arithmetic IOPS are depth / 64 ms until 19 I/Os are outstanding, and 297 from there on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from support.lab.rehearsed import Finished, LabHost, Server, Start

from pytest_ssdqual.report.evidence.evidence import of_facts

pytestmark = [pytest.mark.lab, pytest.mark.nightly]

SCALE, LATENCY_S, MOST_IOPS = 500, 0.064, 297
DEPTHS = (4, 8, 16, 32, 64)

PROTOCOL = """
acceptance = false
purge = "discard"
fill = { passes = 0, bs = "1m" }                # it keeps no data
precondition = { step = "6 s", limit = "60 s" }
# In windows of 6 s, a busy second of this computer moved the gain, 4.75 by arithmetic, to 3.8 to 7.5.
measure = { ramp = "1 s", window = "10 s", repeats = 1, attempts = 4 }
steady = { window = 3, range_percent = 40, slope_percent = 40 }
"""
SPEC = """
product = { name = "scale model of an Intel 910", models = [] }

[[promise]]
claim = "qd_knee"
at_least = 16

[[promise]]
claim = "qd_gain"
at_least = 4
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    from pytest_ssdqual.lab import start as start_lab
    from pytest_ssdqual.lab.drives import shelf

    place = tmp_path_factory.mktemp("latency")
    (protocol := place / "protocol.toml").write_text(PROTOCOL)
    (spec := place / "scale-910.toml").write_text(SPEC)
    with start_lab(shelf(1, iops=MOST_IOPS, latency_ns=round(LATENCY_S * 1e9))) as vm:
        host = LabHost.of(vm, place / "config")
        options = (f"--ssd-ssh-config={host.ssh_config}", f"--ssd-spec={spec}", "--ssd-arrays=drive")
        start = Start(place, options, suite="suites/intel_910/test_queue_depths.py", protocol=protocol)
        drive = "lab:/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_SSDQ0001"
        yield start(drive, "-k", "randread_4k_t1xqd4to64").finish()
        start.close()
        assert Server(host).left() == []


@pytest.fixture(scope="module")
def iops(run: Finished) -> dict[int, float]:
    """By queue depth."""
    assert run.status == 0, run.output
    found = [each.facts for each in run.folder.records("measured")]
    return {cast("dict[str, Any]", each["asked"])["qd_per_drive"]: cast("float", each["iops"]) for each in found}


def test_iops_are_depth_over_latency_below_the_knee(iops: dict[int, float]) -> None:
    assert sorted(iops) == list(DEPTHS)
    for depth in (4, 8, 16):
        assert iops[depth] == pytest.approx(depth / LATENCY_S, rel=0.08)
    assert iops[8] / iops[4] == pytest.approx(2, rel=0.05)
    assert iops[16] / iops[4] == pytest.approx(4, rel=0.05)


def test_iops_are_flat_beyond_it(iops: dict[int, float]) -> None:
    assert iops[32] == pytest.approx(MOST_IOPS, rel=0.08)
    assert iops[64] == pytest.approx(MOST_IOPS, rel=0.08)


def test_the_knee_is_found_where_arithmetic_puts_it(run: Finished) -> None:
    """Of the depths measured 32 is the first beyond 19, and the last that brought anything."""
    verdicts = [of_facts(each.facts) for each in run.folder.records("verdict")]
    (knee,) = (each for each in verdicts if each.claim == "qd_knee")
    assert knee.value == next(depth for depth in DEPTHS if depth >= MOST_IOPS * LATENCY_S) == 32
    assert knee.outcome == "pass"
