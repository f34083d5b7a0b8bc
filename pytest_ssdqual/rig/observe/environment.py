"""Environment of a fio process: two readings of the machine under test, just before and just after it.

Each reading is one command, parsed into an ``EnvironmentReading``. It changes nothing and does not fail because of a
missing file: values that cannot be read are unknown. Device names are positional parameters of the script.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum

from pytest_ssdqual.qual.measured.environment import (
    ArrayEnvironment,
    Cpu,
    DeviceQueue,
    DeviceTraffic,
    DriveEnvironment,
    DriveLink,
    KernelLog,
    ProcessEnvironment,
    Traffic,
)
from pytest_ssdqual.qual.measured.run import Interval, Run
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.validity.environment import host_faults
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives import temperature
from pytest_ssdqual.rig.drives.temperature import Warmth
from pytest_ssdqual.rig.fio.output import FioResult
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import ClockSet, Machine, RigError
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import kernel_log
from pytest_ssdqual.rig.observe.kernel_log import KernelLogExcerpt

SECTOR_BYTES = 512
#: Fields of a CPU's line in /proc/stat (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal. Guest time
#: follows, and is already part of the first two.
FIELDS = 8
#: Fields of /sys/block/<name>/stat (Documentation/block/stat.rst), counted from 0.
READS, READ_MERGES, READ_SECTORS, WRITES, WRITE_MERGES, WRITE_SECTORS = 0, 1, 2, 4, 5, 6
#: Of the same file, milliseconds: of all reads, of all writes, with any I/O outstanding, of all outstanding I/Os.
READ_MS, WRITE_MS, BUSY_MS, QUEUED_MS = 3, 7, 9, 10
#: Fields of /proc/<pid>/stat after the name in parentheses, counted from 0: user and system time, in ticks.
USER_TIME, SYSTEM_TIME = 11, 12
#: Ticks a second of /proc (sysconf(_SC_CLK_TCK)); 100 on all Linux architectures that have SSDs.
TICKS_PER_S = 100
MICROSECONDS = 1e-6
COUNT = re.compile(r"\d{1,20}", re.ASCII)
CLOCK = re.compile(r"(?P<s>\d{1,15})(?:\.(?P<ns>\d{9}))?", re.ASCII)
UPTIME = re.compile(r"\d{1,12}(?:\.\d+)?", re.ASCII)
PRESSURE = re.compile(r"/proc/pressure/cpu:some .*\btotal=(?P<us>\d{1,18})", re.ASCII)
THREAD = re.compile(r"/proc/\d{1,9}/stat:\d+ \(md[^)]*_raid\d+\) (?P<rest>\w(?: -?\d{1,20}){20,})", re.ASCII)
LINK = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")
#: Resolution of the uptime.
TICK_S = 0.01


@dataclass(frozen=True, slots=True)
class Counted:
    """Counters of one block device at one moment."""

    #: The kernel's number of this appearance of the device (diskseq); 0 if the kernel reports none.
    appearance: int = 0
    #: I/O since it appeared; None if it is absent, or does not count.
    traffic: Traffic | None = None
    #: Milliseconds of reads, of writes, with I/O outstanding, and of all outstanding I/Os; None as above.
    milliseconds: tuple[int, int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class DriveReading:
    counted: Counted
    warmth: Warmth
    link: DriveLink | None
    #: Threshold that hwmon reports.
    alarm_c: float | None


@dataclass(frozen=True, slots=True)
class EnvironmentReading:
    """Environment of the machine at one moment."""

    uptime_s: float
    #: The wall clock at that moment, and its resolution.
    clock_s: float | None
    resolution_s: float
    #: Ticks by use, for each CPU; ``cpu`` is their total.
    cpus: Mapping[str, tuple[int, ...]]
    #: Total time that each CPU was throttled, by its file in sysfs.
    throttled_ms: Mapping[str, int]
    drives: tuple[DriveReading, ...]
    array: Counted
    chunk_bytes: int | None
    bitmap: bool | None
    #: The kernel's log; None if it cannot be read.
    kernel_log: KernelLogExcerpt | None
    #: Names whose messages count; only in the earlier reading, where a device that was removed later still had them.
    names: tuple[str, ...]
    #: CPU time of md's thread, ticks; None if it has none.
    md_thread_ticks: int | None = None
    #: Time in which a task waited for a CPU; None if the kernel does not report it.
    cpu_pressure_us: int | None = None


def parse(text: str, array: str, drives: Sequence[str]) -> EnvironmentReading:
    """Parse what ``environment.SCRIPT`` printed; ``array`` (empty: none) and ``drives`` are names as sysfs spells them.

    ``ValueError`` if it is incomplete.
    """
    lines = text.splitlines()
    if not lines or lines[-1] != "==end":
        raise ValueError("the answer was cut short")
    sections, rest = _sections(lines[:-1])
    log_head = next((name for name in sections if name.startswith("kernel ")), None)
    clock = next((line.split()[1:] for line in rest if line.startswith("clock ")), [])
    if len(clock) != 3:
        raise ValueError("it has no clock")
    uptime_s, clock_s, resolution_s = _clock(*clock)
    files = dict(line.split(":", 1) for line in rest if line.startswith("/sys/") and ":" in line)
    cpus = [line.removeprefix("/proc/stat:").split() for line in rest if line.startswith("/proc/stat:cpu")]
    return EnvironmentReading(
        uptime_s=uptime_s,
        clock_s=clock_s,
        resolution_s=resolution_s,
        cpus={words[0]: tuple(map(_count, words[1 : 1 + FIELDS])) for words in cpus},
        throttled_ms={name: _count(value) for name, value in files.items() if name.endswith("_total_time_ms")},
        drives=tuple(_drive(name, files, "\n".join(sections.get(f"warmth {name}", ()))) for name in drives),
        array=_counted(array, files) if array else Counted(),
        chunk_bytes=_whole(files.get(f"/sys/block/{array}/md/chunk_size")),
        # RAID 0 has neither such a file nor a bitmap.
        bitmap=files.get(f"/sys/block/{array}/md/bitmap/location", "none") != "none" if array else None,
        kernel_log=kernel_log.parse(log_head.removeprefix("kernel "), sections[log_head]) if log_head else None,
        names=kernel_log.names(sections.get("names", ())),
        md_thread_ticks=_md_thread(rest),
        cpu_pressure_us=next((int(found["us"]) for line in rest if (found := PRESSURE.fullmatch(line))), None),
    )


def _md_thread(lines: Sequence[str]) -> int | None:
    found = (match["rest"].split() for line in lines if (match := THREAD.fullmatch(line)))
    return next((_count(words[USER_TIME]) + _count(words[SYSTEM_TIME]) for words in found), None)


def _sections(lines: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Sections between ``==name`` and ``==``, by the whole first line, and all other lines."""
    sections: dict[str, list[str]] = {}
    rest: list[str] = []
    into = rest
    for line in lines:
        if line.startswith("=="):
            into = sections.setdefault(line.removeprefix("=="), []) if line != "==" else rest
        else:
            into.append(line)
    return sections, rest


