"""Environment of one fio process: what the machine under test and its drives reported before and after it.

Values only, nothing is judged here. A value that could not be read is None, never one that would pass as good. A "look"
is one reading of the environment; there is one just before the process and one just after it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from functools import reduce
from operator import add

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.geometry import Geometry

#: Names of the severities from warning upwards, by number (syslog(3)).
LEVELS = "emergency", "alert", "critical", "error", "warning"
#: A range of CPUs in the kernel's list format.
RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)
#: Fastest lane of each line code of PCIe, GT/s, and the share of user bits.
LINE_CODES = (5, 8 / 10), (32, 128 / 130), (math.inf, 242 / 256)


@frozen
class Traffic:
    """I/Os and bytes of one block device; an I/O that was merged into another one is counted too."""

    reads: int
    writes: int
    read_bytes: int
    write_bytes: int

    @property
    def ios(self) -> int:
        return self.reads + self.writes

    @property
    def total_bytes(self) -> int:
        return self.read_bytes + self.write_bytes

    @property
    def directions(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """I/Os and bytes of reads, and of writes."""
        return (self.reads, self.read_bytes), (self.writes, self.write_bytes)

    def combined(self, combine: Callable[[int, int], int], other: Traffic) -> Traffic:
        """Combine each number with that of ``other``."""
        return Traffic(*map(combine, astuple(self), astuple(other)))


@frozen
class DriveLink:
    """A drive's connection, negotiated and maximal."""

    #: ``PCIe`` or ``SATA``.
    kind: str
    #: Speed of one lane, GT/s for PCIe, Gb/s for SATA; the worse of the two readings.
    speed: float
    width: int
    #: Maximum of the drive itself.
    max_speed: float
    max_width: int

    @property
    def share(self) -> float:
        """Negotiated rate over the maximum rate, 0…1."""
        return self.speed * self.width / (self.max_speed * self.max_width)

    def describe(self) -> str:
        """The connection as text: ``PCIe 8 GT/s x2, at most 16 GT/s x4``."""
        if self.kind == "SATA":
            return f"SATA {self.speed:g} Gb/s, at most {self.max_speed:g} Gb/s"
        return f"{self.kind} {self.speed:g} GT/s x{self.width}, at most {self.max_speed:g} GT/s x{self.max_width}"


@frozen
class SharedLink:
    """The PCIe link of a switch or controller through which several drives reach their host."""

    #: ``PCIe switch 0000:3b:00.0``.
    name: str
    #: Transfers per second of one lane, GT/s, and number of lanes, as negotiated.
    speed: float
    width: int
    #: Serial numbers.
    drives: tuple[str, ...]

    @property
    def bytes_per_s(self) -> float:
        """What the link carries in one direction, packet headers included.

        The share of user bits is that of the line code (PCI Express Base Specification): 8b/10b up to 5 GT/s, 128b/130b
        up to 32, and 242 of 256 bytes of a flit.
        """
        code = next(share for most, share in LINE_CODES if self.speed <= most)
        return self.speed * 1e9 / 8 * code * self.width


@frozen
class SharedLinks:
    """``shared_links``: those of a run's drives."""

    links: tuple[SharedLink, ...]


@frozen
class DriveTemperature:
    """Temperature of a drive, as its own sensors and counters report it."""

    #: Highest known: of both readings, and between them if the drive records a maximum that rose.
    temperature_c: float | None = None
    #: The drive's own warning threshold.
    limit_c: float | None = None
    #: The drive reported itself as too warm at either reading.
    too_warm: bool | None = None
    #: Growth of the drive's counters of time too warm or throttled; seconds, though some drives count minutes.
    too_warm_s: float | None = None
    #: Number of times that it began to throttle or passed its limit.
    events: int | None = None
    #: What of ``too_warm_s`` was counted in seconds, not in whole minutes; None: not known.
    counted_in_s: float | None = None


@frozen
class OwnCount:
    """What a drive itself counted of its hosts during one fio process; None where it does not report."""

    read_commands: int | None
    write_commands: int | None
    read_bytes: int | None
    write_bytes: int | None
    #: Granularity of the bytes.
    unit_bytes: int


@frozen
class MediaCount:
    """What a drive counted of its own writes to flash: in its life, or during one fio process."""

    #: Bytes; pages if ``host`` is known.
    written: int
    #: Pages that were written for its hosts; None if what is written is known in bytes.
    host: int | None = None
    #: Resolution of ``written``.
    step: int = 1


