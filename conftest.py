"""What both ``tests`` and ``suites`` need, and pytest allows only here."""

from __future__ import annotations

import os
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import pytest


def has_tests() -> bool:
    """Whether pyproject's ``pythonpath`` leads to ``tests``, whose lab rehearsals need."""
    try:
        return find_spec("support.lab.rehearsing") is not None
    except ModuleNotFoundError:
        return False


pytest_plugins = ["pytester", *(["support.lab.rehearsing"] if has_tests() else [])]

#: Of the tests, ``unit`` those without a lab, ``unhurried`` those with that mark, ``lab`` the other ones that need one,
#: or several of these with commas between: script/test runs them part by part. With pytest's own prefix, because no
#: such variable reaches the runs that rehearsals start.
PART = os.environ.get("PYTEST_SSDQUAL_PART", "")

#: Set where script/test runs what failed a second time.
AGAIN = bool(os.environ.get("PYTEST_SSDQUAL_AGAIN"))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Not the JUnit file of the unit tests: ``results-lab.xml`` beside ``results.xml``."""
    if PART.startswith("lab") and config.option.xmlpath:
        path = Path(config.option.xmlpath)
        config.option.xmlpath = str(path.with_name(f"{path.stem}-lab{path.suffix}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What failed and is skipped when it is run again has not been seen to be right."""
    report = yield
    if AGAIN and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"it failed, and now it was skipped: {report.longreprtext}"
    return report


def part_of(item: pytest.Item) -> str:
    if item.get_closest_marker("lab") is None:
        return "unit"
    return "unhurried" if item.get_closest_marker("unhurried") else "lab"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep those of the parts that are wanted, whatever else was asked for with -m or -k."""
    if PART:
        wanted = PART.split(",")
        left_out = [item for item in items if part_of(item) not in wanted]
        items[:] = [item for item in items if part_of(item) in wanted]
        config.hook.pytest_deselected(items=left_out)
