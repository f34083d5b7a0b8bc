"""Checks of the environment: drive temperature and link, md activity, host CPU, clocks.

Each limit has its reason beside it. A value that was not read is unknown: neither an objection nor a pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from pytest_ssdqual.qual.measured.environment import (
    Cpu,
    DriveEnvironment,
    DriveTemperature,
    KernelLog,
    ProcessEnvironment,
)
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.qual.validity.check import Check

#: Above this the host limits the rate, not the drives.
CPU_BUSY = 0.95
#: One CPU that is always busy in the kernel: one CPU serves the interrupts of a drive, and RAID 5's thread runs on one.
#: A CPU that only programs keep busy does not matter: the scheduler moves them, and fio's jobs have their own check.
ONE_CPU_BUSY = 0.99
#: A job of fio without CPU time left submits no faster, however fast the drives are.
JOBS_BUSY = 0.95
#: Short throttling is normal on some machines (turbo), and adds nanoseconds to the latency of an I/O.
CPU_THROTTLED = 0.01
#: NTP slews by 0.05 % at most; a step, or a clock that runs wrong, makes rates and times wrong by as much.
CLOCK_S, CLOCK_SHARE = 0.5, 0.001

#: Kernel messages of faults that are the host's: kernel/hung_task.c, drivers/iommu/{intel/dmar,amd/iommu}.c, and
#: drivers/firmware/efi/cper.c, which prints each record of firmware (GHES) with a number of its own.
HOST_FAULTS = (
    (re.compile(r"INFO: task .* blocked .*for more than \d+ seconds"), "a task on the machine hung"),
    (re.compile(r"DMAR: ?\[.*\] Request device \[|AMD-Vi: Event logged \["), "the IOMMU reported a fault"),
    (re.compile(r"\{\d+\}\[Hardware Error\]: "), "firmware reported a hardware error"),
)


def of_host(run: Run) -> Iterator[Check]:
    """Checks of the machine, once for any number of drives."""
    environment = run.seen
    if environment is None:
        yield from map(Check, ("cpu_busy_percent", "clock_jump_s", "host_faults"))
        return
    yield from _cpu(environment.cpu)
    yield _jobs(environment)
    yield from _clock(environment)
    if environment.kernel is None:
        yield Check("host_faults")
    else:
        faults = host_faults(environment.kernel)
        yield Check("host_faults", len(faults), faults)


def host_faults(kernel: KernelLog) -> tuple[str, ...]:
    """Faults of the host in the kernel's log, a sentence for each kind, with its first message."""
    return tuple(
        f"{fault} meanwhile (kernel log: {first.describe()})"
        for pattern, fault in HOST_FAULTS
        if (first := next((line for line in kernel.lines if pattern.search(line.text)), None))
    )


def of_drives(run: Run) -> Iterator[Check]:
    """Checks of each drive: temperature and link."""
    for drive in run.seen.drives if run.seen else ():
        for check in _heat(drive.name, drive.heat):
            yield replace(check, objections=()) if run.is_heat_promised else check
        yield _link(drive)


def of_array(run: Run) -> Iterator[Check]:
    """Check that md was idle; none without an array or during a rebuild."""
    if run.geometry.is_side_by_side or run.geometry.rebuilding:
        return
    syncs = run.seen.array.syncs if run.seen and run.seen.array else None
    if syncs is None:
        yield Check("resyncs")
        return
    objections = tuple(f"md began to work on the array meanwhile (kernel log: {each})" for each in syncs)
    yield Check("resyncs", len(syncs), objections)