def _clock(up: str, now: str, later: str) -> tuple[float, float | None, float]:
    """Uptime and wall clock of one moment, which lies between two readings of the uptime.

    busybox may lack nanoseconds; then the clock is known to a second.
    """
    if not UPTIME.fullmatch(up) or not UPTIME.fullmatch(later):
        raise ValueError("it has no uptime")
    resolution_s = (float(later) - float(up)) / 2 + TICK_S
    uptime_s = (float(up) + float(later)) / 2
    match = CLOCK.match(now)
    if not match:
        return uptime_s, None, resolution_s
    if match["ns"] is None:
        return uptime_s, float(match["s"]), resolution_s + 1.0
    return uptime_s, int(match["s"]) + int(match["ns"]) / 1e9, resolution_s


def _drive(name: str, files: Mapping[str, str], answer: str) -> DriveReading:
    warmth, link = temperature.parse(answer)
    own = {path: value for path, value in files.items() if path.startswith(f"/sys/block/{name}/device/")}
    alarms = [int(value) / 1000 for path, value in own.items() if path.endswith("/temp1_max") and _whole(value)]
    alarm_c = next((threshold for threshold in map(temperature.limit, alarms) if threshold is not None), None)
    return DriveReading(_counted(name, files), warmth, _pcie_link(own) or link, alarm_c)


