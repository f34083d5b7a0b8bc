"""Implements the hooks of ``plugin`` in a run with drives: start, order of tests, summary, and an orderly end."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pytest_ssdqual.plugin import gate
from pytest_ssdqual.plugin.bay import fitting, sheets
from pytest_ssdqual.plugin.fleet import xdist
from pytest_ssdqual.plugin.fleet.bays import FleetRun
from pytest_ssdqual.plugin.fleet.worker import BayWorker, Worker
from pytest_ssdqual.plugin.judging import lot
from pytest_ssdqual.plugin.options import arguments, other_plugins
from pytest_ssdqual.plugin.options.settings import notify_stall_s
from pytest_ssdqual.plugin.options.values import usage_error
from pytest_ssdqual.plugin.plan import marks, needs, order, unpromised
from pytest_ssdqual.plugin.session import attachments, resume
from pytest_ssdqual.plugin.session import recorder as claims
from pytest_ssdqual.plugin.session.folded import FoldedFailures
from pytest_ssdqual.plugin.session.outcome import OutermostHooks
from pytest_ssdqual.plugin.session.qualification import Qualification
from pytest_ssdqual.plugin.session.recorder import Recorder
from pytest_ssdqual.plugin.session.start import begin, join
from pytest_ssdqual.plugin.session.state import BayRun
from pytest_ssdqual.plugin.stash import COLLECTED, RUN
from pytest_ssdqual.plugin.watch import live_page, terminal
from pytest_ssdqual.plugin.watch.live_page import LivePageFeed
from pytest_ssdqual.plugin.watch.notifier import Notifier
from pytest_ssdqual.plugin.watch.observers import Observers, WorkerEvents
from pytest_ssdqual.plugin.watch.receivers import receivers
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.notification import without_secrets
from pytest_ssdqual.qual.progress_events import News
from pytest_ssdqual.qual.spec import spec as specs
from pytest_ssdqual.report.evidence.evidence import carried_by
from pytest_ssdqual.report.run_folder.journal import JournalError
from pytest_ssdqual.report.terminal import summary
from pytest_ssdqual.report.terminal.plan import comparison_lines, plan_lines
from pytest_ssdqual.rig.machine.interrupts import put_off
from pytest_ssdqual.rig.machine.machine import SENTENCE_CHARACTERS

#: Message after Ctrl-C, or another signal that ends a run, during the checks of drives or while the run waits for them.
STOPPED = "ssdqual: stopped before the run had begun: nothing was measured, and no array was built"
NOT_INVITED = "ssdqual: the controller has begun no run, so this worker must not begin one of its own"
READ_ONLY = "--ssd-read-only: the test may write to drives"
NO_HYPOTHESIS = "searches need hypothesis: pip install 'pytest-ssdqual[search]'"


def configure(config: pytest.Config) -> None:
    """Begin the run on the controller, or join it on a worker."""
    worker_data = xdist.given(config)
    if worker_data == xdist.IDLE:
        config.pluginmanager.register(xdist.IdleWorker(), "ssdqual-idle")
        return
    if worker_data is None and xdist.is_worker(config):
        raise pytest.UsageError(NOT_INVITED)
    try:
        if worker_data is None:
            _control(config)
        else:
            _work(config, join(config, worker_data))
    except pytest.UsageError as error:  # it may quote a drive, a tool or a file
        raise pytest.UsageError(safe_text.lines(str(error), SENTENCE_CHARACTERS)) from error
    except KeyboardInterrupt:  # pytest itself prints nothing this early
        if worker_data is not None:  # on a worker the run has begun
            raise
        pytest.exit(STOPPED, returncode=pytest.ExitCode.INTERRUPTED)


def _control(config: pytest.Config) -> None:
    """Begin the run, and register the hooks of the controller."""
    arguments.require(config)
    notified, stall_s = receivers(config), notify_stall_s(config)
    page = live_page.opened(config)
    runs, fleet = begin(config)
    judged = [run.qualification for run in runs]
    journal = judged[0].journal
    folder = journal.path if journal else None
    if fleet:
        folder = fleet.path
    _register(config, runs, folder, is_single=fleet is None)
    watched = LivePageFeed(page, judged, folder) if page else None
    is_real = not config.option.collectonly
    notifier = Notifier(config, notified, judged, folder, stall_s) if is_real else None
    xdist.register(config, runs)
    controller = SessionController(config, runs, watched, fleet, folder, notifier)
    config.pluginmanager.register(controller, "ssdqual-controller")
    config.pluginmanager.register(SessionEnd(controller), "ssdqual-session-end")
    config.pluginmanager.register(FoldedFailures(), "ssdqual-folded-failures")
    config.add_cleanup(controller.keep_status)  # after the next one
    config.add_cleanup(controller.close_late)


def _work(config: pytest.Config, run: BayRun) -> None:
    """Register the hooks of a worker."""
    journal = run.qualification.journal
    _register(config, [run], journal.path if journal else None, is_single=True)
    xdist.take_time_to_end(config)
    config.pluginmanager.register(WorkerEvents(run), "ssdqual-worker-events")
    worker = BayWorker(run) if run.qualification.name else Worker()
    config.pluginmanager.register(worker, "ssdqual-worker")


def _register(config: pytest.Config, runs: Sequence[BayRun], folder: Path | None, *, is_single: bool) -> None:
    """Register what every process of a run has; ``folder`` is that of the run or of the fleet."""
    for run in runs:
        config.add_cleanup(run.stack.close)
    attachments.register(config, folder, paged=runs[0].qualification.settings.page)
    if is_single:
        config.stash[RUN] = runs[0]


def arrange(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order hardware tests by the plan and skip those that these drives cannot serve; without drives, skip all."""
    run = config.stash.get(RUN, None)
    marks.require_promises(items)
    if run is not None:
        try:
            _arrange(run, items)
        except pytest.UsageError as error:
            items.clear()  # pytest still prints a plan
            if xdist.is_worker(config) and not run.qualification.name:
                # The controller gets it so, because xdist does not send usage errors.
                refusal = pytest.CollectReport("ssdqual", "failed", str(error), [])
                config.hook.pytest_collectreport(report=refusal)
            raise
        return
    for item in filter(marks.needs_drives, items):
        item.add_marker(pytest.mark.skip(reason=marks.NO_DRIVES))


