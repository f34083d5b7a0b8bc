"""Keeps this suite out of runs of several suites: it has broken promises and invented errors of the rig."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore this folder unless an argument names it: a path, or a module with ``--pyargs``."""
    del collection_path
    return None if any(_is_here(str(each), config.invocation_params.dir) for each in config.args) else True


def _is_here(word: str, start: Path) -> bool:
    place = word.partition("::")[0]
    return (start / place).resolve().is_relative_to(HERE.resolve()) or HERE.name in place.split(".")