def _counted(name: str, files: Mapping[str, str]) -> Counted:
    """Counters of the head, or of all its paths together where only those count."""
    before, _, number = map(re.escape, name.rpartition("n"))
    path = re.compile(rf"/sys/block/{before}c\d+n{number}/stat")
    head = _traffic(files.get(f"/sys/block/{name}/stat", ""))
    paths = [
        path_traffic for file, value in files.items() if path.fullmatch(file) and (path_traffic := _traffic(value))
    ]
    if head is None or files.get(f"/sys/block/{name}/queue/iostats") == "0":
        return Counted()
    traffic = Traffic(
        max(head.reads, sum(count.reads for count in paths)),
        max(head.writes, sum(count.writes for count in paths)),
        max(head.read_bytes, sum(count.read_bytes for count in paths)),
        max(head.write_bytes, sum(count.write_bytes for count in paths)),
    )
    # Paths of a namespace count their own queues; the head of old kernels counts none.
    milliseconds = _milliseconds(files.get(f"/sys/block/{name}/stat", "")) if not paths else None
    return Counted(_whole(files.get(f"/sys/block/{name}/diskseq")) or 0, traffic, milliseconds)


def _milliseconds(text: str) -> tuple[int, int, int, int] | None:
    fields = [_count(word) for word in text.split()]
    if len(fields) <= QUEUED_MS:
        return None
    return fields[READ_MS], fields[WRITE_MS], fields[BUSY_MS], fields[QUEUED_MS]


def _traffic(text: str) -> Traffic | None:
    fields = [_count(word) for word in text.split()]
    if len(fields) <= WRITE_SECTORS:
        return None
    return Traffic(
        fields[READS] + fields[READ_MERGES],
        fields[WRITES] + fields[WRITE_MERGES],
        fields[READ_SECTORS] * SECTOR_BYTES,
        fields[WRITE_SECTORS] * SECTOR_BYTES,
    )


def _pcie_link(files: Mapping[str, str]) -> DriveLink | None:
    """Parse the link in sysfs of the controller's PCI device; of several controllers the worst. ``Unknown`` is None."""
    by_device: dict[str, dict[str, float]] = {}
    for path, value in files.items():
        device, _, what = path.rpartition("/")
        number = re.match(r"\d{1,9}(?:\.\d{1,9})?", value, re.ASCII)
        if what.endswith(("_link_speed", "_link_width")) and number and float(number[0]):
            by_device.setdefault(device, {})[what] = float(number[0])
    links = [
        DriveLink(
            "PCIe", sysfs["current_link_speed"], int(sysfs["current_link_width"]), sysfs["max_link_speed"],
            int(sysfs["max_link_width"]),
        )
        for sysfs in by_device.values()
        if set(LINK) <= set(sysfs)
    ]  # fmt: skip
    return min(links, key=lambda link: link.share, default=None)


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and COUNT.fullmatch(text) else None


def _count(word: str) -> int:
    if not COUNT.fullmatch(word):
        raise ValueError(f"{word[:40]!r} is no count")
    return int(word)


#: Deadline of a reading: the kernel gives an admin command of NVMe a minute before it resets the drive.
LOOK_S = 150.0

SCRIPT = kernel_log.SCRIPT + scripts.text("environment.sh")

#: Fields of /proc/stat (proc(5)): idle and iowait; system, irq and softirq. Steal time (last field) belongs to neither.
IDLE, KERNEL = (3, 4), (2, 5, 6)
#: Number of kernel messages that an error quotes; the record has more.
QUOTED = 5
#: Fewest ticks of CPU time between two readings that allow a statement; a tick is mostly 10 ms.
FEWEST_TICKS = 20


class When(StrEnum):
    BEFORE = "before"
    AFTER = "after"


def take_reading(
    machine: Machine, array: Array, when: When, earlier: EnvironmentReading | None = None
) -> EnvironmentReading:
    """Read the machine, ``array`` and its members; after fio, with the ``earlier`` reading.

    ``RigError`` if the machine does not answer.
    """
    kname = "" if array.geometry.is_side_by_side else array.kname
    drives = [part for drive in array.members for part in (drive.kname.replace("/", "!"), drive.path)]
    log, names = (earlier.kernel_log, earlier.names) if earlier else (None, ())
    since = kernel_log.parameters(log, names, is_first=when is When.BEFORE)
    argv = ["sh", "-c", SCRIPT, "environment", kernel_log.PICK, when.value, kname or "-", *since, *drives]
    done = machine.run(argv, check=False, deadline_s=LOOK_S, repeatable=True)
    try:
        return parse(done.text, kname, drives[::2])
    except ValueError as error:
        raise RigError(f"{machine.name} does not report its environment: {error}") from error


