"""pytest-xdist: one worker per machine under test. The only module that knows xdist.

More load on one machine would falsify every figure, so all tests of a bay go to one worker, whatever ``-n`` says;
that two runs never meet on a drive is the lease's business, not the scheduler's. xdist's own ``--dist loadgroup``
cannot be used: with pytest 9.2 and xdist 3.8 it scatters groups without a word (pytest-xdist#1386).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_ssdqual.plugin.stash import QUALIFICATION

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

#: Key in ``workerinput``.
KEY = "ssdqual"


def is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def given(config: pytest.Config) -> dict[str, Any] | None:
    """What the controller told this worker; None elsewhere, and in runs without drives."""
    told: dict[str, Any] | None = getattr(config, "workerinput", {}).get(KEY)
    return told


def register(config: pytest.Config) -> None:
    """On the controller of a run with drives: take over scheduling if xdist is there."""
    if config.pluginmanager.hasplugin("xdist") and not is_worker(config):
        config.pluginmanager.register(Controller(config), "ssdqual-xdist")
        if config.getoption("maxworkerrestart", None) is None:
            # A restarted worker would run the destructive test that killed it again (pytest-xdist#1323).
            config.option.maxworkerrestart = "0"


class Controller:
    """Hooks of xdist's controller."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl
    def pytest_configure_node(self, node: WorkerController) -> None:
        node.workerinput[KEY] = self._config.stash[QUALIFICATION].to_worker()

    @pytest.hookimpl
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: object) -> object:
        from xdist.scheduler import LoadScopeScheduling

        class OneWorkerPerBay(LoadScopeScheduling):  # type: ignore[misc]
            """One scope, so one worker, and the plan's order kept."""

            def _split_scope(self, nodeid: str) -> str:
                return "bay"

        return OneWorkerPerBay(config, log)
