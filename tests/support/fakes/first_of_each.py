"""pytest plugin that keeps the first test of each function and array, so that a session of all suites is short."""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    firsts: dict[tuple[str, str], pytest.Item] = {}
    for item in items:
        function, _, parameters = item.nodeid.partition("[")
        firsts.setdefault((function, parameters.partition("-")[0]), item)
    items[:] = firsts.values()
