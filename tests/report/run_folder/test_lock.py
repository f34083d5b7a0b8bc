from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ssdqual.report.run_folder.journal import Journal, JournalError
from pytest_ssdqual.report.run_folder.lock import FolderLock, StillWritten


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


def test_locks_are_no_evidence(folder: Path) -> None:
    claim = FolderLock(folder, "main")
    journal = Journal.open(folder)
    journal.seal()
    assert "lock" not in (folder / "SHA256SUMS").read_text()
    claim.release()


def test_a_folder_that_is_gone_cannot_be_claimed(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"^evidence cannot be stored in .*: No such file or directory"):
        FolderLock(tmp_path / "gone", "main")
