"""fio's jobs: from typed values to one argv, and the properties that its result must have. Pure.

A job is an argv, not a job file: nothing has to be copied to the machine under test, and the transcript of the command
is the whole evidence. A ``Job`` can also be printed as a job file that anyone can run (``fio found.fio``), with the
options of the job only.

Random addresses cover the whole target, without fio's map of visited blocks: with the map each pass is a permutation
and write amplification halves. Sequential jobs get a share of the target each; otherwise the same range would be
transferred as many times as there are jobs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.units import parse_size
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.fencing import Checked, bound
from pytest_ssdqual.rig.fio.load import IO_URING, LIBAIO, REGISTERED, USUAL_LOAD, Load

#: Shares of a target begin at multiples of this, so that no member's erase block or stripe is split needlessly.
SHARE_ALIGNMENT_BYTES = 1 << 20

SECTOR_BYTES = 512
#: Random addresses of a mix are multiples of this, or of its smallest transfer if that is larger. fio's default would
#: be the smallest transfer: with 512-byte ones among them, 7 of 8 transfers of 4 KiB would straddle two pages.
#: JESD219 aligns in the same way; a workload that needs straddling transfers has an offset.
PAGE_BYTES = 4096
#: Paths that may be given to fio. There ``:`` separates file names, ``\\`` escapes, ``$`` and ``%`` are expanded in
#: places, and a path that does not begin with ``/`` may be taken for an option or an engine's address.
SAFE_PATH = re.compile(r"/[A-Za-z0-9._+@=,~/-]*[A-Za-z0-9_]", re.ASCII)
#: fio's default list ends at p99.99; the bins hold everything, this list is for readers of the raw file.
PERCENTILES = "1:5:10:25:50:75:90:95:99:99.5:99.9:99.95:99.99:99.995:99.999"
#: Queue depth of the jobs that touch every byte of a target.
DEPTH = 32
#: Options of the command line that a job file cannot have: form and place of fio's report.
OF_THE_COMMAND = ("output", "output-format", "status-interval", "eta")


@frozen
class TargetRange:
    """A range of a target that is written with one transfer size that divides it."""

    offset_bytes: int
    size_bytes: int
    block_bytes: int


def split(size_bytes: int, jobs: int, block_bytes: int) -> Iterator[TargetRange]:
    """Cut ``size_bytes`` into up to ``jobs`` ranges of whole blocks and the rest at the end.

    No gap, no overlap; the last share takes the remainder.
    """
    whole = size_bytes // block_bytes * block_bytes
    share = aligned_share(whole, jobs, block_bytes)
    count = jobs if share else min(1, whole)
    for number in range(count):
        size = whole - number * share if number == count - 1 else share
        yield TargetRange(number * share, size, block_bytes)
    if whole < size_bytes:
        yield TargetRange(whole, size_bytes - whole, size_bytes - whole)


def aligned_share(size_bytes: int, jobs: int, block_bytes: int) -> int:
    """Return the largest share that fits ``jobs`` times and begins on a block (on 1 MiB if that leaves anything)."""
    share = size_bytes // jobs
    coarse = -(-SHARE_ALIGNMENT_BYTES // block_bytes) * block_bytes
    return share // coarse * coarse or share // block_bytes * block_bytes


@frozen
class JobEnd:
    """End of a job: after ``seconds``, or earlier when it has written ``volume_bytes`` (None: no such limit)."""

    seconds: float
    volume_bytes: float | None = None


@frozen
class _Area:
    """Part of a target that is used: whole blocks from an offset. ``target`` is its name in messages."""

    target: str
    offset_bytes: int
    size_bytes: int
    #: True if the target extends beyond it.
    is_part: bool
    #: Where sequential I/O begins, as a share of the first half of each job's share.
    begin: float = 0.0


def streams(
    workload: Workload,
    target: JobTarget,
    jobs: int,
    end: JobEnd,
    load: Load = USUAL_LOAD,
    begin: float = 0.0,
) -> list[tuple[str, tuple[str, ...]]]:
    """Return the job sections, by name, that drive one target; two for independent readers and writers, and for reads
    beside writes.

    ``begin``: see ``measurement``. ``ValueError`` if the target is too small, or if fio cannot do the sizes.
    """
    _require_possible(workload)
    if end.volume_bytes is not None:
        _require_volume(workload, end.volume_bytes)
    region = target.size_bytes * workload.region_percent // 100
    usable = (region - workload.offset_bytes) // workload.smallest_bytes * workload.smallest_bytes
    is_whole = region == target.size_bytes
    name = target.path if is_whole else f"{workload.region_percent} % of {target.path}"
    begin_bytes, is_part = target.begin_bytes + workload.offset_bytes, target.is_part or not is_whole
    area = _Area(f"{name} ({target.size_bytes} bytes)", begin_bytes, usable, is_part, begin)
    patterns = workload.rw.split("+")
    names = ("reads", "writes") if workload.has_streams else ("",)
    sections = [
        (name, tuple(_stream(workload, pattern, area, jobs, end, (number, len(patterns)), load)))
        for number, (name, pattern) in enumerate(zip(names, patterns, strict=False))
    ]
    if workload.aggressor:
        sections += [("writes", options) for _, options in streams(workload.aggressor, target, jobs, end, load, begin)]
    return sections


def _require_possible(workload: Workload) -> None:
    if workload.rate_percent:
        raise ValueError(f"{workload}: a rate in per cent of a sheet is possible with the mark ssd_workload only")
    sizes = (*(size for size, _ in workload.sizes), workload.offset_bytes, workload.gap_bytes)
    if any(size % SECTOR_BYTES for size in sizes):
        raise ValueError(f"{workload}: direct I/O moves whole sectors of {SECTOR_BYTES} bytes")
    if unfit := [size for size, _ in workload.sizes if size % workload.smallest_bytes]:
        # fio would silently round these down (get_next_buflen in its io_u.c).
        raise ValueError(f"{workload}: fio mixes only multiples of the smallest size, {unfit[0]} is none")


def _require_volume(workload: Workload, volume_bytes: float) -> None:
    if not workload.writes:
        raise ValueError(f"{workload} writes nothing, so it cannot end at a volume written")
    if workload.rw in ("rw", "trimwrite"):
        # fio 3.33 starts again when both directions together have done one share, so half of it would stay untouched.
        raise ValueError(f"{workload}: a sequential job of two directions cannot end at a volume written")
    if volume_bytes <= 0:
        raise ValueError("a volume to be written must be above 0")


def _stream(
    workload: Workload, pattern: str, area: _Area, jobs: int, ending: JobEnd, position: tuple[int, int], load: Load
) -> Iterator[str]:
    # Behind a colon, the number of bytes that fio skips after each sequential transfer.
    yield f"--rw={pattern}:{workload.gap_bytes}" if workload.gap_bytes else f"--rw={pattern}"
    if workload.read_percent is not None:
        yield f"--rwmixread={workload.read_percent}"
    if len(workload.sizes) == 1:
        yield f"--bs={workload.smallest_bytes}"
    else:
        yield f"--bssplit={':'.join(f'{size}/{share}' for size, share in workload.sizes)}"
    parts = load.parts(workload)
    yield f"--iodepth={workload.qd_per_drive // parts}"
    yield f"--numjobs={jobs * parts}"
    yield from _rate(workload)
    yield from _random(workload, area) if workload.is_random else _shares(workload, area, jobs, position)
    if pattern != "read" and pattern != "randread":
        yield from _writes(workload)
    yield from _end(workload, pattern, ending)


def _rate(workload: Workload) -> Iterator[str]:
    """Options of an open loop, of each job: of several independent jobs the sum is a Poisson process, too."""
    if workload.rate_iops:
        reads = workload.read_fraction
        shares = (reads, 1 - reads) if 0 < reads < 1 else (1.0,)
        # Rounded up: a drive that keeps what is asked for does not seem to be slower.
        yield f"--rate_iops={','.join(str(math.ceil(workload.job_rate * share - 1e-9)) for share in shares)}"
        yield "--rate_process=poisson"


def _random(workload: Workload, area: _Area) -> Iterator[str]:
    if area.size_bytes < workload.largest_bytes:
        raise ValueError(f"{area.target} is too small for transfers of {workload.largest_bytes} bytes")
    yield "--norandommap=1"
    yield "--random_generator=tausworthe64"
    if workload.zipf:
        # The favourite blocks are scattered over the range (fio's own hash of their ranks).
        yield f"--random_distribution=zipf:{workload.zipf / 100:g}"
    if workload.zones:
        yield f"--random_distribution=zoned:{workload.zones}"
    if workload.align_bytes:
        yield f"--blockalign={workload.align_bytes}"
    elif len(workload.sizes) > 1 and workload.smallest_bytes < PAGE_BYTES:
        yield f"--blockalign={PAGE_BYTES}"
    if workload.random_percent < 100:
        # The other I/Os begin where the last I/O of their job in the same direction ended.
        yield f"--percentage_random={workload.random_percent}"
    if area.offset_bytes or workload.random_percent < 100 or area.is_part:
        # Whole blocks: otherwise one that follows the last could cross the end, and the job would start again.
        yield f"--offset={area.offset_bytes}"
        yield f"--size={area.size_bytes}"


def _shares(workload: Workload, area: _Area, jobs: int, position: tuple[int, int]) -> Iterator[str]:
    """Options that keep independent readers and writers off each other's shares."""
    number, count = position
    share = aligned_share(area.size_bytes, jobs * count, workload.smallest_bytes)
    # With gaps that are not whole blocks, fio 3.33 only ensures that a transfer begins within the job's own range: the
    # last one may extend beyond that by nearly a block.
    size = share - (workload.smallest_bytes if workload.gap_bytes % workload.smallest_bytes else 0)
    if size < workload.largest_bytes:
        gaps = f" with gaps of {workload.gap_bytes} bytes" if workload.gap_bytes else ""
        raise ValueError(
            f"{area.target} is too small for {jobs * count} streams of {workload.largest_bytes} bytes{gaps}"
        )
    unit = max(PAGE_BYTES, workload.smallest_bytes)
    skipped = int(area.begin * size / 2) // unit * unit
    if start := area.offset_bytes + number * jobs * share + skipped:
        yield f"--offset={start}"
    yield f"--size={size - skipped}"
    yield f"--offset_increment={share}"


