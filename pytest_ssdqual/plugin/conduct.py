"""What the hooks of ``plugin`` do in a run that has our tests: set up, arrange, tell, and end in order."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec

import pytest

from pytest_ssdqual.plugin import (
    attachments,
    broadcast,
    claims,
    distribute,
    forecast,
    lots,
    marks,
    needs,
    plan,
    promises,
)
from pytest_ssdqual.plugin.beginning import begin, join
from pytest_ssdqual.plugin.broadcast import Broadcast
from pytest_ssdqual.plugin.onlookers import Onlookers, Teller
from pytest_ssdqual.plugin.qualification import Qualification
from pytest_ssdqual.plugin.stash import QUALIFICATION
from pytest_ssdqual.qual import printable
from pytest_ssdqual.qual.news import News, Planned
from pytest_ssdqual.report import junit, terminal
from pytest_ssdqual.report.evidence import Evidence, carried_by
from pytest_ssdqual.report.family import Tally, properties, tally
from pytest_ssdqual.report.journal import JournalError
from pytest_ssdqual.report.part import Finding
from pytest_ssdqual.report.plan_text import Plan, plan_lines
from pytest_ssdqual.report.records import read_records, worsened_drives
from pytest_ssdqual.rig.machine import SENTENCE_CHARACTERS

NO_HYPOTHESIS = "searches draw what they try with hypothesis: pip install 'pytest-ssdqual[search]'"


def configure(config: pytest.Config) -> None:
    """Begin the run on the controller, or join it on a worker."""
    told = distribute.given(config)
    try:
        page = broadcast.opened(config) if told is None else None
        run = join(config, told) if told is not None else begin(config)
    except pytest.UsageError as error:  # it may quote what a drive, a tool or a file of somebody else says
        raise pytest.UsageError(printable.lines(str(error), SENTENCE_CHARACTERS)) from error
    if run is None:
        return
    config.stash[QUALIFICATION] = run
    config.add_cleanup(run.stack.close)
    attachments.register(config, run.journal.path if run.journal else None, paged=run.settings.page)
    if told is None:
        distribute.register(config)
        config.pluginmanager.register(Narrator(config, run, Broadcast(page, run) if page else None), "ssdqual-narrator")
    else:
        run.glance_s = told["glance_s"]
        config.pluginmanager.register(Teller(run, partial(_seconds, run)), "ssdqual-teller")


def arrange(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order our tests by the plan, skip what these drives cannot do; without drives, skip all with what to type."""
    run = config.stash.get(QUALIFICATION, None)
    if run is not None:
        for item in filter(marks.needs_drives, items):
            if not item.get_closest_marker("skip") and (why := _objections(item, run)):
                item.add_marker(pytest.mark.skip(reason="; ".join(why)))
        plan.order(items)
        run.planned = plan.wanted(items, run.spec).measured
        run.asked = promises.asked(items)
        try:
            run.claims = claims.plan(run, items)
        except JournalError as error:
            raise pytest.UsageError(str(error)) from error
        return
    for item in filter(marks.needs_drives, items):
        item.add_marker(pytest.mark.skip(reason=marks.NO_DRIVES))


def _objections(item: pytest.Item, run: Qualification) -> tuple[str, ...]:
    """Why the run cannot do what a test needs, before anything is measured for it."""
    names = getattr(item, "fixturenames", ())
    of_lots = lots.objections(run.spec, len(run.bay.drives)) if "lot" in names else ()
    of_searches = (NO_HYPOTHESIS,) if {"explore", "integrity"} & set(names) and not find_spec("hypothesis") else ()
    return (*needs.objections(needs.of(item), run.bay.drives), *of_lots, *of_searches)


def header(config: pytest.Config) -> list[str]:
    """What is tested, how, and where the evidence goes."""
    run = config.stash[QUALIFICATION]
    narrator = config.pluginmanager.get_plugin("ssdqual-narrator")
    watched = [f"live page: {narrator.url}"] if narrator and narrator.url else []
    return watched + terminal.header_lines(
        terminal.Header(
            models=tuple(drive.model for drive in run.bay.drives),
            machine=run.bay.machine,
            protocol=run.protocol.name,
            acceptance=run.acceptance,
            spec=run.spec.name,
            run_folder=run.journal.path if run.journal else None,
            remarks=run.bay.remarks,
        )
    )


