"""Data that can be told from all other data: written before something happens to an array, read back after it.

Every block is random, with a header that holds its own address and the checksum of the rest (fio's ``verify``). A
block that was changed, that landed at another's place or that was never written is found. A block that is *stale*,
with the data of an earlier pattern, would not be: fio does not check its seeds when it only reads (3.33 not at all,
3.40 and later not by default). So the seed decides where in the block the header is: where a stale one has its
header, this one has random data.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator

from pytest_ssdqual.rig.fio import acceptance, jobs, output
from pytest_ssdqual.rig.fio.jobs import ExpectedResult, Job, JobTarget
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement

#: Ranges of a pattern are whole blocks of this; a block is damaged or not as a whole.
BLOCK_BYTES = 65536
#: Room for one header; fio's are 44 (3.33) to 56 bytes (3.42), and it moves at most 200.
PLACE_BYTES = 256
#: Seeds are below this; patterns of two seeds have no block in common.
SEEDS = BLOCK_BYTES // PLACE_BYTES - 1

#: Depth that keeps a sequential stream going on any array we build.
DEPTH = 32

MISMATCH = re.compile(
    r"(?P<test>\w+): (?P<found>[^:]*?) at file (?P<path>\S+) offset (?P<at>\d+), length (?P<length>\d+)"
)
ELSEWHERE = re.compile(r"bad header offset (\d+), wanted")


def write_pattern(target: JobTarget, offset_bytes: int, size_bytes: int, seed: int, status_interval_s: int = 10) -> Job:
    """Write the pattern of ``seed`` (0 … ``SEEDS`` - 1) over a range of whole blocks; nothing is read.

    ``ValueError`` for another seed, or a range that is not whole blocks within the target.
    """
    expectation = ExpectedResult(reads=False, writes=True, block_bytes=BLOCK_BYTES, written_bytes=size_bytes)
    options = ("--rw=write", "--do_verify=0", *_range(target, offset_bytes, size_bytes, seed))
    options = (*jobs.reporting(status_interval_s), "--name=write-pattern", *options)
    return Job(options, expectation, jobs.checks([target]))


def read_back(target: JobTarget, offset_bytes: int, size_bytes: int, seed: int, status_interval_s: int = 10) -> Job:
    """Read the range and compare; ``damage`` tells what came of it. ``ValueError`` as ``write_pattern``."""
    expectation = ExpectedResult(reads=True, writes=False, block_bytes=BLOCK_BYTES, read_bytes=size_bytes)
    options = ("--rw=read", *_range(target, offset_bytes, size_bytes, seed))
    options = (*jobs.reporting(status_interval_s), "--name=read-back", *options)
    return Job(options, expectation, jobs.checks([target]))


def damage(finished: FinishedProcess, expectation: ExpectedResult) -> str:
    """What ``read_back`` found, as one sentence about the first bad block; empty if all is as it was written.

    Raises ``RigError`` or ``InvalidMeasurement`` if it was not all read, an I/O error among the reasons.
    """
    stderr, status = finished.completed.errors, finished.completed.status
    for line in acceptance.said(finished.pieces(), stderr):
        if found := MISMATCH.search(line):
            return _sentence(found)
    try:
        acceptance.accept(finished.pieces(), status, stderr, expectation)
    except InvalidMeasurement:
        if not _differs(finished.pieces()):
            raise
        return "a block does not hold what was written; fio did not say which"
    return ""


def _range(target: JobTarget, offset_bytes: int, size_bytes: int, seed: int) -> Iterator[str]:
    if not 0 <= seed < SEEDS:
        raise ValueError(f"seeds of patterns are 0 to {SEEDS - 1}, not {seed}")
    if offset_bytes % BLOCK_BYTES or size_bytes % BLOCK_BYTES or size_bytes <= 0 or offset_bytes < 0:
        raise ValueError(f"a pattern needs whole blocks of {BLOCK_BYTES} bytes, not {size_bytes} at {offset_bytes}")
    if offset_bytes + size_bytes > target.size_bytes:
        raise ValueError(f"{target.path} has {target.size_bytes} bytes, not {offset_bytes + size_bytes}")
    yield f"--filename={target.path}"
    yield from jobs.engine()
    yield f"--bs={BLOCK_BYTES}"
    yield f"--iodepth={DEPTH}"
    yield f"--offset={offset_bytes}"
    yield f"--size={size_bytes}"
    yield "--verify=crc32c"
    yield f"--verify_offset={PLACE_BYTES * (seed + 1)}"
    yield "--verify_fatal=1"
    # Both would leave files where fio was started.
    yield "--verify_dump=0"
    yield "--verify_state_save=0"


def _sentence(found: re.Match[str]) -> str:
    where = f"the block at byte {found['at']} of {found['path']} does not hold what was written"
    if elsewhere := ELSEWHERE.search(found["found"]):
        return f"{where}: its own address says byte {elsewhere[1]}"
    if found["found"] == "verify failed":
        return f"{where}: its checksum is wrong"
    return f"{where}: it holds something else ({found['found']})"


def _differs(data: output.Output) -> bool:
    """Whether fio's account has the error of a failed comparison."""
    try:
        return output.parse(data).error == errno.EILSEQ
    except InvalidMeasurement:
        return False
