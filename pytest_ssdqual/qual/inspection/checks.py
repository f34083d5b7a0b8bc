"""Checks of the receiving inspection: one drive's values against the limits, each answered with words.

A value that a drive should report and does not is ``UNKNOWN``, which never passes. What its kind of drive does not
have is ``ABSENT``; what neither the spec nor the defaults limit is ``UNLIMITED``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pytest_ssdqual.qual.inspection.limits import CAPACITY_TOLERANCE, InspectionTable, matches
from pytest_ssdqual.qual.inspection.record import DriveKind, InspectionRecord, Sanitizing
from pytest_ssdqual.qual.serial_number import is_generic
from pytest_ssdqual.qual.units import format_capacity

#: Checks whose values another activity of the drive changes.
DISTURBED = ("temperature",)
#: What must be the same of all drives, by its words.
ALIKE: Mapping[str, Callable[[InspectionRecord], object]] = {
    "model": lambda drive: drive.model,
    "firmware": lambda drive: drive.firmware,
    "capacity in bytes": lambda drive: drive.capacity_bytes,
    "logical block in bytes": lambda drive: drive.logical_block_bytes,
    "physical block in bytes": lambda drive: drive.physical_block_bytes,
    "write cache": lambda drive: None if drive.write_cache is None else "on" if drive.write_cache else "off",
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


@dataclass(frozen=True, slots=True)
class CheckedDrive:
    """One check of one drive; ``words`` follow the drive's name in a sentence."""

    drive: str
    answer: Answer
    words: str
    value: float | None = None


Found = tuple[Answer, str, float | None]
Check = Callable[[InspectionRecord, InspectionTable, Sequence[InspectionRecord]], Found]


def check(name: str, drives: Sequence[InspectionRecord], limits: InspectionTable) -> tuple[CheckedDrive, ...]:
    """Return the answers of the check ``name`` for all drives; ``KeyError`` for an unknown check."""
    function = CHECKS[name]
    return tuple(CheckedDrive(drive.name, *_checked(name, function(drive, limits, drives), drive)) for drive in drives)


def _checked(name: str, found: Found, drive: InspectionRecord) -> Found:
    """Return the answer of a check, where a value cannot be known with the reason."""
    answer, words, value = found
    if drive.activity and name in DISTURBED:
        return Answer.UNKNOWN, f"is unknown: it {drive.activity}", value
    if answer is not Answer.UNKNOWN:
        return found
    if drive.is_virtual and drive.unreadable:
        return Answer.ABSENT, f"is a drive of a hypervisor, and {words}", value
    why = drive.doubts.get(name) or drive.unreadable
    return answer, f"is unknown: {why}" if why else words, value


def _result(good: bool, words: str, value: float | None = None) -> Found:
    return Answer.CONFORMS if good else Answer.DEVIATES, words, value


def _unknown(what: str) -> Found:
    return Answer.UNKNOWN, f"does not report {what}", None


def _absent(what: str) -> Found:
    return Answer.ABSENT, f"has no {what}", None


def _unlimited(what: str) -> Found:
    return Answer.UNLIMITED, what, None


def _at_most(value: int | None, limit: int, what: str, unit: str = "") -> Found:
    if value is None:
        return _unknown(what)
    return _result(value <= limit, f"has {what} of {value:,}{unit}, at most {limit:,}{unit} allowed", float(value))


def _one_of(value: str | None, allowed: list[str], what: str, is_what: str, asked: str) -> Found:
    if not allowed:
        return _unlimited(f"{is_what} {value}")
    if value is None:
        return _unknown(f"its {what}")
    return _result(matches(value, allowed), f"{is_what} {value}, {' or '.join(allowed)} {asked}")


