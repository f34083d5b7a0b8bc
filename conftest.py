"""What both ``tests`` and ``suites`` need, and pytest allows only here."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

#: ``tests/rehearsing.py`` has the lab; it is found through pyproject's ``pythonpath``, and not everywhere.
pytest_plugins = ["pytester", *(["rehearsing"] if find_spec("rehearsing") else [])]

#: Of the tests, ``unit`` those without a lab and ``lab`` the others: script/test runs both, one after the other. With
#: pytest's own prefix, because no such variable reaches the runs that rehearsals start.
PART = os.environ.get("PYTEST_SSDQUAL_PART")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Not the JUnit file of the first part: ``results-lab.xml`` beside ``results.xml``."""
    if PART == "lab" and config.option.xmlpath:
        path = Path(config.option.xmlpath)
        config.option.xmlpath = str(path.with_name(f"{path.stem}-lab{path.suffix}"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep those of the part that is wanted, whatever else was asked for with -m or -k."""
    if PART:
        parts: dict[str, list[pytest.Item]] = {"unit": [], "lab": []}
        for item in items:
            parts["lab" if item.get_closest_marker("lab") else "unit"].append(item)
        items[:] = parts.pop(PART)
        (left_out,) = parts.values()
        config.hook.pytest_deselected(items=left_out)
