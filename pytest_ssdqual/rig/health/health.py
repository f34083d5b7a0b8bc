"""Health of drives before and after a run: smartctl's JSON → ``DriveHealth``.

A field that a drive does not report is None, never zero. The whole answer is stored in the run folder.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.spec.health_limits import ORDINARY, HealthTable
from pytest_ssdqual.qual.strict_json import read_json
from pytest_ssdqual.rig.drives.topology import AUTO_SMART, NO_SMART, Drive
from pytest_ssdqual.rig.health import smart_answer
from pytest_ssdqual.rig.health.smart_answer import at, items, statistic, whole
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import CommandFailed, Machine, RigError, ask
from pytest_ssdqual.rig.machine.side_by_side import each

#: One command for all drives. Compact JSON is one line; the exit status is in it, so the shell's is not needed.
SCRIPT = scripts.text("health.sh")
HYPERVISOR = scripts.text("hypervisor_drives.sh")
#: Buses of hypervisors in a path of sysfs (virtio, Hyper-V, Xen), and vendors of INQUIRY data.
VIRTUAL_BUS = re.compile(r"/(virtio\d+|VMBUS:\w+|vmbus[^/]*|vbd-\d+)(?=/|$)", re.ASCII)
VIRTUAL_VENDORS = frozenset({"QEMU", "VMware", "Msft", "Google", "VBOX", "XEN", "NUTANIX", "BHYVE"})

#: smartctl(8), EXIT STATUS: bit 0 command line did not parse, bit 1 device open failed. Bit 2: some command failed,
#: perhaps for a log that not every drive has, perhaps for the health itself. The others are findings.
FAILED_BITS, OPEN_FAILED, COMMAND_FAILED = 0b11, 0b10, 0b100

#: NVM Express Base Specification, SMART / Health Information log page, byte 0 (critical warning).
TOO_WARM = "temperature is outside its limits"
CRITICAL_WARNINGS = (
    "spare capacity is below its threshold",
    TOO_WARM,
    "reliability is degraded by media or internal errors",
    "media is read-only",
    "volatile memory backup failed",
    "persistent memory region is read-only or unreliable",
)

#: Counters that the drive, its cable, its slot and the backplane can raise.
OF_LINKS = smart_answer.LINK_ERRORS, smart_answer.PHY_ERRORS
#: Name of unrecovered errors.
MEDIA_ERRORS = "media errors"
#: New entries of an NVMe error log that are not shown, if they have no limit: commands that a drive does not support
#: make entries, too, and some drives make one at each query of this program.
LOG_ENTRIES_TOLERATED = 100


@frozen
class DriveHealth:
    """SMART health of one drive at one moment."""

    #: The drive's own overall assessment.
    passed: bool | None
    temperature_c: int | None
    #: Percentage of the rated endurance; may exceed 100.
    percentage_used: int | None
    #: Bits of NVMe's critical warning; 0 is none.
    critical_warning: int | None
    #: Unrecovered errors by the log of the drive that counts them; a log may count otherwise than another one.
    media_counts: Mapping[str, int]
    power_on_hours: int | None
    #: Bytes that the host wrote.
    data_written_bytes: int | None
    #: The whole answer of smartctl.
    raw_json: str
    #: Error counters of the drive's life, and its spare, by name.
    counters: Mapping[str, int] = field(default_factory=dict)

    @property
    def media_errors(self) -> int | None:
        """Unrecovered errors by the first log that counts them; None if none does."""
        return next(iter(self.media_counts.values()), None)

    @property
    def is_assessed(self) -> bool:
        """Return whether the drive reports anything by which its health can be judged."""
        judged = (name for name in self.counters if ORDINARY.limit(name) is not None)
        figures = self.passed, self.critical_warning, self.media_errors, self.percentage_used, next(judged, None)
        return any(figure is not None for figure in figures)


class Unreadable(ValueError):
    """smartctl ran, and reports that it could not read the drive, or nothing of its health."""


class DriveUnread(CommandFailed):
    """smartctl ran, and reports that it could not read a drive."""


def read(machine: Machine, drives: Sequence[Drive]) -> Mapping[str, DriveHealth]:
    """The health of every drive, by path, except of those without health (``Drive.has_health``).

    Raises ``RigError`` when smartctl is missing or cannot read a drive, ``DriveUnread`` if smartctl itself reports the
    latter; findings about a drive are not errors.
    """
    drives = [drive for drive in drives if drive.has_health]
    if not drives:
        return {}
    words = [word for drive in drives for word in (drive.smart_type, drive.path)]
    done = scripts.answer(machine, SCRIPT, "health", *words, deadline_s=30.0 + 15.0 * len(drives))
    if done.status == 127:
        raise RigError(f"smartctl is missing on {machine.name}; install smartmontools there.")
    answers = [line for line in done.text.split("\n") if line.strip()]
    if len(answers) != len(drives):
        raise CommandFailed(f"smartctl answered for {len(answers)} of {len(drives)} drives of {machine.name}.", done)
    healths = {}
    for drive, answer in zip(drives, answers, strict=True):
        try:
            healths[drive.path] = parse(answer)
        except ValueError as problem:
            kind = DriveUnread if isinstance(problem, Unreadable) else CommandFailed
            raise kind(f"smartctl cannot read {drive.describe()}: {problem}", done) from problem
    return healths


@frozen
class Identification:
    """Answer of smartctl for one drive before a run."""

    firmware: str | None = None
    serial: str | None = None
    #: The reason why smartctl cannot identify the drive, fit to follow the drive's name; ``read`` would fail for it.
    problem: str = ""


def identify(machine: Machine, drives: Sequence[Drive]) -> Mapping[str, Identification]:
    """Return what smartctl identifies the drives as, by path; a drive without health is as the kernel reports it.

    A type that the user gave may lead to another drive behind the same controller, so a serial number that two such
    drives report is a problem of both.
    """
    identified = dict(zip((drive.path for drive in drives), each(machine, drives, _identified), strict=True))
    typed = [drive.path for drive in drives if drive.smart_type not in (AUTO_SMART, NO_SMART)]
    serials = Counter(identified[path].serial for path in typed)
    for path in typed:
        if (serial := identified[path].serial) and serials[serial] > 1:
            identified[path] = Identification(
                problem=f"has the serial number {serial} for smartctl, as another drive has"
            )
    return identified


def emulated_among(machine: Machine, drives: Sequence[Drive]) -> frozenset[str]:
    """Return the kernel names of the drives that a hypervisor made, by model, transport, name, vendor or bus."""
    if not drives:
        return frozenset()
    done = scripts.answer(machine, HYPERVISOR, "hypervisor", *(drive.sysfs_name for drive in drives))
    answers = (line.split(" ", 2) for line in done.text.splitlines())
    shown = {
        words[0]
        for words in answers
        if len(words) == 3 and (VIRTUAL_BUS.search(words[1]) or words[2].strip() in VIRTUAL_VENDORS)
    }
    return frozenset(drive.kname for drive in drives if drive.is_virtual or drive.sysfs_name in shown)


def _identified(machine: Machine, drive: Drive) -> Identification:
    if not drive.has_health:
        return Identification(drive.firmware, drive.serial)
    # The same options as in health.sh, so that a drive that is accepted here can be read when the run begins.
    argv = ["smartctl", "--json=c", "-x", "-d", drive.smart_type, drive.path]
    done = ask(machine, argv)
    try:
        plain = read_json(done.text)
    except ValueError as problem:
        return Identification(problem=f"cannot be identified by smartctl, whose answer is not JSON: {problem}")
    status = whole(plain, "smartctl", "exit_status")
    if status is None or status & FAILED_BITS:
        reason = _messages(plain) or "it gives no reason"
        return Identification(problem=f"cannot be identified by smartctl: {reason}")
    try:
        parse(done.text)
    except Unreadable as problem:
        return Identification(problem=f"has no health that smartctl can read: {problem}")
    serial = at(plain, "serial_number")
    shown = safe_text.name(serial.strip()) if isinstance(serial, str) else None
    return Identification(smart_answer.firmware(plain) or drive.firmware, shown or None)


def parse(answer: str) -> DriveHealth:
    """Parse one answer of ``smartctl --json=c -x`` for an NVMe, ATA or SCSI drive.

    ``ValueError`` if that is none; ``Unreadable`` with smartctl's own message if it could not read the drive, or
    nothing of its health.
    """
    plain = read_json(answer)
    status = whole(plain, "smartctl", "exit_status")
    if status is None or status & FAILED_BITS:
        kind = Unreadable if status and status & OPEN_FAILED else ValueError
        raise kind(_messages(plain) or "no reason given")
    nvme = at(plain, "nvme_smart_health_information_log")
    passed = at(plain, "smart_status", "passed")
    celsius = smart_answer.temperature_c(plain)
    found = DriveHealth(
        passed=passed if isinstance(passed, bool) else None,
        temperature_c=None if celsius is None else round(celsius),
        percentage_used=smart_answer.percentage_used(plain),
        critical_warning=whole(nvme, "critical_warning"),
        media_counts=_media_counts(plain),
        power_on_hours=smart_answer.power_on_hours(plain),
        data_written_bytes=smart_answer.data_written_bytes(plain),
        raw_json=answer,
        counters=smart_answer.counters(plain),
    )
    if status & COMMAND_FAILED and not found.is_assessed:
        raise Unreadable(_messages(plain) or "it does not report its health")
    return found


def _media_counts(plain: object) -> Mapping[str, int]:
    """Return the unrecovered errors by the log that counts them, the log to be preferred first."""
    counts = {
        "nvme": whole(plain, "nvme_smart_health_information_log", "media_errors"),
        "statistics": statistic(plain, "Number of Reported Uncorrectable Errors"),
        "attribute": smart_answer.error_count(plain, "Reported_Uncorrect", "Uncorrectable_Error_Cnt"),
        "scsi": _scsi_uncorrected(plain),
    }
    return {log: count for log, count in counts.items() if count is not None}


def media_errors_of_one_log(before: DriveHealth, after: DriveHealth) -> tuple[int, int] | None:
    """Return the unrecovered errors at two readings by the first log that counts them at both; None without such.

    A log may be readable at one of them only: ATA's device statistics are one that smartctl may fail to read.
    """
    both = (log for log in after.media_counts if log in before.media_counts)
    return next(((before.media_counts[log], after.media_counts[log]) for log in both), None)


def without_power_cuts(after: DriveHealth, cuts: int) -> DriveHealth:
    """Return the health without what ``cuts`` power cuts of this run caused.

    These are as many unsafe shutdowns, and errors of SAS links: a phy counts from its power-up, and counts some errors
    whenever the link comes up (SPL), so its counts before and after a power cut cannot be compared.
    """
    if not cuts:
        return after
    counters = {name: count for name, count in after.counters.items() if name != smart_answer.PHY_ERRORS}
    if (counted := counters.get(smart_answer.UNSAFE_SHUTDOWNS)) is not None:
        counters[smart_answer.UNSAFE_SHUTDOWNS] = max(0, counted - cuts)
    return replace(after, counters=counters)


def changes(before: DriveHealth, after: DriveHealth, limits: HealthTable = ORDINARY) -> Iterator[tuple[str, bool]]:
    """Yield each change of a drive beyond expected wear, and whether it is a defect, whatever the drive is attached to.

    Each is fit to follow the drive's name. ``limits`` decide about counters. Heat is the chassis' as much as the
    drive's, and endurance is used up by the load: these are shown, and decide nothing.
    """
    if after.passed is False and before.passed is not False:
        yield "its own SMART health assessment is FAILED", True
    new = (after.critical_warning or 0) & ~(before.critical_warning or 0) & 0xFF
    for bit in range(new.bit_length()):
        if new >> bit & 1:
            known = CRITICAL_WARNINGS[bit] if bit < len(CRITICAL_WARNINGS) else f"bit {bit}"
            yield f"critical warning: {known}", known != TOO_WARM
    if (counts := media_errors_of_one_log(before, after)) is not None:
        yield from _risen(MEDIA_ERRORS, *counts, limits)
    elif after.media_errors:
        yield f"{MEDIA_ERRORS} are {after.media_errors}, and how many there were before is unknown", False
    for name, count in after.counters.items():
        # A drive may report more counters only later.
        yield from _risen(name, before.counters.get(name, count), count, limits)
    if (after.percentage_used or 0) >= 100 > (before.percentage_used or 0):
        yield f"its rated endurance is used up ({after.percentage_used} %)", False
    for name, old, now in (
        ("power-on hours", before.power_on_hours, after.power_on_hours),
        ("data written", before.data_written_bytes, after.data_written_bytes),
    ):
        if old is not None and now is not None and now < old:
            yield f"{name} went backwards from {old} to {now}", False


def _risen(name: str, old: int, now: int, limits: HealthTable) -> Iterator[tuple[str, bool]]:
    """Yield the change of a counter, and whether it is beyond its limit."""
    limit = limits.limit(name)
    worse = old - now if name == smart_answer.SPARE else now - old
    if worse <= (LOG_ENTRIES_TOLERATED if name == smart_answer.LOG_ENTRIES and limit is None else 0):
        return
    change = f"fell from {old} to {now} %" if name == smart_answer.SPARE else f"rose from {old} to {now}"
    allowed = f" ({limit} more allowed)" if limit else ""
    who = "drive or its link: " if name in OF_LINKS else ""
    yield f"{who}{name} {change}{allowed}", limit is not None and worse > limit


def _scsi_uncorrected(plain: object) -> int | None:
    ways = ("read", "write", "verify")
    counts = [whole(plain, "scsi_error_counter_log", way, "total_uncorrected_errors") for way in ways]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _messages(plain: object) -> str:
    texts = [at(message, "string") for message in items(plain, "smartctl", "messages")]
    return safe_text.line("; ".join(text for text in texts if isinstance(text, str)))
