"""Attaches evidence to the pages of pytest-html and the results of Allure, if their options are given.

An error here never changes the outcome of a test; it is one line of the summary. The process that measures attaches
after the test and before the next measurement, so that nothing is drawn while fio runs; pytest-html's attachments
travel with the report.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest

from pytest_ssdqual.plugin.plan import marks
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.report.ci import junit
from pytest_ssdqual.report.drawing.plot import Chart
from pytest_ssdqual.report.evidence.evidence import Evidence, carried_by
from pytest_ssdqual.report.html.page import REPORT, svg_file
from pytest_ssdqual.report.terminal import summary

#: Attribute of a report: errors while attaching. Plain text, so that xdist carries it.
COMPLAINT = "ssdqual_not_attached"
#: Number of tests with charts, as in report.html.
MOST_EXPLAINED = 40
#: The plugin's parameters of tests.
PARAMETERS = ("ssd_geometry", "_ssd_widths", "ssd_workload", "ssd_workload_set", "_ssd_rounds_definition")
#: Position of the plugin's column in pytest-html's table: after the result and the test.
COLUMN = 2


@frozen
class AttachedTest:
    """One test and its attachments."""

    item: pytest.Item
    report: pytest.TestReport
    evidence: tuple[Evidence, ...]
    charts: Sequence[Chart]


def register(config: pytest.Config, folder: Path | None, *, paged: bool) -> None:
    """Register in a run with drives, if pytest-html or Allure is in use; ``paged``: the folder gets a report.html."""
    html, allure = (config.getoption(name, None) for name in ("htmlpath", "allure_report_dir"))
    publishers: dict[str, Callable[[AttachedTest], None]] = {}
    if html:
        ours = folder / REPORT if folder and paged else None
        publishers["pytest-html"] = lambda test: _to_html(test, _relative(ours, html) if ours else "")
    if allure:
        publishers["Allure"] = _to_allure
    if publishers:
        config.pluginmanager.register(Attachments(folder, publishers), "ssdqual-attachments")


@dataclass(eq=False)
class Attachments:
    """Hooks of a run that pytest-html or Allure reports, too."""

    folder: Path | None
    #: Publishers by name, with which their error messages begin.
    publishers: dict[str, Callable[[AttachedTest], None]]
    explained: int = 0
    #: First error by test id.
    complaints: dict[str, str] = field(default_factory=dict)

    def attach(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Publish the evidence of a report, after the hooks of all plugins have seen it."""
        complaints: list[str] = []
        evidence: tuple[Evidence, ...] = ()
        with _telling("evidence", complaints):
            evidence = carried_by(report)
        if evidence:
            charts: list[Chart] = []
            with _telling("charts", complaints):
                charts = self._charts(item.nodeid, evidence)
            for name, publish in self.publishers.items():
                with _telling(name, complaints):
                    publish(AttachedTest(item, report, evidence, charts))
        if complaints:
            setattr(report, COMPLAINT, "; ".join(complaints))

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if complaint := getattr(report, COMPLAINT, ""):
            self.complaints.setdefault(report.nodeid, complaint)

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.complaints:
            tests = f"{len(self.complaints)} test{'s' if len(self.complaints) > 1 else ''}"
            text = f"some evidence of {tests} could not be attached: {next(iter(self.complaints.values()))}"
            summary.write_line(terminalreporter, text, yellow=True)

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_header(self, cells: list[str]) -> None:
        if cells:
            cells.insert(COLUMN, "<th>Judged</th>")

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_row(self, report: pytest.TestReport, cells: list[str]) -> None:
        if cells:  # another plugin empties the cells to leave out the row
            text, complaints = "", list[str]()
            with _telling("pytest-html", complaints):
                text = junit.sentences(carried_by(report))
            for complaint in complaints:
                self.complaints.setdefault(report.nodeid, complaint)
            cells.insert(COLUMN, f'<td class="col-judged" style="min-width:24em">{text}</td>')

    def _charts(self, test: str, evidence: Sequence[Evidence]) -> list[Chart]:
        if self.folder is None or self.explained >= MOST_EXPLAINED:
            return []
        found = junit.explained(self.folder, test, evidence)
        self.explained += bool(found)
        return found


@contextmanager
def _telling(what: str, complaints: list[str]) -> Iterator[None]:
    """Append any exception to the list as a sentence; let Ctrl-C pass."""
    try:
        yield
    except Exception as error:
        complaints.append(safe_text.line(f"{what}: {type(error).__name__}: {error}", 300))


def _to_html(test: AttachedTest, link: str) -> None:
    """Add extras to the report: a table, each chart as an image without scripts, and a link to the page."""
    from pytest_html import extras

    found = [extras.html(junit.tables(test.evidence))]
    for chart in test.charts:
        image = base64.b64encode(svg_file(chart.svg).encode()).decode()
        found.append(extras.svg(image, name=safe_text.line(chart.title)))
    if link:
        anchor = f"#{test.charts[0].key}" if test.charts else ""
        found.append(extras.url(f"{link}{anchor}", name=REPORT))
    test.report.extras = [*getattr(test.report, "extras", []), *found]  # type: ignore[attr-defined]


def _to_allure(test: AttachedTest) -> None:
    """Attach to Allure; parameters are excluded from the history key, because figures differ from run to run."""
    import allure

    kind, dynamic = allure.attachment_type, cast("Any", allure.dynamic)
    dynamic.description_html(junit.tables(test.evidence))
    dynamic.feature(*dict.fromkeys(_label(each.claim) for each in test.evidence))
    promised = any(each.is_promised for each in test.evidence)
    dynamic.severity(allure.severity_level.CRITICAL if promised else allure.severity_level.MINOR)
    if not test.evidence[0].acceptance:
        dynamic.tag("not for acceptance")
    for name, value in _parameters(test):
        dynamic.parameter(name, PlainText(safe_text.line(value)), excluded=True)
    records = json.dumps(plain(test.evidence), indent=2, ensure_ascii=False)
    allure.attach(safe_text.json_text(records), "evidence", kind.JSON)
    for chart in test.charts:
        allure.attach(svg_file(chart.svg), safe_text.line(chart.title), kind.SVG)
    if raw := list(dict.fromkeys(safe_text.line(name) for each in test.evidence for name in each.raw)):
        allure.attach("\n".join(raw), "raw files in the run folder", kind.TEXT)


def _parameters(test: AttachedTest) -> Iterator[tuple[str, str]]:
    """Yield the test's parameters by name (Allure would show all fields), and figures with JUnit's names."""
    given = marks.parameters(test.item)
    yield from ((name, str(given[name])) for name in PARAMETERS if name in given)
    for number, each in enumerate(test.evidence, 1):
        prefix = "ssd" if number == 1 else f"ssd.{number}"
        yield f"{prefix}.measured", each.measured
        yield f"{prefix}.interval", each.interval_in_full
        if each.is_promised:
            yield f"{prefix}.limit", each.bound
        yield f"{prefix}.outcome", each.outcome.value


@frozen
class PlainText:
    """Text whose ``repr``, which Allure shows, has no quotes."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _label(claim: str) -> str:
    """Return the label of a claim; of an inspection, a lot or a search its name."""
    return Claim(claim).label if claim in list(Claim) else safe_text.line(claim)


def _relative(path: Path, html: str) -> str:
    """Return the relative URL of ``path`` on the page ``html``, expanded as pytest-html does."""
    report = Path.cwd() / Path(os.path.expandvars(html)).expanduser()
    return quote(os.path.relpath(path, report.parent))
