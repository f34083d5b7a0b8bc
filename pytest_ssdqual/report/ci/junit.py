"""Evidence → JUnit properties and failure text. A CI's JUnit dialect is this module's only reason to change.

Names are ``ssd.…`` with the unit at the end and values are plain numbers in base units, so that any tool can chart
them. JUnit is a summary; the archive is the run folder.

JUnit of a merged fleet, made of the journals: what each bay's pytest would have written, the bay in the classname.

The rule of the module: as everywhere, a broken promise is a ``<failure>``, and what was not decided or not measured is
an ``<error>``. Journals know no test that passed without a figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.fleet.view import BayView, FleetView
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.view import errors as skips
from pytest_ssdqual.report.view.errors import troubles

if TYPE_CHECKING:
    import pytest


_SUFFIX = {
    Unit.IOPS: "iops",
    Unit.NANOSECONDS: "ns",
    Unit.BYTES_PER_SECOND: "bytes_per_s",
    Unit.RATIO: "ratio",
    Unit.PERCENT: "percent",
    Unit.SECONDS: "s",
    Unit.COUNT: "count",
}


#: Of one property or line: serial numbers of a whole rack.
VALUE_CHARACTERS = 100_000


def properties(evidence: Sequence[Evidence]) -> list[tuple[str, str]]:
    """The properties of one testcase, every name once.

    A test that judged more than one claim has the others as ``ssd.2.…``, ``ssd.3.…``: the first keeps the names
    that charts are made of.
    """
    found = []
    for number, each in enumerate(evidence, start=1):
        prefix = "ssd" if number == 1 else f"ssd.{number}"
        once: dict[str, str] = {}
        for name, value in _of(each):
            # A figure beside a claim may be what the claim is about: settled_iops.
            once.setdefault(name, value)
        found += [(f"{prefix}.{name}", value) for name, value in once.items()]
    return [(_shown(name), _shown(value)) for name, value in found]


def section(evidence: Iterable[Evidence]) -> str:
    """For ``report.longrepr.addsection``: the evidence for those who read the failure and no properties."""
    return "\n\n".join(safe_text.lines(_paragraph(each), VALUE_CHARACTERS) for each in evidence)


def add_suite_properties(config: pytest.Config, facts: Iterable[tuple[str, str]]) -> bool:
    """Write facts of the whole session as properties of the ``<testsuite>``; False if no JUnit file is written.

    On the controller: ``record_testsuite_property`` in a worker is lost (pytest#7767). At the latest in a
    ``pytest_sessionfinish(tryfirst=True)``, because that is when pytest writes the file.
    """
    xml = _xml(config)
    if xml is None:
        return False
    for name, value in facts:
        xml.add_global_property(_shown(name), _shown(value))
    return True


def add_error(config: pytest.Config, test: str, sentence: str) -> bool:
    """Add a ``<testcase>`` with an ``<error>`` that belongs to no test; return False if there is no JUnit file.

    The same deadline as for ``add_suite_properties`` applies. pytest does not count the error.
    """
    import pytest

    xml = _xml(config)
    if xml is None:
        return False
    report = pytest.TestReport(test, (test.split("::")[0], None, test), {}, "failed", _shown(sentence), "setup")
    xml.pytest_runtest_logreport(report)
    return True


def _xml(config: pytest.Config) -> Any:  # noqa: ANN401 (private to pytest)
    """Return the object that writes pytest's JUnit file; None if there is no such file."""
    try:
        from _pytest.junitxml import xml_key  # private, and the only way to it; hypothesis does the same
    except ImportError:
        return None
    xml = config.stash.get(xml_key, None)
    return xml if hasattr(xml, "add_global_property") else None


def _shown(value: str) -> str:
    return safe_text.line(value, VALUE_CHARACTERS)


def _of(evidence: Evidence) -> Iterable[tuple[str, str]]:
    suffix = _SUFFIX[evidence.unit]
    # steady_iops is not to become steady_iops_iops.
    claim = evidence.claim.removesuffix(f"_{suffix}")
    yield "claim", evidence.claim
    yield "outcome", evidence.outcome.value
    yield "geometry", " ".join(evidence.geometries)
    yield "workload", " ".join(evidence.workloads)
    numbers = (
        (f"{claim}_{suffix}", evidence.value),
        (f"{claim}_low_{suffix}", evidence.low),
        (f"{claim}_high_{suffix}", evidence.high),
        (f"limit_{suffix}", evidence.limit),
        ("margin_percent", evidence.margin_percent),
        ("confidence_percent", None if evidence.is_reading else round(100 * evidence.confidence, 9)),
        ("n", evidence.n),
        *((figure.name, figure.value) for figure in evidence.figures),
    )
    for name, number in numbers:
        if number is not None and math.isfinite(number):
            yield name, _plain(number)
    if evidence.is_reading:
        yield "interval", "as read"
    if evidence.basis:
        yield "basis", evidence.basis
    if evidence.is_promised:
        yield "limit_source", evidence.source
    yield from _published(evidence, suffix)
    yield from _members(evidence)
    if evidence.group:
        yield evidence.about.value, evidence.group
    yield "protocol", evidence.protocol
    yield "acceptance", str(evidence.acceptance).lower()
    if evidence.raw:
        yield "raw", " ".join(evidence.raw)


def _published(evidence: Evidence, suffix: str) -> Iterable[tuple[str, str]]:
    published, times = evidence.published, evidence.times_published
    if published is None:
        return
    yield f"published_{suffix}", _plain(published.value)
    if times is not None:
        yield "over_published_ratio", _plain(times)
    yield "published_approximately", str(published.approximate).lower()
    yield "published_source", published.source


def _members(evidence: Evidence) -> Iterable[tuple[str, str]]:
    """Of drives side by side, in one order: serial numbers, and the figure of each in base units."""
    if not evidence.members:
        return
    if evidence.worst:
        yield "drive", evidence.worst
    yield "drives", " ".join(each.name for each in evidence.members)
    for outcome, name in ((Finding.FAIL, "drives_broken"), (Finding.INCONCLUSIVE, "drives_undecided")):
        if serials := _serials(evidence, outcome):
            yield name, serials
    values = [next((figure.value for figure in each.figures), None) for each in evidence.members]
    yield "drives_values", " ".join("-" if value is None else _plain(value) for value in values)


def _serials(evidence: Evidence, outcome: Finding) -> str:
    """Return the serials of all drives with this outcome."""
    return " ".join(each.name for each in evidence.members if each.outcome is outcome)


def _plain(number: float) -> str:
    """Six significant digits, or all of a whole number: ``412345``, ``812.5``, ``0.000123457``; never 1e+09."""
    if number == int(number) or abs(number) >= 1e6:
        return f"{number:.0f}"
    digits = max(1, 5 - math.floor(math.log10(abs(number))))
    return f"{number:.{digits}f}".rstrip("0").rstrip(".")


def rows(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    """What it rests on, by name, for people; empty where there is nothing of it. From outside: make it printable."""
    figures = ", ".join(f"{each.name} {_plain(each.value)}" for each in evidence.figures if each.value is not None)
    published, times = evidence.published, evidence.times_published
    return (
        ("measured", f"{evidence.measured} ({evidence.interval_in_full}), n = {evidence.n:,}"),
        ("limit", f"{evidence.bound} ({evidence.source})" if evidence.is_promised else ""),
        ("margin", "" if evidence.margin_percent is None else f"{evidence.margin_percent:+.1f} %"),
        ("published", f"{published} ({published.source}), ours is {times:.2f} of it" if published and times else ""),
        ("array", " ".join(evidence.geometries)),
        ("drive", evidence.worst),
        ("broken by", _serials(evidence, Finding.FAIL)),
        ("workload", " ".join(evidence.workloads)),
        ("protocol", evidence.protocol + ("" if evidence.acceptance else " (not for acceptance)")),
        ("figures", figures),
        *(("remark", remark) for remark in evidence.remarks),
        ("raw data", " ".join(evidence.raw)),
    )


def _paragraph(evidence: Evidence) -> str:
    return "\n".join([evidence.sentence, *(f"  {name:<10}{text}" for name, text in rows(evidence) if text)])


#: Of the test that stands for a bay that was never begun, or did not end.
WHOLE = "whole run"
ATTRIBUTE_CHARACTERS = 2_000


@dataclass(slots=True)
class JUnitCase:
    """One test of one bay."""

    evidence: list[Evidence] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    skipped: str = ""


def text(folder: Path) -> bytes:
    """The whole file; ``OSError`` if a run folder cannot be read."""
    root = ElementTree.Element("testsuites", name="pytest tests")
    for bay in FleetView.read(folder).bays:
        cases = _cases(bay)
        counted = {
            "tests": len(cases),
            "failures": sum(bool(each.failures) for each in cases.values()),
            "errors": sum(bool(each.errors and not each.failures) for each in cases.values()),
            "skipped": sum(bool(each.skipped) for each in cases.values()),
        }
        suite = ElementTree.SubElement(
            root, "testsuite", {"name": _fleet_shown(bay.name), "hostname": _fleet_shown(bay.machine)}
        )
        suite.attrib.update({name: str(number) for name, number in counted.items()})
        for test, case in cases.items():
            _written(suite, bay.name, test, case)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _cases(bay: BayView) -> dict[str, JUnitCase]:
    if bay.folder is None or bay.standing is None:
        return {WHOLE: JUnitCase(errors=[f"{bay.name} was never begun: {bay.refused or 'it has no run folder'}"])}
    story, cases = RunReader.read(bay.folder), dict[str, JUnitCase]()
    for judged in story.evidence():
        case, sentence = cases.setdefault(judged.test, JUnitCase()), judged.evidence.sentence
        case.evidence.append(judged.evidence)
        if judged.evidence.outcome is Finding.FAIL:
            case.failures.append(sentence)
        elif judged.evidence.outcome is Finding.INCONCLUSIVE:
            case.errors.append(sentence)
    for trouble in troubles(story):
        for test in trouble.tests:
            case = cases.setdefault(test, JUnitCase())
            (case.failures if trouble.is_failure else case.errors).append(trouble.message)
    for reason, tests in skips.skipped(story).items():
        for test in tests:
            cases.setdefault(test, JUnitCase()).skipped = reason
    if not story.manifest.get("ended"):
        cases[WHOLE] = JUnitCase(errors=[f"{bay.name} has not ended, or was killed: what is missing is not known"])
    return cases


def _written(suite: ElementTree.Element, bay: str, test: str, case: JUnitCase) -> None:
    classname, name = _place(bay, test)
    found = ElementTree.SubElement(
        suite, "testcase", classname=_fleet_shown(classname), name=_fleet_shown(name), time="0.000"
    )
    if case.evidence:
        element = ElementTree.SubElement(found, "properties")
        for key, value in properties(case.evidence):
            ElementTree.SubElement(element, "property", name=key, value=value)
    for kind, said in (("failure", case.failures), ("error", [] if case.failures else case.errors)):
        if said:
            message = ElementTree.SubElement(found, kind, message=_fleet_shown(said[0]))
            message.text = "\n\n".join([*map(safe_text.lines, said), section(case.evidence)]).rstrip()
    if case.skipped:
        ElementTree.SubElement(found, "skipped", type="pytest.skip", message=_fleet_shown(case.skipped))


def _place(bay: str, test: str) -> tuple[str, str]:
    """As pytest has it: ``dut1.suites.raid5.test_p99``, ``test_p99[…]``."""
    head, bracket, parameters = test.partition("[")
    file, *names = head.split("::")
    module = file.removesuffix(".py").replace("/", ".")
    own = [module, *names[:-1]] if names else []
    return ".".join([bay, *own]), (names[-1] if names else file) + bracket + parameters


def _fleet_shown(text: str) -> str:
    return safe_text.line(text, ATTRIBUTE_CHARACTERS)
