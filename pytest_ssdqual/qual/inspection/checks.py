"""Checks of the receiving inspection: one drive's values against the limits, each answered with words.

A value that a drive should report and does not is ``UNKNOWN``, which never passes. What its kind of drive does not
have is ``ABSENT``; what neither the spec nor the defaults limit is ``UNLIMITED``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.inspection.limits import CAPACITY_TOLERANCE, InspectionTable, matches
from pytest_ssdqual.qual.inspection.record import DriveKind, InspectionRecord, Sanitizing
from pytest_ssdqual.qual.serial_number import is_generic
from pytest_ssdqual.qual.units import format_capacity

#: Checks whose values another activity of the drive changes.
DISTURBED = ("temperature",)
#: Checks that compare a drive with all others.
AMONG_ALL = ("identity", "alike")
#: Words for a write cache.
ON_OFF: Mapping[bool | None, str | None] = {None: None, True: "on", False: "off"}
#: What must be the same of all drives, by its words.
ALIKE: Mapping[str, Callable[[InspectionRecord], object]] = {
    "model": lambda drive: drive.model,
    "firmware": lambda drive: drive.firmware,
    "capacity in bytes": lambda drive: drive.capacity_bytes,
    "logical block in bytes": lambda drive: drive.logical_block_bytes,
    "physical block in bytes": lambda drive: drive.physical_block_bytes,
    "write cache": lambda drive: ON_OFF[drive.write_cache],
    "link speed of the drive": lambda drive: drive.link and drive.link.drive_speed,
}


class Answer(StrEnum):
    """Result of one check of one drive."""

    CONFORMS = "conforms"
    DEVIATES = "deviates"
    UNKNOWN = "unknown"
    #: The kind of drive has no such value.
    ABSENT = "absent"
    #: There is no limit.
    UNLIMITED = "unlimited"


@frozen
class CheckedDrive:
    """One check of one drive; ``words`` follow the drive's name in a sentence."""

    answer: Answer
    words: str
    #: The reading and its limit as a table shows them: ``9,204 h``, ``≤ 24 h``; empty if there is none.
    reading: str = ""
    bound: str = ""
    #: Reading and limit in the base unit; None if they are no numbers.
    value: float | None = None
    limit: float | None = None
    drive: str = ""
    path: str = ""

    @property
    def sentence(self) -> str:
        """``drive S1 at /dev/sdb had 812 power cycles, at most 50 allowed``."""
        place = f" at {self.path}" if self.path not in ("", self.drive) else ""
        return f"drive {self.drive}{place} {self.words}"


#: How a number is shown.
NUMBER, HOURS, PERCENT, CELSIUS = "{:,}".format, "{:,} h".format, "{:,} %".format, "{:,} °C".format


def check(name: str, drives: Sequence[InspectionRecord], limits: InspectionTable) -> tuple[CheckedDrive, ...]:
    """Return the answers of the check ``name`` for all drives; ``KeyError`` for an unknown check."""
    function = partial(CHECKS[name], drives=drives) if name in AMONG_ALL else CHECKS[name]
    return tuple(
        replace(_checked(name, function(drive, limits), drive), drive=drive.name, path=drive.path) for drive in drives
    )


def _checked(name: str, found: CheckedDrive, drive: InspectionRecord) -> CheckedDrive:
    """Return the answer of a check, where a value cannot be known with the reason."""
    if drive.activity and name in DISTURBED:
        return replace(found, answer=Answer.UNKNOWN, words=f"is unknown: it {drive.activity}")
    if found.answer is not Answer.UNKNOWN:
        return found
    if drive.is_virtual and drive.unreadable:
        return replace(found, answer=Answer.ABSENT, words=f"is a drive of a hypervisor, and {found.words}")
    why = drive.doubts.get(name) or drive.unreadable
    return replace(found, words=f"is unknown: {why}") if why else found


