"""Two looks at the machine under test, just before and just after a fio process: what went on around it.

One command a look. The rule of the module: looking changes nothing and never fails for a file that is not there; what
cannot be read is not known. Device names are positional parameters of the script.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from enum import StrEnum

from pytest_ssdqual.qual.measured.environment import (
    ArrayEnvironment,
    Cpu,
    DeviceTraffic,
    DriveEnvironment,
    DriveLink,
    KernelLog,
    ProcessEnvironment,
    Traffic,
)
from pytest_ssdqual.qual.measured.run import Interval, Run
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.rig.drives import temperature
from pytest_ssdqual.rig.fio.output import FioResult
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine, RigError
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import kernel_log, sight
from pytest_ssdqual.rig.observe.sight import Counted, Sight

#: The kernel gives an admin command of NVMe a minute before it resets the drive.
LOOK_S = 150.0

SCRIPT = kernel_log.SCRIPT + scripts.text("environment.sh")

#: Of the fields of /proc/stat (proc(5)): idle and iowait; system, irq and softirq. Time stolen by a hypervisor is the
#: last, and is neither.
IDLE, KERNEL = (3, 4), (2, 5, 6)
#: Fewer ticks of CPU time between two looks say nothing; they are of 10 ms mostly.
FEWEST_TICKS = 20


class When(StrEnum):
    BEFORE = "before"
    AFTER = "after"


def look(machine: Machine, array: Array, when: When, earlier: Sight | None = None) -> Sight:
    """Look at the machine, at ``array`` and at its members; afterwards with what the ``earlier`` look returned.

    ``RigError`` if it does not answer at all.
    """
    kname = "" if array.geometry.is_side_by_side else array.kname
    drives = [part for drive in array.members for part in (drive.kname.replace("/", "!"), drive.path)]
    heard, names = (earlier.heard, earlier.names) if earlier else (None, ())
    since = kernel_log.parameters(heard, names, is_first=when is When.BEFORE)
    argv = ["sh", "-c", SCRIPT, "surroundings", kernel_log.PICK, when.value, kname or "-", *since, *drives]
    done = machine.run(argv, check=False, deadline_s=LOOK_S, repeatable=True)
    try:
        return sight.parse(done.text, kname, drives[::2])
    except ValueError as error:
        raise RigError(f"{machine.name} does not tell what goes on there: {error}") from error


def seen(array: Array, before: Sight, after: Sight, result: FioResult) -> ProcessEnvironment:
    """What the two looks say of the time between them, beside what fio says it did."""
    seconds = after.uptime_s - before.uptime_s
    asked = [_asked(part) for part in (result.parts or (result.intervals,))]
    alone = array.geometry.is_side_by_side
    kernel = kernel_log.between(before.heard, after.heard)
    by_drive: Iterable[Traffic | None] = asked if alone else [None] * len(array.members)
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
                DeviceTraffic(_moved(first.counted, last.counted), by_fio),
                temperature.between(first.warmth, last.warmth, last.alarm_c),
                _worse(first.link, last.link),
            )
            for drive, first, last, by_fio in zip(array.members, before.drives, after.drives, by_drive, strict=True)
        ),
        array=None if alone else _array(array, before, after, asked[0], kernel),
        kernel=kernel,
    )


def note(setup: Setup, run: Run, kind: str) -> None:
    """Put on record what was seen around a process, and what speaks against it, whether it is to be judged or not."""
    if run.seen is None:
        return
    found = checks.of_surroundings(run)
    worst = checks.worst(found)
    setup.logbook.note(
        "surroundings",
        geometry=str(run.geometry),
        workload=str(run.workload),
        fio=kind,
        raw=run.raw,
        checks={name: check.figure for name, check in worst.items()},
        unknown=[name for name, check in worst.items() if check.holds is None],
        objections=checks.objections_in(found),
        kernel=asdict(run.seen.kernel) if run.seen.kernel else None,
    )


def _asked(intervals: Sequence[Interval]) -> Traffic:
    """By the whole process, ramp included."""
    return Traffic(
        sum(each.read_ios for each in intervals),
        sum(each.write_ios for each in intervals),
        sum(each.read_bytes for each in intervals),
        sum(each.write_bytes for each in intervals),
    )


def _array(array: Array, before: Sight, after: Sight, asked: Traffic, kernel: KernelLog | None) -> ArrayEnvironment:
    return ArrayEnvironment(
        DeviceTraffic(_moved(before.array, after.array), asked),
        after.chunk_bytes,
        after.bitmap,
        None if kernel is None else kernel_log.syncs(kernel, array.kname),
    )


def _moved(before: Counted, after: Counted) -> Traffic | None:
    """None if it is not the same appearance of the same device."""
    then, now = before.traffic, after.traffic
    if then is None or now is None or before.appearance != after.appearance:
        return None
    moved = Traffic(
        now.reads - then.reads,
        now.writes - then.writes,
        now.read_bytes - then.read_bytes,
        now.write_bytes - then.write_bytes,
    )
    return moved if min(moved.reads, moved.writes, moved.read_bytes, moved.write_bytes) >= 0 else None


def _worse(first: DriveLink | None, last: DriveLink | None) -> DriveLink | None:
    return min((link for link in (first, last) if link), key=lambda link: link.share, default=None)


def _jump(before: Sight, after: Sight, seconds: float) -> float | None:
    if before.clock_s is None or after.clock_s is None:
        return None
    return after.clock_s - before.clock_s - seconds


def _cpu(before: Sight, after: Sight, seconds: float) -> Cpu | None:
    """Of each CPU that was there at both looks.

    Idle time and time of waiting may go back a little (proc(5) calls iowait unreliable): that is no time.
    """
    shares: dict[str, tuple[float, float]] = {}
    for name, now in after.cpus.items():
        then = before.cpus.get(name, ())
        ticks = [max(0, last - first) for first, last in zip(then, now, strict=False)]
        if len(ticks) < sight.FIELDS or sum(ticks) < FEWEST_TICKS:
            continue
        busy = 1 - sum(ticks[field] for field in IDLE) / sum(ticks)
        shares[name] = busy, sum(ticks[field] for field in KERNEL) / sum(ticks)
    together = shares.pop("cpu", None)
    if together is None or not shares:
        return None
    grown = [
        after.throttled_ms[name] - then for name, then in before.throttled_ms.items() if name in after.throttled_ms
    ]
    return Cpu(
        count=len(shares),
        busy=together[0],
        busiest=max(busy for busy, _ in shares.values()),
        busiest_in_kernel=max((busy for busy, kernel in shares.values() if kernel >= busy / 2), default=0.0),
        throttled=min(1.0, max(grown) / 1000 / seconds) if grown and seconds > 0 else None,
    )
