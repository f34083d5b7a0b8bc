"""JUnit of a merged fleet, made of the journals: what each bay's pytest would have written, the bay in the classname.

The rule of the module: as everywhere, a broken promise is a ``<failure>``, and what was not decided or not measured is
an ``<error>``. Journals know no test that passed without a figure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.ci import junit
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.evidence.part import Finding
from pytest_ssdqual.report.fleet.view import Bay, Seen
from pytest_ssdqual.report.run_folder.story import Story
from pytest_ssdqual.report.view import skips
from pytest_ssdqual.report.view.errors import troubles

#: Of the test that stands for a bay that was never begun, or did not end.
WHOLE = "whole run"
ATTRIBUTE_CHARACTERS = 2_000


@dataclass(slots=True)
class Case:
    """One test of one bay."""

    evidence: list[Evidence] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    skipped: str = ""


def text(folder: Path) -> bytes:
    """The whole file; ``OSError`` if a run folder cannot be read."""
    root = ElementTree.Element("testsuites", name="pytest tests")
    for bay in Seen.read(folder).bays:
        cases = _cases(bay)
        counted = {
            "tests": len(cases),
            "failures": sum(bool(each.failures) for each in cases.values()),
            "errors": sum(bool(each.errors and not each.failures) for each in cases.values()),
            "skipped": sum(bool(each.skipped) for each in cases.values()),
        }
        suite = ElementTree.SubElement(root, "testsuite", {"name": _shown(bay.name), "hostname": _shown(bay.machine)})
        suite.attrib.update({name: str(number) for name, number in counted.items()})
        for test, case in cases.items():
            _written(suite, bay.name, test, case)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _cases(bay: Bay) -> dict[str, Case]:
    if bay.folder is None or bay.standing is None:
        return {WHOLE: Case(errors=[f"{bay.name} was never begun: {bay.refused or 'it has no run folder'}"])}
    story, cases = Story.read(bay.folder), dict[str, Case]()
    for judged in story.evidence():
        case, sentence = cases.setdefault(judged.test, Case()), judged.evidence.sentence
        case.evidence.append(judged.evidence)
        if judged.evidence.outcome is Finding.FAIL:
            case.failures.append(sentence)
        elif judged.evidence.outcome is Finding.INCONCLUSIVE:
            case.errors.append(sentence)
    for trouble in troubles(story):
        for test in trouble.tests:
            case = cases.setdefault(test, Case())
            (case.failures if trouble.is_failure else case.errors).append(trouble.message)
    for reason, tests in skips.skipped(story).items():
        for test in tests:
            cases.setdefault(test, Case()).skipped = reason
    if not story.manifest.get("ended"):
        cases[WHOLE] = Case(errors=[f"{bay.name} has not ended, or was killed: what is missing is not known"])
    return cases


def _written(suite: ElementTree.Element, bay: str, test: str, case: Case) -> None:
    classname, name = _place(bay, test)
    found = ElementTree.SubElement(suite, "testcase", classname=_shown(classname), name=_shown(name), time="0.000")
    if case.evidence:
        properties = ElementTree.SubElement(found, "properties")
        for key, value in junit.properties(case.evidence):
            ElementTree.SubElement(properties, "property", name=key, value=value)
    for kind, said in (("failure", case.failures), ("error", [] if case.failures else case.errors)):
        if said:
            message = ElementTree.SubElement(found, kind, message=_shown(said[0]))
            message.text = "\n\n".join([*map(safe_text.lines, said), junit.section(case.evidence)]).rstrip()
    if case.skipped:
        ElementTree.SubElement(found, "skipped", type="pytest.skip", message=_shown(case.skipped))


def _place(bay: str, test: str) -> tuple[str, str]:
    """As pytest has it: ``dut1.suites.raid5.test_p99``, ``test_p99[…]``."""
    head, bracket, parameters = test.partition("[")
    file, *names = head.split("::")
    module = file.removesuffix(".py").replace("/", ".")
    own = [module, *names[:-1]] if names else []
    return ".".join([bay, *own]), (names[-1] if names else file) + bracket + parameters


def _shown(text: str) -> str:
    return safe_text.line(text, ATTRIBUTE_CHARACTERS)