def _result(
    good: bool, words: str, reading: str, bound: str = "", value: float | None = None, limit: float | None = None
) -> CheckedDrive:
    return CheckedDrive(Answer.CONFORMS if good else Answer.DEVIATES, words, reading, bound, value, limit)


def _unknown(what: str) -> CheckedDrive:
    return CheckedDrive(Answer.UNKNOWN, f"does not report {what}")


def _absent(what: str) -> CheckedDrive:
    return CheckedDrive(Answer.ABSENT, f"has no {what}")


def _unlimited(words: str, reading: str = "") -> CheckedDrive:
    return CheckedDrive(Answer.UNLIMITED, words, reading)


def _at_most(value: int | None, limit: int, words: str, what: str, show: Callable[[int], str] = NUMBER) -> CheckedDrive:
    """Compare a number with its maximum; ``words`` have a place for it, ``what`` names it where it is unknown."""
    if value is None:
        return _unknown(what)
    reading, most = show(value), show(limit)
    words = f"{words.format(reading)}, at most {most} allowed"
    return _result(value <= limit, words, reading, f"≤ {most}", value, limit)


def _at_least(value: int, limit: int, words: str, show: Callable[[int], str] = NUMBER) -> CheckedDrive:
    reading, least = show(value), show(limit)
    words = f"{words.format(reading)}, at least {least} required"
    return _result(value >= limit, words, reading, f"≥ {least}", value, limit)


def _one_of(value: str | None, allowed: list[str], what: str, has: str, asked: str) -> CheckedDrive:
    """Compare a text with patterns; ``what`` names it where it is unknown, ``has`` and ``asked`` are verbs."""
    if not allowed:
        return _unlimited(f"{has} {value}", value or "")
    if value is None:
        return _unknown(f"its {what}")
    bound = " or ".join(allowed)
    return _result(matches(value, allowed), f"{has} {value}, {bound} {asked}", value, bound)


def _capacity(drive: InspectionRecord, limits: InspectionTable) -> CheckedDrive:
    size, ordered = drive.capacity_bytes, limits.capacity_bytes
    if size is None or (ordered is None and size == 0):
        return _unknown("its capacity")
    reading = format_capacity(size)
    if ordered is None:
        return _unlimited(f"has {reading}", reading)
    good, bound = abs(size - ordered) <= ordered * CAPACITY_TOLERANCE, format_capacity(ordered)
    return _result(good, f"has {reading}, {bound} was ordered", reading, bound, size, ordered)


def _sector_format(drive: InspectionRecord, limits: InspectionTable) -> CheckedDrive:
    values: list[tuple[str, int | None, int | None]] = [
        ("logical blocks", drive.logical_block_bytes, limits.logical_block_bytes),
        ("physical blocks", drive.physical_block_bytes, limits.physical_block_bytes),
    ]
    if drive.kind is DriveKind.NVME or drive.kind is None:
        values.append(("metadata", drive.metadata_bytes, limits.metadata_bytes))
    wanted = [(what, value, limit) for what, value, limit in values if limit is not None]
    if not wanted:
        return _unlimited(f"has logical blocks of {drive.logical_block_bytes} bytes", f"{drive.logical_block_bytes} B")
    reading, bound = (", ".join(f"{each[0]} {each[at]} B" for each in wanted if each[1] is not None) for at in (1, 2))
    if wrong := [
        f"{what} of {value} bytes, {limit} ordered" for what, value, limit in wanted if value not in (None, limit)
    ]:
        return _result(False, f"has {', '.join(wrong)}", reading, bound)
    if missing := [what for what, value, _limit in wanted if value is None]:
        return _unknown(f"the size of its {' and '.join(missing)}")
    return _result(True, "has " + ", ".join(f"{what} of {value} bytes" for what, value, _ in wanted), reading, bound)


