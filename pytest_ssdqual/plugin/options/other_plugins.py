"""Options and marks of other plugins that repeat tests or end them early, which hardware tests must not have.

A test that runs again measures nothing, since its result is stored; it would only be counted again. A test that is
ended early leaves a drive in the middle of hours of conditioning.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import pytest

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.units import format_duration

#: Stands for an option that no installed plugin has.
ABSENT = object()
#: Options that repeat tests, also ini values of that name: destination, option, the largest value that repeats none.
REPEATING = (
    ("reruns", "--reruns", 0),
    ("force_reruns", "--force-reruns", 0),
    ("retries", "--retries", 0),
    ("count", "--count", 1),
    ("force_flaky", "--force-flaky", 0),
    ("flake_finder_enable", "--flake-finder", 0),
    ("parallel_threads", "--parallel-threads", 1),
    ("iterations", "--iterations", 1),
)
#: Marks that repeat a test, with the options of the plugins that know them.
REPEATING_MARKS = {
    "flaky": ("reruns", "retries", "force_flaky"),
    "repeat": ("count",),
    "parallel_threads": ("parallel_threads",),
    "iterations": ("iterations",),
}
#: Reserve of the recommended limit over the forecast.
TIMES = 2


def repeating(config: pytest.Config) -> Iterator[str]:
    """Yield a sentence for each option that would repeat tests."""
    for name, option, least in REPEATING:
        value = _given(config, name)
        if _number(value) > least:
            off = f"leave it out, or add {option}={least}" if not isinstance(value, bool) else "leave it out"
            yield f"{option}={value} would repeat tests, and a measurement counts once: {off}"


def require_once(items: Iterable[pytest.Item]) -> None:
    """Raise ``pytest.UsageError`` for a hardware test with a mark that would repeat it."""
    for item in items:
        for mark, options in REPEATING_MARKS.items():
            if item.get_closest_marker(mark) and any(_given(item.config, name) is not ABSENT for name in options):
                raise pytest.UsageError(
                    f"{item.nodeid}: the mark {mark} would repeat the test, and a measurement counts once: remove it"
                )


def _given(config: pytest.Config, name: str) -> object:
    """Return the value of an option, else the ini value of its name; ``ABSENT`` if no plugin has the option."""
    value = config.getoption(name, ABSENT)
    if value is ABSENT or value:
        return value
    try:
        return config.getini(name)
    except (KeyError, ValueError):
        return value


def _number(value: object) -> float:
    if value is ABSENT or not value:
        return 0.0
    try:
        return float(str(value)) if not isinstance(value, bool) else float(value)
    except ValueError:
        return float("inf")  # such as "auto"


@frozen
class TimeLimit:
    """What pytest-timeout allows a test, its fixtures included."""

    seconds: float
    #: Where the limit is from, and how to switch it off.
    source: str
    off: str
    #: Id of the test.
    test: str

    def objection(self, longest_s: float) -> str:
        """Return why a plan whose longest step takes ``longest_s`` cannot be executed; empty if it can."""
        if self.seconds >= longest_s:
            return ""
        enough = round(TIMES * longest_s)
        return (
            f"{self.test}: pytest-timeout ends a test after {format_duration(self.seconds)} ({self.source}), but the "
            f"longest step of the plan takes about {format_duration(longest_s)}: allow {enough} s, or have no limit "
            f"with {self.off}"
        )


def shortest_limit(items: Iterable[pytest.Item]) -> TimeLimit | None:
    """Return the shortest limit of these tests; None without one.

    A limit of the function only (``func_only``) is left out: fixtures measure.
    """
    limits = (limit for item in items if (limit := _limit(item)))
    return min(limits, key=lambda limit: limit.seconds, default=None)


def _limit(item: pytest.Item) -> TimeLimit | None:
    config = item.config
    option = config.getoption("timeout", ABSENT)
    if option is ABSENT:
        return None
    mark = item.get_closest_marker("timeout")
    if mark and mark.kwargs.get("func_only", config.getini("timeout_func_only")):
        return None
    if not mark and config.getini("timeout_func_only"):
        return None
    sources = (
        ((mark.args or (mark.kwargs.get("timeout"),))[0] if mark else None, "its mark timeout", "timeout(0)"),
        (option, "--timeout", "--timeout=0"),
        (os.environ.get("PYTEST_TIMEOUT"), "PYTEST_TIMEOUT", "--timeout=0"),
        (config.getini("timeout"), "timeout in the configuration", "-o timeout=0"),
    )
    for value, source, off in sources:
        if value not in (None, ""):
            seconds = _number(value)
            return TimeLimit(seconds, source, off, item.nodeid) if seconds else None
    return None
