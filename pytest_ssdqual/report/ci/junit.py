"""JUnit: properties and failure text of a test, and the JUnit file of a merged fleet, in the dialect of CI systems; and
fragments for pages of other tools: HTML of the evidence of a test, and charts as separate pictures.

Property names are ``ssd.…`` with the unit at the end, values are plain numbers in base units, so that any tool can
chart them. A failed promise is a ``<failure>``; an inconclusive one and a failed measurement are ``<error>``. The file
of a fleet is what each bay's pytest would have written, with the bay in the classname; journals do not record tests
that passed without a figure. JUnit is a summary; the archive is the run folder.

Every text of a fragment is made printable and escaped. A picture must be shown by ``<img>``, where no script would run.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.drawing.plot import Chart
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.fleet.view import BayView, FleetView
from pytest_ssdqual.report.html.page import environment_of
from pytest_ssdqual.report.run_folder.reader import Judged, RunReader
from pytest_ssdqual.report.run_summary.fitness import Fitness

if TYPE_CHECKING:
    import pytest
    from jinja2 import Environment


_SUFFIX = {
    Unit.IOPS: "iops",
    Unit.NANOSECONDS: "ns",
    Unit.BYTES_PER_SECOND: "bytes_per_s",
    Unit.RATIO: "ratio",
    Unit.PERCENT: "percent",
    Unit.SECONDS: "s",
    Unit.COUNT: "count",
    Unit.CELSIUS: "celsius",
}


#: Maximum length of a cell; a test of a whole rack names all its raw files.
CELL_CHARACTERS = 4_000
#: Outcomes with a chart. A chart costs a quarter of a second and 10 kB, and a suite has hundreds of passes.
EXPLAINED = (Finding.FAIL, Finding.INCONCLUSIVE, Finding.BOUNDED)
#: Maximum length of a property or line, such as the serial numbers of a whole rack.
VALUE_CHARACTERS = 100_000
#: Name of the testcase for a bay that was not started, did not end, or is not fit for a reason that no test reports.
WHOLE = "whole run"
MESSAGE_CHARACTERS = 2_000


def properties(evidence: Sequence[Evidence], first: int = 1) -> list[tuple[str, str]]:
    """Return the properties of a testcase, each name once; ``first`` is the number of the first claim.

    The first claim has the names ``ssd.…`` that charts use; further claims have ``ssd.2.…``, ``ssd.3.…``.
    """
    found = []
    for number, each in enumerate(evidence, first):
        prefix = "ssd" if number == 1 else f"ssd.{number}"
        once: dict[str, str] = {}
        for name, value in _of(each):
            # A figure may have the name of the claim: settled_iops.
            once.setdefault(name, value)
        found += [(f"{prefix}.{name}", value) for name, value in once.items()]
    return [(_shown(name), _shown(value)) for name, value in found]


def section(evidence: Iterable[Evidence]) -> str:
    """Return the evidence as text for ``report.longrepr.addsection``."""
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
        from _pytest.junitxml import xml_key  # private, but there is no public way; hypothesis uses it, too
    except ImportError:
        return None
    xml = config.stash.get(xml_key, None)
    return xml if hasattr(xml, "add_global_property") else None


def _shown(value: str, most: int = VALUE_CHARACTERS) -> str:
    return safe_text.line(value, most)


def _of(evidence: Evidence) -> Iterable[tuple[str, str]]:
    suffix = _SUFFIX[evidence.unit]
    # Not steady_iops_iops.
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
        ("confidence_percent", None if evidence.is_reading else _percent(evidence.confidence)),
        ("n", evidence.n),
        *evidence.figures.items(),
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
    if evidence.cause:
        yield "cause", evidence.cause.culprit.value
        yield "cause_confidence_percent", _plain(100 * evidence.cause.confidence)
        if evidence.cause.drives:
            yield "cause_drives", " ".join(evidence.cause.drives)
    yield from _published(evidence, suffix)
    yield from _members(evidence)
    if evidence.group:
        yield evidence.about.value, evidence.group
    yield "protocol", evidence.protocol
    yield "acceptance", str(evidence.acceptance).lower()
    if evidence.raw:
        yield "raw", " ".join(evidence.raw)


def _percent(share: float) -> float:
    return round(100 * share, 9)


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
    """Yield serial numbers of drives side by side and the figure of each in base units, in the same order."""
    if not evidence.members:
        return
    if evidence.worst:
        yield "drive", evidence.worst
    yield "drives", " ".join(each.name for each in evidence.members)
    names = {Finding.FAIL: "failed", Finding.INCONCLUSIVE: "inconclusive", Finding.BOUNDED: "bounded"}
    for outcome, name in names.items():
        if serials := _serials(evidence, outcome):
            yield f"drives_{name}", serials
    values = [next(iter(each.figures.values()), None) for each in evidence.members]
    yield "drives_values", " ".join("-" if value is None else _plain(value) for value in values)


def _serials(evidence: Evidence, outcome: Finding) -> str:
    """Return the serials of all drives with this outcome."""
    return " ".join(each.name for each in evidence.members if each.outcome is outcome)


def _plain(number: float) -> str:
    """Return six significant digits, or all of a whole number: ``412345``, ``812.5``, ``0.000123457``; never 1e+09."""
    if number == int(number) or abs(number) >= 1e6:
        return f"{number:.0f}"
    digits = max(1, 5 - math.floor(math.log10(abs(number))))
    return f"{number:.{digits}f}".rstrip("0").rstrip(".")


def rows(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    """Return names and texts of the evidence for people; empty texts included. The caller makes them printable."""
    figures = ", ".join(f"{name} {_plain(value)}" for name, value in evidence.figures.items() if value is not None)
    published, times = evidence.published, evidence.times_published
    return (
        ("measured", f"{evidence.measured} ({evidence.interval_in_full}), n = {evidence.n:,}"),
        ("limit", f"{evidence.bound} ({evidence.source})" if evidence.is_promised else ""),
        ("margin", evidence.margin),
        (
            "published",
            f"{published} ({published.source}), measured is {times:.2f} of it" if published and times else "",
        ),
        ("array", " ".join(evidence.geometries)),
        ("drive", evidence.worst),
        ("failed by", _serials(evidence, Finding.FAIL)),
        ("workload", " ".join(evidence.workloads)),
        ("advice", evidence.cause.advice if evidence.cause else ""),
        ("protocol", evidence.protocol + ("" if evidence.acceptance else " (not for acceptance)")),
        ("figures", figures),
        *(("remark", remark) for remark in evidence.remarks),
        ("raw data", " ".join(evidence.raw)),
    )


def _paragraph(evidence: Evidence) -> str:
    return "\n".join([evidence.sentence, *(f"  {name:<10}{text}" for name, text in rows(evidence) if text)])


@dataclass(slots=True)
class JUnitCase:
    """A test of a bay."""

    #: Classname and name.
    place: tuple[str, str]
    evidence: list[Evidence] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    skipped: str = ""

    @property
    def kind(self) -> str:
        """Name of the element of its outcome; empty if it passed."""
        if self.failures:
            return "failure"
        return "error" if self.errors else ""

    @property
    def messages(self) -> list[str]:
        return self.failures or self.errors

    @property
    def text(self) -> str:
        """All messages and the evidence."""
        return "\n\n".join([*map(safe_text.lines, self.messages), section(self.evidence)]).rstrip()


@cache
def _environment() -> Environment:
    """Return the environment of the template; every text is made printable and escaped."""
    from markupsafe import Markup, escape

    made = environment_of(lambda value: value if isinstance(value, Markup) else _shown(str(value)))
    made.filters["briefly"] = lambda text: _shown(text, MESSAGE_CHARACTERS)
    made.filters["whole"] = escape
    made.globals |= {"properties": properties, "suite_properties": _of_suite}
    return made


def text(folder: Path) -> bytes:
    """Return the JUnit file of a fleet; ``OSError`` if a run folder cannot be read."""
    bays = [(bay, list(_cases(bay).values())) for bay in FleetView.read(folder).bays]
    return _environment().get_template("fleet.junit").render(bays=bays).encode() + b"\n"


def _of_suite(bay: BayView) -> list[tuple[str, str]]:
    return [(f"ssd.{bay.name}.{name}", value) for name, value in (bay.standing.properties if bay.standing else ())]


def _cases(bay: BayView) -> dict[str, JUnitCase]:
    run, cases = bay.run, dict[str, JUnitCase]()

    def case_of(test: str) -> JUnitCase:
        return cases.setdefault(test, JUnitCase(_place(bay.name, test)))

    if run is None:
        case_of(WHOLE).errors = [f"{bay.name} was not started: {bay.refused or 'it has no run folder'}"]
        return cases
    for judged in run.judged:
        case, sentence = case_of(judged.test), judged.sentence
        case.evidence.append(judged)
        if judged.outcome is Finding.FAIL:
            case.failures.append(sentence)
        elif judged.outcome is Finding.INCONCLUSIVE:
            case.errors.append(sentence)
    for trouble in run.errors:
        for test in trouble.tests:
            case = case_of(test)
            (case.failures if trouble.is_failure else case.errors).append(trouble.message)
    for reason, tests in run.skipped.items():
        for test in tests:
            case_of(test).skipped = reason
    if not run.manifest.ended:
        case_of(WHOLE).errors = [f"{bay.name} has not ended or was killed; how much is missing is unknown"]
    elif run.verdict.fitness is not Fitness.FIT and not any(each.kind for each in cases.values()):
        # What no test reports, as the gate does in pytest's own file: an interruption, or a new defect of a drive.
        case_of(WHOLE).errors = [" ".join((f"{bay.name}: {run.verdict.sentence}", *run.verdict.gaps))]
    return cases


def _place(bay: str, test: str) -> tuple[str, str]:
    """Return classname and name as pytest writes them: ``dut1.suites.raid5.test_p99``, ``test_p99[…]``."""
    head, bracket, parameters = test.partition("[")
    file, *names = head.split("::")
    module = file.removesuffix(".py").replace("/", ".")
    own = [module, *names[:-1]] if names else []
    return ".".join([bay, *own]), (names[-1] if names else file) + bracket + parameters


def sentences(evidence: Iterable[Evidence]) -> str:
    """Return HTML with a line for each sentence."""
    return "<br>".join(_html(each.sentence) for each in evidence)


def tables(evidence: Iterable[Evidence]) -> str:
    """Return HTML with each sentence and a table of its figures."""
    return "".join(
        f"<p><strong>{_html(each.sentence)}</strong></p><table>"
        + "".join(f'<tr><th scope="row">{name}</th><td>{_html(text)}</td></tr>' for name, text in rows(each) if text)
        + "</table>"
        for each in evidence
    )


def explained(folder: Path, test: str, evidence: Sequence[Evidence]) -> list[Chart]:
    """Return the chart of each promise that failed or is inconclusive, as on ``report.html``.

    Reads the run folder; raises whatever a library that draws may raise.
    """
    wanted = [each for each in evidence if each.outcome in EXPLAINED]
    if not wanted:
        return []
    from pytest_ssdqual.report.charts import chart_of

    story = RunReader.read(folder)
    found = (chart_of(story, Judged.of(test, each)) for each in wanted)
    # Each is drawn here, where an error of a library that draws costs the charts and nothing else.
    return list({chart.key: chart for chart in found if chart and chart.svg}.values())


def _html(text: str) -> str:
    return html.escape(safe_text.line(text, CELL_CHARACTERS))