def _identity(drive: InspectionRecord, _: InspectionTable, drives: Sequence[InspectionRecord]) -> CheckedDrive:
    if drive.is_bridged:
        return CheckedDrive(Answer.ABSENT, "is known to the kernel by the names of a USB bridge or RAID controller")
    wrong = []
    if not drive.serial:
        wrong.append("has no serial number")
    elif is_generic(drive.serial):
        wrong.append(f"has the serial {drive.serial}, a placeholder that many drives have")
    if not drive.wwn and not drive.is_virtual:
        wrong.append("has no WWN")
    for what, value, all_values in (
        ("serial", drive.serial, [each.serial for each in drives]),
        ("WWN", drive.wwn, [each.wwn for each in drives]),
    ):
        if value and Counter(all_values)[value] > 1:
            others = [each.path for each in drives if each is not drive and value in (each.serial, each.wwn)]
            wrong.append(f"has the same {what} {value} as {', '.join(others)}")
    # A SAS drive's serial in lsblk up to util-linux 2.36 may be its WWN (util-linux#1143), so only two serials differ.
    both = [drive.serial, drive.own_serial]
    if all(both) and drive.kind is not DriveKind.SCSI and len({_as_udev_spells(str(each)) for each in both}) > 1:
        wrong.append(f"reports the serial {drive.own_serial} itself, but the kernel knows it by {drive.serial}")
    names = " and ".join(name for name in (drive.serial, drive.wwn) if name)
    words = " and ".join(wrong) or f"is identified by {names}"
    return _result(not wrong, words, wrong[0].partition(",")[0] if wrong else "unique", "unique")


def _as_udev_spells(serial: str) -> str:
    """A serial in a common spelling: udev writes an underscore for blanks and for characters such as a slash."""
    return re.sub(r"[^0-9A-Za-z#+.:=@-]+", "_", serial.strip())


def _alike(drive: InspectionRecord, limits: InspectionTable, drives: Sequence[InspectionRecord]) -> CheckedDrive:
    if limits.mixed or len(drives) < 2:
        return _unlimited("may differ from the others" if limits.mixed else "is the only drive")
    differences = []
    values = []
    for what, of in ALIKE.items():
        known = Counter(value for each in drives if (value := of(each)) is not None)
        # The most frequent value is the usual one; the first drive decides between equally frequent ones.
        usual, count = known.most_common(1)[0] if known else (None, 0)
        own = of(drive)
        if own is not None and own != usual:
            differences.append(f"has the {what} {own}, {count} of {len(drives)} drives have {usual}")
            values.append(f"{what} {own}")
    missing = [what for what in ("model", "firmware", "capacity in bytes") if ALIKE[what](drive) is None]
    if missing and not differences:
        return _unknown(f"its {' and '.join(missing)}")
    words = ", ".join(differences) or "is like the others"
    return _result(not differences, words, f"no: {', '.join(values)}" if values else "yes", "yes")


def _spare(drive: InspectionRecord, limits: InspectionTable) -> CheckedDrive:
    if drive.spare_percent is not None:
        return _at_least(drive.spare_percent, limits.spare_percent, "has {} of its spare blocks left", PERCENT)
    has_none = drive.kind in (DriveKind.ATA, DriveKind.SCSI)
    return _absent("count of spare blocks") if has_none else _unknown("its spare")


def _link_errors(drive: InspectionRecord, limits: InspectionTable) -> CheckedDrive:
    if not drive.link_counters and drive.kind in (DriveKind.NVME, DriveKind.SCSI):
        # A SAS drive counts some whenever its link comes up; a run compares them (``errors of the SAS link``).
        return _absent("counter of link errors that stays at zero")
    return _counters(drive.link_counters, limits.link_errors, "errors of its link")


def _counters(counters: Mapping[str, int], limit: int, what: str) -> CheckedDrive:
    if not counters:
        return _unknown(f"{what} by any counter")
    words = {name: f"{name.replace('_', ' ')} {count:,}" for name, count in counters.items() if count}
    wrong = [words[name] for name, count in counters.items() if count > limit]
    reading = ", ".join(wrong or words.values())
    told = f"counts {what}: {reading or 'none'}, at most {limit:,} allowed"
    return _result(not wrong, told, reading or "0", f"≤ {limit:,}", max(counters.values()), limit)