def _writes(workload: Workload) -> Iterator[str]:
    """Options for synchronous writes, flushes and the content of buffers; by default fio's buffers are random."""
    if workload.sync:
        yield "--sync=1"
    if workload.fsync:
        yield f"--fsync={workload.fsync}"
    if workload.compressible_percent:
        yield f"--buffer_compress_percentage={workload.compressible_percent}"
    if workload.dedupe_percent:
        yield f"--dedupe_percentage={workload.dedupe_percent}"


def _end(workload: Workload, pattern: str, ending: JobEnd) -> Iterator[str]:
    if ending.volume_bytes is None or pattern.endswith("read"):
        yield "--time_based=1"
    else:
        # fio counts reads as well if one job does both.
        writes = 1.0 if workload.read_percent is None else 1 - workload.read_percent / 100
        blocks = math.ceil(ending.volume_bytes / (writes * workload.smallest_bytes))
        yield f"--io_size={blocks * workload.smallest_bytes}"
        yield "--exitall=1"
    yield f"--runtime={round(ending.seconds * 1000)}ms"


@frozen
class JobTarget:
    """The block device (or, in tests, the existing file) that fio reads or destroys."""

    path: str
    #: Bytes that may be used, from ``begin_bytes`` on.
    size_bytes: int
    begin_bytes: int = 0
    #: True if the device extends beyond the usable part; the rest must not be touched.
    is_part: bool = False
    #: Properties that the device must have when fio starts; None: they are not checked.
    checked: Checked | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        checked_path(self.path)
        if self.size_bytes < 512 or self.size_bytes % 512:
            raise ValueError(f"{self.path}: a size of {self.size_bytes} bytes is not a whole number of sectors")
        if self.begin_bytes < 0 or self.begin_bytes % 4096:
            raise ValueError(f"{self.path}: what may be used begins at byte {self.begin_bytes}, not on a page")


