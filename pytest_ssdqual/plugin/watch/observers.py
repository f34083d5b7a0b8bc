"""Who watches a run: the terminal, and the pages that are open of it. Fed by this process, or by xdist's workers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.watch.terminal import on_terminal
from pytest_ssdqual.qual.progress_events import Begun, Idle, Looked, News
from pytest_ssdqual.report.terminal.progress_spool import SpoolReader, SpoolWriter
from pytest_ssdqual.rig.observe.live_stats import Live

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.session.state import Qualification
    from pytest_ssdqual.plugin.watch.live_page import Broadcast
    from pytest_ssdqual.report.evidence.evidence import Evidence
    from pytest_ssdqual.report.terminal.plan import PrintedPlan
    from pytest_ssdqual.rig.machine.machine import Machine

#: Whoever has a page open sees figures of this age at most.
PAGE_PERIOD_S = 1.0


def live_of(machine: Machine, tell: Callable[[News], None], period_s: float) -> Live:
    """Glances at what runs on ``machine``; none at one that cannot be talked to."""
    return Live(tell, getattr(machine, "talk", None), period_s)


class Onlookers:
    """On the controller; of one bay or several."""

    def __init__(self, config: pytest.Config, runs: Sequence[Qualification], broadcast: Broadcast | None) -> None:
        self._broadcast = broadcast
        self._session = config.pluginmanager.get_plugin("session")
        self.progress = on_terminal(config)
        #: By xdist; then news come by way of files.
        self.is_distributed = config.pluginmanager.hasplugin("dsession")
        #: By the bay's name, where there are several.
        self._spools = [
            (run.name, SpoolReader(run.journal.path)) for run in runs if self.is_distributed and run.journal
        ]
        self.period_s = min(self.progress.glance_s, PAGE_PERIOD_S if broadcast else self.progress.glance_s)
        if self._spools:
            self.progress.poll = self._poll
            self.progress.poll_s = self.period_s
        self._outcomes: Counter[str] = Counter()
        self.progress.__enter__()

    def take(self, news: News, bay: str = "", at_s: float | None = None) -> None:
        """Tell everybody; from whatever thread."""
        self.progress.take(news, bay, at_s)
        if self._broadcast:
            self._broadcast.take(news, bay, time.monotonic() if at_s is None else at_s)

    def judged(self, test: str, evidence: Evidence) -> None:
        if self._broadcast:
            self._broadcast.judged(test, evidence)

    def wrong(self, test: str, message: str) -> None:
        """Nothing was judged, and why."""
        if self._broadcast:
            self._broadcast.wrong(test, message)

    def reported(self, report: pytest.TestReport) -> None:
        """A part of a test has ended."""
        if self.is_distributed:
            self.progress.clear()
        else:
            self.progress.idle()
            if self._broadcast:
                self._broadcast.take(Idle(), "", time.monotonic())
        if outcome := _outcome(report):
            self._outcomes[outcome] += 1
            if self._broadcast:
                self._broadcast.counted(self._outcomes, self._session.testscollected if self._session else 0)

    def ended(self, status: int) -> None:
        """Nothing more comes."""
        self._poll()
        self.progress.__exit__(None, None, None)
        for _, spool in self._spools:
            spool.remove()
        if self._broadcast:
            self._broadcast.end(self._outcomes, status)

    def _poll(self) -> None:
        for name, spool in self._spools:
            for worker, news, at_s in spool.poll():
                self.take(news, name or worker, at_s)


class Teller:
    """On an xdist worker: writes its news where the controller finds them."""

    def __init__(self, run: Qualification, predict: Callable[[Sequence[pytest.Item]], PrintedPlan | None]) -> None:
        """``predict`` says what tests take; None for those that measure nothing."""
        self._writer = SpoolWriter(run.journal.path, run.journal.writer) if run.journal else None
        self._predict = predict
        self._is_idle = True

    def take(self, news: News) -> None:
        self._is_idle = isinstance(news, Idle)
        if self._writer:
            self._writer.tell(news)

    @pytest.hookimpl
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        plan = self._predict(session.items)
        if plan is not None:
            self.take(plan.told)

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not self._is_idle:
            self.take(Idle())


def begun(take: Callable[[News], None]) -> Callable[[str, float], None]:
    """``take`` as ``rig.measure.session`` wants its progress told."""
    return lambda what, seconds: take(Begun(what, seconds))


def looked(take: Callable[[News], None]) -> Callable[[str, float], None]:
    """``take`` as ``rig.measure.session`` wants its looks told."""
    return lambda told, more_s: take(Looked(told, more_s))


def _outcome(report: pytest.TestReport) -> str:
    """Of a test as a whole; nothing where this part does not decide it."""
    if report.outcome == "failed":
        return "failed" if report.when == "call" else "error"
    if report.outcome == "skipped":
        return "skipped"
    return "passed" if report.when == "call" else ""