def _error_log(drive: InspectionRecord, limits: InspectionTable) -> CheckedDrive:
    entries, limit, of_media = drive.error_log_entries, limits.error_log_entries, drive.media_log_entries
    if entries is None and drive.kind is DriveKind.SCSI:
        return _absent("error log")
    if entries is None or limit is not None:
        return _at_most(entries, limit or 0, "has {} entries in its error log", "its error log")
    words = f"has {entries:,} entries in its error log; errors of its media among those it still shows: {of_media:,}"
    return _result(not of_media, words, f"{of_media:,} of media", "≤ 0 of media", of_media, 0)


def _self_test(drive: InspectionRecord, _: InspectionTable) -> CheckedDrive:
    failed = drive.failed_self_tests
    if failed is None:
        return _absent("self-tests") if drive.has_self_tests is False else _unknown("a log of self-tests")
    return _result(failed == 0, f"has failed self-tests in its log: {failed}", f"{failed} failed", "≤ 0", failed, 0)


def _health(drive: InspectionRecord, _: InspectionTable) -> CheckedDrive:
    warnings = list(drive.warnings or ())
    if drive.read_only:
        warnings.insert(0, "it is read-only")
    if drive.passed is False:
        warnings.insert(0, "its own health assessment is FAILED")
    if warnings:
        return _result(False, f"is not healthy: {'; '.join(warnings)}", "failed", "passed")
    if drive.passed is None:
        return _unknown("a health assessment")
    return _result(True, "passes its own health assessment", "passed", "passed")


def _write_cache(drive: InspectionRecord, limits: InspectionTable) -> CheckedDrive:
    state = {True: "on", False: "off", None: "not reported"}
    if limits.write_cache is None:
        return _unlimited(f"has its write cache {state[drive.write_cache]}", state[drive.write_cache])
    if drive.write_cache is None:
        return _unknown("the state of its write cache")
    reading, ordered = state[drive.write_cache], state[limits.write_cache]
    words = f"has its write cache {reading}, {ordered} ordered"
    return _result(drive.write_cache is limits.write_cache, words, reading, ordered)


def _link_speed(drive: InspectionRecord, limits: InspectionTable) -> CheckedDrive:
    link = drive.link
    if link is None or link.speed is None:
        return _unknown("the speed of its link")
    unit = f" {link.unit}"
    return _link(link.speed, (link.drive_speed, link.slot_speed), limits.link_speed, lambda value: f"{value:g}{unit}")


def _link_width(drive: InspectionRecord, limits: InspectionTable) -> CheckedDrive:
    link = drive.link
    if drive.kind in (DriveKind.ATA, DriveKind.SCSI) and (link is None or link.kind != "PCIe"):
        return _absent("lanes")
    if link is None or link.width is None:
        return _unknown("the width of its link")
    return _link(link.width, (link.drive_width, link.slot_width), limits.link_width, lambda value: f"x{value:g}")


def _link(
    now: float, most: tuple[float | None, float | None], ordered: float | None, show: Callable[[float], str]
) -> CheckedDrive:
    """Compare a negotiated speed or width with the order, and with what drive and slot can do.

    A slot that can do less than the drive is the machine's: the drive conforms, and the words name the slot.
    """
    drive, slot = most
    if drive is None and ordered is None:
        return _unknown("what its link can do at most")
    reading = show(now)
    if ordered is not None and drive is not None and drive < ordered:
        words = f"can do {show(drive)} at most, {show(ordered)} was ordered"
        return _result(False, words, reading, f"≥ {show(ordered)}", now, ordered)
    possible = min(each for each in (drive if drive is not None else ordered, slot) if each is not None)
    words, bound = f"is connected with {reading}", f"≥ {show(possible)}"
    if now < possible:
        words += f", drive and slot can do {show(possible)}"
        return _result(False, words, reading, bound, now, possible)
    if drive is not None and slot is not None and slot < drive:
        words += f", all that the slot can do (the drive: {show(drive)})"
    if ordered is not None and now < ordered:
        words += f", so that the ordered {show(ordered)} cannot be shown here"
        return CheckedDrive(Answer.UNKNOWN, words, reading, f"≥ {show(ordered)}", now, ordered)
    return _result(True, words, reading, bound, now, possible)


