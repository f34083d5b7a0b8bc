"""What fio is asked: typed values → one argv, and what must come back for it to count.

An argv, not a job file: nothing has to be copied to the machine under test, the transcript of the command is
the whole evidence, and pasting ``Job.shell(...)`` repeats the measurement by hand. Pure; nothing here runs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_ssdqual.qual.units import parse_size
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.fencing import Checked, bound
from pytest_ssdqual.rig.fio import load
from pytest_ssdqual.rig.fio.share import split

#: Paths given to fio. ``:`` separates file names there, ``\\`` escapes, ``$`` and ``%`` are expanded in places,
#: and what does not begin with ``/`` may be read as an option or as an engine's own address.
SAFE_PATH = re.compile(r"/[A-Za-z0-9._+@=,~/-]*[A-Za-z0-9_]", re.ASCII)

#: fio's default list ends at p99.99; the bins hold everything, this list is for people who read the raw file.
PERCENTILES = "1:5:10:25:50:75:90:95:99:99.5:99.9:99.95:99.99:99.995:99.999"


@dataclass(frozen=True, slots=True)
class Target:
    """The block device (or, in tests, the existing file) that fio reads or destroys."""

    path: str
    #: That may be used, from ``begin_bytes`` on.
    size_bytes: int
    begin_bytes: int = 0
    #: The device goes on behind what may be used, and there nothing may be touched.
    is_part: bool = False
    #: What must be behind the path when fio starts; None: that is not looked at.
    checked: Checked | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        checked_path(self.path)
        if self.size_bytes < 512 or self.size_bytes % 512:
            raise ValueError(f"{self.path}: a size of {self.size_bytes} bytes is not a whole number of sectors")
        if self.begin_bytes < 0 or self.begin_bytes % 4096:
            raise ValueError(f"{self.path}: what may be used begins at byte {self.begin_bytes}, not on a page")


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a valid result of a ``Job`` contains; None: nothing is known of it."""

    reads: bool
    writes: bool
    #: A measurement ends by time, or before that when it has written ``volume_bytes``, more or less.
    seconds: float | None = None
    #: The one transfer size; of a mix there are a smallest and a largest instead.
    block_bytes: int | None = None
    #: Total of a job that ends when it is done.
    written_bytes: int | None = None
    read_bytes: int | None = None
    smallest_bytes: int | None = None
    largest_bytes: int | None = None
    volume_bytes: int | None = None
    #: Drives side by side, each of which has to do its part; none of one target.
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """One fio process: its options, without the place of its output, and what is expected of it."""

    options: tuple[str, ...]
    expectation: Expectation
    #: The devices it is bound to: fio does not open them exclusively, so that is done for it, for as long as it runs.
    bound_to: tuple[Checked, ...] = ()

    def argv(self, output_path: str) -> tuple[str, ...]:
        """The command; its documents go to ``output_path`` on the machine under test.

        A file, never a pipe: fio 3.33 kills its own workers ("stuck grabbing stat_sem") when nobody reads the
        status documents for 14 s. ``ValueError`` for a path fio could read as something else.
        """
        argv = self._plain(output_path)
        return bound(argv, self.bound_to, alone=True) if self.bound_to else argv

    def shell(self, output_path: str) -> str:
        """The part of it that is fio's, as one line for a terminal."""
        return shlex.join(self._plain(output_path))

    def _plain(self, output_path: str) -> tuple[str, ...]:
        return ("fio", f"--output={checked_path(output_path)}", *self.options)


def measurement(
    workload: Workload,
    targets: Sequence[Target],
    width: int,
    seconds: float,
    status_interval_s: int = 1,
    *,
    volume_bytes: int | None = None,
) -> Job:
    """``workload`` for ``seconds``, ramp included; see ``load`` for what the jobs then do.

    One target is an array (or a drive) of ``width`` members, driven by ``workload.jobs(width)`` jobs: one job cannot
    saturate many SSDs (fio#694). Several targets are drives side by side in one process, so that all start and end
    together: each is driven by ``workload.jobs(1)`` jobs, reported as a group of its own, ``drive-0`` first. A drive
    that fails ends all at once; one that is missing from the start does not, it is found out at the end.

    With ``volume_bytes`` the process ends before its time when that much was written to all targets together. It is
    shared out among the jobs, and the first that has written its share ends all of them, or the load would fade out
    at the end; so a few per cent may be missing, and of drives side by side the fastest sets the end.

    ``ValueError`` if a target is too small, for sizes fio cannot do, or for a time below one second.
    """
    if seconds < 1 or status_interval_s < 1:
        raise ValueError(f"fio cannot be run for {seconds} s with a status every {status_interval_s} s")
    _require_distinct(targets)
    jobs = workload.jobs(width if len(targets) == 1 else 1)
    ending = load.Ending(seconds, None if volume_bytes is None else volume_bytes / (len(targets) * jobs))
    sections = [
        load.streams(
            workload, each.path, each.size_bytes, jobs, ending, begin_bytes=each.begin_bytes, is_part=each.is_part
        )
        for each in targets
    ]
    if len(targets) == 1 and not workload.has_streams:
        ((_, only),) = sections[0]
        options = (f"--name={workload}", *_file(targets[0]), *engine(), *only)
    else:
        options = _grouped(targets, sections)
    expectation = _expected(workload, targets, seconds, volume_bytes)
    return Job((*reporting(status_interval_s), *options), expectation, checks(targets))