def between(
    array: Array, before: EnvironmentReading, after: EnvironmentReading, result: FioResult
) -> ProcessEnvironment:
    """Environment of the time between two readings, with what fio counted itself."""
    seconds = after.uptime_s - before.uptime_s
    requested = [_requested(part) for part in (result.parts or (result.intervals,))]
    is_side_by_side = array.geometry.is_side_by_side
    kernel = kernel_log.between(before.kernel_log, after.kernel_log)
    by_drive: Iterable[Traffic | None] = requested if is_side_by_side else [None] * len(array.members)
    return ProcessEnvironment(
        seconds=seconds,
        fio_s=result.seconds,
        clock_jump_s=_jump(before, after, seconds),
        clock_resolution_s=before.resolution_s + after.resolution_s,
        cpu=_cpu(before, after, seconds),
        jobs_busy=(result.user_percent + result.system_percent) / 100,
        drives=tuple(
            DriveEnvironment(
                drive.serial or drive.identity,
                DeviceTraffic(_traffic_between(first.counted, last.counted), by_fio),
                temperature.between(first.warmth, last.warmth, last.alarm_c),
                _worse(first.link, last.link),
                _queue(first.counted, last.counted, result.seconds),
            )
            for drive, first, last, by_fio in zip(array.members, before.drives, after.drives, by_drive, strict=True)
        ),
        array=None if is_side_by_side else _array(array, before, after, requested[0], kernel),
        kernel=kernel,
        cpu_pressure=_pressure(before, after, seconds),
    )


def note(setup: Setup, run: Run, kind: str) -> None:
    """Record the environment of a process and the objections that follow from it, whether it is judged or not."""
    if run.seen is None:
        return
    found_checks = checks.of_environment(run)
    worst = checks.worst(found_checks)
    setup.logbook.note(
        "environment",
        geometry=str(run.geometry),
        workload=str(run.workload),
        fio=kind,
        raw=run.raw,
        checks={name: check.figure for name, check in worst.items()},
        unknown=[name for name, check in worst.items() if check.holds is None],
        objections=checks.objections_in(found_checks),
        kernel=asdict(run.seen.kernel) if run.seen.kernel else None,
    )


@contextmanager
def explained(
    setup: Setup, array: Array, workload: Workload, kind: str, before: EnvironmentReading
) -> Iterator[list[str]]:
    """Record the kernel's messages since ``before`` if the measurement inside ends with a ``RigError``, and quote the
    gravest in it; the error remains what it is.

    The list takes the name of the raw file, if there is one. A machine that does not answer any more has no messages.
    """
    raw: list[str] = []
    try:
        yield raw
    except RigError as error:
        after = None
        if not error.ends_run:
            with suppress(RigError):
                after = take_reading(setup.machine, array, When.AFTER, before)
        if after is None:
            raise
        kernel = kernel_log.between(before.kernel_log, after.kernel_log)
        setup.logbook.note(
            "environment",
            geometry=str(array.geometry),
            workload=str(workload),
            fio=kind,
            raw="".join(raw),
            checks={},
            unknown=[],
            objections=[str(error), *(host_faults(kernel) if kernel else ())],
            kernel=asdict(kernel) if kernel else None,
        )
        quoted = kernel_log.gravest(kernel, QUOTED) if kernel else ()
        # A set clock is no fault of a device, and the next attempt decides.
        if quoted and not isinstance(error, ClockSet):
            error.args = (f"{error} (kernel log: {'; '.join(quoted)})",)
        raise


def _requested(intervals: Sequence[Interval]) -> Traffic:
    """I/O that the whole process requested, including its ramp."""
    return Traffic(
        sum(interval.read_ios for interval in intervals),
        sum(interval.write_ios for interval in intervals),
        sum(interval.read_bytes for interval in intervals),
        sum(interval.write_bytes for interval in intervals),
    )


