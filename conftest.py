"""Hooks of ``tests`` and ``suites`` that pytest allows only in the root conftest."""

from __future__ import annotations

import os
from collections.abc import Generator
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pytest


def has_tests() -> bool:
    """Return True if ``tests`` is importable by pyproject's ``pythonpath``; rehearsals need its lab."""
    try:
        return find_spec("support.lab.rehearsing") is not None
    except ModuleNotFoundError:
        return False


pytest_plugins = ["pytester", *(["support.lab.rehearsing"] if has_tests() else [])]

#: The parts of the tests to run, with commas between: ``unit`` (without a lab), ``quick`` (of those, without the mark
#: ``slow``), ``faults`` (suites/faults with a lab, and ``OWN_MACHINES``), ``unhurried`` (that mark), ``lab`` (the other
#: ones with a lab). script/test sets it. Rehearsals do not pass variables with pytest's prefix to their runs.
PART = os.environ.get("PYTEST_SSDQUAL_PART", "")

#: These tests share run folders, in order.
FAULTS = Path(__file__).parent / "suites" / "faults"

#: Rehearsals that boot machines of their own, so that they may run in any part: the one of the faults is the shortest.
OWN_MACHINES = tuple(
    Path(__file__).parent / "tests" / "rehearsal" / name for name in ("test_fleet.py", "test_real_machine.py")
)

#: True when script/test runs failed tests again.
AGAIN = bool(os.environ.get("PYTEST_SSDQUAL_AGAIN"))


#: A unit test above this time is to have the mark ``slow``.
SLOW_S = 5.0

#: What a run of this project's own tests needs; ``--help`` and suites do without.
NEEDED = ("hypothesis", "xdist", "junitparser", "xmlschema")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Refuse a run without a path where it would not run what was meant; before any drive is opened."""
    if config.args_source is not config.ArgsSource.TESTPATHS or config.option.help or config.option.showfixtures:
        return
    if config.option.markers or config.option.version:
        return
    if config.getoption("ssd_devices", None) or config.getoption("ssd_bays", None):
        raise pytest.UsageError(
            "name a suite: without a path pytest would run this project's own tests. E.g. suites/raid5"
        )
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise pytest.UsageError(
            f"this project's own tests need {', '.join(missing)}: script/test installs what is missing and runs them; "
            "to judge drives, name a suite, e.g. suites/raid5"
        )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give the lab's tests a JUnit file of their own: ``results-lab.xml`` beside ``results.xml``."""
    if PART.startswith("lab") and config.option.xmlpath:
        path = Path(config.option.xmlpath)
        config.option.xmlpath = str(path.with_name(f"{path.stem}-lab{path.suffix}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Make a test fail that is skipped when it runs again after a failure."""
    report = yield
    if AGAIN and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"it failed, and now it was skipped: {report.longreprtext}"
    return report


def parts_of(item: pytest.Item) -> set[str]:
    if item.get_closest_marker("lab") is None:
        return {"unit"} if item.get_closest_marker("slow") else {"unit", "quick"}
    if item.path.is_relative_to(FAULTS) or item.path in OWN_MACHINES:
        return {"faults"}
    return {"unhurried" if item.get_closest_marker("unhurried") else "lab"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep only the tests of the requested parts, in addition to -m and -k."""
    if PART:
        wanted = set(PART.split(","))
        left_out = [item for item in items if not parts_of(item) & wanted]
        items[:] = [item for item in items if parts_of(item) & wanted]
        config.hook.pytest_deselected(items=left_out)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List unit tests that ``script/test --quick`` should leave out."""
    if PART not in ("unit", "quick"):
        return
    # A fixture that tests share is in the time of the first one's setup.
    reports = chain.from_iterable(terminalreporter.stats.values())
    tests = [each for each in reports if isinstance(each, pytest.TestReport)]
    long = [each for each in tests if each.duration > SLOW_S and "slow" not in each.keywords]
    if long:
        terminalreporter.section(f"unit tests above {SLOW_S:g} s without the mark slow")
    for each in sorted(long, key=lambda each: -each.duration):
        terminalreporter.line(f"{each.duration:.0f} s {each.nodeid}")