@frozen
class ExpectedResult:
    """Properties of a valid result of a ``Job``; None: unknown."""

    reads: bool
    writes: bool
    #: A measurement ends by time, or earlier when it has written about ``volume_bytes``.
    seconds: float | None = None
    #: The one transfer size; a mix has a smallest and a largest instead.
    block_bytes: int | None = None
    #: Total of a job that ends when its volume is done.
    written_bytes: int | None = None
    read_bytes: int | None = None
    smallest_bytes: int | None = None
    largest_bytes: int | None = None
    volume_bytes: int | None = None
    #: Drives side by side, each of which must do its part; empty for one target.
    paths: tuple[str, ...] = ()


@frozen
class Job:
    """One fio process: its options, without the path of its output, and its expected result."""

    options: tuple[str, ...]
    expectation: ExpectedResult
    #: The devices to which it is bound: fio does not open them exclusively, so the bound command does, while fio runs.
    bound_to: tuple[Checked, ...] = ()

    def argv(self, output_path: str) -> tuple[str, ...]:
        """Return the command; its documents go to ``output_path`` on the machine under test.

        A file, never a pipe: fio 3.33 kills its own workers ("stuck grabbing stat_sem") when its status documents are
        not read for 14 s. ``ValueError`` for a path that fio could interpret differently.
        """
        argv = ("fio", f"--output={checked_path(output_path)}", *self.options)
        return bound(argv, self.bound_to, alone=True) if self.bound_to else argv


