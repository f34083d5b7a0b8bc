"""What was judged, on the pages of pytest-html and in the results of Allure, where they are installed and asked for.

The rule of the module: nothing that goes wrong here changes what came of a test; it is one line of the summary. Both
are fed in the process that measures, after the test and before the next measurement, so that nothing is drawn while fio
runs; what pytest-html needs travels with the report.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.report.charts.base import Chart
from pytest_ssdqual.report.ci import fragments
from pytest_ssdqual.report.evidence.evidence import Evidence, carried_by
from pytest_ssdqual.report.html import run_page
from pytest_ssdqual.report.terminal import summary

#: Attribute of a report: why something could not be attached. Plain text, so xdist carries it.
COMPLAINT = "ssdqual_not_attached"
#: Tests whose charts are drawn, as on our own page.
MOST_EXPLAINED = 40
#: The parameters that the plugin gives to tests.
PARAMETERS = ("ssd_geometry", "_ssd_widths", "ssd_workload", "ssd_workload_set", "_ssd_rounds_definition")
#: Where pytest-html's table has our column: after the result and the test.
COLUMN = 2


@dataclass(frozen=True, slots=True)
class AttachedTest:
    """One test, and what there is to attach of it."""

    item: pytest.Item
    report: pytest.TestReport
    evidence: tuple[Evidence, ...]
    charts: Sequence[Chart]


def register(config: pytest.Config, folder: Path | None, *, paged: bool) -> None:
    """In a run with drives: nothing unless one of them is asked for. ``paged``: the folder gets a page of ours."""
    html, allure = (config.getoption(name, None) for name in ("htmlpath", "allure_report_dir"))
    publishers: dict[str, Callable[[AttachedTest], None]] = {}
    if html:
        ours = folder / run_page.NAME if folder and paged else None
        publishers["pytest-html"] = lambda told: _to_html(told, _relative(ours, html) if ours else "")
    if allure:
        publishers["Allure"] = _to_allure
    if publishers:
        config.pluginmanager.register(Attachments(folder, publishers), "ssdqual-attachments")


@dataclass
class Attachments:
    """Hooks of a run that somebody else shows, too."""

    folder: Path | None
    #: By the name that a complaint begins with.
    publishers: dict[str, Callable[[AttachedTest], None]]
    explained: int = 0
    complaints: list[str] = field(default_factory=list)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
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
        return report

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if complaint := getattr(report, COMPLAINT, ""):
            self.complaints.append(complaint)

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.complaints:
            tests = f"{len(self.complaints)} test{'s' if len(self.complaints) > 1 else ''}"
            said = f"not everything of {tests} could be attached: {self.complaints[0]}"
            summary.tell(terminalreporter, said, yellow=True)

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_header(self, cells: list[str]) -> None:
        if cells:
            cells.insert(COLUMN, "<th>Judged</th>")

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_row(self, report: pytest.TestReport, cells: list[str]) -> None:
        if cells:  # a plugin that empties them leaves the row out
            said = ""
            with _telling("pytest-html", self.complaints):
                said = fragments.sentences(carried_by(report))
            cells.insert(COLUMN, f'<td class="col-judged" style="min-width:24em">{said}</td>')

    def _charts(self, test: str, evidence: Sequence[Evidence]) -> list[Chart]:
        if self.folder is None or self.explained >= MOST_EXPLAINED:
            return []
        found = fragments.explained(self.folder, test, evidence)
        self.explained += bool(found)
        return found


@contextmanager
def _telling(what: str, complaints: list[str]) -> Iterator[None]:
    """Whatever goes wrong inside is a sentence in the list; whoever interrupts it wants the run to end."""
    try:
        yield
    except Exception as error:
        complaints.append(safe_text.line(f"{what}: {type(error).__name__}: {error}", 300))


def _to_html(told: AttachedTest, link: str) -> None:
    """As extras of the report: a table, each chart as an image that holds no script, and where to read on."""
    from pytest_html import extras

    found = [extras.html(fragments.tables(told.evidence))]
    for chart in told.charts:
        image = base64.b64encode(fragments.picture(chart).encode()).decode()
        found.append(extras.svg(image, name=safe_text.line(chart.title)))
    if link:
        anchor = f"#{told.charts[0].key}" if told.charts else ""
        found.append(extras.url(f"{link}{anchor}", name=run_page.NAME))
    told.report.extras = [*getattr(told.report, "extras", []), *found]  # type: ignore[attr-defined]


def _to_allure(told: AttachedTest) -> None:
    """Parameters are kept out of the history's key: figures differ from run to run, the test is the same."""
    import allure

    kind, dynamic = allure.attachment_type, cast("Any", allure.dynamic)
    dynamic.description_html(fragments.tables(told.evidence))
    dynamic.feature(*dict.fromkeys(_label(each.claim) for each in told.evidence))
    promised = any(each.is_promised for each in told.evidence)
    dynamic.severity(allure.severity_level.CRITICAL if promised else allure.severity_level.MINOR)
    if not told.evidence[0].acceptance:
        dynamic.tag("not for acceptance")
    for name, value in _parameters(told):
        dynamic.parameter(name, _Words(safe_text.line(value)), excluded=True)
    records = json.dumps([each.to_record() for each in told.evidence], indent=2, ensure_ascii=False)
    allure.attach(safe_text.json_text(records), "evidence", kind.JSON)
    for chart in told.charts:
        allure.attach(fragments.picture(chart), safe_text.line(chart.title), kind.SVG)
    if raw := list(dict.fromkeys(safe_text.line(name) for each in told.evidence for name in each.raw)):
        allure.attach("\n".join(raw), "raw files in the run folder", kind.TEXT)


def _parameters(told: AttachedTest) -> Iterator[tuple[str, str]]:
    """Those that Allure has of our marks, by their names instead of all their fields; figures, as JUnit names them."""
    given = getattr(getattr(told.item, "callspec", None), "params", {})
    yield from ((name, str(given[name])) for name in PARAMETERS if name in given)
    for number, each in enumerate(told.evidence, 1):
        prefix = "ssd" if number == 1 else f"ssd.{number}"
        yield f"{prefix}.measured", each.measured
        yield f"{prefix}.interval", each.interval_in_full
        if each.is_promised:
            yield f"{prefix}.limit", each.bound
        yield f"{prefix}.outcome", each.outcome.value


@dataclass(frozen=True, slots=True)
class _Words:
    """Allure shows a parameter's ``repr``, and that of a text has quotes."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _label(claim: str) -> str:
    """A newer version may know more claims."""
    return Claim(claim).label if claim in list(Claim) else safe_text.line(claim)


def _relative(path: Path, html: str) -> str:
    """Where a page finds another one, as a URL; ``html`` as pytest-html reads it."""
    report = Path.cwd() / Path(os.path.expandvars(html)).expanduser()
    return quote(os.path.relpath(path, report.parent))
