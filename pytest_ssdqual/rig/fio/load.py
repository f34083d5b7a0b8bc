"""What the jobs of one target do: a workload → fio's options for its streams. Pure.

Random addresses cover the whole target, without fio's map of visited blocks: with the map each pass is a permutation
and write amplification halves. Sequential jobs get a share of the target each, or the same range would be transferred
as many times as there are jobs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.fio.share import aligned_share

SECTOR_BYTES = 512
#: Random addresses of a mix are multiples of this, or of its smallest transfer if that is larger. fio's default would
#: be the smallest transfer: with 512-byte ones among them, 7 of 8 transfers of 4 KiB would straddle two pages.
#: JESD219 aligns so as well; who wants straddling transfers gives the workload an offset.
PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Ending:
    """When a job ends: after ``seconds``, or before that when it has written ``volume_bytes`` (None: no end)."""

    seconds: float
    volume_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class _Area:
    """Where a target is used: whole blocks from an offset. ``target`` is how messages name it."""

    target: str
    offset_bytes: int
    size_bytes: int
    #: The target goes on behind it.
    is_part: bool


def streams(
    workload: Workload,
    path: str,
    size_bytes: int,
    jobs: int,
    ending: Ending,
    *,
    begin_bytes: int = 0,
    is_part: bool = False,
) -> list[tuple[str, tuple[str, ...]]]:
    """The job sections that drive one target from ``begin_bytes`` on, by name; two for independent readers and writers.

    ``ValueError`` if the target is too small, or if fio could not do the sizes asked for.
    """
    _require_possible(workload)
    if ending.volume_bytes is not None:
        _require_volume(workload, ending.volume_bytes)
    region = size_bytes * workload.region_percent // 100
    usable = (region - workload.offset_bytes) // workload.smallest_bytes * workload.smallest_bytes
    name = path if region == size_bytes else f"{workload.region_percent} % of {path}"
    is_part = is_part or region < size_bytes
    area = _Area(f"{name} ({size_bytes} bytes)", begin_bytes + workload.offset_bytes, usable, is_part)
    patterns = workload.rw.split("+")
    names = ("reads", "writes") if workload.has_streams else ("",)
    return [
        (name, tuple(_stream(workload, pattern, area, jobs, ending, (number, len(patterns)))))
        for number, (name, pattern) in enumerate(zip(names, patterns, strict=True))
    ]


def _require_possible(workload: Workload) -> None:
    sizes = (*(size for size, _ in workload.sizes), workload.offset_bytes, workload.gap_bytes)
    if any(size % SECTOR_BYTES for size in sizes):
        raise ValueError(f"{workload}: direct I/O moves whole sectors of {SECTOR_BYTES} bytes")
    if unfit := [size for size, _ in workload.sizes if size % workload.smallest_bytes]:
        # fio would silently round these down (get_next_buflen in its io_u.c).
        raise ValueError(f"{workload}: fio mixes only multiples of the smallest size, {unfit[0]} is none")


def _require_volume(workload: Workload, volume_bytes: float) -> None:
    if not workload.writes:
        raise ValueError(f"{workload} writes nothing, so it cannot end at a volume written")
    if workload.rw == "rw":
        # fio 3.33 starts anew when both directions together have done one share, so half of it would stay untouched.
        raise ValueError(f"{workload}: sequential reads and writes of one job cannot end at a volume written")
    if volume_bytes <= 0:
        raise ValueError("a volume to be written must be above 0")


def _stream(
    workload: Workload, pattern: str, area: _Area, jobs: int, ending: Ending, place: tuple[int, int]
) -> Iterator[str]:
    # After a sequential transfer fio leaves out what is behind the colon.
    yield f"--rw={pattern}:{workload.gap_bytes}" if workload.gap_bytes else f"--rw={pattern}"
    if workload.read_percent is not None:
        yield f"--rwmixread={workload.read_percent}"
    if len(workload.sizes) == 1:
        yield f"--bs={workload.smallest_bytes}"
    else:
        yield f"--bssplit={':'.join(f'{size}/{share}' for size, share in workload.sizes)}"
    yield f"--iodepth={workload.qd_per_drive}"
    yield f"--numjobs={jobs}"
    yield from _random(workload, area) if workload.is_random else _shares(workload, area, jobs, place)
    if pattern != "read" and pattern != "randread":
        yield from _writes(workload)
    yield from _end(workload, pattern, ending)


def _random(workload: Workload, area: _Area) -> Iterator[str]:
    if area.size_bytes < workload.largest_bytes:
        raise ValueError(f"{area.target} is too small for transfers of {workload.largest_bytes} bytes")
    yield "--norandommap=1"
    yield "--random_generator=tausworthe64"
    if workload.zipf:
        # Which blocks are the favourites is scattered over the range (fio's own hash of their ranks).
        yield f"--random_distribution=zipf:{workload.zipf / 100:g}"
    if len(workload.sizes) > 1 and workload.smallest_bytes < PAGE_BYTES:
        yield f"--blockalign={PAGE_BYTES}"
    if workload.random_percent < 100:
        # Each of the others begins where the last I/O of its job in the same direction ended.
        yield f"--percentage_random={workload.random_percent}"
    if area.offset_bytes or workload.random_percent < 100 or area.is_part:
        # Whole blocks: one that follows the last could otherwise cross the end, and the job would start anew.
        yield f"--offset={area.offset_bytes}"
        yield f"--size={area.size_bytes}"


def _shares(workload: Workload, area: _Area, jobs: int, place: tuple[int, int]) -> Iterator[str]:
    """Readers and writers that are streams of their own keep off each other's shares."""
    number, of = place
    share = aligned_share(area.size_bytes, jobs * of, workload.smallest_bytes)
    # Behind gaps that are no whole blocks fio 3.33 only sees to it that a transfer begins within the job's own range:
    # the last one may reach beyond that by nearly a block.
    size = share - (workload.smallest_bytes if workload.gap_bytes % workload.smallest_bytes else 0)
    if size < workload.largest_bytes:
        behind = f" with gaps of {workload.gap_bytes} bytes" if workload.gap_bytes else ""
        raise ValueError(
            f"{area.target} is too small for {jobs * of} streams of {workload.largest_bytes} bytes{behind}"
        )
    if start := area.offset_bytes + number * jobs * share:
        yield f"--offset={start}"
    yield f"--size={size}"
    yield f"--offset_increment={share}"


def _writes(workload: Workload) -> Iterator[str]:
    """How what is written is kept, and what it is like; fio's buffers are random where nothing else is said."""
    if workload.sync:
        yield "--sync=1"
    if workload.fsync:
        yield f"--fsync={workload.fsync}"
    if workload.compressible_percent:
        yield f"--buffer_compress_percentage={workload.compressible_percent}"
    if workload.dedupe_percent:
        yield f"--dedupe_percentage={workload.dedupe_percent}"


def _end(workload: Workload, pattern: str, ending: Ending) -> Iterator[str]:
    if ending.volume_bytes is None or pattern.endswith("read"):
        yield "--time_based=1"
    else:
        # fio counts reads as well where one job does both.
        writes = 1.0 if workload.read_percent is None else 1 - workload.read_percent / 100
        blocks = math.ceil(ending.volume_bytes / (writes * workload.smallest_bytes))
        yield f"--io_size={blocks * workload.smallest_bytes}"
        yield "--exitall=1"
    yield f"--runtime={round(ending.seconds * 1000)}ms"
