"""fio writes imprints (``qual.integrity.stamp``) and reads them back: at depth, in an order of its own, in every
transfer size.

fio repeats the pattern through each transfer and puts the offset of the transfer where ``%o`` is (fio's HOWTO,
``verify_pattern``). In random order every block of a range is written exactly once (fio's random map).
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual.integrity import stamp
from pytest_ssdqual.rig.fio import acceptance, jobs, output
from pytest_ssdqual.rig.fio.jobs import ExpectedResult, Job, JobTarget
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement

DEPTH = 32
#: What fio answers for data that differ, and for those that an array does not deliver.
DIFFERENT, UNREADABLE = errno.EILSEQ, (errno.EIO, errno.ENODATA, errno.EREMOTEIO, errno.ETIMEDOUT)
#: Generations that one fio process writes, one after the other; between two processes nothing is written for a moment.
BATCH = 16
OVERWRITE = scripts.text("overwrite_passes.sh")


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the array that holds one generation, in whole transfers."""

    offset_bytes: int
    size_bytes: int
    generation: int
    block_bytes: int


def write(target: JobTarget, history: int, stretches: Sequence[Stretch], *, flush: bool) -> Job:
    """Write all of them side by side; with ``flush``, the last thing that each does is to flush (fsync)."""
    total = sum(each.size_bytes for each in stretches)
    expectation = ExpectedResult(reads=False, writes=True, written_bytes=total)
    options = ("--rw=randwrite", "--do_verify=0", *(("--end_fsync=1",) if flush else ()))
    return _job(target, history, stretches, options, expectation)


def read(target: JobTarget, history: int, stretches: Sequence[Stretch]) -> Job:
    """Read all of them and compare; ``differs`` tells what came of it."""
    total = sum(each.size_bytes for each in stretches)
    expectation = ExpectedResult(reads=True, writes=False, read_bytes=total)
    return _job(target, history, stretches, ("--rw=randread", "--verify_fatal=1"), expectation)


def differs(finished: FinishedProcess, expectation: ExpectedResult) -> bool:
    """Whether a ``read`` found something else, or something that cannot be read.

    Raises ``RigError`` or ``InvalidMeasurement`` if fio failed in another way.
    """
    try:
        acceptance.accept(finished.pieces(), finished.completed.status, finished.completed.errors, expectation)
    except InvalidMeasurement:
        if _error(finished.pieces()) not in (DIFFERENT, *UNREADABLE):
            raise
        return True
    return False


def overwrite(target: JobTarget, history: int, over: Stretch, passes: int, note: str) -> tuple[str, ...]:
    """A command that overwrites a stretch again and again, with a generation more each time; each pass is flushed.

    The last generation that is known to be flushed is in the file ``note``; ``passes`` are whole batches.
    """
    form = stamp.fio_pattern(history, 0).removesuffix(f"{0:08x}%o") + "%08x"
    fio = ["fio", "--name=global", f"--filename={target.path}", *_engine(), "--rw=randwrite", "--do_verify=0"]
    fio += ["--output-format=terse", "--end_fsync=1", *_place(over)]
    ends = str(over.generation), str(over.generation + passes), str(BATCH)
    return ("sh", "-c", OVERWRITE, "overwrite", note, *ends, form, *fio)


def _job(
    target: JobTarget, history: int, stretches: Sequence[Stretch], options: Sequence[str], expectation: ExpectedResult
) -> Job:
    if not stretches:
        raise ValueError("fio needs something to read or write")
    sections: list[str] = []
    for number, each in enumerate(stretches):
        pattern = stamp.fio_pattern(history, each.generation)
        sections += [f"--name=stretch-{number}", *_place(each), f"--verify_pattern={pattern}"]
    head = (*jobs.reporting(10), "--name=global", f"--filename={target.path}", *_engine(), *options)
    return Job((*head, *sections), expectation, jobs.checks([target]))


def _engine() -> Iterator[str]:
    yield from jobs.engine()
    # The same order each time that a history is replayed.
    yield "--randrepeat=1"
    yield f"--iodepth={DEPTH}"
    yield "--verify=pattern"
    # Both would leave files where fio was started.
    yield "--verify_dump=0"
    yield "--verify_state_save=0"


def _place(each: Stretch) -> Iterator[str]:
    if each.size_bytes % each.block_bytes or each.size_bytes <= 0:
        raise ValueError(f"{each.size_bytes} bytes are no whole transfers of {each.block_bytes}")
    yield f"--bs={each.block_bytes}"
    yield f"--offset={each.offset_bytes}"
    yield f"--size={each.size_bytes}"


def _error(data: output.Output) -> int:
    try:
        return output.parse(data).error
    except InvalidMeasurement:
        return 0