def _cpu(cpu: Cpu | None) -> Iterator[Check]:
    if cpu is None:
        yield Check("cpu_busy_percent")
        return
    objection = f"the host's CPU was {cpu.busy:.0%} busy, so it may have set the pace"
    yield Check("cpu_busy_percent", 100 * cpu.busy, (objection,) if cpu.busy > CPU_BUSY else ())
    # For a single CPU the first figure suffices.
    alone = cpu.count > 1 and cpu.busiest_in_kernel >= ONE_CPU_BUSY
    objection = (
        f"one of the host's {cpu.count} CPUs was {cpu.busiest_in_kernel:.1%} busy, most of it in the kernel, so it may "
        "have set the pace: spread interrupts, or raise array.group_threads"
    )
    yield Check("cpu_busiest_percent", 100 * cpu.busiest_in_kernel, (objection,) if alone else ())
    if cpu.throttled is None:
        yield Check("cpu_throttled_percent")
        return
    objection = f"a CPU was slowed down by its own heat for {cpu.throttled:.1%} of the time"
    hot = cpu.throttled > CPU_THROTTLED
    yield Check("cpu_throttled_percent", 100 * cpu.throttled, (objection,) if hot else ())


def _jobs(environment: ProcessEnvironment) -> Check:
    if environment.jobs_busy is None:
        return Check("fio_cpu_percent")
    objection = (
        f"fio's jobs kept a CPU each {environment.jobs_busy:.0%} busy, so they may have set the pace: "
        "use more of them (load.jobs of the protocol, for sequential workloads streams), or faster CPUs"
    )
    return Check(
        "fio_cpu_percent",
        100 * environment.jobs_busy,
        (objection,) if environment.jobs_busy > JOBS_BUSY else (),
    )


def _clock(environment: ProcessEnvironment) -> Iterator[Check]:
    may = CLOCK_S + CLOCK_SHARE * environment.seconds
    if environment.clock_jump_s is None:
        yield Check("clock_jump_s")
    else:
        jump_s = environment.clock_jump_s
        objection = (
            f"the machine's clock was set {'forward' if jump_s > 0 else 'back'} by {format_duration(abs(jump_s))}"
        )
        wrong = abs(jump_s) > may + environment.clock_resolution_s
        yield Check("clock_jump_s", jump_s, (objection,) if wrong else ())
    # The machine's clock may be ahead by fio's start and end, whose length is unknown.
    ahead_s = environment.fio_s - environment.seconds
    objection = (
        f"fio counted {environment.fio_s:.1f} s where by the machine's clock only {environment.seconds:.1f} s passed"
    )
    yield Check("fio_clock_ahead_s", ahead_s, (objection,) if ahead_s > may else ())


def _heat(name: str, heat: DriveTemperature) -> Iterator[Check]:
    """Temperature of a drive, which throttles itself when too warm (NVM Express: warning composite temperature).

    The temperature at both ends does not show what it was in between; the drive's own counters do.
    """
    objections = []
    warm = heat.temperature_c is not None and heat.limit_c is not None and heat.temperature_c >= heat.limit_c
    limit = "" if heat.limit_c is None else f", its warning threshold is {heat.limit_c:g} °C"
    degrees = "an unknown temperature" if heat.temperature_c is None else f"{heat.temperature_c:g} °C"
    if warm or heat.too_warm:
        objections.append(f"drive {name} was too warm: {degrees}{limit}")
    answered = heat.limit_c is not None or heat.too_warm is not None
    yield Check("temperature_c", heat.temperature_c, tuple(objections), name, answered=answered)
    objections = []
    if heat.too_warm_s:
        objections.append(
            f"drive {name} counted {format_duration(heat.too_warm_s)} of being too warm or throttled ({degrees})"
        )
    elif heat.events:
        times = "once" if heat.events == 1 else f"{heat.events} times"
        objections.append(f"drive {name} throttled itself {times}, or passed its limit ({degrees})")
    figure = heat.too_warm_s
    if figure is None and heat.events is not None:
        figure = 0.0
    yield Check("too_warm_s", figure, tuple(objections), name)


def _link(drive: DriveEnvironment) -> Check:
    """Link of a drive: half of the lanes is a wrong slot, cable or riser, not a slow drive."""
    link = drive.link
    if link is None:
        return Check("link_percent", drive=drive.name)
    objection = f"drive {drive.name} is connected by less than it can do: {link.describe()}"
    full = link.speed >= link.max_speed and link.width >= link.max_width
    return Check("link_percent", 100 * link.share, () if full else (objection,), drive.name, low_is_bad=True)
