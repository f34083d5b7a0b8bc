"""What the fio of this machine writes, compares and says, on files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.fakes import real_fio

from pytest_ssdqual.qual.integrity.read_back import WrongKind, examine
from pytest_ssdqual.rig.fio import jobs
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.machine.machine import RigError
from pytest_ssdqual.rig.measure.read_back import StampedFill, accepted, first_wrong

pytestmark = pytest.mark.slow

MIB = 1 << 20
FILLED = StampedFill.new()
WRITTEN = FILLED.stamp
#: No multiple of the transfers, behind the MiB of the label.
SIZE = 9 * MIB + 4096 * 3


@pytest.fixture
def drives(tmp_path: Path) -> list[JobTarget]:
    """Two files that were filled."""
    whole = [real_fio.image(tmp_path, SIZE + MIB, name) for name in ("a", "b")]
    targets = [replace(each, begin_bytes=MIB, size_bytes=SIZE, is_part=True) for each in whole]
    job = jobs.fill(targets, 1, "1m", pattern=FILLED.pattern)
    accept(real_fio.run(job, tmp_path), job)
    return targets


def accept(done: FinishedProcess, job: jobs.Job) -> None:
    done.totals(job.expectation)


def compared(drives: list[JobTarget], folder: Path) -> Mapping[str, tuple[int, int]]:
    job = jobs.compare(drives, "1m", FILLED.pattern)
    done = real_fio.run(job, folder)
    wrong = first_wrong(done.messages)
    accepted(done, job, drives, wrong)
    return wrong


def test_what_was_written_is_read(drives: list[JobTarget], tmp_path: Path) -> None:
    assert compared(drives, tmp_path) == {}
    assert compared(drives[:1], tmp_path) == {}
    # The label's MiB is nobody's.
    assert not any(Path(drives[0].path).read_bytes()[:MIB])


@pytest.mark.parametrize(("at", "transfer"), [(MIB, MIB), (5 * MIB + 70_000, 5 * MIB), (SIZE + MIB - 1, 10 * MIB)])
def test_one_byte_is_found_on_its_drive_alone(drives: list[JobTarget], tmp_path: Path, at: int, transfer: int) -> None:
    real_fio.damage(drives[1], at, b"x")
    size = min(MIB, SIZE + MIB - transfer)
    assert compared(drives, tmp_path) == {drives[1].path: (transfer, size)}


def test_the_first_wrong_transfer_of_each_drive_is_named(drives: list[JobTarget], tmp_path: Path) -> None:
    """Behind a smaller capacity a drive begins again at its first byte: what it returns there was written last."""
    for drive in drives:
        content = Path(drive.path).read_bytes()
        real_fio.damage(drive, 3 * MIB, content[7 * MIB : 9 * MIB])
    wrong = compared(drives, tmp_path)
    assert {path: place[0] for path, place in wrong.items()} == {drive.path: 3 * MIB for drive in drives}
    block = examine(Path(drives[0].path).read_bytes()[3 * MIB : 4 * MIB], WRITTEN.at(3 * MIB))
    assert (block.kind, (block.belongs_to_bytes or 0) // MIB) == (WrongKind.ELSEWHERE, 7)


def test_whatever_fio_says_the_counts_of_the_others_are_read(drives: list[JobTarget], tmp_path: Path) -> None:
    """A worker with many wrong transfers is ended in the middle of a line, and the document follows on that line."""
    real_fio.damage(drives[1], MIB, bytes(8 * MIB))
    job = jobs.compare(drives, "1m", FILLED.pattern)
    for _ in range(3):
        done = real_fio.run(job, tmp_path)
        wrong = first_wrong(done.messages)
        assert wrong == {drives[1].path: (MIB, MIB)}
        totals = accepted(done, job, drives, wrong)
        assert sum(interval.read_bytes for interval in totals.parts[0]) == SIZE


@pytest.mark.parametrize("damaged", [(), (1,)], ids=["alone", "beside a wrong one"])
def test_a_drive_that_was_read_in_part_is_not_accepted(
    drives: list[JobTarget], tmp_path: Path, damaged: Sequence[int]
) -> None:
    """Not even if the process ended as it should: a shorter drive is read, and a longer one is asked for."""
    for number in damaged:
        real_fio.damage(drives[number], MIB, bytes(MIB))
    done = real_fio.run(jobs.compare(drives, "1m", FILLED.pattern), tmp_path)
    wrong = first_wrong(done.messages)
    assert list(wrong) == [drives[number].path for number in damaged]
    longer = [replace(drives[0], size_bytes=SIZE + MIB), drives[1]]
    with pytest.raises(RigError):
        accepted(done, jobs.compare(longer, "1m", FILLED.pattern), longer, wrong)


def test_an_earlier_fill_does_not_pass_for_this_one(drives: list[JobTarget], tmp_path: Path) -> None:
    job = jobs.fill(
        drives[1:], 1, "1m", pattern=StampedFill(replace(WRITTEN, generation=WRITTEN.generation ^ 1)).pattern
    )
    accept(real_fio.run(job, tmp_path), job)
    assert set(compared(drives, tmp_path)) == {drives[1].path}