@frozen
class OpenFile:
    """A process that had a drive open during one fio process, and is none of this run."""

    program: str
    pid: int
    #: ``read``, ``write``, or ``generic``: through a character device, past the kernel's count of I/O.
    access: str

    def __str__(self) -> str:
        return f"{self.program} (pid {self.pid})"


@frozen
class DeviceTraffic:
    """Traffic of a drive or an array during one fio process."""

    #: The kernel's count; None if the kernel does not count, or the counter was reset between the readings.
    counted: Traffic | None
    #: fio's count for the whole process; None for a member of an array, which fio does not know.
    asked: Traffic | None


@frozen
class DeviceQueue:
    """Queue of a block device during one fio process, by the kernel's counters (Documentation/block/stat.rst).

    Rates, depth and busy share are over fio's run time, its ramp included.
    """

    read_iops: float
    write_iops: float
    #: I/Os outstanding at the device, mean over time.
    mean_depth: float
    #: Mean time from submission to completion; None without such I/O.
    read_wait_ns: float | None
    write_wait_ns: float | None
    #: Share of the time with at least one I/O outstanding, 0…1.
    busy: float

    @property
    def iops(self) -> float:
        return self.read_iops + self.write_iops

    @property
    def wait_ns(self) -> float | None:
        """Mean time of all I/Os from submission to completion; None without I/O."""
        if not self.iops:
            return None
        total_ns = self.read_iops * (self.read_wait_ns or 0) + self.write_iops * (self.write_wait_ns or 0)
        return total_ns / self.iops


@frozen
class DrivePlacement:
    """Where a drive sits in its host: its queue and write cache, NUMA node, and the CPUs of its interrupts."""

    #: Name of the I/O scheduler in use, ``none`` included; "" if unknown.
    scheduler: str
    #: Requests that the block layer queues (nr_requests).
    nr_requests: int | None
    #: None if the host has one node, or does not say.
    numa_node: int | None
    #: CPUs that serve the interrupts of its controller, in the kernel's list format: ``0-7,16``; "" if unknown.
    interrupt_cpus: str
    #: The block layer's mode of its write cache, ``write back`` or ``write through``; "" if unknown.
    write_cache: str = ""

    @property
    def cpus(self) -> frozenset[int]:
        """Numbers of the CPUs that serve its interrupts; empty if unknown."""
        return frozenset(parse_list(self.interrupt_cpus))


@frozen
class DriveEnvironment:
    """Environment of one drive."""

    #: Serial number.
    name: str
    device: DeviceTraffic
    heat: DriveTemperature
    link: DriveLink | None
    #: None if the kernel does not count.
    queue: DeviceQueue | None = None
    placement: DrivePlacement | None = None
    #: None if the drive does not count, or the count began again.
    own: OwnCount | None = None
    #: None if it was not read.
    opened: tuple[OpenFile, ...] | None = None
    #: A test of its own that the drive ran at either reading: ``an extended self-test (40 % left)``; None: not known.
    self_test: str | None = None
    #: None if it was not read, or the drive does not count.
    media: MediaCount | None = None


@frozen
class StripeCache:
    """Stripes of RAID 5 or 6 in use, sampled during one fio process (stripe_cache_active in md's sysfs)."""

    #: Number of stripes that the cache can hold (stripe_cache_size).
    size: int
    samples: int
    mean: float
    most: int

    @property
    def share(self) -> float:
        """Mean share of the cache in use, 0…1."""
        return min(1.0, self.mean / self.size) if self.size else 0.0


@frozen
class ArrayEnvironment:
    """Environment of one array."""

    device: DeviceTraffic
    #: 0 if the level has no chunks (RAID 1).
    chunk_bytes: int | None
    #: True if md writes a bitmap beside the data.
    bitmap: bool | None
    #: Kernel messages about resyncs, checks and recoveries that began during the process; None if the log cannot be
    #: read.
    syncs: tuple[str, ...] | None
    #: CPU time of md's own thread, share of one CPU; None if it has none (RAID 0), or was not found.
    md_thread_busy: float | None = None
    #: None if the level has none, or if it was not sampled.
    stripe_cache: StripeCache | None = None
    #: Workers of RAID 5 and 6 on each NUMA node (group_thread_cnt), and the CPUs that they used, all together; None if
    #: the level has none, or they were not seen.
    md_workers: int | None = None
    md_workers_busy: float | None = None


