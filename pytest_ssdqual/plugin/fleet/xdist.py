"""pytest-xdist: one worker per bay. The only module that knows xdist; in which order bays are served says ``turns``.

That two runs never meet on a drive is the lease's business, not the scheduler's. xdist's own ``--dist loadgroup``
cannot be used: with pytest 9.2 and xdist 3.8 it scatters groups without a word (pytest-xdist#1386).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ssdqual.plugin.fleet.scheduler import INTERRUPTED_STATUS, Turns
from pytest_ssdqual.qual import safe_text

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

    from pytest_ssdqual.plugin.fleet.scheduler import WorkerNode
    from pytest_ssdqual.plugin.session.state import Qualification

#: Key in ``workerinput``, and in ``workeroutput``.
KEY = "ssdqual"
#: There, of a worker for which no bay is left.
IDLE = {"bay": None}
#: Of the traceback of an internal error, characters that are shown.
LONGEST = 20_000
#: How long a worker may take to end when all are stopped: by ending fio, stopping its array, erasing what is ours and
#: asking every drive for its health. xdist kills what has not ended after ten seconds, and execnet ends a process ten
#: seconds after it has interrupted it; either would leave all that undone.
ENDING_S, HASTY_S = 600.0, 10.0


def is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def given(config: pytest.Config) -> dict[str, Any] | None:
    """What the controller told this worker; None elsewhere, and in runs without drives."""
    told: dict[str, Any] | None = getattr(config, "workerinput", {}).get(KEY)
    return told


def is_distributed(config: pytest.Config) -> bool:
    """Whether the tests of this controller will be run by xdist's workers."""
    return bool(getattr(config.option, "tx", None)) and config.option.dist != "no"


def bay_of(report: pytest.TestReport) -> str:
    """Name of the bay whose worker this report came from; empty if it came from none, or if there is only one bay."""
    told = getattr(getattr(report, "node", None), "workerinput", {}).get(KEY, {})
    return str(told.get("name", ""))


def register(config: pytest.Config, runs: Sequence[Qualification]) -> None:
    """On the controller of a run with drives: take over scheduling if xdist is there."""
    if not config.pluginmanager.hasplugin("xdist") or is_worker(config):
        return
    config.pluginmanager.register(FleetController(config, {run.name: run for run in runs}), "ssdqual-xdist")
    if config.getoption("maxworkerrestart", None) is None:
        # What a worker that died had not run is lost (pytest-xdist#1323 would run the destructive test that killed it
        # again); where there are several bays, another one takes its place for the next bay.
        config.option.maxworkerrestart = str(len(runs) if len(runs) > 1 else 0)
    if is_distributed(config):
        from xdist.workermanage import parse_tx_spec_config

        # Workers beyond bays have nothing to do.
        config.option.tx = parse_tx_spec_config(config)[: len(runs)]


def _was_stopped(told: Mapping[str, Any]) -> bool:
    """Whether a worker that has ended was told to by somebody, or by what it met; then the run ends with it."""
    return bool(told["shouldfail"] or told["shouldstop"] or told["exitstatus"] == INTERRUPTED_STATUS)


def last_line(traceback: str) -> str:
    """What it comes to."""
    lines = traceback.strip().splitlines()
    return safe_text.line(lines[-1].removeprefix("E ").strip()) if lines else ""


def take_time_to_end(config: pytest.Config) -> None:
    """On a worker, whose interrupted run ends in order."""
    for _, plugin in config.pluginmanager.list_name_plugin():  # get_plugins() wants all of them to be hashable
        # execnet has no setting for it. Without these names all is as it was.
        pool: Any = getattr(getattr(getattr(plugin, "channel", None), "gateway", None), "_execpool", None)
        if pool is not None and hasattr(pool, "waitall"):
            pool.waitall = partial(_patient, pool.waitall)


def _patient(wait: Callable[[float | None], bool], timeout: float | None = None) -> bool:
    return wait(ENDING_S if timeout == HASTY_S else timeout)


def send_home(config: pytest.Config) -> None:
    """On a worker for which no bay is left: it collects nothing."""
    config.pluginmanager.register(IdleWorker(), "ssdqual-idle")


