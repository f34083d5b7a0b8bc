from __future__ import annotations

from typing import Any, cast

import pytest
from support.fakes.inner_session import Inner

from pytest_ssdqual.plugin.plan import stored_durations
from pytest_ssdqual.plugin.plan.stored_durations import load
from pytest_ssdqual.qual.forecast import duration
from pytest_ssdqual.qual.forecast.duration import DRIVES

FOUND = tuple(float(each) for each in range(DRIVES))


class Cache:
    """pytest's cache as far as it is used."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def get(self, key: str, default: object) -> object:
        return self.values.get(key, default)

    def set(self, key: str, value: object) -> None:
        self.values[key] = value


class Config:
    def __init__(self, cache: Cache | None) -> None:
        self.cache = cache


def config(cache: Cache | None) -> pytest.Config:
    return cast(pytest.Config, Config(cache))


def test_what_was_simulated_is_loaded_again_unless_damaged() -> None:
    cache = Cache()
    stored_durations.save(config(cache), {"a": FOUND})
    values = cache.values[stored_durations.KEY]
    values["of"] = {"a": list(FOUND), "b": [1.0], "c": "x", "d": ["x"] * DRIVES}
    assert stored_durations.load(config(cache)) == {"a": FOUND}


def test_another_program_or_no_cache_has_nothing() -> None:
    cache = Cache()
    stored_durations.save(config(cache), {"a": FOUND})
    cache.values[stored_durations.KEY]["program"] = "another"
    assert stored_durations.load(config(cache)) == {}
    stored_durations.save(config(None), {"a": FOUND})
    assert stored_durations.load(config(None)) == {}
    assert stored_durations.load(config(Cache())) == {}


def test_a_second_plan_simulates_nothing(inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated: list[object] = []

    def simulate(*asked: object) -> tuple[float, ...]:
        simulated.append(asked)
        return FOUND

    monkeypatch.setattr(stored_durations, "load", load)  # the fixture lets sessions share what they simulate
    monkeypatch.setattr(duration, "durations", simulate)
    args = ("--ssd-devices=lab:4", promises, "--ssd-protocol=sequential", "--collect-only")
    first = [line for line in inner.run(*args).outlines if "raid5x" in line or "total" in line]
    assert simulated
    simulated.clear()
    second = [line for line in inner.run(*args).outlines if "raid5x" in line or "total" in line]
    assert not simulated
    assert second == first
