"""CPU time of a machine between two readings: each CPU's, md's thread and workers, and the time that tasks waited."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.environment import Cpu, CpuUse
from pytest_ssdqual.qual.numbers import count

#: Fields of a CPU's line in /proc/stat (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal. Guest time
#: follows, and is already part of the first two.
FIELDS = 8
#: Of these, idle and iowait; system, irq and softirq; irq and softirq. Steal time belongs to none.
IDLE, KERNEL, INTERRUPTS = (3, 4), (2, 5, 6), (5, 6)
#: Fields of /proc/<pid>/stat after the name in parentheses, counted from 0: user and system time, in ticks.
USER_TIME, SYSTEM_TIME, START_TIME = 11, 12, 19
#: Ticks a second of /proc (sysconf(_SC_CLK_TCK)); 100 on all Linux architectures that have SSDs.
TICKS_PER_S = 100
MICROSECONDS = 1e-6
#: Fewest ticks of CPU time between two readings that allow a statement; a tick is mostly 10 ms.
FEWEST_TICKS = 20
PRESSURE = re.compile(r"/proc/pressure/cpu:some .*\btotal=(?P<us>\d{1,18})", re.ASCII)
THREAD = re.compile(r"/proc/\d{1,9}/stat:\d+ \(md[^)]*_raid\d+\) (?P<rest>\w(?: -?\d{1,20}){20,})", re.ASCII)
#: A worker of unbound workqueues; from Linux 4.18 on its name ends in the workqueue that it works for (+) or worked for
#: last (-): wq_worker_comm in kernel/workqueue.c.
WORKER = re.compile(
    r"/proc/(?P<pid>\d{1,9})/stat:\d+ \(kworker/u[^)+-]*(?:[+-](?P<queue>[^)]*))?\) (?P<rest>\w(?: -?\d{1,20}){20,})",
    re.ASCII,
)
#: Workqueue of RAID 5 and 6 (raid5_init in drivers/md/raid5.c), shared by all such arrays.
RAID5_QUEUE = "raid5wq"


@frozen
class WorkerTime:
    """CPU time of one kernel worker, and the workqueue that it worked for last."""

    queue: str
    ticks: int


@frozen
class HostCounters:
    """CPU time that a machine has counted until one moment."""

    #: Ticks by use, for each CPU; ``cpu`` is their total.
    cpus: Mapping[str, tuple[int, ...]]
    #: Total time that each CPU was throttled, by its file in sysfs.
    throttled_ms: Mapping[str, int]
    #: CPU time of md's thread, ticks; None if it has none.
    md_thread_ticks: int | None = None
    #: Time in which a task waited for a CPU; None if the kernel does not report it.
    cpu_pressure_us: int | None = None
    #: By process and start time.
    workers: Mapping[tuple[str, str], WorkerTime] = field(default_factory=dict)


def parse(lines: Sequence[str], files: Mapping[str, str]) -> HostCounters:
    """Parse the lines of /proc, and ``files`` of sysfs by path; ``ValueError`` if a count is none."""
    cpus = [line.removeprefix("/proc/stat:").split() for line in lines if line.startswith("/proc/stat:cpu")]
    return HostCounters(
        cpus={words[0]: tuple(map(count, words[1 : 1 + FIELDS])) for words in cpus},
        throttled_ms={name: count(value) for name, value in files.items() if name.endswith("_total_time_ms")},
        md_thread_ticks=_md_thread(lines),
        cpu_pressure_us=next((int(found["us"]) for line in lines if (found := PRESSURE.fullmatch(line))), None),
        workers=dict(_workers(lines)),
    )


def _workers(lines: Iterable[str]) -> Iterator[tuple[tuple[str, str], WorkerTime]]:
    for line in lines:
        if match := WORKER.fullmatch(line):
            words = match["rest"].split()
            ticks = count(words[USER_TIME]) + count(words[SYSTEM_TIME])
            yield (match["pid"], words[START_TIME]), WorkerTime(match["queue"] or "", ticks)


def _md_thread(lines: Iterable[str]) -> int | None:
    found = (match["rest"].split() for line in lines if (match := THREAD.fullmatch(line)))
    return next((count(words[USER_TIME]) + count(words[SYSTEM_TIME]) for words in found), None)


def md_thread_busy(before: HostCounters, after: HostCounters, seconds: float) -> float | None:
    """Share of one CPU that md's thread used; None if it has none."""
    ticks = _each_second(before.md_thread_ticks, after.md_thread_ticks, seconds)
    return None if ticks is None else ticks / TICKS_PER_S


def _each_second(first: int | None, last: int | None, seconds: float) -> float | None:
    """Growth of a counter in a second; None if it is not known."""
    if first is None or last is None or last < first or seconds <= 0:
        return None
    return (last - first) / seconds


def md_workers_busy(before: HostCounters, after: HostCounters, seconds: float) -> float | None:
    """CPUs that the workers of RAID 5 and 6 used, all together; None without any.

    Those that worked for md last, with all of their time: what they did for others between the readings counts, too.
    """
    of_md = {key: each.ticks for key, each in after.workers.items() if each.queue == RAID5_QUEUE}
    if not of_md or seconds <= 0:
        return None
    earlier = {key: each.ticks for key, each in before.workers.items()}
    return sum(max(0, ticks - earlier.get(key, 0)) for key, ticks in of_md.items()) / TICKS_PER_S / seconds


def pressure(before: HostCounters, after: HostCounters, seconds: float) -> float | None:
    """Share of the time in which a task waited for a CPU, 0…1; None if the kernel does not report it."""
    waited_us = _each_second(before.cpu_pressure_us, after.cpu_pressure_us, seconds)
    return None if waited_us is None else min(1.0, waited_us * MICROSECONDS)


def cpu(before: HostCounters, after: HostCounters, seconds: float) -> Cpu | None:
    """CPU use of each CPU that is in both readings; None if too little time was counted."""
    uses = {
        name: use for name, now in after.cpus.items() if (use := _use(name, before.cpus.get(name, ()), now)) is not None
    }
    total = uses.pop("cpu", None)
    if total is None or not uses:
        return None
    throttled_ms = [
        after.throttled_ms[name] - earlier
        for name, earlier in before.throttled_ms.items()
        if name in after.throttled_ms
    ]
    return Cpu(
        count=len(uses),
        busy=total.busy,
        busiest=max(use.busy for use in uses.values()),
        busiest_in_kernel=max((use.busy for use in uses.values() if use.kernel >= use.busy / 2), default=0.0),
        throttled=min(1.0, max(throttled_ms) / 1000 / seconds) if throttled_ms and seconds > 0 else None,
        each=tuple(uses.values()),
    )


def _use(name: str, earlier: Sequence[int], now: Sequence[int]) -> CpuUse | None:
    """Use of one CPU, or of all (number -1).

    Idle and iowait may go back a little (proc(5) calls iowait unreliable): that counts as no time.
    """
    ticks = [max(0, last - first) for first, last in zip(earlier, now, strict=False)]
    if len(ticks) < FIELDS or sum(ticks) < FEWEST_TICKS:
        return None
    idle, kernel, interrupts = (sum(ticks[field] for field in fields) for fields in (IDLE, KERNEL, INTERRUPTS))
    number = int(name[3:]) if name[3:] else -1
    return CpuUse(
        number,
        busy=round(1 - idle / sum(ticks), 4),
        kernel=round(kernel / sum(ticks), 4),
        interrupts=round(interrupts / sum(ticks), 4),
    )
