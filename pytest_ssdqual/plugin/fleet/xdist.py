"""pytest-xdist with one worker per bay. Only this module uses xdist; ``scheduler`` has the order of bays.

Leases, not the scheduler, keep two runs from one drive. xdist's own ``--dist loadgroup`` does not work here: with
pytest 9.2 and xdist 3.8 it silently splits groups (pytest-xdist#1386).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ssdqual.plugin.fleet.scheduler import INTERRUPTED_STATUS, BayScheduler
from pytest_ssdqual.qual import safe_text

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

    from pytest_ssdqual.plugin.session.state import BayRun

#: Key in ``workerinput``, and in ``workeroutput``.
KEY = "ssdqual"
#: Attribute of a report that is about a session of a bay, and not about a test.
OF_SESSION = "ssdqual_of_session"
#: The value for a worker without a bay.
IDLE = {"bay": None}
#: Number of characters shown of the traceback of an internal error.
LONGEST = 20_000
#: Time for a stopped worker to end: to end fio, stop and erase its array, and read the health of every drive. xdist
#: kills a worker after ten seconds, and execnet ends a process ten seconds after the interrupt; either would leave
#: that undone.
ENDING_S, HASTY_S = 600.0, 10.0


def is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def given(config: pytest.Config) -> dict[str, Any] | None:
    """Return the controller's data for this worker; None elsewhere, and in runs without drives."""
    data: dict[str, Any] | None = getattr(config, "workerinput", {}).get(KEY)
    return data


def is_distributed(config: pytest.Config) -> bool:
    """Return True if xdist's workers run the tests of this controller."""
    return bool(getattr(config.option, "tx", None)) and config.option.dist != "no"


def workers(config: pytest.Config) -> int:
    """Return the number of workers that xdist starts; 0 without xdist."""
    if not is_distributed(config):
        return 0
    from xdist.workermanage import parse_tx_spec_config

    return len(parse_tx_spec_config(config))


def bay_of(report: pytest.TestReport) -> str:
    """Return the bay whose worker sent this report; empty without a worker, and in a run of one bay."""
    data = getattr(getattr(report, "node", None), "workerinput", {}).get(KEY, {})
    return str(data.get("name", ""))


def register(config: pytest.Config, runs: Sequence[BayRun]) -> None:
    """Register the scheduler on the controller of a run with drives, if xdist is active."""
    # By its option: the plugin's name depends on how it was loaded.
    if not hasattr(config.option, "dist") or is_worker(config):
        return
    config.pluginmanager.register(
        FleetController(config, {run.qualification.name: run for run in runs}), "ssdqual-xdist"
    )
    if config.getoption("maxworkerrestart", None) is None:
        # The remaining tests of a worker that died are lost: pytest-xdist#1323 would repeat the destructive test that
        # killed it. With several bays, another worker takes the next bay.
        config.option.maxworkerrestart = str(len(runs) if len(runs) > 1 else 0)
    if is_distributed(config):
        from xdist.workermanage import parse_tx_spec_config

        # More workers than bays would be idle.
        config.option.tx = parse_tx_spec_config(config)[: len(runs)]


def _was_stopped(data: Mapping[str, Any]) -> bool:
    """Return True if a worker ended by a stop or an interrupt; then the run ends with it."""
    return bool(data["shouldfail"] or data["shouldstop"] or data["exitstatus"] == INTERRUPTED_STATUS)


def last_line(traceback: str) -> str:
    """Return the last line of a traceback, which has the exception."""
    lines = traceback.strip().splitlines()
    return safe_text.line(lines[-1].removeprefix("E ").strip()) if lines else ""


def take_time_to_end(config: pytest.Config) -> None:
    """Give an interrupted worker time to end in order."""
    for _, plugin in config.pluginmanager.list_name_plugin():  # get_plugins() requires hashable plugins
        # execnet has no setting for it. Without these attributes nothing changes.
        pool: Any = getattr(getattr(getattr(plugin, "channel", None), "gateway", None), "_execpool", None)
        if pool is not None and hasattr(pool, "waitall"):
            pool.waitall = partial(_patient, pool.waitall)


def _patient(wait: Callable[[float | None], bool], timeout: float | None = None) -> bool:
    return wait(ENDING_S if timeout == HASTY_S else timeout)


