"""What fio really writes and finds, on files."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path

import pytest
from support.fakes import real_fio
from support.fakes.scripted import completed

from pytest_ssdqual.qual.integrity.stamp import Stamp, filled
from pytest_ssdqual.rig.fio import acceptance, stamped_io
from pytest_ssdqual.rig.fio.jobs import ExpectedResult, JobTarget
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.fio.stamped_io import Stretch
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement

pytestmark = pytest.mark.slow

KIB = 1024
ONE, OTHER = Stretch(0, 64 * KIB, 7, 4 * KIB), Stretch(128 * KIB, 128 * KIB, 8, 64 * KIB)


@pytest.fixture
def target(tmp_path: Path) -> JobTarget:
    return real_fio.image(tmp_path, 512 * KIB)


def written(target: JobTarget, tmp_path: Path, *stretches: Stretch, history: int = 3) -> bytes:
    job = stamped_io.write(target, history, stretches, flush=True)
    done = real_fio.run(job, tmp_path)
    acceptance.accept(done.pieces(), done.completed.status, done.completed.errors, job.expectation)
    return Path(target.path).read_bytes()


def reads(target: JobTarget, tmp_path: Path, *stretches: Stretch, history: int = 3) -> bool:
    job = stamped_io.read(target, history, stretches)
    return stamped_io.differs(real_fio.run(job, tmp_path), job.expectation)


def test_every_transfer_says_what_it_is_of_and_where(target: JobTarget, tmp_path: Path) -> None:
    data = written(target, tmp_path, ONE, OTHER)
    for at in range(0, 64 * KIB, 4 * KIB):
        assert data[at : at + 4 * KIB] == filled(Stamp(3, 7, at), 4 * KIB)
    for at in range(128 * KIB, 256 * KIB, 64 * KIB):
        assert data[at : at + 64 * KIB] == filled(Stamp(3, 8, at), 64 * KIB)
    assert not any(data[64 * KIB : 128 * KIB])
    assert not any(data[256 * KIB :])


DAMAGE = {
    "a byte": (64 * KIB - 1, b"X"),
    "an earlier write": (8 * KIB, filled(Stamp(3, 6, 8 * KIB), 4 * KIB)),
    "another history": (8 * KIB, filled(Stamp(2, 7, 8 * KIB), 4 * KIB)),
    "another place": (8 * KIB, filled(Stamp(3, 7, 4 * KIB), 4 * KIB)),
    "zeroes": (200 * KIB, bytes(512)),
}


def test_only_what_was_written_reads_back(target: JobTarget, tmp_path: Path) -> None:
    sound = written(target, tmp_path, ONE, OTHER)
    assert not reads(target, tmp_path, ONE, OTHER)
    for name, (at, data) in DAMAGE.items():
        real_fio.damage(target, at, data)
        assert reads(target, tmp_path, ONE, OTHER), name
        real_fio.damage(target, at, sound[at : at + len(data)])


def test_a_broken_fio_is_not_taken_for_lost_data(target: JobTarget) -> None:
    job = stamped_io.read(target, 3, [ONE])
    killed = FinishedProcess(completed(["fio"], status=-9), gzip.compress(b""))
    with pytest.raises(InvalidMeasurement):
        stamped_io.differs(killed, job.expectation)


def test_options_and_expectation_of_a_write(target: JobTarget) -> None:
    job, unflushed = (stamped_io.write(target, 1, [ONE, OTHER], flush=flush) for flush in (True, False))
    assert "--end_fsync=1" in job.options
    assert "--end_fsync=1" not in unflushed.options
    # A history is repeated in the same order.
    assert [each for each in job.options if each.startswith("--randrepeat")][-1] == "--randrepeat=1"
    assert job.expectation == ExpectedResult(reads=False, writes=True, written_bytes=192 * KIB)
    assert stamped_io.read(target, 1, [ONE, OTHER]).expectation.read_bytes == 192 * KIB


@pytest.mark.parametrize(
    ("stretches", "fault"),
    [
        ([Stretch(0, 10 * KIB, 1, 4 * KIB)], "not whole transfers"),
        ([Stretch(0, 0, 1, 4 * KIB)], "not whole transfers"),
        ([], "needs something"),
    ],
)
def test_only_whole_transfers_are_written(target: JobTarget, stretches: list[Stretch], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        stamped_io.write(target, 1, stretches, flush=True)


def test_overwriting_goes_on_with_a_generation_more_each_time(target: JobTarget, tmp_path: Path) -> None:
    note = tmp_path / "note"
    argv = stamped_io.overwrite(target, 3, Stretch(0, 64 * KIB, 7, 16 * KIB), 2 * stamped_io.BATCH, str(note))
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert note.read_text() == "38\n"
    assert Path(target.path).read_bytes()[: 16 * KIB] == filled(Stamp(3, 38, 0), 16 * KIB)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["image", "note"]


def test_overwriting_ends_when_fio_fails(target: JobTarget, tmp_path: Path) -> None:
    note = tmp_path / "note"
    missing = JobTarget("/dev/ssdqual-is-not-there", 512 * KIB)
    argv = stamped_io.overwrite(missing, 3, Stretch(0, 64 * KIB, 7, 16 * KIB), stamped_io.BATCH, str(note))
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert done.returncode == 1
    assert not note.exists()


@pytest.mark.parametrize("sync", [stamped_io.FLUSHED, stamped_io.FUA])
def test_the_last_whole_pass_is_noted_when_the_device_goes(
    target: JobTarget, tmp_path: Path, sync: tuple[str, ...]
) -> None:
    """In the middle of a batch, the file becomes a folder, which no further pass can open."""
    note, image = tmp_path / "note", Path(target.path)
    argv = stamped_io.overwrite(target, 3, Stretch(0, 64 * KIB, 7, 16 * KIB), 1 << 16, str(note), sync)
    running = subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not note.exists() or (at := generation(image)) < int(note.read_text()) + 2:
        assert running.poll() is None
    image.rename(tmp_path / "gone")
    image.mkdir()
    assert running.wait(60) == 1
    assert at <= int(note.read_text()) == generation(tmp_path / "gone")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["gone", "image", "note"]


def generation(image: Path) -> int:
    stamp = Stamp.of_cell(image.read_bytes()[:16])
    return stamp.generation if stamp else 0