class IdleWorker:
    """Hooks of such a worker."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        session.items = []
        return True


@dataclass(eq=False)
class Nobody:
    """In the place of a worker that there never was, in reports."""

    workerinput: dict[str, Any]
    gateway: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(id="none"))


class FleetController:
    """Hooks of xdist's controller."""

    def __init__(self, config: pytest.Config, runs: Mapping[str, Qualification]) -> None:
        self._config = config
        self._runs = runs
        self._turns = Turns(list(runs), self._lost, self._next_worker, self._served, self._counted)
        #: Why a worker ended before its time, as far as it could say so.
        self._why: dict[object, str] = {}

    @pytest.hookimpl
    def pytest_configure_node(self, node: WorkerController) -> None:
        session: Any = self._config.pluginmanager.get_plugin("dsession")
        session.nodemanager.EXIT_TIMEOUT = ENDING_S
        bay = self._turns.take(node)
        node.workerinput[KEY] = IDLE if bay is None else self._runs[bay].to_worker()

    @pytest.hookimpl
    def pytest_testnodedown(self, node: WorkerController, error: object) -> None:
        told: Mapping[str, Any] = getattr(node, "workeroutput", {})
        for where, why in told.get(KEY, ()):
            self._why.setdefault(node, why)
            self._uncollected(node, where, why)
        if error:
            if said := last_line(getattr(error, "formatted", "")):
                self._why.setdefault(node, said)
            self._turns.down(node, error)
        elif not (self._is_stopped or _was_stopped(told)):
            self._turns.ended(node)

    @pytest.hookimpl
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: object) -> object:
        if len(self._runs) > 1:
            session: Any = config.pluginmanager.get_plugin("dsession")
            session.worker_internal_error = self._internal_error
            session.triggershutdown = partial(self._shut_down, session.triggershutdown)
        return self._turns

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Unless somebody stopped it, no bay is left out without a word."""
        result = yield
        for bay in self._turns.never_begun() if len(self._runs) > 1 else ():
            self._error(
                Nobody({KEY: {"name": bay}}),
                f"ssdqual::{bay}",
                f"the bay {bay} was not begun: xdist starts no more workers",
            )
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport, sched: object) -> None:
        report.when = "setup"  # an error: nothing was judged

    def _shut_down(self, shut_down: Callable[[], None]) -> None:
        """Instead of ``DSession.triggershutdown``, by which workers end after all that they were given: days of it."""
        if self._is_stopped:
            self._turns.stop()
        shut_down()

    def _next_worker(self, node: Any) -> None:  # noqa: ANN401 (xdist's own)
        session: Any = self._config.pluginmanager.get_plugin("dsession")
        session._clone_node(node)
        node.gateway.exit()  # its process has nothing to do, and holds memory

    def _served(self, bay: str) -> None:
        """Its folder is made whole now: when the last one ends, all their pages would have to be waited for."""
        if len(self._runs) > 1:
            narrator: Any = self._config.pluginmanager.get_plugin("ssdqual-narrator")
            narrator.finish(bay)

    def _counted(self, tests: int) -> None:
        """For the percentages: xdist takes what the last worker collected for all there is."""
        session: Any = self._config.pluginmanager.get_plugin("session")
        session.testscollected = tests

    @property
    def _is_stopped(self) -> bool:
        """By -x, --maxfail, or a worker that was interrupted."""
        session: Any = self._config.pluginmanager.get_plugin("dsession")
        return bool(session.shouldstop)

    def _internal_error(self, node: WorkerNode, formatted_error: str) -> None:
        """Instead of ``DSession.worker_internal_error``, which ends the run of all bays. Its worker ends in order."""
        session: Any = self._config.pluginmanager.get_plugin("dsession")
        session.report_line(safe_text.lines(f"INTERNALERROR> {formatted_error}", LONGEST))
        self._why[node] = last_line(formatted_error) or "an internal error"

    def _lost(self, node: WorkerNode, bay: str, tests: Sequence[str], during: str) -> None:
        """Each test that its worker will not run is an error, once."""
        where = f"the bay {bay}" if bay else "the bay"
        if why := self._why.get(node):
            how = f"its worker ended: {why}"
        elif tests and not during:
            how = "its worker ended before it had run all tests"
        else:
            when = f"while it ran {during}" if during else "before it had collected its tests"
            how = f"the process of its worker died {when}"
        sentence = f"{where} was given up, as {how}; --ssd-resume goes on with it"
        for test in tests or ([] if during else [f"ssdqual::{bay or 'bay'}"]):
            self._error(node, test, sentence)

    def _uncollected(self, node: Any, where: str, why: str) -> None:  # noqa: ANN401 (xdist's own)
        """Of several bays only the first that cannot collect something is told of by xdist."""
        bay = node.workerinput[KEY]["name"]
        self._error(node, f"{where}::collection[{bay}]", f"of the bay {bay} not all tests could be collected: {why}")

    def _error(self, node: Any, test: str, sentence: str) -> None:  # noqa: ANN401 (xdist's own)
        file = test.split("::")[0]
        report = pytest.TestReport(test, (file, None, test), {}, "failed", sentence, "setup")
        report.node = node  # type: ignore[attr-defined]
        if not hasattr(node, "workerinfo"):  # it was never ready, and pytest would ask it what it runs on
            node._workerinfocache = ""
        self._config.hook.pytest_runtest_logreport(report=report)
