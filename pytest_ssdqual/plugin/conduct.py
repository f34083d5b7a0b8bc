"""What the hooks of ``plugin`` do in a run that has our tests: set up, arrange, tell, and end in order."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from importlib.util import find_spec

import pytest

from pytest_ssdqual.plugin import claims, distribute, forecast, lots, marks, needs, plan, promises
from pytest_ssdqual.plugin.progress import on_terminal
from pytest_ssdqual.plugin.qualification import Qualification, begin, join
from pytest_ssdqual.plugin.stash import QUALIFICATION
from pytest_ssdqual.qual import printable
from pytest_ssdqual.report import junit, terminal
from pytest_ssdqual.report.evidence import Evidence, carried_by
from pytest_ssdqual.report.family import Tally, properties, tally
from pytest_ssdqual.report.journal import JournalError
from pytest_ssdqual.report.plan_text import plan_lines
from pytest_ssdqual.report.progress import Progress
from pytest_ssdqual.report.records import read_records, worsened_drives
from pytest_ssdqual.rig.machine import SENTENCE_CHARACTERS

NO_HYPOTHESIS = "searches draw what they try with hypothesis: pip install 'pytest-ssdqual[search]'"


def configure(config: pytest.Config) -> None:
    """Begin the run on the controller, or join it on a worker."""
    told = distribute.given(config)
    try:
        run = join(config, told) if told is not None else begin(config)
    except pytest.UsageError as error:  # it may quote what a drive, a tool or a file of somebody else says
        raise pytest.UsageError(printable.lines(str(error), SENTENCE_CHARACTERS)) from error
    if run is None:
        return
    config.stash[QUALIFICATION] = run
    config.add_cleanup(run.stack.close)
    if told is None:
        distribute.register(config)
        config.pluginmanager.register(Narrator(config, run), "ssdqual-narrator")


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
    return terminal.header_lines(
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
    wanted = plan.missing(plan.wanted(items, run.spec), run.memory)
    if not wanted.geometries:
        return []
    drive_bytes = min(drive.size_bytes for drive in run.bay.drives)
    found = forecast.predict(wanted, run.protocol, run.spec, len(run.bay.drives), drive_bytes)
    narrator = config.pluginmanager.get_plugin("ssdqual-narrator")
    if narrator:
        narrator.progress.total_s = found.seconds
        if config.option.collectonly:
            narrator.plan = plan_lines(found)
            return []
    return plan_lines(found)


class Narrator:
    """On the controller: collects the evidence that reports carry, and tells it at the end."""

    def __init__(self, config: pytest.Config, run: Qualification) -> None:
        self._config = config
        self._run = run
        #: With the ids of their tests.
        self._evidence: list[tuple[str, Evidence]] = []
        #: To be told at the end.
        self.plan: list[str] = []
        self._incomplete = ""
        self._tally: Tally | None = None
        self._session: pytest.Session | None = None
        #: Set when the session starts: while plugins are configured, there is no terminal reporter yet.
        self.progress: Progress

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.progress.idle()
        for each in carried_by(report):
            self._evidence.append((report.nodeid, each))
            record = {"test": report.nodeid, **each.to_record()}
            resumed = self._run.resumed
            if news := resumed.verdicts.news(record) if resumed else record:
                self._note(report, "verdict" if each.is_promised else "observation", news)
            self._config.hook.pytest_ssdqual_record(record=record)
        if report.outcome == "failed" and report.when != "call":
            crash = getattr(report.longrepr, "reprcrash", None)
            message = getattr(crash, "message", report.longreprtext)
            self._note(report, "error", {"test": report.nodeid, "message": message})

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
        self.progress = on_terminal(self._config)
        self.progress.__enter__()
        self._config.add_cleanup(lambda: self.progress.__exit__(None, None, None))
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
        if self._incomplete:
            terminalreporter.write_line(f"the run folder is not complete: {self._incomplete}", red=True)

    # Before JUnit's file is written, and after that, but before the terminal's summary.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None]:
        self._count()
        yield
        try:
            self._run.finish(int(exitstatus))
        except JournalError as error:
            self._incomplete = str(error)
            session.exitstatus = exitstatus or pytest.ExitCode.TESTS_FAILED

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
