"""Parsers of single options and ini values; each raises ``pytest.UsageError`` that names the option and the value.

``gate`` needs one in every pytest run of the environment, so this module imports nothing heavy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

#: fio may write to the drives for as long as a connection is lost.
MAX_RECONNECT_S = 3600.0
#: Largest number of drives of one bay.
MOST_DRIVES = 10_000
#: Policies for bays that share a path, see ``Settings.on_shared_path``.
SHARED_PATH = ("auto", "error", "warn", "ignore")


@contextmanager
def usage_error(*kinds: type[Exception], of: str = "") -> Iterator[None]:
    """Raise an error of these kinds as ``pytest.UsageError``, with the name of an option in front if one is given."""
    try:
        yield
    except kinds as error:
        raise pytest.UsageError(f"{of}: {error}" if of else str(error)) from error


def truth(config: pytest.Config, name: str) -> bool:
    """Return an ini value that is true or false."""
    try:
        return bool(config.getini(name))
    except (ValueError, pytest.UsageError) as error:
        raise pytest.UsageError(f"{name} is true or false: {error}") from error


def either(config: pytest.Config, name: str) -> str:
    """Return an option, or the ini value of the same name."""
    return str(config.getoption(name) or config.getini(name))


def drive_count(where: str, text: str) -> int | None:
    """Parse the number of drives of a bay; None for an empty text."""
    if not text:
        return None
    if text.isascii() and text.isdecimal() and len(text) < 7 and 0 < int(text) <= MOST_DRIVES:
        return int(text)
    raise pytest.UsageError(f"{where}={text}: write the number of drives of a bay, e.g. 8")


def duration_s(option: str, text: str) -> float:
    """Parse a duration in seconds; 0 needs no unit."""
    from pytest_ssdqual.qual.units import parse_duration

    try:
        return 0.0 if text.strip() == "0" else parse_duration(text)
    except ValueError as error:
        raise pytest.UsageError(f"{option}={text}: {error}, or 0") from None


def budget_s(text: str) -> float | None:
    """Parse the time budget in seconds; None for an empty text."""
    from pytest_ssdqual.qual.units import parse_duration

    if not text:
        return None
    with usage_error(ValueError, of=f"--ssd-budget={text}"):
        seconds = parse_duration(text)
    if not 0 < seconds < math.inf:
        raise pytest.UsageError(f"--ssd-budget={text}: write a time above zero, e.g. 8h")
    return seconds


def reconnect_s(text: str) -> float:
    """Parse the seconds for which the rig tries to restore a lost connection."""
    seconds = duration_s("--ssd-reconnect", text)
    if not 0 <= seconds <= MAX_RECONNECT_S:
        raise pytest.UsageError(f"--ssd-reconnect={text}: write at most 1 h; fio may write to the drives all that time")
    return seconds


def one_of(name: str, value: str, choices: Sequence[str]) -> str:
    """Return a value that is one of the choices."""
    if value not in choices:
        raise pytest.UsageError(f"{name} must be {', '.join(choices[:-1])} or {choices[-1]}, not {value!r}")
    return value