def _temperature(drive: InspectionRecord, limits: InspectionTable) -> CheckedDrive:
    warmest = min(each for each in (limits.temperature_c, drive.temperature_limit_c) if each is not None)
    return _at_most(drive.temperature_c, warmest, "has {} at rest", "its temperature", CELSIUS)


def _security(drive: InspectionRecord, _: InspectionTable) -> CheckedDrive:
    if drive.security_locked:
        return _result(False, "is locked with a password", "locked", "no password")
    if drive.security_enabled:
        return _result(False, "has a password set (security enabled)", "password", "no password")
    if drive.security_enabled is None:
        return _unknown("its security state") if drive.kind in (DriveKind.ATA, None) else _absent("ATA security")
    return _result(True, "has no password set", "no password", "no password")


def _sanitize(drive: InspectionRecord, _: InspectionTable) -> CheckedDrive:
    if drive.sanitizing is None:
        has_none = drive.can_sanitize is False or drive.kind in (DriveKind.ATA, DriveKind.SCSI)
        return _absent("sanitize status") if has_none else _unknown("its sanitize state")
    if drive.sanitizing is Sanitizing.IN_PROGRESS:
        return CheckedDrive(Answer.UNKNOWN, drive.activity or f"reports: {drive.sanitizing.value}")
    good, reading = drive.sanitizing is not Sanitizing.FAILED, drive.sanitizing.value
    return _result(good, f"reports: {reading}", reading, "not failed")


def _activity(drive: InspectionRecord, _: InspectionTable) -> CheckedDrive:
    """A drive that is busy by itself is not defective, and what is measured of it is not its speed."""
    if drive.activity:
        return CheckedDrive(Answer.UNKNOWN, drive.activity)
    return _unknown("what it does") if drive.unreadable else _result(True, "runs nothing by itself", "none", "none")


def _namespaces(drive: InspectionRecord, limits: InspectionTable) -> CheckedDrive:
    if drive.kind in (DriveKind.ATA, DriveKind.SCSI):
        return _absent("namespaces")
    count = drive.namespaces
    if count is None:
        return _unknown("its namespaces")
    expected = f"{limits.namespaces}"
    if drive.unallocated_bytes:
        lost = format_capacity(drive.unallocated_bytes)
        return _result(False, f"has {lost} that belong to no namespace", f"{count}, {lost} in none", expected, count)
    words = f"has namespaces: {count}, expected: {expected}"
    return _result(count == limits.namespaces, words, f"{count}", expected, count, limits.namespaces)


def _queue_depth(drive: InspectionRecord, limits: InspectionTable) -> CheckedDrive:
    if drive.kind is DriveKind.NVME:
        return _absent("queue depth that could be too small")
    depth = drive.queue_depth
    if depth is None:
        return _unknown("its queue depth")
    return _at_least(depth, limits.queue_depth, "queues {} I/Os")


def _log_pages(drive: InspectionRecord, limits: InspectionTable) -> CheckedDrive:
    if not limits.log_pages:
        return _unlimited("is required to support no particular log page")
    if drive.log_pages is None:
        return _unknown("which log pages it supports")
    missing = [f"{page:#04x}" for page in limits.log_pages if page not in drive.log_pages]
    if missing:
        named = ", ".join(missing)
        return _result(False, f"lacks the log pages {named}", f"no {named}", "all")
    return _result(True, "has all log pages", "all", "all")


