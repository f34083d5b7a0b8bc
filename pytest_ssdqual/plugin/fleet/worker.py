"""On a worker that serves one bay of several: its tests bear the bay's name, and its end is not that of the run."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from pytest_ssdqual.plugin.fleet import xdist
from pytest_ssdqual.plugin.plan import marks
from pytest_ssdqual.plugin.session.state import Qualification
from pytest_ssdqual.plugin.stash import QUALIFICATION
from pytest_ssdqual.rig.machine.machine import MachineLost


class OfSeveral:
    """Hooks of such a worker."""

    def __init__(self, run: Qualification) -> None:
        self._run = run
        #: What could not be collected, and why, a line each.
        self._uncollected: list[tuple[str, str]] = []

    @pytest.fixture(autouse=True, scope="session")
    @staticmethod
    def ssd_bay(pytestconfig: pytest.Config) -> str:
        """The name of the bay that the test is run on."""
        return pytestconfig.stash[QUALIFICATION].name

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """First in the id of each test, also of those that need no drives: every bay's worker has them."""
        metafunc.parametrize("ssd_bay", [self._run.name], indirect=True, scope="session")

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self, session: pytest.Session) -> Generator[None, object, object]:
        """What is asked wrongly ends the worker, and xdist does not carry the reason."""
        try:
            return (yield)
        except pytest.UsageError as error:
            self._uncollected.append(("ssdqual", xdist.last_line(str(error))))
            raise

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._uncollected.append((report.nodeid or "ssdqual", xdist.last_line(report.longreprtext)))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """The controller hears of every bay by itself: of what several workers report alike, xdist tells once."""
        session.config.workeroutput[xdist.KEY] = self._uncollected  # type: ignore[attr-defined]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._run.settings.junit_properties:
            for item in items:
                item.user_properties.append(("ssd.bay", self._run.name))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """When nothing more can be measured here, every test that wants to is an error, and takes no time."""
        if self._run.lost and marks.needs_drives(item):
            raise MachineLost(f"not run: {self._run.lost}")
