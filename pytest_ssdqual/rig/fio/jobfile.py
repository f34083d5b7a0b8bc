"""What fio is asked: typed values → one argv, and what must come back for it to count.

An argv, not a job file: nothing has to be copied to the machine under test, the transcript of the command is
the whole evidence, and pasting ``Job.shell(...)`` repeats the measurement by hand. Pure; nothing here runs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_ssdqual.qual.geometry import Geometry
from pytest_ssdqual.qual.units import parse_size
from pytest_ssdqual.qual.workload import Workload

#: Paths given to fio. ``:`` separates file names there, ``\\`` escapes, ``$`` and ``%`` are expanded in places,
#: and what does not begin with ``/`` may be read as an option or as an engine's own address.
SAFE_PATH = re.compile(r"/[A-Za-z0-9._+@=,~/-]*[A-Za-z0-9_]", re.ASCII)

#: fio's default list ends at p99.99; the bins hold everything, this list is for people who read the raw file.
PERCENTILES = "1:5:10:25:50:75:90:95:99:99.5:99.9:99.95:99.99:99.995:99.999"

#: Shares of a target begin at multiples of this, so that no member's erase block or stripe is split for nothing.
SHARE_ALIGNMENT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Target:
    """The block device (or, in tests, the existing file) that fio reads or destroys."""

    path: str
    size_bytes: int

    def __post_init__(self) -> None:
        checked_path(self.path)
        if self.size_bytes < 512 or self.size_bytes % 512:
            raise ValueError(f"{self.path}: a size of {self.size_bytes} bytes is not a whole number of sectors")


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a valid result of a ``Job`` contains.

    ``seconds`` and ``block_bytes`` are those of a measurement, which ends by time and has one transfer size;
    ``written_bytes`` is the total of a fill, which ends when it is done.
    """

    reads: bool
    writes: bool
    seconds: float | None = None
    block_bytes: int | None = None
    written_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One fio process: its options, without the place of its output, and what is expected of it."""

    options: tuple[str, ...]
    expectation: Expectation

    def argv(self, output_path: str) -> tuple[str, ...]:
        """The command; its documents go to ``output_path`` on the machine under test.

        A file, never a pipe: fio 3.33 kills its own workers ("stuck grabbing stat_sem") when nobody reads the
        status documents for 14 s. ``ValueError`` for a path fio could read as something else.
        """
        return ("fio", f"--output={checked_path(output_path)}", *self.options)

    def shell(self, output_path: str) -> str:
        """The same as one line for a terminal."""
        return shlex.join(self.argv(output_path))


def measurement(
    workload: Workload, geometry: Geometry, target: Target, seconds: float, status_interval_s: int = 1
) -> Job:
    """``workload`` on an array (or a drive) of ``geometry`` for ``seconds``, ramp included.

    One fio job per member, each with the workload's queue depth, so the array sees depth × members (Intel S3500
    RAID paper; one job cannot saturate many SSDs, fio#694). Random addresses cover the whole target, without
    fio's map of visited blocks: with the map each pass is a permutation and write amplification halves.
    Sequential jobs get a share of the target each, or the same range would be transferred ``members`` times.
    ``ValueError`` if the target is too small for that, or for a time below one second.
    """
    if seconds < 1 or status_interval_s < 1:
        raise ValueError(f"fio cannot be run for {seconds} s with a status every {status_interval_s} s")
    jobs = geometry.width
    reads, writes = workload.read_fraction > 0, workload.read_fraction < 1
    options = (
        *_reporting(status_interval_s),
        f"--name={workload}",
        *_engine(target),
        f"--rw={workload.rw}",
        *(() if workload.read_percent is None else (f"--rwmixread={workload.read_percent}",)),
        f"--bs={workload.block_bytes}",
        f"--iodepth={workload.qd_per_drive}",
        f"--numjobs={jobs}",
        *(_uniform_random() if workload.is_random else _shares(target, jobs, workload.block_bytes)),
        "--time_based=1",
        f"--runtime={round(seconds * 1000)}ms",
    )
    return Job(options, Expectation(reads, writes, seconds, workload.block_bytes))


def fill(
    target: Target,
    passes: int,
    bs: str = "128k",
    *,
    jobs: int = 1,
    iodepth: int = 32,
    status_interval_s: int = 10,
) -> Job:
    """Write every byte of the target exactly ``passes`` times: sequential, random (incompressible) data.

    ``jobs`` streams have a share each; making incompressible data costs a core per few GB/s, so a fast array
    needs about one per member. A target that is no multiple of ``bs`` gets a last, smaller write of its own,
    because fio leaves such a tail unwritten. ``ValueError`` for a count below one.
    """
    if min(passes, jobs, iodepth, status_interval_s) < 1:
        raise ValueError("passes, jobs, iodepth and status_interval_s must be at least 1")
    options = [
        *_reporting(status_interval_s),
        "--name=global",
        *_engine(target),
        "--rw=write",
        f"--iodepth={iodepth}",
        f"--loops={passes}",
    ]
    for number, part in enumerate(split(target.size_bytes, jobs, parse_size(bs))):
        options += [
            f"--name=fill-{number}",
            f"--offset={part.offset_bytes}",
            f"--size={part.size_bytes}",
            f"--bs={part.block_bytes}",
        ]
    return Job(tuple(options), Expectation(reads=False, writes=True, written_bytes=passes * target.size_bytes))


@dataclass(frozen=True, slots=True)
class Part:
    """A range of a target, written with one transfer size that divides it."""

    offset_bytes: int
    size_bytes: int
    block_bytes: int


def split(size_bytes: int, jobs: int, block_bytes: int) -> Iterator[Part]:
    """Cut ``size_bytes`` into up to ``jobs`` ranges of whole blocks and what is left at the end.

    No gap, no overlap; the last share takes what does not divide.
    """
    whole = size_bytes // block_bytes * block_bytes
    share = aligned_share(whole, jobs, block_bytes)
    count = jobs if share else min(1, whole)
    for number in range(count):
        size = whole - number * share if number == count - 1 else share
        yield Part(number * share, size, block_bytes)
    if whole < size_bytes:
        yield Part(whole, size_bytes - whole, size_bytes - whole)


def aligned_share(size_bytes: int, jobs: int, block_bytes: int) -> int:
    """The largest share that fits ``jobs`` times and begins on a block (and on 1 MiB if that leaves anything)."""
    share = size_bytes // jobs
    coarse = -(-SHARE_ALIGNMENT_BYTES // block_bytes) * block_bytes
    return share // coarse * coarse or share // block_bytes * block_bytes


def checked_path(path: str) -> str:
    """``path`` itself, or ``ValueError`` if fio could take any of it for something else than a file name."""
    if not SAFE_PATH.fullmatch(path):
        raise ValueError(f"{path!r} cannot be given to fio: only absolute paths of letters, digits and . _ + @ = , ~ -")
    return path


def _reporting(status_interval_s: int) -> tuple[str, ...]:
    """Cumulative documents with all latency bins every interval: measured at no cost per I/O (-2…+1 ns)."""
    return ("--output-format=json+", f"--status-interval={status_interval_s}", "--eta=never")


def _engine(target: Target) -> tuple[str, ...]:
    return (
        f"--filename={target.path}",
        "--ioengine=libaio",
        "--direct=1",
        # Processes, not threads: with threads text lines get into the documents (fio#731, fio#1685).
        "--thread=0",
        "--group_reporting=1",
        "--unified_rw_reporting=none",
        # Bins of the total latency, from submission to completion, instead of completion latency.
        "--lat_percentiles=1",
        "--clat_percentiles=0",
        f"--percentile_list={PERCENTILES}",
        # New data in every buffer: reused buffers flatter controllers that compress or deduplicate.
        "--refill_buffers=1",
        "--randrepeat=0",
        # A mistyped device must not become a file in /dev, and a mounted one must not be written.
        "--allow_file_create=0",
        "--allow_mounted_write=0",
        "--exitall_on_error=1",
    )


def _uniform_random() -> tuple[str, ...]:
    return ("--norandommap=1", "--random_generator=tausworthe64")


def _shares(target: Target, jobs: int, block_bytes: int) -> tuple[str, ...]:
    share = aligned_share(target.size_bytes, jobs, block_bytes)
    if not share:
        raise ValueError(f"{target.path} is too small for {jobs} streams of {block_bytes} bytes")
    return (f"--size={share}", f"--offset_increment={share}")