def _grouped(targets: Sequence[Target], sections: Sequence[Sequence[tuple[str, tuple[str, ...]]]]) -> tuple[str, ...]:
    """Several targets, or several streams of one; ``sections`` are the streams of each target, by name."""
    options = ("--name=global", *engine(), *_exit(targets))
    for number, (target, streams) in enumerate(zip(targets, sections, strict=True)):
        for first, (name, stream) in enumerate(streams):
            options += (*_section(targets, number, name, new_group=not first), *_file(target), *stream)
    return options


def _expected(workload: Workload, targets: Sequence[Target], seconds: float, volume_bytes: int | None) -> Expectation:
    smallest, largest = workload.smallest_bytes, workload.largest_bytes
    single = smallest == largest
    return Expectation(
        reads=workload.reads,
        writes=workload.writes,
        seconds=seconds,
        block_bytes=smallest if single else None,
        smallest_bytes=None if single else smallest,
        largest_bytes=None if single else largest,
        volume_bytes=volume_bytes,
        paths=_side_by_side(targets),
    )


def fill(
    targets: Target | Sequence[Target],
    passes: int,
    bs: str = "128k",
    *,
    jobs: int = 1,
    iodepth: int = 32,
    status_interval_s: int = 10,
) -> Job:
    """Write every byte of the targets exactly ``passes`` times: sequential, random (incompressible) data.

    ``jobs`` streams per target have a share each; making incompressible data costs a core per few GB/s, so a fast
    array needs about one per member. A target that is no multiple of ``bs`` gets a last, smaller write of its own,
    because fio leaves such a tail unwritten. Several targets are filled side by side, each in a group of its own.
    ``ValueError`` for a count below one.
    """
    targets = [targets] if isinstance(targets, Target) else targets
    _require_distinct(targets)
    if min(passes, jobs, iodepth, status_interval_s) < 1:
        raise ValueError("passes, jobs, iodepth and status_interval_s must be at least 1")
    one = len(targets) == 1
    options = [*reporting(status_interval_s), "--name=global"]
    options += [*(_file(targets[0]) if one else ()), *engine(), *_exit(targets)]
    options += ["--rw=write", f"--iodepth={iodepth}", f"--loops={passes}"]
    for number, target in enumerate(targets):
        for index, part in enumerate(split(target.size_bytes, jobs, parse_size(bs))):
            options += [
                *_section(targets, number, f"fill-{index}", new_group=not index),
                *(() if one else _file(target)),
                f"--offset={target.begin_bytes + part.offset_bytes}",
                f"--size={part.size_bytes}",
                f"--bs={part.block_bytes}",
            ]
    written = passes * sum(target.size_bytes for target in targets)
    expectation = Expectation(reads=False, writes=True, written_bytes=written, paths=_side_by_side(targets))
    return Job(tuple(options), expectation, checks(targets))


def checks(targets: Sequence[Target]) -> tuple[Checked, ...]:
    """What is known of the devices."""
    return tuple(target.checked for target in targets if target.checked is not None)


def checked_path(path: str) -> str:
    """``path`` itself, or ``ValueError`` if fio could take any of it for something else than a file name."""
    if not SAFE_PATH.fullmatch(path):
        raise ValueError(f"{path!r} cannot be given to fio: only absolute paths of letters, digits and . _ + @ = , ~ -")
    return path


def _require_distinct(targets: Sequence[Target]) -> None:
    if not targets:
        raise ValueError("fio needs something to read or write")
    if len({target.path for target in targets}) < len(targets):
        raise ValueError(f"a target is given twice: {', '.join(target.path for target in targets)}")


def _side_by_side(targets: Sequence[Target]) -> tuple[str, ...]:
    return tuple(target.path for target in targets) if len(targets) > 1 else ()


def _section(targets: Sequence[Target], number: int, name: str, *, new_group: bool) -> tuple[str, ...]:
    """The head of a job section; ``output`` tells drives side by side by their group's first name."""
    if len(targets) == 1:
        return (f"--name={name}",)
    return (f"--name=drive-{number}{'-' if name else ''}{name}", *(("--new_group=1",) if new_group else ()))


def _exit(targets: Sequence[Target]) -> tuple[str, ...]:
    # fio's own default is to end only the group of the job that failed or was done.
    return ("--exit_what=all",) if len(targets) > 1 else ()


def reporting(status_interval_s: int) -> tuple[str, ...]:
    """Cumulative documents with all latency bins every interval: measured at no cost per I/O (-2…+1 ns)."""
    return ("--output-format=json+", f"--status-interval={status_interval_s}", "--eta=never")


def _file(target: Target) -> tuple[str, ...]:
    return (f"--filename={target.path}",)


def engine() -> tuple[str, ...]:
    """How all I/O of ours is done, whatever it is; without the target."""
    return (
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
