from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from pytest_ssdqual.lab import vm
from pytest_ssdqual.lab.vm import roomiest, scratch_directory
from pytest_ssdqual.rig.machine.owned_directory import OwnedDirectory, sweep


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(vm, "_MEMORY", tmp_path)
    monkeypatch.setattr(vm, "_RESERVE_BYTES", 0)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path


def test_it_is_removed_with_what_is_in_it(memory: Path) -> None:
    with scratch_directory(0) as directory:
        (directory / "drive").write_bytes(b"x")
        assert list(memory.iterdir()) == [directory]
        sweep(memory, vm._PREFIX)
        assert directory.is_dir()
    assert list(memory.iterdir()) == []


def test_it_is_removed_upon_an_error(memory: Path) -> None:
    with pytest.raises(KeyError), scratch_directory(0):
        raise KeyError
    assert list(memory.iterdir()) == []


def test_what_a_killed_owner_left_is_removed_by_the_next(memory: Path) -> None:
    left = OwnedDirectory.make(memory, vm._PREFIX)
    with scratch_directory(0):
        assert left.path.is_dir()
    os.close(left.descriptor)  # as the kernel does when a process is killed
    with scratch_directory(0):
        assert not left.path.exists()


def test_drives_too_large_for_memory_go_to_temporary_files(tmp_path: Path) -> None:
    assert roomiest(0, tmp_path) == tmp_path
    assert roomiest(1 << 60, tmp_path) == Path(tempfile.gettempdir())
    assert roomiest(0, tmp_path / "none") == Path(tempfile.gettempdir())