def _array(
    array: Array, before: EnvironmentReading, after: EnvironmentReading, requested: Traffic, kernel: KernelLog | None
) -> ArrayEnvironment:
    return ArrayEnvironment(
        DeviceTraffic(_traffic_between(before.array, after.array), requested),
        after.chunk_bytes,
        after.bitmap,
        None if kernel is None else kernel_log.syncs(kernel, array.kname),
        _md_thread_busy(before, after),
    )


def _md_thread_busy(before: EnvironmentReading, after: EnvironmentReading) -> float | None:
    first, last, seconds = before.md_thread_ticks, after.md_thread_ticks, after.uptime_s - before.uptime_s
    if first is None or last is None or last < first or seconds <= 0:
        return None
    return (last - first) / TICKS_PER_S / seconds


def _pressure(before: EnvironmentReading, after: EnvironmentReading, seconds: float) -> float | None:
    first, last = before.cpu_pressure_us, after.cpu_pressure_us
    if first is None or last is None or last < first or seconds <= 0:
        return None
    return min(1.0, (last - first) * MICROSECONDS / seconds)


def _queue(before: Counted, after: Counted, seconds: float) -> DeviceQueue | None:
    """Queue of a device between two readings, over the run time of fio; None if it is not known."""
    moved, first, last = _traffic_between(before, after), before.milliseconds, after.milliseconds
    if moved is None or first is None or last is None or seconds <= 0:
        return None
    reads_ms, writes_ms, busy_ms, queued_ms = (now - then for then, now in zip(first, last, strict=True))
    if min(reads_ms, writes_ms, busy_ms, queued_ms) < 0:
        return None
    return DeviceQueue(
        read_iops=moved.reads / seconds,
        write_iops=moved.writes / seconds,
        mean_depth=queued_ms / 1000 / seconds,
        read_wait_ns=1e6 * reads_ms / moved.reads if moved.reads else None,
        write_wait_ns=1e6 * writes_ms / moved.writes if moved.writes else None,
        busy=min(1.0, busy_ms / 1000 / seconds),
    )


def _traffic_between(before: Counted, after: Counted) -> Traffic | None:
    """I/O between two readings of a device; None if it is not the same appearance of the same device."""
    earlier, now = before.traffic, after.traffic
    if earlier is None or now is None or before.appearance != after.appearance:
        return None
    moved = Traffic(
        now.reads - earlier.reads,
        now.writes - earlier.writes,
        now.read_bytes - earlier.read_bytes,
        now.write_bytes - earlier.write_bytes,
    )
    return moved if min(moved.reads, moved.writes, moved.read_bytes, moved.write_bytes) >= 0 else None


def _worse(first: DriveLink | None, last: DriveLink | None) -> DriveLink | None:
    return min((link for link in (first, last) if link), key=lambda link: link.share, default=None)


def _jump(before: EnvironmentReading, after: EnvironmentReading, seconds: float) -> float | None:
    if before.clock_s is None or after.clock_s is None:
        return None
    return after.clock_s - before.clock_s - seconds


def _cpu(before: EnvironmentReading, after: EnvironmentReading, seconds: float) -> Cpu | None:
    """CPU use of each CPU that is in both readings.

    Idle and iowait may go back a little (proc(5) calls iowait unreliable): that counts as no time.
    """
    shares: dict[str, tuple[float, float]] = {}
    for name, now in after.cpus.items():
        earlier = before.cpus.get(name, ())
        ticks = [max(0, last - first) for first, last in zip(earlier, now, strict=False)]
        if len(ticks) < FIELDS or sum(ticks) < FEWEST_TICKS:
            continue
        busy = 1 - sum(ticks[field] for field in IDLE) / sum(ticks)
        shares[name] = busy, sum(ticks[field] for field in KERNEL) / sum(ticks)
    total = shares.pop("cpu", None)
    if total is None or not shares:
        return None
    throttled_ms = [
        after.throttled_ms[name] - earlier
        for name, earlier in before.throttled_ms.items()
        if name in after.throttled_ms
    ]
    return Cpu(
        count=len(shares),
        busy=total[0],
        busiest=max(busy for busy, _ in shares.values()),
        busiest_in_kernel=max((busy for busy, kernel in shares.values() if kernel >= busy / 2), default=0.0),
        throttled=min(1.0, max(throttled_ms) / 1000 / seconds) if throttled_ms and seconds > 0 else None,
    )
