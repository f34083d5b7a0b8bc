"""Where a sweep over widths bends away from the line, and who bent it: the host, a drive, or none that can be told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_ssdqual.qual.measured.environment import SeenDrive
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.raid.scaling import Point, Scaling

#: From here on the host is a suspect: half-idle machines do not slow drives down.
CPU_BUSY = 0.80

#: A single CPU that is in the kernel for so long is md's own thread, or all interrupts: others may be idle.
KERNEL_BUSY = 0.95

#: Arrays beyond the bend that grow by less than this part of what their drives would add share something that is full.
FLAT = 0.25

#: More new drives than these at one width are too many to suspect one.
SUSPECTS = 3


def told(sweep: Sequence[Measured], found: Scaling, least: float) -> str:
    """A remark that names the width where efficiency falls below ``least``, and who is known to have changed there.

    The narrowest width that is surely below, else the narrowest that seems to be; nothing if none does. In this order:
    the host if its CPUs were busy; a drive that was too warm or badly connected; what all drives share if wider arrays
    do not do more; the drives that were new at that width if they may have done it: every wider array has them, too,
    so these would have to be below as well.
    """
    points = found.points[1:]
    surely = [point for point in points if point.ceiling < least]
    bent = surely or [point for point in points if point.efficiency.value < least]
    if not bent:
        return ""
    first, wider = bent[0], [point for point in points if point.geometry > bent[0].geometry]
    runs = next(each.runs for each in sweep if each.geometry == first.geometry)
    before = {serial for each in sweep if each.geometry < first.geometry for run in each.runs for serial in run.members}
    new = sorted({serial for run in runs for serial in run.members} - before)
    if seen := next(_seen(runs, new), ""):
        by = f": {seen}"
    elif wider and _is_flat(first, wider[-1]):
        by = ", and wider arrays do no more: something that all drives share sets the pace"
    elif new and len(new) <= SUSPECTS and all(point.efficiency.value < least for point in wider):
        by = f", the first with {'drive' if len(new) == 1 else 'drives'} {' and '.join(new)}"
    else:
        by = "; neither the host nor a drive can be told to have caused it"
    return f"the bend {'begins' if surely else 'seems to begin'} at {first.geometry}{by}"


def _seen(runs: Sequence[Run], new: Sequence[str]) -> Iterator[str]:
    """What the machine told that would explain it, weightiest first."""
    seen = [run.seen for run in runs if run.seen]
    cpus = [each.cpu for each in seen if each.cpu]
    if cpus and (busy := max(cpu.busy for cpu in cpus)) >= CPU_BUSY:
        yield f"the host's CPU was {busy:.0%} busy there"
    if cpus and (busiest := max(cpu.busiest_in_kernel for cpu in cpus)) >= KERNEL_BUSY:
        yield f"one of the host's CPUs was {busiest:.0%} busy there, in the kernel"
    for drive in (drive for each in seen for drive in each.drives):
        yield from _drive(drive, new)


def _drive(drive: SeenDrive, new: Sequence[str]) -> Iterator[str]:
    heat, link = drive.heat, drive.link
    if heat.too_warm or heat.too_warm_s or heat.events:
        yield f"drive {drive.name} was too warm there"
    if drive.name in new and link and link.share < 1:
        yield f"drive {drive.name} is connected by {link.describe()}"


def _is_flat(first: Point, widest: Point) -> bool:
    grown = widest.iops.value - first.iops.value
    return grown < FLAT * first.iops.value * (widest.effective_drives / first.effective_drives - 1)