@frozen
class CpuUse:
    """Shares of one CPU's time, 0…1."""

    #: The kernel's number of the CPU; -1: all together.
    number: int
    busy: float
    #: In the kernel, interrupts included.
    kernel: float
    #: In interrupts, as far as the kernel counts them apart.
    interrupts: float


@frozen
class Cpu:
    """Shares of CPU time in use, 0…1; waiting for I/O is idle, and time stolen by a hypervisor is in use."""

    count: int
    #: All CPUs together.
    busy: float
    #: The busiest CPU.
    busiest: float
    #: The busiest CPU among those that were mostly in the kernel: interrupts, md's threads, submission of I/O.
    busiest_in_kernel: float
    #: Share of the time that the most affected CPU was thermally throttled.
    throttled: float | None
    #: Every CPU; empty if not recorded.
    each: tuple[CpuUse, ...] = ()


@frozen
class KernelLine:
    """One kernel message; its text is printable, and truncated if long."""

    #: Seconds since boot by the kernel's clock, as dmesg shows it; excludes time that the machine was suspended.
    time_s: float
    #: 0 (emergency) to 7 (debug), as in syslog; None if only dmesg was available.
    level: int | None
    text: str

    def describe(self) -> str:
        """The message as text: ``[ 1421.565657] error: nvme nvme0: I/O 12 QID 1 timeout``; with the severity from
        warning upwards.
        """
        word = f"{LEVELS[self.level]}: " if self.level is not None and 0 <= self.level < len(LEVELS) else ""
        return f"[{self.time_s:12.6f}] {word}{self.text}"


@frozen
class KernelLog:
    """Kernel messages during the process about the array, its drives, and the controllers they are attached to."""

    lines: tuple[KernelLine, ...]
    #: Number of further messages that were left out.
    more: int
    #: True if the ring buffer lost messages of that time before it was read: some may be missing.
    lost: bool


@frozen
class EnvironmentRecord:
    """``environment``: checks and kernel messages of one fio process, whether it is judged or not."""

    geometry: Geometry
    #: Id of the workload; empty of a fill.
    workload: str
    #: Purpose of the process.
    fio: str
    #: Its output in the run folder; empty if it left none.
    raw: str
    #: The worst figure of each check; None if it is unknown.
    checks: Mapping[str, float | None]
    #: Names of the checks that could not be made.
    unknown: tuple[str, ...]
    objections: tuple[str, ...]
    #: None if the log could not be read.
    kernel: KernelLog | None


@frozen
class ProcessEnvironment:
    """Environment of one fio process; the readings are just before and just after it."""

    #: Between the readings, by the kernel's monotonic clock.
    seconds: float
    #: Run time by fio's own clock.
    fio_s: float
    #: Advance of the wall clock minus that of the monotonic clock.
    clock_jump_s: float | None
    #: Resolution of ``clock_jump_s``.
    clock_resolution_s: float
    cpu: Cpu | None
    #: CPU time of fio's jobs, mean share of one CPU each.
    jobs_busy: float | None
    #: In the order of ``Run.members``.
    drives: tuple[DriveEnvironment, ...]
    array: ArrayEnvironment | None
    #: None if the kernel's log could not be read.
    kernel: KernelLog | None = None
    #: Share of the time in which at least one task waited for a CPU (pressure stall information, ``some``), 0…1; None
    #: if the kernel does not report it.
    cpu_pressure: float | None = None

    def of_drive(self, index: int) -> ProcessEnvironment:
        """Return the environment of one of several drives side by side; the machine's values are the same for all."""
        return replace(self, drives=self.drives[index : index + 1])


def total(traffic: Sequence[Traffic]) -> Traffic:
    """Sum the traffic of several devices."""
    return reduce(lambda one, other: one.combined(add, other), traffic, Traffic(0, 0, 0, 0))


def parse_list(text: str) -> list[int]:
    """Parse the kernel's list format (cpuset(7)); ``ValueError`` if it is none."""
    numbers: list[int] = []
    for part in filter(None, text.strip().split(",")):
        found = RANGE.fullmatch(part)
        if not found:
            raise ValueError(f"{part[:40]!r} is no range of CPUs")
        numbers += range(int(found[1]), int(found[2] or found[1]) + 1)
    return numbers


def format_list(numbers: Iterable[int]) -> str:
    """Format numbers in the kernel's list format: ``0-7,16``."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = ranges[-1][0], number
        else:
            ranges.append((number, number))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
