"""Writes stamps (``qual.integrity.stamp``) with fio and verifies them: at depth, in random order, in any transfer size.

fio repeats the pattern through each transfer and replaces ``%o`` by the offset of the transfer (fio's HOWTO,
``verify_pattern``). In random order every block of a range is written exactly once (fio's random map).
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.integrity import stamp
from pytest_ssdqual.rig.fio import jobs
from pytest_ssdqual.rig.fio.jobs import ExpectedResult, Job, JobTarget
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement

DEPTH = 32
#: fio's errno for data that differ, and for data that an array does not deliver.
DIFFERENT, UNREADABLE = errno.EILSEQ, (errno.EIO, errno.ENODATA, errno.EREMOTEIO, errno.ETIMEDOUT)
#: Generations that one fio process writes in sequence; between two processes there is a short pause.
BATCH = 16
#: fio's options for passes that are flushed, each at its end, and for passes whose every write has FUA: a block device
#: gives it to asynchronous direct writes of a file that is open with O_SYNC (block/fops.c), where the drive takes it.
FLUSHED, FUA = ("--end_fsync=1",), ("--sync=1",)
OVERWRITE = scripts.text("overwrite_passes.sh")


@frozen
class Stretch:
    """A part of the array that holds one generation, in whole transfers."""

    offset_bytes: int
    size_bytes: int
    generation: int
    block_bytes: int


def write(target: JobTarget, history: int, stretches: Sequence[Stretch], *, flush: bool) -> Job:
    """Job that writes all stretches side by side; with ``flush``, each ends with a flush (fsync)."""
    total = sum(stretch.size_bytes for stretch in stretches)
    expectation = ExpectedResult(reads=False, writes=True, written_bytes=total)
    options = ("--rw=randwrite", "--do_verify=0", *(("--end_fsync=1",) if flush else ()))
    return _job(target, history, stretches, options, expectation)


def read(target: JobTarget, history: int, stretches: Sequence[Stretch]) -> Job:
    """Job that reads and compares all stretches; ``differs`` interprets its output."""
    total = sum(stretch.size_bytes for stretch in stretches)
    expectation = ExpectedResult(reads=True, writes=False, read_bytes=total)
    return _job(target, history, stretches, ("--rw=randread", "--verify_fatal=1"), expectation)


def differs(finished: FinishedProcess, expectation: ExpectedResult) -> bool:
    """Return True if a ``read`` found different or unreadable data.

    Raises ``RigError`` or ``InvalidMeasurement`` if fio failed in another way.
    """
    try:
        finished.accepted(expectation)
    except InvalidMeasurement:
        if finished.errno not in (DIFFERENT, *UNREADABLE):
            raise
        return True
    return False


def overwrite(
    target: JobTarget, history: int, over: Stretch, passes: int, note: str, sync: Sequence[str] = FLUSHED
) -> tuple[str, ...]:
    """Return a command that overwrites a stretch repeatedly, with the next generation each time.

    ``sync`` is ``FLUSHED``, ``FUA`` or nothing. The file ``note`` has the last generation that is known to be complete:
    that of a whole ``BATCH``, of which ``passes`` is a multiple, or the last one when fio has failed.
    """
    form = stamp.fio_pattern(history, 0).removesuffix(f"{0:08x}%o") + "%08x"
    fio = ["fio", "--name=global", f"--filename={target.path}", *_engine(), "--rw=randwrite", "--do_verify=0"]
    fio += ["--output-format=terse", *sync, *_place(over)]
    generations = str(over.generation), str(over.generation + passes), str(BATCH)
    return ("sh", "-c", OVERWRITE, "overwrite", note, *generations, form, *fio)


def _job(
    target: JobTarget, history: int, stretches: Sequence[Stretch], options: Sequence[str], expectation: ExpectedResult
) -> Job:
    if not stretches:
        raise ValueError("fio needs something to read or write")
    sections: list[str] = []
    for number, stretch in enumerate(stretches):
        pattern = stamp.fio_pattern(history, stretch.generation)
        sections += [f"--name=stretch-{number}", *_place(stretch), f"--verify_pattern={pattern}"]
    head = (*jobs.reporting(10), "--name=global", f"--filename={target.path}", *_engine(), *options)
    return Job((*head, *sections), expectation, jobs.checks([target]))


def _engine() -> Iterator[str]:
    yield from jobs.engine()
    # The order is the same each time that a step sequence is replayed.
    yield "--randrepeat=1"
    yield f"--iodepth={DEPTH}"
    yield "--verify=pattern"
    # Both would leave files in fio's working directory.
    yield "--verify_dump=0"
    yield "--verify_state_save=0"


def _place(stretch: Stretch) -> Iterator[str]:
    if stretch.size_bytes % stretch.block_bytes or stretch.size_bytes <= 0:
        raise ValueError(f"{stretch.size_bytes} bytes are not whole transfers of {stretch.block_bytes}")
    yield f"--bs={stretch.block_bytes}"
    yield f"--offset={stretch.offset_bytes}"
    yield f"--size={stretch.size_bytes}"
