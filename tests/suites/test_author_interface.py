"""What a suite's author may import: all of it is there, and none of it is loaded before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pytest_ssdqual


@pytest.mark.parametrize("name", pytest_ssdqual.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(pytest_ssdqual, name) is getattr(pytest_ssdqual, name)


def test_another_name_is_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Workloads'"):
        pytest_ssdqual.Workloads  # type: ignore[attr-defined]  # noqa: B018


def test_nothing_is_loaded_before_it_is_used() -> None:
    program = "import sys, pytest_ssdqual; print(*[name for name in sys.modules if name.startswith('pytest_ssdqual.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