def _model(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    return _one_of(drive.model, limits.models, "model", "is of the model", "was ordered")


def _firmware(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    return _one_of(drive.firmware, limits.firmware, "firmware", "has firmware", "is allowed")


def _capacity(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    size, ordered = drive.capacity_bytes, limits.capacity_bytes
    if size is None or (ordered is None and size == 0):
        return _unknown("its capacity")
    if ordered is None:
        return _unlimited(f"has {format_capacity(size)}")
    good = abs(size - ordered) <= ordered * CAPACITY_TOLERANCE
    return _result(good, f"has {format_capacity(size)}, {format_capacity(ordered)} was ordered", float(size))


def _sector_format(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    values: list[tuple[str, int | None, int | None]] = [
        ("logical blocks", drive.logical_block_bytes, limits.logical_block_bytes),
        ("physical blocks", drive.physical_block_bytes, limits.physical_block_bytes),
    ]
    if drive.kind is DriveKind.NVME or drive.kind is None:
        values.append(("metadata", drive.metadata_bytes, limits.metadata_bytes))
    wanted = [(what, value, limit) for what, value, limit in values if limit is not None]
    if not wanted:
        return _unlimited(f"has logical blocks of {drive.logical_block_bytes} bytes")
    if wrong := [
        f"{what} of {value} bytes, {limit} ordered" for what, value, limit in wanted if value not in (None, limit)
    ]:
        return _result(good=False, words=f"has {', '.join(wrong)}")
    if missing := [what for what, value, _limit in wanted if value is None]:
        return _unknown(f"the size of its {' and '.join(missing)}")
    return _result(good=True, words="has " + ", ".join(f"{what} of {value} bytes" for what, value, _limit in wanted))


def _identity(drive: InspectionRecord, _: InspectionTable, drives: Sequence[InspectionRecord]) -> Found:
    if drive.is_bridged:
        return Answer.ABSENT, "is known to the kernel by the names of a USB bridge or RAID controller", None
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
            wrong.append(f"at {drive.path} has the same {what} {value} as {', '.join(others)}")
    # A SAS drive's serial in lsblk up to util-linux 2.36 may be its WWN (util-linux#1143), so only two serials differ.
    both = [drive.serial, drive.own_serial]
    if all(both) and drive.kind is not DriveKind.SCSI and len({_as_udev_spells(str(each)) for each in both}) > 1:
        wrong.append(f"reports the serial {drive.own_serial} itself, but the kernel knows it by {drive.serial}")
    names = " and ".join(name for name in (drive.serial, drive.wwn) if name)
    return _result(not wrong, " and ".join(wrong) or f"is identified by {names}")


def _as_udev_spells(serial: str) -> str:
    """A serial in a common spelling: udev writes an underscore for blanks and for characters such as a slash."""
    return re.sub(r"[^0-9A-Za-z#+.:=@-]+", "_", serial.strip())


def _alike(drive: InspectionRecord, limits: InspectionTable, drives: Sequence[InspectionRecord]) -> Found:
    if limits.mixed or len(drives) < 2:
        return _unlimited("may differ from the others" if limits.mixed else "is the only drive")
    differences = []
    for what, of in ALIKE.items():
        known = Counter(value for each in drives if (value := of(each)) is not None)
        # The most frequent value is the usual one; the first drive decides between equally frequent ones.
        usual, count = known.most_common(1)[0] if known else (None, 0)
        own = of(drive)
        if own is not None and own != usual:
            differences.append(f"has the {what} {own}, {count} of {len(drives)} drives have {usual}")
    missing = [what for what in ("model", "firmware", "capacity in bytes") if ALIKE[what](drive) is None]
    if missing and not differences:
        return _unknown(f"its {' and '.join(missing)}")
    return _result(not differences, ", ".join(differences) or "is like the others")


def _power_on_hours(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    return _at_most(drive.power_on_hours, limits.power_on_hours, "a power-on time", " h")


def _power_cycles(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    return _at_most(drive.power_cycles, limits.power_cycles, "a count of power cycles")


def _written(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    if drive.written_bytes is None:
        return _unknown("how much was written to it")
    written, limit = format_capacity(drive.written_bytes), format_capacity(limits.written_bytes)
    good = drive.written_bytes <= limits.written_bytes
    return _result(good, f"had {written} written to it, at most {limit} allowed", float(drive.written_bytes))


def _wear(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    return _at_most(drive.wear_percent, limits.wear_percent, "a used share of its endurance", " %")


def _spare(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    if drive.spare_percent is None:
        return (
            _absent("count of spare blocks") if drive.kind in (DriveKind.ATA, DriveKind.SCSI) else _unknown("its spare")
        )
    words = f"has {drive.spare_percent} % of its spare blocks left, at least {limits.spare_percent} % required"
    return _result(drive.spare_percent >= limits.spare_percent, words, float(drive.spare_percent))


def _media(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    return _counters(drive.media_counters, limits.media_errors, "defects of its media")


def _link_errors(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    if not drive.link_counters and drive.kind in (DriveKind.NVME, DriveKind.SCSI):
        # A SAS drive counts some whenever its link comes up; a run compares them (``errors of the SAS link``).
        return _absent("counter of link errors that stays at zero")
    return _counters(drive.link_counters, limits.link_errors, "errors of its link")


def _counters(counters: Mapping[str, int], limit: int, what: str) -> Found:
    if not counters:
        return _unknown(f"{what} by any counter")
    words = {name: f"{name.replace('_', ' ')} {count:,}" for name, count in counters.items() if count}
    wrong = [words[name] for name, count in counters.items() if count > limit]
    total = float(sum(counters.values()))
    return _result(
        not wrong, f"counts {what}: {', '.join(wrong or words.values()) or 'none'}, at most {limit:,} allowed", total
    )


def _error_log(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    entries, limit, of_media = drive.error_log_entries, limits.error_log_entries, drive.media_log_entries
    if entries is None and drive.kind is DriveKind.SCSI:
        return _absent("error log")
    if entries is None or limit is not None:
        return _at_most(entries, limit or 0, "a number of entries in its error log")
    words = f"has {entries:,} entries in its error log; errors of its media among those it still shows: {of_media:,}"
    return _result(not of_media, words, float(entries))


def _self_test(drive: InspectionRecord, *_: object) -> Found:
    failed = drive.failed_self_tests
    if failed is None:
        return _absent("self-tests") if drive.has_self_tests is False else _unknown("a log of self-tests")
    return _result(failed == 0, f"has failed self-tests in its log: {failed}", float(failed))


def _health(drive: InspectionRecord, *_: object) -> Found:
    warnings = list(drive.warnings or ())
    if drive.read_only:
        warnings.insert(0, "it is read-only")
    if drive.passed is False:
        warnings.insert(0, "its own health assessment is FAILED")
    if warnings:
        return _result(good=False, words=f"is not healthy: {'; '.join(warnings)}")
    if drive.passed is None:
        return _unknown("a health assessment")
    return _result(good=True, words="passes its own health assessment")


def _write_cache(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    state = {True: "on", False: "off", None: "not reported"}
    if limits.write_cache is None:
        return _unlimited(f"has its write cache {state[drive.write_cache]}")
    if drive.write_cache is None:
        return _unknown("the state of its write cache")
    words = f"has its write cache {state[drive.write_cache]}, {state[limits.write_cache]} ordered"
    return _result(drive.write_cache is limits.write_cache, words)


def _link_speed(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    link = drive.link
    if link is None or link.speed is None:
        return _unknown("the speed of its link")
    unit = f" {link.unit}"
    return _link(link.speed, (link.drive_speed, link.slot_speed), limits.link_speed, lambda value: f"{value:g}{unit}")


def _link_width(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    link = drive.link
    if drive.kind in (DriveKind.ATA, DriveKind.SCSI) and (link is None or link.kind != "PCIe"):
        return _absent("lanes")
    if link is None or link.width is None:
        return _unknown("the width of its link")
    return _link(link.width, (link.drive_width, link.slot_width), limits.link_width, lambda value: f"x{value:g}")


def _link(
    now: float, most: tuple[float | None, float | None], ordered: float | None, show: Callable[[float], str]
) -> Found:
    """Compare a negotiated speed or width with the order, and with what drive and slot can do.

    A slot that can do less than the drive is the machine's: the drive conforms, and the words name the slot.
    """
    drive, slot = most
    if ordered is not None and drive is not None and drive < ordered:
        return _result(good=False, words=f"can do {show(drive)} at most, {show(ordered)} was ordered", value=now)
    if drive is None and ordered is None:
        return _unknown("what its link can do at most")
    possible = min(each for each in (drive if drive is not None else ordered, slot) if each is not None)
    words = f"is connected with {show(now)}"
    if now < possible:
        return _result(good=False, words=f"{words}, drive and slot can do {show(possible)}", value=now)
    if drive is not None and slot is not None and slot < drive:
        words += f", all that the slot can do (the drive: {show(drive)})"
    if ordered is not None and now < ordered:
        return Answer.UNKNOWN, f"{words}, so that the ordered {show(ordered)} cannot be shown here", now
    return _result(good=True, words=words, value=now)


def _temperature(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    warmest = min(each for each in (limits.temperature_c, drive.temperature_limit_c) if each is not None)
    now = drive.temperature_c
    if now is None:
        return _unknown("its temperature")
    return _result(now <= warmest, f"is at {now} °C when idle, at most {warmest} °C allowed", float(now))


def _security(drive: InspectionRecord, *_: object) -> Found:
    if drive.security_locked:
        return _result(good=False, words="is locked with a password")
    if drive.security_enabled:
        return _result(good=False, words="has a password set (security enabled)")
    if drive.security_enabled is None:
        return _unknown("its security state") if drive.kind in (DriveKind.ATA, None) else _absent("ATA security")
    return _result(good=True, words="has no password set")


def _sanitize(drive: InspectionRecord, *_: object) -> Found:
    if drive.sanitizing is None:
        has_none = drive.can_sanitize is False or drive.kind in (DriveKind.ATA, DriveKind.SCSI)
        return _absent("sanitize status") if has_none else _unknown("its sanitize state")
    if drive.sanitizing is Sanitizing.IN_PROGRESS:
        return Answer.UNKNOWN, drive.activity or f"reports: {drive.sanitizing.value}", None
    return _result(drive.sanitizing is not Sanitizing.FAILED, f"reports: {drive.sanitizing.value}")


def _activity(drive: InspectionRecord, *_: object) -> Found:
    """A drive that is busy by itself is not defective, and what is measured of it is not its speed."""
    if drive.activity:
        return Answer.UNKNOWN, drive.activity, None
    return _unknown("what it does") if drive.unreadable else _result(good=True, words="runs nothing by itself")


def _namespaces(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    if drive.kind in (DriveKind.ATA, DriveKind.SCSI):
        return _absent("namespaces")
    count = drive.namespaces
    if count is None:
        return _unknown("its namespaces")
    if drive.unallocated_bytes:
        lost = format_capacity(drive.unallocated_bytes)
        return _result(good=False, words=f"has {lost} that belong to no namespace", value=float(count))
    return _result(count == limits.namespaces, f"has namespaces: {count}, expected: {limits.namespaces}", float(count))


def _queue_depth(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    if drive.kind is DriveKind.NVME:
        return _absent("queue depth that could be too small")
    depth = drive.queue_depth
    if depth is None:
        return _unknown("its queue depth")
    return _result(
        depth >= limits.queue_depth,
        f"has a queue depth of {depth}, at least {limits.queue_depth} required",
        float(depth),
    )


def _log_pages(drive: InspectionRecord, limits: InspectionTable, *_: object) -> Found:
    if not limits.log_pages:
        return _unlimited("is required to support no particular log page")
    if drive.log_pages is None:
        return _unknown("which log pages it supports")
    missing = [f"{page:#04x}" for page in limits.log_pages if page not in drive.log_pages]
    return _result(not missing, f"lacks the log pages {', '.join(missing)}" if missing else "has all log pages")


#: All checks by name, in the order of the suite.
CHECKS: Mapping[str, Check] = {
    "model": _model,
    "firmware": _firmware,
    "capacity": _capacity,
    "sector_format": _sector_format,
    "identity": _identity,
    "alike": _alike,
    "power_on_hours": _power_on_hours,
    "power_cycles": _power_cycles,
    "written": _written,
    "wear": _wear,
    "spare": _spare,
    "media": _media,
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


def names() -> Iterator[str]:
    """Yield the names of all checks, in the order of the suite."""
    yield from CHECKS