def tell_plan(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Arrays, workloads, time and bytes of what is to be measured; the progress line counts down its total.

    With --collect-only nothing now: hundreds of lines of tests follow, and the plan is what was asked for.
    """
    run = config.stash[QUALIFICATION]
    found = _foreseen(run, items)
    if found is None:
        return []
    narrator = config.pluginmanager.get_plugin("ssdqual-narrator")
    if narrator:
        narrator.take(Planned(found.seconds))
        if config.option.collectonly:
            narrator.plan = plan_lines(found)
            return []
    return plan_lines(found)


def _foreseen(run: Qualification, items: Sequence[pytest.Item]) -> Plan | None:
    """What these tests take; None if nothing is to be measured."""
    wanted = plan.missing(plan.wanted(items, run.spec), run.memory)
    if not wanted.geometries:
        return None
    drive_bytes = min(drive.size_bytes for drive in run.bay.drives)
    tails = promises.tails(run.asked, run.spec)
    found = forecast.predict(wanted, run.protocol, run.spec, len(run.bay.drives), drive_bytes, tails)
    run.planned_s = found.seconds
    return found


def _seconds(run: Qualification, items: Sequence[pytest.Item]) -> float | None:
    found = _foreseen(run, items)
    return found.seconds if found else None


class Narrator:
    """On the controller: collects the evidence that reports carry, and tells it at the end."""

    def __init__(self, config: pytest.Config, run: Qualification, page: Broadcast | None = None) -> None:
        self._config = config
        self._run = run
        #: With the ids of their tests.
        self._evidence: list[tuple[str, Evidence]] = []
        #: To be told at the end.
        self.plan: list[str] = []
        self._incomplete = ""
        self._tally: Tally | None = None
        self._session: pytest.Session | None = None
        self._page = page
        #: What the page is told, should pytest die before the session finishes.
        self._status = int(pytest.ExitCode.INTERNAL_ERROR)
        #: Set when the session starts: while plugins are configured, there is no terminal reporter yet.
        self._onlookers: Onlookers

    @property
    def url(self) -> str:
        """Of the live page; empty if there is none."""
        return self._page.server.url if self._page else ""

    def take(self, news: News) -> None:
        """News of the only bay, when this process is the one that measures."""
        self._onlookers.take(news)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._onlookers.reported(report)
        for each in carried_by(report):
            self._evidence.append((report.nodeid, each))
            self._onlookers.judged(report.nodeid, each)
            record = {"test": report.nodeid, **each.to_record()}
            resumed = self._run.resumed
            if news := resumed.verdicts.news(record) if resumed else record:
                self._note(report, "verdict" if each.is_promised else "observation", news)
            self._config.hook.pytest_ssdqual_record(record=record)
        if report.outcome == "failed" and (kind := _kind(report)):
            crash = getattr(report.longrepr, "reprcrash", None)
            message = getattr(crash, "message", report.longreprtext)
            self._note(report, kind, {"test": report.nodeid, "message": message})
            self._onlookers.wrong(report.nodeid, message)
        elif report.outcome == "skipped" and not carried_by(report):
            self._note(report, "skipped", {"test": report.nodeid, "reason": _reason(report)})

    def _note(self, report: pytest.TestReport, kind: str, facts: dict[str, object]) -> None:
        """Into the run folder; what cannot be kept there must not be green, and nothing more is tried."""
        if self._run.journal is None:
            return
        try:
            self._run.journal.note(kind, **facts)
        except JournalError as error:
            if self._session and not self._session.shouldstop:
                self._session.shouldstop = str(error)
            if report.outcome != "failed":
                # An error, not a failure: see ``outcome``.
                report.outcome, report.when, report.longrepr = "failed", "setup", str(error)

    @pytest.hookimpl
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session
        self._onlookers = Onlookers(self._config, self._run, self._page)
        self._run.glance_s = self._onlookers.period_s
        self._config.add_cleanup(lambda: self._onlookers.ended(self._status))
        if self._page and self._config.get_verbosity() < 0 and (reporter := _terminal(self._config)):
            reporter.write_line(f"ssdqual: live page: {self.url}")  # there is no header
        bay = self._run.bay
        if self._run.settings.junit_properties:
            facts = {**bay.facts, "drives": " ".join(drive.identity for drive in bay.drives)}
            facts |= {"machine": bay.machine, "spec": self._run.spec.key, "protocol": self._run.protocol.name}
            junit.add_suite_properties(self._config, [(f"ssd.{name}", value) for name, value in facts.items()])

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        folder = self._run.journal.path if self._run.journal else None
        for line in self.plan:
            terminalreporter.write_line(line)
        terminal.write_table(
            terminalreporter,
            [each for _, each in self._evidence],
            self._tally,
            width=terminalreporter._tw.fullwidth,
            verbosity=self._config.get_verbosity(),
            run_folder=folder,
        )
        for sentence in worsened_drives(folder) if folder else ():
            terminalreporter.write_line(sentence, red=True)
        if self._run.page:
            failed = bool(self._run.page.failed)
            terminalreporter.write_line(printable.line(f"{self._run.page}"), yellow=failed)
        for complaint in self._run.complaints:
            terminalreporter.write_line(complaint, yellow=True)
        if self._incomplete:
            terminalreporter.write_line(f"the run folder is not complete: {self._incomplete}", red=True)

    # Before JUnit's file is written, and after that, but before the terminal's summary.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None]:
        self._count()
        self._status = int(exitstatus)
        yield
        try:
            self._run.finish(int(exitstatus))
        except JournalError as error:
            self._incomplete = str(error)
            session.exitstatus = exitstatus or pytest.ExitCode.TESTS_FAILED
            self._status = int(session.exitstatus)

    def _count(self) -> None:
        """All verdicts together: for the summary, the manifest and JUnit."""
        run = self._run
        # Where xdist collects, this process has not counted.
        planned = claims.planned_in(read_records(run.journal.path)) if run.journal else None
        of_all = replace(run.family, claims=planned or run.claims)
        self._tally = tally(self._evidence, of_all, run.protocol.verdict.confidence, run.protocol.name)
        if self._tally and run.manifest:
            run.manifest = replace(run.manifest, family=self._tally.to_record())
        if self._tally and run.settings.junit_properties:
            facts = [(f"ssd.{name}", value) for name, value in properties(self._tally)]
            junit.add_suite_properties(self._config, facts)


def _kind(report: pytest.TestReport) -> str:
    """Of the record of a test that ended without a verdict; none where a broken promise is the reason."""
    if report.when != "call":
        return "error"
    return "" if any(each.outcome is Finding.FAIL for each in carried_by(report)) else "failed"


def _reason(report: pytest.TestReport) -> str:
    """Why a test was skipped, in its own words."""
    found = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(report, "wasxfail", "")
    return found.removeprefix("Skipped: ")


def _terminal(config: pytest.Config) -> pytest.TerminalReporter | None:
    found: pytest.TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
    return found