def measurement(
    workload: Workload,
    targets: Sequence[JobTarget],
    width: int,
    seconds: float,
    status_interval_s: int = 1,
    *,
    volume_bytes: int | None = None,
    load: Load = USUAL_LOAD,
    begin: float = 0.0,
) -> Job:
    """Job that runs ``workload`` for ``seconds``, ramp included.

    ``begin``, 0 to 1, is where sequential I/O begins: a share of the first half of each job's part of the target, so
    that measurements of a minute do not all see the same addresses.

    One target is an array (or a drive) of ``width`` members, driven by ``workload.jobs(width)`` jobs: one job cannot
    saturate many SSDs (fio#694). Several targets are drives side by side in one process, so that all start and end
    together: each is driven by ``workload.jobs(1)`` jobs and reported as a group, ``drive-0`` first. ``load`` may
    divide the depth of each job among several. A drive that fails ends all at once; one that is missing from the start
    does not, but is detected at the end.

    A workload with pauses has a job for each burst, all of one group, of which fio reports the longest run time.

    With ``volume_bytes`` the process ends early when that much was written to all targets together. The volume is
    divided among the jobs, and the first that has written its share ends all of them, or the load would fade out at the
    end; so a few per cent may be missing, and of drives side by side the fastest determines the end.

    ``ValueError`` if a target is too small, for sizes that fio cannot do, or for a time below one second.
    """
    _require_distinct(targets)
    jobs = workload.jobs(width if len(targets) == 1 else 1)
    parts = load.parts(workload)
    job_s = _job_s(workload, seconds, status_interval_s)
    end = JobEnd(job_s, None if volume_bytes is None else volume_bytes / (len(targets) * jobs * parts))
    sections = [_in_bursts(streams(workload, target, jobs, end, load, begin), workload, seconds) for target in targets]
    if len(targets) == len(sections[0]) == 1:
        ((_, only),) = sections[0]
        options = (f"--name={workload}", *_file(targets[0]), *engine(load.engine), *load.placement(0), *only)
    else:
        options = _grouped(targets, sections, load)
    expectation = _expected(workload, targets, job_s, volume_bytes)
    return Job((*reporting(status_interval_s), *options), expectation, checks(targets))


