"""pytest inside of pytest, on a rig that was never there: what it printed, what it wrote."""

from __future__ import annotations

import json
import shutil
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import numpy  # noqa: F401 (pytester forgets what is first imported inside; numpy cannot be imported twice)
import pydantic  # noqa: F401
import pytest
import scipy.special  # noqa: F401

import pytest_ssdqual.plugin.conduct
import pytest_ssdqual.plugin.outcome
import pytest_ssdqual.plugin.judge
import pytest_ssdqual.qual.judgement
import pytest_ssdqual.qual.schema  # noqa: F401
import simulated_rig  # noqa: F401

TESTS = Path(__file__).parents[1]
SUITES = TESTS.parent / "suites"
#: Whoever tests a suite tests that it is silent, too.
INI = """
    [pytest]
    strict = true
    filterwarnings = error
"""


@dataclass(frozen=True)
class Case:
    """One ``<testcase>`` as a CI sees it."""

    name: str
    #: ``passed`` or the name of the element inside.
    outcome: str
    message: str
    text: str
    properties: dict[str, str]


@dataclass(frozen=True)
class Inner:
    """A session that can be run, and what it left behind."""

    pytester: pytest.Pytester

    def run(self, *args: str) -> pytest.RunResult:
        """With the simulated rig, in this process."""
        return self.pytester.runpytest_inprocess("-p", "simulated_rig", "--tb=short", "--junitxml=junit.xml", *args)

    def suite(self, name: str) -> str:
        """A copy of a shipped suite; the name of its folder."""
        shutil.copytree(SUITES / name, self.pytester.path / name, ignore=shutil.ignore_patterns("__pycache__"))
        return name

    def refused(self, *args: str) -> str:
        """What pytest says when it is asked wrongly; it must be a usage error that wrote no results."""
        result = self.run(*args)
        assert result.ret == pytest.ExitCode.USAGE_ERROR, result.outlines
        assert not (self.pytester.path / "junit.xml").exists()
        return "\n".join(line for line in result.errlines if line).removeprefix("ERROR: ")

    def cases(self) -> dict[str, Case]:
        root = ET.parse(self.pytester.path / "junit.xml").getroot()  # noqa: S314 (our own)
        found = [_case(each) for each in root.iter("testcase")]
        assert len({each.name for each in found}) == len(found)
        return {each.name: each for each in found}

    def outcomes(self) -> dict[str, str]:
        return {name: case.outcome for name, case in self.cases().items()}

    def records(self, *kinds: str) -> list[dict[str, object]]:
        """Lines of the only run folder, by kind."""
        (folder,) = (self.pytester.path / "ssdqual-runs").iterdir()
        lines = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
        return [line for line in lines if line["kind"] in kinds]


def _case(element: ET.Element) -> Case:
    properties = {each.get("name", ""): each.get("value", "") for each in element.iter("property")}
    results = [each for each in element if each.tag in ("failure", "error", "skipped")]
    if not results:
        return Case(element.get("name", ""), "passed", "", "", properties)
    (result,) = results
    return Case(element.get("name", ""), result.tag, result.get("message", ""), result.text or "", properties)


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Inner:
    for name in ("DRIVES", "MODEL", "SLOW", "BROKEN", "LOST_AT", "NOISE", "MISSING", "UNKNOWN_OPTION"):
        monkeypatch.delenv(f"SIMULATED_{name}", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    monkeypatch.setenv("COLUMNS", "140")
    pytester.makeini(INI)
    return Inner(pytester)


#: A test of each of our kinds.
SUITE = """
    import pytest
    from pytest_ssdqual import Workload

    READS, WRITES = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
    pytestmark = [pytest.mark.array("raid5"), pytest.mark.workload(READS, WRITES)]

    def test_iops(run, sla):
        verdict = sla.judge("steady_iops", run)
        assert verdict

    def test_scaling(sweep, sla):
        verdict = sla.judge("scaling_slope", sweep)
        assert verdict
"""


@pytest.fixture
def promises(inner: Inner) -> str:
    """A module with a test of one width and a test of all; the option that names its spec."""
    inner.pytester.makepyfile(test_promises=SUITE)
    (inner.pytester.path / "acme.toml").write_text(
        """
        [product]
        name = "ACME 9"
        models = []
        [[promise]]
        claim = "steady_iops"
        workload = "randread_*"
        at_least = "950 IOPS"
        [[promise]]
        claim = "steady_iops"
        at_least = "300 IOPS"
        """
    )
    return "--ssd-spec=acme.toml"
