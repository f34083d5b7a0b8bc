"""Observers of a run: the terminal and the live page. This process or xdist's workers send the progress events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from pytest_ssdqual.plugin.session.qualification import Qualification
from pytest_ssdqual.plugin.session.state import BayRun
from pytest_ssdqual.plugin.watch.live_page import LivePageFeed
from pytest_ssdqual.plugin.watch.notifier import Notifier
from pytest_ssdqual.plugin.watch.terminal import on_terminal
from pytest_ssdqual.qual.progress_events import Idle, News
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.terminal.plan import plan_lines
from pytest_ssdqual.report.terminal.progress_spool import SpoolReader, SpoolWriter

#: Period of live statistics for the page.
PAGE_PERIOD_S = 1.0


class Observers:
    """Passes progress events of one or several bays to all observers; on the controller."""

    def __init__(self, config: pytest.Config, runs: Sequence[Qualification], page: LivePageFeed | None,
                 notifier: Notifier | None) -> None:  # fmt: skip
        self._page = page
        self._session = config.pluginmanager.get_plugin("session")
        self.progress = on_terminal(config)
        #: xdist's workers measure; then progress events come through files.
        self.is_distributed = config.pluginmanager.hasplugin("dsession")
        #: Progress logs with their bay's name, in a run of several.
        self._spools = [
            (run.name, SpoolReader(run.journal.path)) for run in runs if self.is_distributed and run.journal
        ]
        for _, spool in self._spools:
            # A killed controller leaves logs of workers with the same names. Their numbers are above those of the new
            # workers, which begin after this.
            spool.remove()
        self.period_s = min(self.progress.glance_s, PAGE_PERIOD_S if page else self.progress.glance_s)
        if self._spools:
            self.progress.poll = self.poll
            self.progress.poll_s = self.period_s
        self._outcomes: Counter[str] = Counter()
        if page:
            self.progress.state.observers.append(page.take)
        if notifier:
            notifier.watch(self.progress.state)
        self.progress.__enter__()

    def take(self, event: News, bay: str = "", at_s: float | None = None) -> None:
        """Pass a progress event to all observers; any thread may call it."""
        self.progress.take(event, bay, at_s)

    def judged(self, test: str, evidence: Evidence) -> None:
        """Show a verdict. In a log, pytest's own lines name neither the array nor the workload."""
        if not self.progress.terminal:
            self.progress.say(evidence.sentence)
        if self._page:
            self._page.judged(test, evidence)

    def wrong(self, test: str, message: str) -> None:
        """Show the error of a test."""
        if self._page:
            self._page.wrong(test, message)

    def reported(self, report: pytest.TestReport) -> None:
        """Take the report of a test phase."""
        if self.is_distributed:
            self.progress.clear()
        else:
            self.progress.idle()
        if outcome := _outcome(report):
            self._outcomes[outcome] += 1
            if self._page:
                self._page.counted(self._outcomes, self._session.testscollected if self._session else 0)

    def finish(self) -> None:
        """Print nothing more: the summary follows."""
        self.progress.finish()

    def ended(self, status: int) -> None:
        """Close all observers."""
        self.poll()
        self.progress.__exit__(None, None, None)
        for _, spool in self._spools:
            spool.remove()
        if self._page:
            self._page.end(self._outcomes, status)

    def poll(self) -> None:
        """Take the events that workers have sent."""
        for name, spool in self._spools:
            for worker, event, at_s in spool.poll():
                self.take(event, name or worker, at_s)


class WorkerEvents:
    """Writes the progress events of an xdist worker to its progress log, which the controller reads."""

    def __init__(self, run: BayRun) -> None:
        journal = run.qualification.journal
        self._writer = SpoolWriter(journal.path, journal.writer) if journal else None
        self._run = run
        self._is_idle = True

    def take(self, event: News) -> None:
        self._is_idle = isinstance(event, Idle)
        if self._writer:
            self._writer.write(event)

    @pytest.hookimpl
    def pytest_collection_finish(self) -> None:
        plan = self._run.forecast
        if plan is not None:
            # The header of the controller knows the expected number of drives.
            self.take(replace(plan.planned, lines=tuple(plan_lines(replace(plan, is_expected=True)))))

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not self._is_idle:
            self.take(Idle())


def _outcome(report: pytest.TestReport) -> str:
    """Return the outcome of a test; empty if this phase does not decide it."""
    if report.outcome == "failed":
        return "failed" if report.when == "call" else "error"
    if report.outcome == "skipped":
        return "skipped"
    return "passed" if report.when == "call" else ""
