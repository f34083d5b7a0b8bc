"""pytest-xdist: one worker per bay. The only module that knows xdist; in which order bays are served says ``turns``.

That two runs never meet on a drive is the lease's business, not the scheduler's. xdist's own ``--dist loadgroup``
cannot be used: with pytest 9.2 and xdist 3.8 it scatters groups without a word (pytest-xdist#1386).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ssdqual.plugin.turns import Turns

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

    from pytest_ssdqual.plugin.qualification import Qualification
    from pytest_ssdqual.plugin.turns import Node

#: Key in ``workerinput``.
KEY = "ssdqual"
#: There, of a worker for which no bay is left.
IDLE = {"bay": None}


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
    node = getattr(report, "node", None)
    return str(node.workerinput[KEY]["name"]) if node else ""


def register(config: pytest.Config, runs: Sequence[Qualification]) -> None:
    """On the controller of a run with drives: take over scheduling if xdist is there."""
    if not config.pluginmanager.hasplugin("xdist") or is_worker(config):
        return
    config.pluginmanager.register(Controller(config, {run.name: run for run in runs}), "ssdqual-xdist")
    if config.getoption("maxworkerrestart", None) is None:
        # What a worker that died had not run is lost (pytest-xdist#1323 would run the destructive test that killed it
        # again); where there are several bays, another one takes its place for the next bay.
        config.option.maxworkerrestart = str(len(runs) if len(runs) > 1 else 0)
    if is_distributed(config):
        from xdist.workermanage import parse_tx_spec_config

        # Workers beyond bays have nothing to do.
        config.option.tx = parse_tx_spec_config(config)[: len(runs)]


def send_home(config: pytest.Config) -> None:
    """On a worker for which no bay is left: it collects nothing."""
    config.pluginmanager.register(Idle(), "ssdqual-idle")


class Idle:
    """Hooks of such a worker."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        session.items = []
        return True


class Controller:
    """Hooks of xdist's controller."""

    def __init__(self, config: pytest.Config, runs: Mapping[str, Qualification]) -> None:
        self._config = config
        self._runs = runs
        self._turns = Turns(list(runs), self._lost, self._next_worker, self._counted)

    @pytest.hookimpl
    def pytest_configure_node(self, node: WorkerController) -> None:
        bay = self._turns.take(node)
        node.workerinput[KEY] = IDLE if bay is None else self._runs[bay].to_worker()

    @pytest.hookimpl
    def pytest_testnodedown(self, node: WorkerController, error: object) -> None:
        self._turns.down(node, error)

    @pytest.hookimpl
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: object) -> object:
        return self._turns

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport, sched: object) -> None:
        report.when = "setup"  # an error: nothing was judged

    def _next_worker(self, node: Any) -> None:  # noqa: ANN401 (xdist's own)
        session: Any = self._config.pluginmanager.get_plugin("dsession")
        session._clone_node(node)
        node.gateway.exit()  # its process has nothing to do, and holds memory

    def _counted(self, tests: int) -> None:
        """For the percentages: xdist takes what the last worker collected for all there is."""
        session: Any = self._config.pluginmanager.get_plugin("session")
        session.testscollected = tests

    def _lost(self, node: Node, bay: str, tests: Sequence[str], during: str) -> None:
        """Each test that its worker will not run is an error, once."""
        where = f"the bay {bay}" if bay else "the bay"
        how = f"while it ran {during}" if during else "before it had collected its tests"
        sentence = f"{where} was given up, as the process of its worker died {how}; --ssd-resume goes on with it"
        for test in tests or ([] if during else [f"ssdqual::{bay or 'bay'}"]):
            file = test.split("::")[0]
            report = pytest.TestReport(test, (file, None, test), {}, "failed", sentence, "setup")
            report.node = node  # type: ignore[attr-defined]
            self._config.hook.pytest_runtest_logreport(report=report)