def _arrange(run: BayRun, items: list[pytest.Item]) -> None:
    """Order the tests of a run with drives, and skip those that it cannot serve or has no limits for."""
    for item in marks.selected(items):
        if why := _objections(item, run.qualification):
            item.add_marker(pytest.mark.skip(reason="; ".join(why)))
    if mixed := fitting.refused_array(run.qualification):
        for item in marks.selected(items):
            if any(not step.geometry.is_side_by_side for step in needs.of(item)):
                raise pytest.UsageError(f"{item.nodeid}: {mixed}")
    _require_searches(items)
    other_plugins.require_once(filter(marks.needs_drives, items))
    _require_limits(run.qualification, items)
    run.leave_out_unpromised(items)
    with usage_error(JournalError):
        order.order(items, of_drives=run.qualification.protocol.conditions_drives)
        run.claims = claims.plan(run.qualification, items)


def plan(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Plan the measurements of the tests that will run, and record these tests."""
    run = config.stash[RUN]
    plugins = config.pluginmanager
    plugins.register(OutermostHooks(plugins.get_plugin("ssdqual-attachments")), "ssdqual-outermost")
    run.plan(items)
    _require_time(run, items)
    _require_possible(config, run)
    collected = config.stash.get(COLLECTED, list[pytest.Item]())
    with usage_error(JournalError):
        claims.plan_tests(run.qualification, items, collected)


def _require_time(run: BayRun, items: Sequence[pytest.Item]) -> None:
    """Raise ``pytest.UsageError`` if pytest-timeout would end a test before the longest step of the plan has ended."""
    limit = other_plugins.shortest_limit(marks.selected(items))
    found = run.forecast if limit else None
    if limit and found and (why := limit.objection(found.longest_s)):
        raise pytest.UsageError(why)


def _require_possible(config: pytest.Config, run: BayRun) -> None:
    """Raise ``pytest.UsageError`` if the sheet says that the run would take days and end in errors."""
    if not config.option.collectonly and run.forecast and run.forecast.impossible:
        raise pytest.UsageError("; ".join(run.forecast.impossible))


def _require_limits(run: Qualification, items: Sequence[pytest.Item]) -> None:
    """Raise ``pytest.UsageError`` if the selected tests have their limits from what nobody has named: a sheet, or the
    plan of a lot.
    """
    hardware = marks.selected(items)
    without_plan = next((each for each in hardware if "ssd_lot" in marks.fixtures(each)), None)
    if without_plan and (why := lot.without_plan(run.spec)):
        raise pytest.UsageError(f"{without_plan.nodeid}: {why}")
    own = [run.spec.of(drive.name) for drive in run.bay.drives]
    default = {spec.drive_class: spec for spec in own if spec.key == specs.DEFAULT}
    sheets.require(run, unpromised.of_a_sheet(items, tuple(default.values())), len(hardware))


def _require_searches(items: Sequence[pytest.Item]) -> None:
    """Raise ``pytest.UsageError`` if a test that may run needs hypothesis, which is not installed.

    Skipping it would leave a suite about lost data without a verdict beside a green one.
    """
    for item in marks.selected(items):
        is_search = {"ssd_explore", "ssd_integrity"} & set(marks.fixtures(item))
        if is_search and not find_spec("hypothesis"):
            raise pytest.UsageError(f"{item.nodeid}: {NO_HYPOTHESIS}")


def _objections(item: pytest.Item, run: Qualification) -> tuple[str, ...]:
    """Return the reasons why the run cannot serve a test, before it measures anything."""
    names = marks.fixtures(item)
    if run.settings.read_only and "_ssd_campaign" in names:
        return (READ_ONLY,)
    if "ssd_explore" in names and (why := _unsearched(run)):
        return (why,)
    of_lots = lot.objections(run.spec, len(run.bay.drives)) if "ssd_lot" in names else ()
    return (*needs.objections(needs.of(item), run.bay.drives), *of_lots)


def _unsearched(run: Qualification) -> str:
    """Return why a search would measure nothing; empty if the spec itself has a promise that it could break."""
    from pytest_ssdqual.plugin.searches.explore import searched

    if searched(run.spec):
        return ""
    return (
        f'{run.spec.name} itself has no promise that a search could break: write e.g. a promise with workload = "*" '
        "into a spec of your own"
    )


def header(config: pytest.Config) -> list[str]:
    """Return the lines of the header: the drives, the protocol, the spec and the run folder."""
    controller: Any = config.pluginmanager.get_plugin("ssdqual-controller")
    lines: list[str] = controller.header()
    return lines


def _skipped(items: Sequence[pytest.Item]) -> list[str]:
    """Return a sentence about the hardware tests that will be skipped, with the most frequent reasons."""
    hardware = list(filter(marks.needs_drives, items))
    skips = [mark for item in hardware if (mark := item.get_closest_marker("skip"))]
    if not skips:
        return []
    reasons = (str(mark.kwargs.get("reason") or next(iter(mark.args), "no reason given")) for mark in skips)
    nothing = "nothing would be judged: " if len(skips) == len(hardware) else ""
    of = f"{len(skips):,} of {len(hardware):,} hardware tests would be skipped"
    return [f"ssdqual: {nothing}{of}: {gate.frequent(reasons)}"]


def tell_plan(config: pytest.Config, items: Sequence[pytest.Item]) -> list[str]:
    """Return the printed plan: arrays, workloads, time and bytes; the progress line counts down its total.

    With --collect-only the summary prints the plan, because hundreds of lines of tests follow here; with -v also what
    other protocols would take.
    """
    run = config.stash[RUN]
    found = run.forecast
    compared = run.comparison() if found and config.option.collectonly and config.get_verbosity() > 0 else ()
    skipped = _skipped(items) if config.option.collectonly else []
    without_limit = run.unpromised.sentence
    if found is None and not skipped and not without_limit:
        return []
    planned = plan_lines(found) if found else [f"ssdqual: {without_limit}"] * bool(without_limit)
    lines = [*planned, *skipped]
    controller = config.pluginmanager.get_plugin("ssdqual-controller")
    if controller:
        if found:
            controller.take(found.planned)
        if config.option.collectonly:
            controller.plan = lines
            controller.plan += comparison_lines(compared) if compared else []
            return []
    return [safe_text.line(each, summary.LINE_CHARACTERS) for each in lines]


class SessionController:
    """On the controller: passes reports to the recorders of their bays, and prints the summary."""

    def __init__(
        self,
        config: pytest.Config,
        runs: Sequence[BayRun],
        page: LivePageFeed | None,
        fleet: FleetRun | None,
        folder: Path | None,
        notifier: Notifier | None,
    ) -> None:
        self._config = config
        self._notifier = notifier
        self._folder = folder
        self._is_lab = any(run.qualification.settings.devices.lab is not None for run in runs)
        self._recorders = {run.qualification.name: Recorder(config, run) for run in runs}
        self._fleet = fleet
        #: The plan for the summary, with --collect-only.
        self.plan: list[str] = []
        self._page = page
        #: Exit status on the live page if pytest fails before the session finishes.
        self._status = int(pytest.ExitCode.INTERNAL_ERROR)
        #: Exceptions of plugins, this one included, while the session ended.
        self.errors: list[BaseException] = []
        self._is_closed = self._has_summary = False
        #: A test has begun, so that there is something to continue with.
        self._has_begun = False
        #: Set when the session starts: while plugins are configured, there is no terminal reporter yet.
        self._observers: Observers

    @property
    def url(self) -> str:
        """Address of the live page; empty if there is none."""
        return self._page.server.url if self._page else ""

    def header(self) -> list[str]:
        """Return the lines of the header: the drives, the protocol, the spec and the run folder."""
        watched = [f"live page: {self.url}"] if self._page else []
        if self._fleet:
            return [*watched, *self._fleet.header()]
        (recorder,) = self._recorders.values()
        return [*watched, *summary.header_lines(recorder.run.qualification.header)]

    def take(self, event: News) -> None:
        """Take a progress event of the only bay, if this process measures."""
        self._observers.take(event)

    def finish(self, bay: str) -> None:
        """Finish one of several bays after its last test, unless drawing its page would slow down the other bays."""
        recorder = self._recorders[bay]
        others = [each for each in self._recorders.values() if each is not recorder and not each.is_finished]
        if any(each.run.qualification.settings.devices.is_here for each in others):
            return
        with put_off():
            self._note_unnotified(recorder)
            try:
                with ExitStack() as last:
                    last.callback(lambda: recorder.finish(recorder.status(int(pytest.ExitCode.OK))))
                    recorder.count(recorder.status(int(pytest.ExitCode.OK)))
            except Exception as error:  # the other bays continue
                message = safe_text.line(f"{type(error).__name__}: {error}", SENTENCE_CHARACTERS)
                recorder.incomplete = recorder.incomplete or message

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._observers.reported(report)
        evidence = carried_by(report)
        for each in evidence:
            self._observers.judged(report.nodeid, each)
        recorder = self._recorders.get(xdist.bay_of(report))
        message = recorder.take(report, evidence) if recorder else ""
        if self._notifier and recorder:
            self._notifier.reported(recorder.run.qualification.name, evidence, message)
        if message:
            self._observers.wrong(report.nodeid, message)

    @pytest.hookimpl
    def pytest_runtest_logstart(self) -> None:
        self._has_begun = True

    @pytest.hookimpl
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        recorders = list(self._recorders.values())
        terminal.outlive(self._config, self._note_lost_output)
        self._observers = Observers(
            self._config, [each.run.qualification for each in recorders], self._page, self._notifier
        )
        self._config.add_cleanup(lambda: self._observers.ended(self._status))
        if self._page and self._config.get_verbosity() < 0 and (reporter := _terminal(self._config)):
            summary.write_line(reporter, f"ssdqual: live page: {self.url}")  # pytest prints no header
        for each in recorders:
            each.run.glance_s = self._observers.period_s
            each.add_properties()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Print the plan, which the worker has just sent."""
        self._observers.poll()

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        self._has_summary = True
        for line in self.plan:
            summary.write_line(terminalreporter, line)
        if self._fleet:
            self._fleet.write_summary(terminalreporter, list(self._recorders.values()))
        else:
            (recorder,) = self._recorders.values()
            recorder.write_summary(terminalreporter)
        for complaint in self._notifier.complaints() if self._notifier else ():
            summary.write_line(terminalreporter, f"ssdqual: {complaint}", yellow=True)
        for error in self.errors:
            message = f"ssdqual: an error while the session ended: {type(error).__name__}: {error}"
            summary.write_line(terminalreporter, message, red=True)
        # The lab of a run is gone with it.
        if self._status == pytest.ExitCode.INTERRUPTED and self._has_begun and self._folder and not self._is_lab:
            settings = next(iter(self._recorders.values())).run.qualification.settings
            is_below = (settings.run_root / self._folder.name).absolute() == self._folder.absolute()
            name = self._folder.name if is_below else str(self._folder)
            command = resume.command(without_secrets(map(str, self._config.invocation_params.args)), name)
            summary.write_line(terminalreporter, f"ssdqual: continue with: {command}")

    # Before JUnit's file is written, and after that, but before the terminal's summary.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Store what the hooks of other plugins raise; ``SessionEnd`` raises it again after the summary."""
        self._count(int(session.exitstatus))
        with self._errors_stored():
            yield
        self._close(session)

    def _count(self, status: int) -> None:
        for each in self._recorders.values():
            with self._errors_stored():
                if not each.is_finished:
                    each.count(each.status(status) if self._fleet else status)
        with self._errors_stored():
            for bay, (sentence, is_finding) in self._fleet.left().items() if self._fleet else ():
                gate.of(self._config).close(bay, sentence, is_finding=is_finding)

    def _close(self, session: pytest.Session) -> None:
        """Finish every bay that is not finished, and the fleet."""
        self._is_closed = True
        self._observers.finish()
        recorders = list(self._recorders.values())
        # Neither another hook nor an exception may end it with status 0.
        status = int(session.exitstatus) or max(each.required_status for each in recorders)
        if self.errors:
            status = status or int(pytest.ExitCode.TESTS_FAILED)
        for each in recorders:
            self._note_unnotified(each)
        with self._errors_stored(), ExitStack() as last:  # an exception of one does not keep the others from finishing
            for each in reversed([each for each in recorders if not each.is_finished]):
                last.callback(each.finish, each.status(status) if self._fleet else status)
        incomplete = any(each.incomplete for each in recorders)
        with self._errors_stored():
            if self._fleet:
                incomplete |= not self._fleet.finish(status)
        if incomplete or self.errors:
            status = status or int(pytest.ExitCode.TESTS_FAILED)
        self._status = session.exitstatus = status
        if self._notifier:
            self._notifier.ended(status)

    def close_late(self, error: BaseException | None = None) -> None:
        """Finish the run and print the summary, if another plugin raised before that."""
        session = self._config.pluginmanager.get_plugin("session")
        late = None if self._is_closed else session
        if error or late:
            self.errors.append(error or RuntimeError("pytest ended before the run was closed"))
        if late:
            self._count(int(late.exitstatus))
            self._close(late)
        reporter = _terminal(self._config)
        if self.errors and reporter and not (self._has_summary or getattr(reporter, "no_summary", False)):
            self.pytest_terminal_summary(reporter)

    def keep_status(self) -> None:
        """Set the exit status again if another plugin has set 0 since; pytest reads it after its last hook."""
        session = self._config.pluginmanager.get_plugin("session")
        if session and self._is_closed and self._status and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = self._status
            print(f"ssdqual: exit status {self._status} instead of 0, which a hook or plugin has set", file=sys.stderr)

    def _note_unnotified(self, recorder: Recorder) -> None:
        if self._notifier and not recorder.is_finished:
            self._notifier.note_failed(recorder.run.qualification.name)

    def _note_lost_output(self, error: OSError) -> None:
        for each in self._recorders.values():
            if journal := each.run.qualification.journal:
                with suppress(JournalError):  # it may be on the same full disk, and whatever it records next says so
                    journal.note("output_lost", reason=error.strerror or str(error))

    @contextmanager
    def _errors_stored(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.errors.append(error)


class SessionEnd:
    """Outermost ``pytest_sessionfinish``: raises the exceptions of other plugins after everything is written."""

    def __init__(self, controller: SessionController) -> None:
        self._controller = controller

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None]:
        try:
            yield
        except BaseException as error:
            self._controller.close_late(error)
            raise
        if self._controller.errors:
            raise self._controller.errors[0]


def _terminal(config: pytest.Config) -> pytest.TerminalReporter | None:
    found: pytest.TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
    return found
