"""Environment of a fio process: two readings of the machine under test, just before and just after it.

Each reading is one command, parsed into an ``EnvironmentReading``. It changes nothing and does not fail because of a
missing file: values that cannot be read are unknown. Device names are positional parameters of the script.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.environment import (
    ArrayEnvironment,
    DeviceTraffic,
    DriveEnvironment,
    DriveLink,
    DrivePlacement,
    EnvironmentRecord,
    KernelLog,
    OpenFile,
    OwnCount,
    ProcessEnvironment,
    StripeCache,
    Traffic,
)
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.numbers import decimal
from pytest_ssdqual.qual.records import shallow
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.validity.environment import host_faults
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.failed import EventLog
from pytest_ssdqual.rig.fio.output import FioResult
from pytest_ssdqual.rig.health import activity, own_activity, temperature
from pytest_ssdqual.rig.health.smart_answer import parsed
from pytest_ssdqual.rig.health.temperature import Warmth
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine, RigError
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.observe import host_load, kernel_log, open_files, placement, repaired
from pytest_ssdqual.rig.observe.device_counters import Counted, counted, most_requests, queue, traffic_between
from pytest_ssdqual.rig.observe.host_load import HostCounters
from pytest_ssdqual.rig.observe.kernel_log import KernelLogExcerpt
from pytest_ssdqual.rig.observe.open_files import Users

CLOCK = re.compile(r"(?P<s>\d{1,15})(?:\.(?P<ns>\d{9}))?", re.ASCII)
UPTIME = re.compile(r"\d{1,12}(?:\.\d+)?", re.ASCII)
LINK = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")
#: Resolution of the uptime.
TICK_S = 0.01
#: Deadline of a reading: the kernel gives an admin command of NVMe a minute before it resets the drive.
LOOK_S = 150.0

SCRIPT = "".join(
    (kernel_log.SCRIPT, scripts.text("placement.sh"), open_files.FUNCTIONS, scripts.text("environment.sh"))
)


@frozen
class DriveReading:
    counted: Counted
    warmth: Warmth
    link: DriveLink | None
    #: Threshold that hwmon reports.
    alarm_c: float | None
    #: Only in the earlier reading.
    placement: DrivePlacement | None = None
    #: The kernel's counters of errors, by file; see ``repaired``.
    repaired: Mapping[str, int] = field(default_factory=dict)
    #: What it counted of its hosts in its life.
    own: OwnCount | None = None
    #: None if it was not read.
    opened: tuple[OpenFile, ...] | None = None
    #: A test that the drive runs; "" if none, None if it is not known.
    self_test: str | None = None


@frozen
class EnvironmentReading:
    """Environment of the machine at one moment."""

    uptime_s: float
    #: The wall clock at that moment, and its resolution.
    clock_s: float | None
    resolution_s: float
    host: HostCounters
    drives: tuple[DriveReading, ...]
    array: Counted
    chunk_bytes: int | None
    bitmap: bool | None
    #: Threads that handle stripes on each NUMA node (group_thread_cnt); None if the level has none.
    md_workers: int | None
    #: The kernel's log; None if it cannot be read.
    kernel_log: KernelLogExcerpt | None
    #: Names whose messages count; only in the earlier reading, where a device that was removed later still had them.
    names: tuple[str, ...]


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
    return EnvironmentReading(
        uptime_s=uptime_s,
        clock_s=clock_s,
        resolution_s=resolution_s,
        host=host_load.parse(rest, files),
        drives=tuple(_drive(name, files, sections) for name in drives),
        array=counted(array, files) if array else Counted(),
        chunk_bytes=decimal(files.get(f"/sys/block/{array}/md/chunk_size")),
        # RAID 0 has neither such a file nor a bitmap.
        bitmap=files.get(f"/sys/block/{array}/md/bitmap/location", "none") != "none" if array else None,
        md_workers=decimal(files.get(f"/sys/block/{array}/md/group_thread_cnt")),
        kernel_log=kernel_log.parse(log_head.removeprefix("kernel "), sections[log_head]) if log_head else None,
        names=kernel_log.names(sections.get("names", ())),
    )


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


def _drive(name: str, files: Mapping[str, str], sections: Mapping[str, Sequence[str]]) -> DriveReading:
    smart = parsed("\n".join(sections.get(f"warmth {name}", ())))
    warmth, link = temperature.parse(smart)
    own = {path: value for path, value in files.items() if path.startswith(f"/sys/block/{name}/device/")}
    alarms = [int(value) / 1000 for path, value in own.items() if path.endswith("/temp1_max") and decimal(value)]
    alarm_c = next((threshold for threshold in map(temperature.limit, alarms) if threshold is not None), None)
    place = placement.parse(sections[f"placement {name}"]) if f"placement {name}" in sections else None
    link = _pcie_link(own) or link
    self_test = activity.self_test(parsed("\n".join(sections.get(f"selftest {name}", ()))) or smart)
    users = open_files.parse(sections["opened"]).get(name, ()) if "opened" in sections else None
    return DriveReading(
        counted(name, files), warmth, link, alarm_c, place, repaired.counted(name, files), own_activity.count(smart),
        users, self_test,
    )  # fmt: skip


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


def take_reading(machine: Machine, array: Array, earlier: EnvironmentReading | None = None) -> EnvironmentReading:
    """Read the machine, ``array`` and its members; after fio, with the ``earlier`` reading.

    ``RigError`` if the machine does not answer.
    """
    kname = "" if array.geometry.is_side_by_side else array.kname
    drives = [part for each in array.members for part in (each.sysfs_name, each.path, each.smart_type)]
    log, names = (earlier.kernel_log, earlier.names) if earlier else (None, ())
    since = kernel_log.parameters(log, names, is_first=earlier is None)
    words = [kernel_log.PICK, "after" if earlier else "before", kname or "-", *since, *drives]
    done = scripts.answer(machine, SCRIPT, "environment", *words, deadline_s=LOOK_S)
    try:
        return parse(done.text, kname, drives[::3])
    except ValueError as error:
        raise RigError(f"{machine.name} does not report its environment: {error}") from error


def self_tests(array: Array, reading: EnvironmentReading) -> dict[str, str]:
    """Return the self-tests that drives run, by serial number."""
    drives = zip(array.members, reading.drives, strict=True)
    return {drive.name: seen.self_test for drive, seen in drives if seen.self_test}


def with_users(after: EnvironmentReading, array: Array, users: Users) -> EnvironmentReading:
    """Return the reading with the processes that had drives open while fio ran."""
    drives = tuple(
        replace(seen, opened=(*(seen.opened or ()), *found)) if (found := users.of(drive.sysfs_name)) else seen
        for drive, seen in zip(array.members, after.drives, strict=True)
    )
    return replace(after, drives=drives)


def between(
    array: Array,
    before: EnvironmentReading,
    after: EnvironmentReading,
    workload: Workload,
    result: FioResult,
    stripe_cache: StripeCache | None = None,
) -> ProcessEnvironment:
    """Environment of the time between two readings, with what fio counted itself of its ``workload``."""
    seconds, jump_s = after.uptime_s - before.uptime_s, None
    if before.clock_s is not None and after.clock_s is not None:
        jump_s = after.clock_s - before.clock_s - seconds
    outstanding = workload.outstanding(array.drives_per_target)
    most = most_requests(outstanding, workload.largest_bytes)
    requested = [_requested(part) for part in result.of_targets]
    is_side_by_side = array.geometry.is_side_by_side
    kernel = kernel_log.between(before.kernel_log, after.kernel_log)
    by_drive: Iterable[Traffic | None] = requested if is_side_by_side else [None] * len(array.members)
    return ProcessEnvironment(
        seconds=seconds,
        fio_s=result.seconds,
        clock_jump_s=jump_s,
        clock_resolution_s=before.resolution_s + after.resolution_s,
        cpu=host_load.cpu(before.host, after.host, seconds),
        jobs_busy=result.jobs_busy,
        drives=tuple(
            DriveEnvironment(
                drive.name,
                DeviceTraffic(traffic_between(first.counted, last.counted), by_fio),
                temperature.between(first.warmth, last.warmth, last.alarm_c),
                min((link for link in (first.link, last.link) if link), key=lambda link: link.share, default=None),
                queue(first.counted, last.counted, result.seconds, most),
                first.placement,
                own_activity.between(first.own, last.own),
                _users(first, last),
                first.self_test or last.self_test,
            )
            for drive, first, last, by_fio in zip(array.members, before.drives, after.drives, by_drive, strict=True)
        ),
        array=None if is_side_by_side else _array(array, before, after, requested[0], kernel, stripe_cache),
        kernel=kernel,
        cpu_pressure=host_load.pressure(before.host, after.host, seconds),
    )


def note(log: EventLog, run: Run, kind: str) -> None:
    """Record the environment of a process and the objections that follow from it, whether it is judged or not."""
    if run.seen is None:
        return
    found_checks = checks.of_environment(run)
    worst = checks.worst(found_checks)
    record = EnvironmentRecord(
        geometry=run.geometry,
        workload=str(run.workload),
        fio=kind,
        raw=run.raw,
        checks={name: check.figure for name, check in worst.items()},
        unknown=tuple(name for name, check in worst.items() if check.holds is None),
        objections=tuple(checks.objections_in(found_checks)),
        kernel=run.seen.kernel,
    )
    log.note("environment", **shallow(record))


def note_failed(
    log: EventLog, array: Array, workload: str, kind: str, raw: str, error: RigError, kernel: KernelLog | None
) -> None:
    """Record the kernel's messages during a process that ended with an error; it has no checks."""
    objections = (str(error), *(host_faults(kernel) if kernel else ()))
    record = EnvironmentRecord(array.geometry, workload, kind, raw, {}, (), objections, kernel)
    log.note("environment", **shallow(record))