def _job_s(workload: Workload, seconds: float, status_interval_s: int) -> float:
    """Return the run time of each job of a process of ``seconds``: that of a burst, if the workload has pauses."""
    if seconds < 1 or status_interval_s < 1:
        raise ValueError(f"fio cannot be run for {seconds} s with a status every {status_interval_s} s")
    if not workload.burst_s:
        return seconds
    if not workload.bursts(seconds):
        raise ValueError(f"{workload} has no burst with its pause in {seconds:g} s")
    if status_interval_s <= seconds:
        raise ValueError("it has pauses, so only fio's last report is right; measure it as a stimulus after rounds")
    return float(workload.burst_s)


def _in_bursts(
    sections: list[tuple[str, tuple[str, ...]]], workload: Workload, seconds: float
) -> list[tuple[str, tuple[str, ...]]]:
    """Return the sections of one target, of a workload with pauses once for each burst, which begins at its time.

    So all jobs pause at the same times. With fio's own pauses (``thinktime_iotime``) each job would have its own, and
    its first burst would be longer by a pause (3.33).
    """
    if not workload.burst_s:
        return sections
    every_s = workload.burst_s + workload.idle_s
    return [
        (f"{name}{number}", (*options, f"--startdelay={number * every_s}s"))
        for number in range(workload.bursts(seconds))
        for name, options in sections
    ]


def _grouped(
    targets: Sequence[JobTarget], sections: Sequence[Sequence[tuple[str, tuple[str, ...]]]], load: Load
) -> tuple[str, ...]:
    """Options for several targets, or several streams of one; ``sections`` are the streams of each target, by name."""
    options = ("--name=global", *engine(load.engine), *_exit(targets))
    for number, (target, streams) in enumerate(zip(targets, sections, strict=True)):
        for first, (name, stream) in enumerate(streams):
            options += (*_section(targets, number, name, new_group=not first), *_file(target))
            options += (*load.placement(number), *stream)
    return options


def _expected(
    workload: Workload, targets: Sequence[JobTarget], seconds: float, volume_bytes: int | None
) -> ExpectedResult:
    smallest, largest = min(workload.smallest_bytes, workload.writer.smallest_bytes), workload.largest_bytes
    single = smallest == largest
    return ExpectedResult(
        reads=workload.reads,
        writes=workload.writes,
        seconds=seconds,
        block_bytes=smallest if single else None,
        smallest_bytes=None if single else smallest,
        largest_bytes=None if single else largest,
        volume_bytes=volume_bytes,
        paths=_side_by_side(targets),
    )


def replay(
    workload: Workload, targets: Sequence[JobTarget], shares: Sequence[str], seconds: float, engine_name: str = "psync"
) -> Job:
    """Job that replays a trace on each target, for at most ``seconds``; ``shares`` are iologs on the machine.

    Each synchronous job has a share of the I/Os. fio 3.33 reaps asynchronous I/Os of a replay only when the queue is
    full, and reports the time until then as latency (37 instead of 0.004 ms at depth 32 and 1,000 I/Os per second).
    fio takes the file names of an iolog for devices: ``replay_redirect`` overrides them. The engine ``null`` opens
    none.
    """
    _require_distinct(targets)
    scale = workload.replay.scale_percent if workload.replay else 100
    options = [*reporting(1), "--name=global", *engine(engine_name), *_exit(targets)]
    options += [f"--rw={workload.rw}", f"--replay_time_scale={scale}", f"--runtime={round(1000 * seconds)}ms"]
    for number, target in enumerate(targets):
        for index, share in enumerate(shares):
            options += [*_section(targets, number, f"replay-{index}", new_group=not index), *_file(target)]
            options += [f"--replay_redirect={target.path}", f"--read_iolog={checked_path(share)}"]
    expectation = ExpectedResult(workload.reads, workload.writes, paths=_side_by_side(targets))
    return Job(tuple(options), expectation, checks(targets))


