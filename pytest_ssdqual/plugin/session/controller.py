"""What the hooks of ``plugin`` do in a run that has our tests: set up, arrange, tell, and end in order."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import pytest

from pytest_ssdqual.plugin.fleet import xdist
from pytest_ssdqual.plugin.fleet.bays import FleetRun
from pytest_ssdqual.plugin.fleet.worker import OfSeveral
from pytest_ssdqual.plugin.judging import lot
from pytest_ssdqual.plugin.options import arguments
from pytest_ssdqual.plugin.plan import forecast, marks, needs, order, stopping
from pytest_ssdqual.plugin.session import attachments
from pytest_ssdqual.plugin.session import recorder as claims
from pytest_ssdqual.plugin.session.recorder import Recorder
from pytest_ssdqual.plugin.session.start import begin, join
from pytest_ssdqual.plugin.session.state import Qualification
from pytest_ssdqual.plugin.session.stop import put_off
from pytest_ssdqual.plugin.stash import QUALIFICATION
from pytest_ssdqual.plugin.watch import live_page
from pytest_ssdqual.plugin.watch.live_page import Broadcast
from pytest_ssdqual.plugin.watch.observers import Onlookers, Teller
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.progress_events import News
from pytest_ssdqual.report.evidence.evidence import carried_by
from pytest_ssdqual.report.run_folder.journal import JournalError
from pytest_ssdqual.report.terminal import summary
from pytest_ssdqual.report.terminal.plan import PrintedPlan, plan_lines
from pytest_ssdqual.rig.machine.machine import SENTENCE_CHARACTERS

#: What Ctrl-C says, and SIGTERM, while drives are looked at or waited for.
STOPPED = "ssdqual: stopped before the run had begun: nothing was measured, and no array was built"
NO_HYPOTHESIS = "searches draw what they try with hypothesis: pip install 'pytest-ssdqual[search]'"


def configure(config: pytest.Config) -> None:
    """Begin the run on the controller, or join it on a worker."""
    told = xdist.given(config)
    if told == xdist.IDLE:
        xdist.send_home(config)
        return
    try:
        if told is None:
            arguments.require(config)
        page = live_page.opened(config) if told is None else None
        found = join(config, told) if told is not None else begin(config)
    except pytest.UsageError as error:  # it may quote what a drive, a tool or a file of somebody else says
        raise pytest.UsageError(safe_text.lines(str(error), SENTENCE_CHARACTERS)) from error
    except KeyboardInterrupt:  # of which pytest says nothing as early as this
        if told is not None:  # the run has begun long ago
            raise
        pytest.exit(STOPPED, returncode=pytest.ExitCode.INTERRUPTED)
    if found is None:
        return
    runs, fleet = ((found,), None) if isinstance(found, Qualification) else (found.runs, found)
    for run in runs:
        config.add_cleanup(run.stack.close)
    journal = runs[0].journal
    folder = fleet.path if fleet else journal.path if journal else None
    attachments.register(config, folder, paged=runs[0].settings.page)
    if fleet is None:
        config.stash[QUALIFICATION] = runs[0]
    if told is None:
        xdist.register(config, runs)
        watched = Broadcast(page, runs, folder) if page else None
        narrator = Narrator(config, runs, watched, fleet)
        config.pluginmanager.register(narrator, "ssdqual-narrator")
        config.pluginmanager.register(SessionEnd(narrator), "ssdqual-session-end")
        config.add_cleanup(narrator.close_late)
    else:
        xdist.take_time_to_end(config)
        runs[0].glance_s = told["glance_s"]
        config.pluginmanager.register(Teller(runs[0], partial(_foreseen, runs[0])), "ssdqual-teller")
        if runs[0].name:
            config.pluginmanager.register(OfSeveral(runs[0]), "ssdqual-of-several")


def arrange(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order our tests by the plan, skip what these drives cannot do; without drives, skip all with what to type."""
    run = config.stash.get(QUALIFICATION, None)
    marks.require_promises(items)
    if run is not None:
        for item in filter(marks.needs_drives, items):
            if not item.get_closest_marker("skip") and (why := _objections(item, run)):
                item.add_marker(pytest.mark.skip(reason="; ".join(why)))
        order.order(items)
        run.planned = order.wanted(items, run.spec).measured
        run.asked = stopping.asked(items)
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
    of_lots = lot.objections(run.spec, len(run.bay.drives)) if "ssd_lot" in names else ()
    is_search = "ssd_explore" in names or "ssd_integrity" in names
    of_searches = (NO_HYPOTHESIS,) if is_search and not find_spec("hypothesis") else ()
    return (*needs.objections(needs.of(item), run.bay.drives), *of_lots, *of_searches)


def header(config: pytest.Config) -> list[str]:
    """What is tested, how, and where the evidence goes."""
    narrator: Any = config.pluginmanager.get_plugin("ssdqual-narrator")
    watched = [f"live page: {narrator.url}"] if narrator.url else []
    return [*watched, *narrator.header()]


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
        narrator.take(found.told)
        if config.option.collectonly:
            narrator.plan = plan_lines(found)
            return []
    return [safe_text.line(each, summary.LINE_CHARACTERS) for each in plan_lines(found)]


def _foreseen(run: Qualification, items: Sequence[pytest.Item]) -> PrintedPlan | None:
    """What these tests take; None if nothing is to be measured."""
    wanted = order.missing(order.wanted(items, run.spec), run.memory)
    if not wanted.geometries:
        return None
    drive_bytes = min(drive.size_bytes for drive in run.bay.drives)
    tails = stopping.tails(run.asked, run.spec)
    found = forecast.predict(wanted, run.protocol, run.spec, len(run.bay.drives), drive_bytes, tails)
    found = replace(found, is_expected=run.expected is not None)
    run.planned_s = found.seconds
    return found