class IdleWorker:
    """Hooks of a worker without a bay: it collects nothing."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        session.items = []
        return True


@dataclass(eq=False)
class MissingWorker:
    """Stands in reports for a worker that never started; pytest requires that it is hashable."""

    workerinput: dict[str, Any]
    gateway: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(id="none"))


class FleetController:
    """Hooks of xdist's controller."""

    def __init__(self, config: pytest.Config, runs: Mapping[str, BayRun]) -> None:
        self._config = config
        self._runs = runs
        self._scheduler = BayScheduler(list(runs), self._lost, self._next_worker, self._served, self._counted)
        #: Reason of the early end of a worker, if it could send one.
        self._why: dict[object, str] = {}

    @property
    def _session(self) -> Any:  # noqa: ANN401 (xdist's ``DSession``)
        return self._config.pluginmanager.get_plugin("dsession")

    @pytest.hookimpl
    def pytest_configure_node(self, node: WorkerController) -> None:
        self._session.nodemanager.EXIT_TIMEOUT = ENDING_S
        bay = self._scheduler.take(node)
        run = None if bay is None else self._runs[bay]
        node.workerinput[KEY] = run.qualification.to_worker(run.glance_s) if run else IDLE

    @pytest.hookimpl
    def pytest_testnodedown(self, node: WorkerController, error: object) -> None:
        data: Mapping[str, Any] = getattr(node, "workeroutput", {})
        for where, why in data.get(KEY, ()):
            self._why.setdefault(node, why)
            if node.workerinput[KEY]["name"]:
                self._uncollected(node, where, why)
        if error:
            if reason := last_line(getattr(error, "formatted", "")):
                self._why.setdefault(node, reason)
            self._scheduler.down(node, error)
        elif not (self._is_stopped or _was_stopped(data)):
            self._scheduler.ended(node)

    @pytest.hookimpl
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: object) -> object:
        if len(self._runs) > 1:
            session = self._session
            session.worker_internal_error = self._internal_error
            session.triggershutdown = partial(self._shut_down, session.triggershutdown)
        return self._scheduler

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Report an error for each bay that no worker took, unless the run was stopped."""
        result = yield
        for bay in self._scheduler.never_begun() if len(self._runs) > 1 else ():
            self._error(
                MissingWorker({KEY: {"name": bay}}),
                f"ssdqual::{bay}",
                f"the bay {bay} did not begin: xdist starts no more workers",
                of_session=True,
            )
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport, sched: object) -> None:
        report.when = "setup"  # an error: nothing was judged

    def _shut_down(self, shut_down: Callable[[], None]) -> None:
        """Replaces ``DSession.triggershutdown``, which would let workers run all their tests, for days."""
        if self._is_stopped:
            self._scheduler.stop()
        shut_down()

    def _next_worker(self, node: Any) -> None:  # noqa: ANN401 (xdist's own)
        self._session._clone_node(node)
        node.gateway.exit()  # the idle process would hold memory

    def _served(self, bay: str) -> None:
        """Finish the bay's folder now; otherwise all pages would be drawn at the end of the run."""
        if len(self._runs) > 1:
            controller: Any = self._config.pluginmanager.get_plugin("ssdqual-controller")
            controller.finish(bay)

    def _counted(self, tests: int) -> None:
        """Set the number of tests for percentages; xdist would use that of the last worker."""
        session: Any = self._config.pluginmanager.get_plugin("session")
        session.testscollected = tests

    @property
    def _is_stopped(self) -> bool:
        """True after -x, --maxfail, or the interrupt of a worker."""
        return bool(self._session.shouldstop)

    def _internal_error(self, node: WorkerController, formatted_error: str) -> None:
        """Replaces ``DSession.worker_internal_error``, which ends the run of all bays. The worker ends in order."""
        self._session.report_line(safe_text.lines(f"INTERNALERROR> {formatted_error}", LONGEST))
        self._why[node] = last_line(formatted_error) or "an internal error"

    def _lost(self, node: WorkerController, bay: str, tests: Sequence[str], during: str) -> None:
        """Report each test that the worker will not run as an error, once."""
        where = f"the bay {bay}" if bay else "the bay"
        if why := self._why.get(node):
            how = f"its worker ended: {why}"
        elif tests and not during:
            how = "its worker ended before it had run all tests"
        else:
            when = f"while it ran {during}" if during else "before it had collected its tests"
            how = f"the process of its worker died {when}"
        go_on = "; continue with --ssd-resume" if tests or during else ""  # else nothing has begun
        sentence = f"{where} was given up, because {how}{go_on}"
        for test in tests or ([] if during else [f"ssdqual::{bay or 'bay'}"]):
            self._error(node, test, sentence, of_session=not tests)

    def _uncollected(self, node: Any, where: str, why: str) -> None:  # noqa: ANN401 (xdist's own)
        """Report a collection error of one bay; xdist reports only the first of several bays."""
        bay = node.workerinput[KEY]["name"]
        self._error(
            node, f"{where}::collection[{bay}]", f"the bay {bay} could not collect all tests: {why}", of_session=True
        )

    def _error(self, node: Any, test: str, sentence: str, *, of_session: bool) -> None:  # noqa: ANN401 (xdist's own)
        file = test.split("::")[0]
        report = pytest.TestReport(test, (file, None, test), {}, "failed", sentence, "setup")
        report.node = node  # type: ignore[attr-defined]
        setattr(report, OF_SESSION, of_session)
        if not hasattr(node, "workerinfo"):  # it was never ready, and pytest reads its platform
            node._workerinfocache = ""
        self._config.hook.pytest_runtest_logreport(report=report)