def fill(
    targets: Sequence[JobTarget],
    passes: int,
    bs: str = "128k",
    *,
    jobs: int = 1,
    status_interval_s: int = 10,
    pattern: str = "",
) -> Job:
    """Job that writes every byte of the targets exactly ``passes`` times, sequentially.

    The data are random (incompressible), or repeat fio's ``pattern`` for a comparison by ``compare``. ``jobs`` streams
    per target have a share each; generating incompressible data costs a core per few GB/s, so a fast array needs about
    one per member. A target that is no multiple of ``bs`` gets a last, smaller write, because fio leaves such a tail
    unwritten. Several targets are filled side by side, each in its own group. ``ValueError`` for a count below one.
    """
    _require_distinct(targets)
    if min(passes, jobs, status_interval_s) < 1:
        raise ValueError("passes, jobs and status_interval_s must be at least 1")
    options = [*_of_whole(targets, status_interval_s), *_exit(targets)]
    options += ["--rw=write", f"--iodepth={DEPTH}", f"--loops={passes}"]
    options += [*_pattern(pattern), "--do_verify=0"] if pattern else []
    options += _whole(targets, "fill", bs, jobs)
    written = passes * sum(target.size_bytes for target in targets)
    expectation = ExpectedResult(reads=False, writes=True, written_bytes=written, paths=_side_by_side(targets))
    return Job(tuple(options), expectation, checks(targets))


def compare(targets: Sequence[JobTarget], bs: str, pattern: str, *, status_interval_s: int = 10) -> Job:
    """Job that reads every byte that one stream of ``fill`` wrote to the targets, and compares it with ``pattern``.

    A target ends with its first wrong transfer, and the others go on. ``ValueError`` for a count below one.
    """
    _require_distinct(targets)
    if status_interval_s < 1:
        raise ValueError("status_interval_s must be at least 1")
    options = [*_of_whole(targets, status_interval_s), "--exitall_on_error=0"]
    options += ["--rw=read", f"--iodepth={DEPTH}", *_pattern(pattern), "--verify_fatal=1"]
    options += _whole(targets, "compare", bs, 1)
    read = sum(target.size_bytes for target in targets)
    expectation = ExpectedResult(reads=True, writes=False, read_bytes=read, paths=_side_by_side(targets))
    return Job(tuple(options), expectation, checks(targets))


def _of_whole(targets: Sequence[JobTarget], status_interval_s: int) -> Iterator[str]:
    """Yield the first options of all jobs that touch every byte of the targets."""
    yield from (*reporting(status_interval_s), "--name=global")
    yield from _file(targets[0]) if len(targets) == 1 else ()
    yield from engine()


def _pattern(pattern: str) -> tuple[str, ...]:
    # fio would leave files of the last two in its working directory.
    return "--verify=pattern", f"--verify_pattern={pattern}", "--verify_dump=0", "--verify_state_save=0"


def _whole(targets: Sequence[JobTarget], name: str, bs: str, jobs: int) -> list[str]:
    """Return sections that touch every byte of the targets once."""
    options: list[str] = []
    for number, target in enumerate(targets):
        for index, part in enumerate(split(target.size_bytes, jobs, parse_size(bs))):
            options += [
                *_section(targets, number, f"{name}-{index}", new_group=not index),
                *(() if len(targets) == 1 else _file(target)),
                f"--offset={target.begin_bytes + part.offset_bytes}",
                f"--size={part.size_bytes}",
                f"--bs={part.block_bytes}",
            ]
    return options


