from __future__ import annotations

import errno
import getpass
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ssdqual.report.run_folder.journal import Journal, JournalError
from pytest_ssdqual.report.run_folder.lock import FolderLock, StillWritten, is_in_use
from pytest_ssdqual.rig.guard.lease import Note


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Journal.create(tmp_path, "aaaaaaaa").path


def test_a_folder_has_one_writer_by_each_name(folder: Path) -> None:
    held = FolderLock(folder, "main")
    with pytest.raises(StillWritten, match=rf"^{folder} is in use by \S+ pid {os.getpid()} since "):
        FolderLock(folder, "main")
    FolderLock(folder, "gw0").release()
    held.release()
    held.release()
    FolderLock(folder, "main").release()


def test_another_pen_in_use_is_found(folder: Path) -> None:
    """A worker whose controller was killed may still be writing."""
    mine = FolderLock(folder, "main")
    mine.require_alone()
    worker = FolderLock(folder, "gw0")
    with pytest.raises(StillWritten):
        mine.require_alone()
    worker.release()
    mine.require_alone()
    mine.release()


def test_a_process_that_was_killed_holds_nothing(folder: Path) -> None:
    code = "import sys\nfrom pathlib import Path\nfrom pytest_ssdqual.report.run_folder.lock import FolderLock\n"
    code += "claim = FolderLock(Path(sys.argv[1]), 'main')\nprint('held', flush=True)\nsys.stdin.read()"
    argv = [sys.executable, "-c", code, str(folder)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(StillWritten, match=f"pid {other.pid} "):
            FolderLock(folder, "main")
        other.kill()
        other.wait()
    FolderLock(folder, "main").release()


def test_a_folder_is_in_use_while_any_process_writes_into_it(folder: Path) -> None:
    assert not is_in_use(folder)
    worker = FolderLock(folder, "gw0")
    assert is_in_use(folder)
    worker.release()
    assert not is_in_use(folder)
    (folder / ".gw0.lock").unlink()
    (folder / ".gw0.lock").mkdir()
    assert is_in_use(folder)


def test_locks_are_no_evidence(folder: Path) -> None:
    claim = FolderLock(folder, "main")
    journal = Journal.open(folder)
    journal.seal()
    assert "lock" not in (folder / "SHA256SUMS").read_text()
    claim.release()


def test_a_folder_that_is_gone_cannot_be_claimed(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"^evidence cannot be stored in .*: No such file or directory"):
        FolderLock(tmp_path / "gone", "main")


def test_a_user_without_a_name_is_recorded_by_number(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container with any user id, the password file has no entry."""

    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(getpass, "getuser", nameless)
    held = FolderLock(folder, "main")
    assert (folder / ".main.lock").read_text().startswith(f"uid {os.getuid()}@")
    assert Note.of_this_process().who.startswith(f"uid {os.getuid()}@")
    held.release()


def test_a_full_disk_is_one_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(JournalError, match="No space left on device"):
        FolderLock(folder, "main")
    monkeypatch.undo()
    FolderLock(folder, "main").release()
