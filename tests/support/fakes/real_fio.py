"""The fio of this machine on files: what our options really make it do, where arguments alone would not show it."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_ssdqual.rig.fio.jobs import Job, JobTarget
from pytest_ssdqual.rig.fio.process import FinishedProcess
from support.fakes.scripted import completed


def image(folder: Path, size_bytes: int, name: str = "image") -> JobTarget:
    """A file of zeroes to read and write; the test is skipped where fio or direct I/O is missing."""
    if not shutil.which("fio"):
        pytest.skip("fio is not installed")
    path = folder / name
    with path.open("wb") as file:
        file.truncate(size_bytes)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_DIRECT))
    except OSError:
        pytest.skip("the temporary directory has no direct I/O")
    return JobTarget(str(path), size_bytes)


def run(job: Job, folder: Path, more: Sequence[str] = ()) -> FinishedProcess:
    """Run ``job`` in ``folder``, with options of the test's own after ours."""
    output = folder / "output.json"
    argv = (*job.argv(str(output)), *more)
    done = subprocess.run(argv, capture_output=True, timeout=60, check=False, cwd=folder)
    return FinishedProcess(
        completed(argv, status=done.returncode, stderr=done.stderr.decode()), gzip.compress(output.read_bytes())
    )


@dataclass(frozen=True)
class Transfer:
    """One I/O as fio logged it before it was issued."""

    way: str
    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size


def transfers(job: Job, folder: Path, more: Sequence[str] = ()) -> list[Transfer]:
    """Every I/O of ``job`` in order; of a process of one job, or they overwrite each other's log."""
    log = folder / "io.log"
    run(job, folder, [f"--write_iolog={log}", *more])
    fields = [line.split() for line in log.read_text().splitlines()]
    return [Transfer(each[-3], int(each[-2]), int(each[-1])) for each in fields if each[-3:-2] in (["read"], ["write"])]


def damage(target: JobTarget, at: int, data: bytes) -> None:
    with Path(target.path).open("r+b") as file:
        file.seek(at)
        file.write(data)
