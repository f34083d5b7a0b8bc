"""Simulated durations in pytest's cache, so that only the first plan of its kind takes the time to simulate.

They depend on the protocol, the margins and the program only. Forecasts use them, no verdict does.
"""

from __future__ import annotations

import hashlib
from collections.abc import MutableMapping
from functools import cache
from pathlib import Path

import pytest

from pytest_ssdqual import qual
from pytest_ssdqual.qual.forecast.duration import DRIVES

#: Key in pytest's cache.
KEY = "ssdqual/durations"
#: Most entries that are stored: several suites by each protocol.
MOST = 2000
#: Durations on the simulated drives of a kind, by what they depend on.
Stored = MutableMapping[str, tuple[float, ...]]


def load(config: pytest.Config) -> Stored:
    """Return the durations that earlier sessions stored; none without a cache or from another version of the program.

    What is damaged is left out.
    """
    found = config.cache.get(KEY, None) if getattr(config, "cache", None) else None
    if not isinstance(found, dict) or found.get("program") != _program() or not isinstance(found.get("of"), dict):
        return {}
    return {key: tuple(each) for key, each in found["of"].items() if _is_sound(each)}


def save(config: pytest.Config, durations: Stored) -> None:
    """Store ``durations`` if there are others than before."""
    if getattr(config, "cache", None) and durations.keys() - load(config).keys():
        newest = dict(list(durations.items())[-MOST:])
        config.cache.set(KEY, {"program": _program(), "of": newest})


def key_of(*arguments: object) -> str:
    """Return the key of the durations that depend on ``arguments``, values whose ``repr`` shows all of them."""
    return hashlib.sha256(repr(arguments).encode()).hexdigest()


def _is_sound(found: object) -> bool:
    return isinstance(found, list) and len(found) == DRIVES and all(isinstance(each, float) for each in found)


@cache
def _program() -> str:
    """Return a digest of the code that durations depend on: every module of ``qual`` with its size and time."""
    folder = Path(qual.__file__).parent
    files = sorted((str(each), each.stat()) for each in folder.rglob("*.py"))
    return key_of(*((name, state.st_size, state.st_mtime_ns) for name, state in files))