def checks(targets: Sequence[JobTarget]) -> tuple[Checked, ...]:
    """Return the properties that the devices must have."""
    return tuple(target.checked for target in targets if target.checked is not None)


def checked_path(path: str) -> str:
    """Return ``path``, or raise ``ValueError`` if fio could take any of it for something else than a file name."""
    if not SAFE_PATH.fullmatch(path):
        raise ValueError(f"{path!r} cannot be given to fio: only absolute paths of letters, digits and . _ + @ = , ~ -")
    return path


def _require_distinct(targets: Sequence[JobTarget]) -> None:
    if not targets:
        raise ValueError("fio needs something to read or write")
    if len({target.path for target in targets}) < len(targets):
        raise ValueError(f"a target is given twice: {', '.join(target.path for target in targets)}")


def _side_by_side(targets: Sequence[JobTarget]) -> tuple[str, ...]:
    return tuple(target.path for target in targets) if len(targets) > 1 else ()


def _section(targets: Sequence[JobTarget], number: int, name: str, *, new_group: bool) -> tuple[str, ...]:
    """Head of a job section; ``status`` identifies drives side by side by the first name of their group."""
    if len(targets) == 1:
        return (f"--name={name}",)
    return (f"--name=drive-{number}{'-' if name else ''}{name}", *(("--new_group=1",) if new_group else ()))


def _exit(targets: Sequence[JobTarget]) -> tuple[str, ...]:
    # fio's default is to end only the group of the job that failed or was done.
    return ("--exit_what=all",) if len(targets) > 1 else ()


def reporting(status_interval_s: int) -> tuple[str, ...]:
    """Options for cumulative documents with all latency bins in every interval: measured cost per I/O -2…+1 ns."""
    return ("--output-format=json+", f"--status-interval={status_interval_s}", "--eta=never")


def _file(target: JobTarget) -> tuple[str, ...]:
    return (f"--filename={target.path}",)


def engine(name: str = LIBAIO) -> tuple[str, ...]:
    """Options of every I/O of this program, except the target."""
    return (
        f"--ioengine={name}",
        *(REGISTERED if name == IO_URING else ()),
        "--direct=1",
        # Processes, not threads: with threads, text lines get into the documents (fio#731, fio#1685).
        "--thread=0",
        "--group_reporting=1",
        # Bins of the total latency, from submission to completion, instead of the completion latency.
        "--lat_percentiles=1",
        "--clat_percentiles=0",
        f"--percentile_list={PERCENTILES}",
        # New data in every buffer: reused buffers favour controllers that compress or deduplicate.
        "--refill_buffers=1",
        "--randrepeat=0",
        # A mistyped device must not become a file in /dev, and a mounted one must not be written.
        "--allow_file_create=0",
        "--allow_mounted_write=0",
        "--exitall_on_error=1",
    )


def text(job: Job, comments: Iterable[str] = ()) -> str:
    """Return the job as a file, with ``comments`` at its head, a line each; unprintable characters in them are escaped.

    ``ValueError`` for an option that has no value, or whose value a job file would change.
    """
    lines = [f"# {safe_text.line(comment)}".rstrip() for comment in comments]
    for option in job.options:
        name, _, value = option.removeprefix("--").partition("=")
        if name in OF_THE_COMMAND:
            continue
        # In a job file "$" begins a variable, ";" and "#" a comment, and leading and trailing blanks are lost.
        if not value or any(letter in "$;#\\[]" or letter.isspace() or not letter.isprintable() for letter in value):
            raise ValueError(f"{option!r} cannot be written into a job file")
        lines += ["", f"[{value}]"] if name == "name" else [f"{name}={value}"]
    return "\n".join(lines) + "\n"