def _requested(intervals: Sequence[Interval]) -> Traffic:
    """I/O that the whole process requested, including its ramp."""
    return Traffic(
        sum(interval.read_ios for interval in intervals),
        sum(interval.write_ios for interval in intervals),
        sum(interval.read_bytes for interval in intervals),
        sum(interval.write_bytes for interval in intervals),
    )


def _array(
    array: Array,
    before: EnvironmentReading,
    after: EnvironmentReading,
    requested: Traffic,
    kernel: KernelLog | None,
    stripe_cache: StripeCache | None,
) -> ArrayEnvironment:
    return ArrayEnvironment(
        DeviceTraffic(traffic_between(before.array, after.array), requested),
        after.chunk_bytes,
        after.bitmap,
        None if kernel is None else kernel_log.syncs(kernel, array.kname),
        host_load.md_thread_busy(before.host, after.host, after.uptime_s - before.uptime_s),
        stripe_cache,
        after.md_workers,
        host_load.md_workers_busy(before.host, after.host, after.uptime_s - before.uptime_s),
    )


def _users(first: DriveReading, last: DriveReading) -> tuple[OpenFile, ...] | None:
    known = [reading.opened for reading in (first, last) if reading.opened is not None]
    return tuple(dict.fromkeys(user for opened in known for user in opened)) if known else None
