"""On a worker that serves one bay of several: its tests bear the bay's name, and its end is not that of the run."""

from __future__ import annotations

import pytest

from pytest_ssdqual.plugin import marks
from pytest_ssdqual.plugin.qualification import Qualification
from pytest_ssdqual.plugin.stash import QUALIFICATION
from pytest_ssdqual.rig.machine import MachineLost


class OfSeveral:
    """Hooks of such a worker."""

    def __init__(self, run: Qualification) -> None:
        self._run = run

    @pytest.fixture(autouse=True, scope="session")
    @staticmethod
    def ssd_bay(pytestconfig: pytest.Config) -> str:
        """The name of the bay that the test is run on."""
        return pytestconfig.stash[QUALIFICATION].name

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """First in the id of each test, also of those that need no drives: every bay's worker has them."""
        metafunc.parametrize("ssd_bay", [self._run.name], indirect=True, scope="session")

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
