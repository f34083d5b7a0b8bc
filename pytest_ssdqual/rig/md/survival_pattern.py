"""A pattern that identifies itself: written before an array loses members, read back afterwards.

It is at the reserved end of an array, where no workload writes.

Every block is random, with a header that holds its own address and the checksum of the rest (fio's ``verify``). A
block that was changed, misplaced or never written is found. A *stale* block, with the data of an earlier pattern, would
not be: fio does not check its seeds when it only reads (3.33 not at all, 3.40 and later not by default). So the seed
decides the header's position in the block: where a stale block has its header, this one has random data.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from dataclasses import replace

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.rig.fio import jobs, process
from pytest_ssdqual.rig.fio.jobs import ExpectedResult, Job, JobTarget
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, Machine
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.session import Setup

#: Size of a pattern's blocks; a block is damaged or intact as a whole.
BLOCK_BYTES = 65536
#: Room for one header; fio's have 44 (3.33) to 56 bytes (3.42), and it shifts them by at most 200.
PLACE_BYTES = 256
#: Number of seeds; patterns of two seeds have no block in common.
SEEDS = BLOCK_BYTES // PLACE_BYTES - 1

#: Depth that keeps a sequential stream going on any supported array.
DEPTH = 32

MISMATCH = re.compile(
    r"(?P<test>\w+): (?P<found>[^:]*?) at file (?P<path>\S+) offset (?P<at>\d+), length (?P<length>\d+)"
)
ELSEWHERE = re.compile(r"bad header offset (\d+), wanted")

MIB = 1 << 20
#: Share of an array that holds the pattern, and its upper limit.
SHARE, MOST_BYTES = 0.01, 1 << 30
#: Assumed minimum rate of the pattern's I/O.
SLOWEST_BYTES_PER_S = 1_000_000
#: Fewest stripes that md keeps in its cache (raid5.c, raid5_set_cache_size: more than 16).
FEWEST_STRIPES = "17"
EMPTY_CACHE = scripts.text("empty_stripe_cache.sh")


@frozen
class PatternRegion:
    """Position and seed of the pattern, which both follow from the array."""

    target: JobTarget
    offset_bytes: int
    size_bytes: int
    seed: int

    @classmethod
    def of(cls, array: Array) -> PatternRegion:
        """Return the region of an array with a reserved end."""
        return cls(
            array.whole,
            array.size_bytes - array.reserved_bytes,
            array.reserved_bytes // BLOCK_BYTES * BLOCK_BYTES,
            # Another array on the same drives has another pattern, so that remains of the former are not taken for
            # this one.
            int(array.uuid.replace(":", ""), 16) % SEEDS,
        )


def write_pattern(region: PatternRegion) -> Job:
    """Job that writes the pattern; nothing is read.

    ``ValueError`` for another seed than 0 … ``SEEDS`` - 1, or a range that is not whole blocks within the target.
    """
    expectation = ExpectedResult(reads=False, writes=True, block_bytes=BLOCK_BYTES, written_bytes=region.size_bytes)
    first = (*jobs.reporting(10), "--name=write-pattern", "--rw=write", "--do_verify=0")
    return Job((*first, *_range(region)), expectation, jobs.checks([region.target]))


def read_back(region: PatternRegion) -> Job:
    """Job that reads and compares the range; ``damage`` interprets its output. ``ValueError`` as ``write_pattern``."""
    expectation = ExpectedResult(reads=True, writes=False, block_bytes=BLOCK_BYTES, read_bytes=region.size_bytes)
    first = (*jobs.reporting(10), "--name=read-back", "--rw=read")
    return Job((*first, *_range(region)), expectation, jobs.checks([region.target]))


def damage(finished: FinishedProcess, expectation: ExpectedResult) -> str:
    """Sentence about the first bad block that ``read_back`` found; empty if the pattern is intact.

    Raises ``RigError`` or ``InvalidMeasurement`` if not all was read, for example because of an I/O error.
    """
    for line in finished.messages:
        if match := MISMATCH.search(line):
            return _sentence(match)
    try:
        finished.accepted(expectation)
    except InvalidMeasurement:
        if finished.errno != errno.EILSEQ:
            raise
        return "a block does not hold what was written; fio did not report which"
    return ""


def _range(region: PatternRegion) -> Iterator[str]:
    target, offset_bytes, size_bytes, seed = region.target, region.offset_bytes, region.size_bytes, region.seed
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
    # Both would leave files in fio's working directory.
    yield "--verify_dump=0"
    yield "--verify_state_save=0"


def _sentence(match: re.Match[str]) -> str:
    where = f"the block at byte {match['at']} of {match['path']} does not hold what was written"
    if address := ELSEWHERE.search(match["found"]):
        return f"{where}: its own address says byte {address[1]}"
    if match["found"] == "verify failed":
        return f"{where}: its checksum is wrong"
    return f"{where}: it holds something else ({match['found']})"


def reserved_bytes(size_bytes: int) -> int:
    """Bytes that are reserved of an array: 1 %, 1 MiB to 1 GiB, and the incomplete last MiB."""
    pattern_bytes = min(max(int(size_bytes * SHARE), MIB), MOST_BYTES)
    return size_bytes - (size_bytes - pattern_bytes) // MIB * MIB


def write(setup: Setup, array: Array) -> Array:
    """Write the pattern; return the array with its end reserved. ``RigError`` or a child of it if that failed."""
    reserved = replace(array, reserved_bytes=reserved_bytes(array.size_bytes))
    region = PatternRegion.of(reserved)
    setup.held.require_lease()
    setup.note("writing_pattern", array.geometry)
    job = write_pattern(region)
    raw, finished = _run(setup, array, "write-pattern", job, region)
    finished.accepted(job.expectation)
    setup.note(
        "pattern_written",
        array.geometry,
        offset_bytes=region.offset_bytes,
        size_bytes=region.size_bytes,
        seed=region.seed,
        raw=raw,
    )
    return reserved


def read_damage(setup: Setup, array: Array) -> str:
    """Read the pattern back from the drives; return a sentence about the damage, or nothing.

    ``RigError`` or a child of it if it cannot be read.
    """
    region = PatternRegion.of(array)
    if array.geometry.has_parity:
        empty_stripe_cache(setup.machine, array.kname)
    job = read_back(region)
    raw, finished = _run(setup, array, "read-back", job, region)
    found = damage(finished, job.expectation)
    setup.note("pattern_read", array.geometry, damage=found, raw=raw)
    return found


def _run(setup: Setup, array: Array, kind: str, job: Job, region: PatternRegion) -> tuple[str, FinishedProcess]:
    setup.progress(f"{array.geometry}: {kind.replace('-', ' ')}", 0)
    finished = process.run(setup.machine, job, region.size_bytes / SLOWEST_BYTES_PER_S)
    return setup.logbook.keep(f"{array.geometry}-{kind}.json.gz", finished.packed), finished


def empty_stripe_cache(machine: Machine, kname: str) -> None:
    """Empty md's stripe cache, through which a degraded array reads, and which may still hold the written pattern.

    ``CommandFailed`` if it could not be emptied, or has another size afterwards.
    """
    machine.run(["sh", "-c", EMPTY_CACHE, "empty-stripe-cache", kname, FEWEST_STRIPES], repeatable=True)
