"""The run folder's disk is full: no evidence, so no verdict; the array is taken down and JUnit is written."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from rehearsed import Server, Start, drives

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """An empty file system of one megabyte."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "ssdqual", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this root may not mount a file system")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_run_folder_is_an_error_and_the_array_is_stopped(server: Server, start: Start, small: Path) -> None:
    running = start(drives(3), "-k", "steady_state and (randwrite_4k_qd8 or randread_4k_qd8)", root=small / "runs")
    running.await_record("conditioned")
    _fill(small)
    run = running.finish()
    assert run.status == 2, run.output
    assert "INTERNALERROR" not in run.output
    ((name, results),) = run.results().items()
    assert name.endswith("[raid5x3-randwrite_4k_qd8]")
    assert len(results) == 1
    assert results[0].startswith(f'error: failed on setup with "evidence cannot be kept in {running.root}')
    assert results[0].endswith(': No space left on device"')
    assert "the run folder is not complete: evidence cannot be kept in" in run.output
    assert server.left() == []


def _fill(place: Path) -> None:
    with (place / "filler").open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass
