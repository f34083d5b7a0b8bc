"""Sessions inside of this one, and suites for them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy  # noqa: F401 (pytester forgets what is first imported inside; numpy cannot be imported twice)
import pydantic  # noqa: F401
import pytest
import scipy.special  # noqa: F401
from support.builders.sheet import PRODUCT, promise
from support.fakes import warm_python
from support.fakes.inner_session import TESTS, Inner
from support.simulator import simulated_rig  # noqa: F401

import pytest_ssdqual.plugin.judging.sla
import pytest_ssdqual.plugin.session.controller
import pytest_ssdqual.plugin.session.outcome
import pytest_ssdqual.qual.spec.toml  # noqa: F401

#: Whoever tests a suite tests that it is silent, too.
INI = """
    [pytest]
    strict = true
    filterwarnings = error
    ssd_page = false
    ssd_members = false
"""


@pytest.fixture(scope="session")
def python() -> Iterator[str]:
    """What stands for a fresh interpreter, see ``warm_python``."""
    # The path of a socket has at most 107 bytes.
    with TemporaryDirectory(prefix="ssdqual-") as place, warm_python.server(Path(place)) as path:
        yield path


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, python: str) -> Inner:
    monkeypatch.setattr(sys, "executable", python)
    for name in [name for name in os.environ if name.startswith("SIMULATED_")]:
        monkeypatch.delenv(name)
    # Of the job that runs these tests: pytest prints its short summary in full width where CI is set.
    for name in ("GITHUB_STEP_SUMMARY", "CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(TESTS), prepend=os.pathsep)
    monkeypatch.setenv("COLUMNS", "140")
    pytester.makeini(INI)
    return Inner(pytester)


#: A test of each of our kinds.
SUITE = """
    import pytest
    from pytest_ssdqual import Workload

    READS, WRITES = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
    pytestmark = [pytest.mark.ssd_array("raid5"), pytest.mark.ssd_workload(READS, WRITES)]

    @pytest.mark.ssd_promise("steady_iops")
    def test_iops(ssd_run, ssd_sla):
        verdict = ssd_sla.judge(ssd_run)
        assert verdict

    @pytest.mark.ssd_promise("scaling_slope")
    def test_scaling(ssd_sweep, ssd_sla):
        verdict = ssd_sla.judge(ssd_sweep)
        assert verdict
"""


@pytest.fixture
def promises(inner: Inner) -> str:
    """A module with a test of one width and a test of all; the option that names its spec."""
    inner.pytester.makepyfile(test_promises=SUITE)
    (inner.pytester.path / "acme.toml").write_text(
        PRODUCT
        + promise(claim="steady_iops", workload="randread_*", at_least="950 IOPS")
        + promise(claim="steady_iops", at_least="300 IOPS")
    )
    return "--ssd-spec=acme.toml"