#: All checks by name, in the order of the suite.
CHECKS: Mapping[str, Callable[..., CheckedDrive]] = {
    "model": lambda drive, limits: _one_of(drive.model, limits.models, "model", "is of the model", "was ordered"),
    "firmware": lambda drive, limits: _one_of(
        drive.firmware, limits.firmware, "firmware", "has firmware", "is allowed"
    ),
    "capacity": _capacity,
    "sector_format": _sector_format,
    "identity": _identity,
    "alike": _alike,
    "power_on_hours": lambda drive, limits: _at_most(
        drive.power_on_hours, limits.power_on_hours, "was powered on for {}", "its power-on time", HOURS
    ),
    "power_cycles": lambda drive, limits: _at_most(
        drive.power_cycles, limits.power_cycles, "had {} power cycles", "its power cycles"
    ),
    "written": lambda drive, limits: _at_most(
        drive.written_bytes, limits.written_bytes, "had {} written to it", "how much was written to it", format_capacity
    ),
    "wear": lambda drive, limits: _at_most(
        drive.wear_percent, limits.wear_percent, "has used {} of its endurance", "its used endurance", PERCENT
    ),
    "spare": _spare,
    "media": lambda drive, limits: _counters(drive.media_counters, limits.media_errors, "defects of its media"),
    "error_log": _error_log,
    "self_test": _self_test,
    "activity": _activity,
    "health": _health,
    "write_cache": _write_cache,
    "link_speed": _link_speed,
    "link_width": _link_width,
    "link_errors": _link_errors,
    "temperature": _temperature,
    "security": _security,
    "sanitize": _sanitize,
    "namespaces": _namespaces,
    "queue_depth": _queue_depth,
    "log_pages": _log_pages,
}


#: Most drives named in a sentence; the evidence has all of them.
NAMED = 8
#: Answers in the order in which they decide about all drives.
SEVERITY = (Answer.DEVIATES, Answer.UNKNOWN, Answer.CONFORMS, Answer.UNLIMITED, Answer.ABSENT)


@dataclass(frozen=True, slots=True, repr=False)
class InspectionVerdict:
    """Result of one check; true if every drive conforms."""

    check: str
    drives: tuple[CheckedDrive, ...]

    def __bool__(self) -> bool:
        return self.answer is Answer.CONFORMS

    def __repr__(self) -> str:
        return self.sentence

    @property
    def answer(self) -> Answer:
        """The worst answer of a drive; ``UNKNOWN`` if no drive was inspected."""
        answers = {each.answer for each in self.drives}
        return next((answer for answer in SEVERITY if answer in answers), Answer.UNKNOWN)

    @property
    def label(self) -> str:
        return self.check.replace("_", " ")

    @property
    def sentence(self) -> str:
        """``inspection of power on hours: drive S1 at /dev/sdb was powered on for 9,204 h, at most …``."""
        of_worst = [each for each in self.drives if each.answer is self.answer]
        if self.answer in (Answer.DEVIATES, Answer.UNKNOWN):
            found = _named(of_worst)
            if self.answer is Answer.DEVIATES and (unknown := self.of(Answer.UNKNOWN)):
                found += f"; unknown for {len(unknown)} more: {_named(unknown)}"
        else:
            found = _named(of_worst[:1])
            if len(self.drives) > 1:
                found = f"{len(of_worst)} of {len(self.drives)} drives, for example {found}"
        return f"inspection of {self.label}: {found or 'no drive was inspected'}"

    def of(self, answer: Answer) -> tuple[CheckedDrive, ...]:
        """Return the drives with this answer."""
        return tuple(each for each in self.drives if each.answer is answer)


def _named(drives: Sequence[CheckedDrive]) -> str:
    more = f"; and {len(drives) - NAMED} more drives" if len(drives) > NAMED else ""
    return "; ".join(each.sentence for each in drives[:NAMED]) + more