class Narrator:
    """On the controller: hands reports to the recorders of their bays, and tells what came of all of them."""

    def __init__(
        self,
        config: pytest.Config,
        runs: Sequence[Qualification],
        page: Broadcast | None = None,
        fleet: FleetRun | None = None,
    ) -> None:
        self._config = config
        self._recorders = {run.name: Recorder(config, run) for run in runs}
        self._fleet = fleet
        #: To be told at the end.
        self.plan: list[str] = []
        self._page = page
        #: What the page is told, should pytest die before the session finishes.
        self._status = int(pytest.ExitCode.INTERNAL_ERROR)
        #: Exceptions of other plugins, and of this one, while the session ended.
        self.errors: list[BaseException] = []
        self._is_closed = self._has_told = False
        #: Set when the session starts: while plugins are configured, there is no terminal reporter yet.
        self._onlookers: Onlookers

    @property
    def url(self) -> str:
        """Of the live page; empty if there is none."""
        return self._page.server.url if self._page else ""

    def header(self) -> list[str]:
        """What is tested, how, and where the evidence goes."""
        if self._fleet:
            return self._fleet.header()
        (recorder,) = self._recorders.values()
        return summary.header_lines(recorder.run.header)

    def take(self, news: News) -> None:
        """News of the only bay, when this process is the one that measures."""
        self._onlookers.take(news)

    def finish(self, bay: str) -> None:
        """Of several: all its tests have been run, while others go on. Drawing its page must not slow these down."""
        recorder = self._recorders[bay]
        others = [each for each in self._recorders.values() if each is not recorder and not each.is_finished]
        if any(each.run.settings.devices.is_here for each in others):
            return
        with put_off():
            try:
                with ExitStack() as last:
                    last.callback(recorder.finish, recorder.status(int(pytest.ExitCode.OK)))
                    recorder.count()
            except Exception as error:  # whatever it is, the others go on
                said = safe_text.line(f"{type(error).__name__}: {error}", SENTENCE_CHARACTERS)
                recorder.incomplete = recorder.incomplete or said

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._onlookers.reported(report)
        for each in carried_by(report):
            self._onlookers.judged(report.nodeid, each)
        recorder = self._recorders.get(xdist.bay_of(report))
        message = recorder.take(report) if recorder else ""
        if message:
            self._onlookers.wrong(report.nodeid, message)

    @pytest.hookimpl
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        recorders = list(self._recorders.values())
        self._onlookers = Onlookers(self._config, [each.run for each in recorders], self._page)
        self._config.add_cleanup(lambda: self._onlookers.ended(self._status))
        if self._page and self._config.get_verbosity() < 0 and (reporter := _terminal(self._config)):
            summary.tell(reporter, f"ssdqual: live page: {self.url}")  # there is no header
        for each in recorders:
            each.run.glance_s = self._onlookers.period_s
            each.add_properties()

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        self._has_told = True
        for line in self.plan:
            summary.tell(terminalreporter, line)
        if self._fleet:
            self._fleet.tell(terminalreporter, list(self._recorders.values()))
        else:
            (recorder,) = self._recorders.values()
            recorder.tell(terminalreporter)
        for error in self.errors:
            said = f"ssdqual: an error while the session ended: {type(error).__name__}: {error}"
            summary.tell(terminalreporter, said, red=True)

    # Before JUnit's file is written, and after that, but before the terminal's summary.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Store what the hooks of other plugins raise; ``SessionEnd`` raises it again after the summary."""
        self._count()
        with self._remembered():
            yield
        self._close(session)

    def _count(self) -> None:
        for each in self._recorders.values():
            with self._remembered():
                if not each.is_finished:
                    each.count()

    def _close(self, session: pytest.Session) -> None:
        """Finish every bay that is not finished, and the fleet."""
        self._is_closed = True
        status = int(session.exitstatus)
        if self.errors:
            status = status or int(pytest.ExitCode.TESTS_FAILED)  # as of any process that ends with a traceback
        recorders = list(self._recorders.values())
        with self._remembered(), ExitStack() as last:  # whatever one of them comes to, the others are finished
            for each in reversed([each for each in recorders if not each.is_finished]):
                last.callback(each.finish, each.status(status) if self._fleet else status)
        incomplete = any(each.incomplete for each in recorders)
        with self._remembered():
            if self._fleet:
                incomplete |= not self._fleet.finish(status)
        if incomplete or self.errors:
            status = status or int(pytest.ExitCode.TESTS_FAILED)
        self._status = session.exitstatus = status

    def close_late(self, error: BaseException | None = None) -> None:
        """Do what is left of closing the run and of the summary because another plugin raised before that."""
        session = self._config.pluginmanager.get_plugin("session")
        late = None if self._is_closed else session
        if error or late:
            self.errors.append(error or RuntimeError("pytest ended before the run was closed"))
        if late:
            self._count()
            self._close(late)
        reporter = _terminal(self._config)
        if self.errors and reporter and not (self._has_told or reporter.no_summary):
            self.pytest_terminal_summary(reporter)

    @contextmanager
    def _remembered(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.errors.append(error)


class SessionEnd:
    """Outermost ``pytest_sessionfinish``: raises the exceptions of other plugins after everything is written."""

    def __init__(self, narrator: Narrator) -> None:
        self._narrator = narrator

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None]:
        try:
            yield
        except BaseException as error:
            self._narrator.close_late(error)
            raise
        if self._narrator.errors:
            raise self._narrator.errors[0]


def _terminal(config: pytest.Config) -> pytest.TerminalReporter | None:
    found: pytest.TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
    return found
