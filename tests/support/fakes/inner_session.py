"""pytest inside of pytest, on a rig that was never there: what it printed, what it wrote."""

from __future__ import annotations

import json
import shutil
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_ssdqual.report.run_summary.fitness import PageVerdict
from pytest_ssdqual.report.run_summary.run_view import RunView

TESTS = Path(__file__).parents[2]
SUITES = TESTS.parent / "suites"
#: Test cases of the whole session, not of a test.
OF_SESSION = "nothing was judged", "not green"


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
        """With the simulated rig, in this process. All charts of its page must be drawn."""
        arguments = ("-p", "support.simulator.simulated_rig", "--junitxml=junit.xml", *args)
        result = self.pytester.runpytest_inprocess(*arguments)
        for page in self.pytester.path.glob("ssdqual-runs/*/report.html"):
            assert "could not be drawn" not in page.read_text(), page
        return result

    def suite(self, name: str) -> str:
        """A copy of a shipped suite; the name of its folder."""
        shutil.copytree(SUITES / name, self.pytester.path / name, ignore=shutil.ignore_patterns("__pycache__"))
        return name

    def suites(self) -> list[str]:
        """Names of all shipped suites."""
        return sorted(path.name for path in SUITES.iterdir() if any(path.glob("test_*.py")))

    def refused(self, *args: str) -> str:
        """What pytest says when it is asked wrongly; it must be a usage error that wrote no results."""
        result = self.run(*args)
        assert result.ret == pytest.ExitCode.USAGE_ERROR, result.outlines
        assert not (self.pytester.path / "junit.xml").exists()
        return "\n".join(line for line in result.errlines if line).removeprefix("ERROR: ")

    def cases(self) -> dict[str, Case]:
        """Those of tests: that nothing was judged, or not everything, is a case of its own."""
        return {name: case for name, case in self.all_cases().items() if not name.startswith(OF_SESSION)}

    def all_cases(self) -> dict[str, Case]:
        root = ET.parse(self.pytester.path / "junit.xml").getroot()  # noqa: S314 (our own)
        found = [_case(each) for each in root.iter("testcase")]
        assert len({each.name for each in found}) == len(found)
        return {each.name: each for each in found}

    def outcomes(self) -> dict[str, str]:
        return {name: case.outcome for name, case in self.cases().items()}

    def suite_properties(self) -> dict[str, str]:
        """Properties of the whole session in JUnit's file."""
        root = ET.parse(self.pytester.path / "junit.xml").getroot()  # noqa: S314 (our own)
        return {each.get("name", ""): each.get("value", "") for each in root.iterfind("testsuite/properties/property")}

    def folder(self) -> Path:
        """The only run folder."""
        (folder,) = (self.pytester.path / "ssdqual-runs").iterdir()
        return folder

    def manifest(self, bay: str = "") -> dict[str, Any]:
        """Manifest of the only run folder, or of one bay there."""
        manifest: dict[str, Any] = json.loads((self._folder_of(bay) / "manifest.json").read_text())
        return manifest

    def fleet(self) -> dict[str, Any]:
        """``fleet.json`` of the only run folder, which several bays share."""
        fleet: dict[str, Any] = json.loads((self.folder() / "fleet.json").read_text())
        return fleet

    def records(self, *kinds: str, bay: str = "") -> list[dict[str, Any]]:
        """Lines of the only run folder, or of one bay there, by kind."""
        marks = [f'"kind":"{kind}"' for kind in kinds]
        lines = (self._folder_of(bay) / "records.jsonl").read_text().splitlines()
        found = [json.loads(line) for line in lines if any(mark in line for mark in marks)]
        return [line for line in found if line["kind"] in kinds]

    def verdict(self) -> PageVerdict:
        """Of the only run, as its page has it."""
        return RunView.read(self.folder()).verdict

    def _folder_of(self, bay: str) -> Path:
        return self.folder() / "bays" / bay if bay else self.folder()


def _case(element: ET.Element) -> Case:
    properties = {each.get("name", ""): each.get("value", "") for each in element.iter("property")}
    results = [each for each in element if each.tag in ("failure", "error", "skipped")]
    if not results:
        return Case(element.get("name", ""), "passed", "", "", properties)
    (result,) = results
    return Case(element.get("name", ""), result.tag, result.get("message", ""), result.text or "", properties)


def ids(result: pytest.RunResult) -> list[str]:
    return [line.split("::")[1] for line in result.outlines if "::" in line]
