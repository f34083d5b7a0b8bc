"""Hooks of xdist's workers; the tests of one that serves one bay of several have the bay's name in their ids."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from pytest_ssdqual.plugin.fleet import xdist
from pytest_ssdqual.plugin.plan import marks
from pytest_ssdqual.plugin.session.state import BayRun
from pytest_ssdqual.plugin.stash import RUN
from pytest_ssdqual.rig.machine.machine import MachineLost


class Worker:
    """Hooks of every worker with a run: they send why it could not collect its tests, which xdist does not."""

    def __init__(self) -> None:
        #: Collection errors: node id and reason.
        self._uncollected: list[tuple[str, str]] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self, session: pytest.Session) -> Generator[None, object, object]:
        """Store the reason of a usage error, which ends the worker."""
        try:
            return (yield)
        except pytest.UsageError as error:
            self._uncollected.append(("ssdqual", xdist.last_line(str(error))))
            raise

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send the collection errors."""
        session.config.workeroutput[xdist.KEY] = self._uncollected  # type: ignore[attr-defined]


class BayWorker(Worker):
    """Hooks of a worker for one bay of several: xdist reports equal collection errors of several workers only once."""

    def __init__(self, run: BayRun) -> None:
        super().__init__()
        self._run = run

    @pytest.fixture(autouse=True, scope="session")
    @staticmethod
    def ssd_bay(pytestconfig: pytest.Config) -> str:
        """The name of the bay that the test runs on."""
        return pytestconfig.stash[RUN].qualification.name

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Put the bay first into the id of each test, also of tests without drives: every bay's worker runs them."""
        metafunc.parametrize("ssd_bay", [self._run.qualification.name], indirect=True, scope="session")

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._uncollected.append((report.nodeid or "ssdqual", xdist.last_line(report.longreprtext)))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._run.qualification.settings.junit_properties:
            for item in items:
                item.user_properties.append(("ssd.bay", self._run.qualification.name))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Make every hardware test an error, without delay, once the bay is lost."""
        if self._run.lost and marks.needs_drives(item):
            raise MachineLost(f"not run: {self._run.lost}")
