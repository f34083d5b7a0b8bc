"""Three simulated days: what the controller holds in memory does not grow with what was measured."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, cast

import pytest
from support.builders.sheet import PRODUCT, promise
from support.fakes.warm_python import REAL

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

pytestmark = pytest.mark.slow

#: Of six hours each.
MEASUREMENTS = 12
#: What may stay of each. pytest itself keeps the reports of its test until JUnit's file is written, and we its verdict:
#: 34 KiB of properties and evidence of two drives. What was measured, even so coarsely, is several times that.
BOUND_BYTES = 48 << 10
PROTOCOL = """
acceptance = false
purge = "discard"
fill = { passes = 1, bs = "1m" }
precondition = { step = "20 s", limit = "80 s" }
measure = { ramp = "6 min", window = "6 h", repeats = 1, attempts = 1 }
explore = { budget = "8 h" }
"""
SPEC = PRODUCT + promise(claim="steady_iops", at_least="250 IOPS")
SUITE = """
    import pytest
    from pytest_ssdqual import Workload

    SIZES = ("4k", "16k", "64k")
    WORKLOADS = [Workload("randread", size, depth) for size in SIZES for depth in range(1, 5)]
    pytestmark = [pytest.mark.ssd_array("drive", widths=(2,)), pytest.mark.ssd_workload(*WORKLOADS)]

    @pytest.mark.ssd_promise("steady_iops")
    def test_iops(ssd_run, ssd_sla):
        verdict = ssd_sla.judge(ssd_run)
        assert verdict
"""
#: What the whole process may take, the page and its charts included: the memory of a small controller.
CONTROLLER_BYTES = 1 << 30
#: A plugin that weighs what Python holds after every test, in a process that cannot get more than a controller has. In
#: a process of its own, without pytester's ear: that keeps all that hooks are called with.
SCALES = """
    import gc, json, resource, tracemalloc

    resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
    tracemalloc.start()
    weights = []

    def pytest_runtest_logfinish():
        gc.collect()
        weights.append(tracemalloc.get_traced_memory()[0])

    def pytest_unconfigure():
        with open("weights.json", "w") as file:
            json.dump([*weights, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024], file)
"""


def growth_bytes(inner: Inner) -> float:
    """Of each measurement, between the end of the first third and the end of the last."""
    inner.pytester.makepyfile(test_three_days=SUITE, scales=SCALES)
    (inner.pytester.path / "protocol.toml").write_text(PROTOCOL)
    (inner.pytester.path / "acme.toml").write_text(SPEC)
    options = ["--ssd-devices=lab:2", "--ssd-protocol=protocol.toml", "--ssd-spec=acme.toml", "--junitxml=junit.xml"]
    options.append("--ssd-page=yes")
    result = inner.pytester.runpytest_subprocess(
        "-p", "scales", "-p", "support.simulator.simulated_rig", *options, "-q"
    )
    result.assert_outcomes(passed=MEASUREMENTS)
    *weights, peak_bytes = json.loads((inner.pytester.path / "weights.json").read_text())
    assert peak_bytes < CONTROLLER_BYTES
    assert list((inner.pytester.path / "ssdqual-runs").glob("*/report.html"))
    # The end of the last test gives the drives back, and with them much of the memory.
    first, last = weights[MEASUREMENTS // 3 - 1], weights[-2]
    return float(last - first) / (MEASUREMENTS - 1 - MEASUREMENTS // 3)


@pytest.mark.nightly
def test_three_days_take_the_memory_of_one(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    # A process with all imports of the others has their memory, too.
    monkeypatch.setattr(sys, "executable", REAL)
    assert growth_bytes(inner) < BOUND_BYTES
    measured = (cast("list[dict[str, float]]", record["runs"]) for record in inner.records("measured"))
    assert sum(run["window_s"] for runs in measured for run in runs) == 72 * 3600
