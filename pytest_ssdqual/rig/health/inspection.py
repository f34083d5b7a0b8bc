"""Reads what drives report for the receiving inspection: one command for all drives → ``InspectionRecord``.

It only reads: smartctl and nvme-cli open drives for reading, the rest is sysfs. A drive that smartctl cannot read is a
record with the reason, not an exception, so that the other drives are still judged.

Sources: NVM Express Base Specification 2.0 (Identify Controller; log pages 06h and 81h), ACS-4 (device statistics),
smartctl(8) 7.3 for the names of its JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.inspection.record import DriveKind, InspectedLink, InspectionRecord, Sanitizing, SelfTest
from pytest_ssdqual.qual.numbers import bytes_of, decimal
from pytest_ssdqual.qual.strict_json import read_json
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.health import activity, health, locking, smart_answer, temperature
from pytest_ssdqual.rig.health.health import CRITICAL_WARNINGS, DriveHealth
from pytest_ssdqual.rig.health.locking import Locking
from pytest_ssdqual.rig.health.smart_answer import at, first, items, parsed, printed, whole
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import CommandFailed, Machine

SCRIPT = scripts.text("inspection.sh")
#: Seconds for the whole command, and for each drive: a drive answers within one second, a bad one after many.
DEADLINE_S, DEADLINE_OF_DRIVE_S = 30.0, 30.0
PROTOCOLS = {"NVMe": DriveKind.NVME, "ATA": DriveKind.ATA, "SCSI": DriveKind.SCSI}
#: ATA attributes, by the names of smartmontools' drive database, that count defects of the media. Bad blocks of the
#: factory are not among them: every drive has some.
MEDIA = re.compile(
    r".*(Realloc|Retired_B|Pending|Uncorrect|Reported_Uncorr|Uncor_Read|End[-_]to[-_]End|Program_Fail|Prog_Fail|Erase_Fail"
    r"|Later_Bad_B|Runtime_Bad_B|New_Bad_B|Added_Bad_|Grown_).*",
    re.IGNORECASE,
)
#: Rates of errors (SandForce), of which those that were corrected are a part.
RATES = re.compile(r".*(_Rate|Soft_).*", re.IGNORECASE)
LINK = re.compile(r".*CRC.*", re.IGNORECASE)
#: ATA device statistics, by their names in ACS-4.
MEDIA_STATISTICS = ("Number of Reported Uncorrectable Errors", "Number of Reallocated Logical Sectors")
LINK_STATISTICS = ("Number of Interface CRC Errors",)
#: Identify Controller, OACS bit 4: Device Self-test command; SANICAP bits 2:0: kinds of sanitize.
SELF_TEST, SANITIZE_KINDS = 1 << 4, 0b111
#: Log page 06h: header, length and number of entries; an entry's first byte has the result in bits 3:0.
SELF_TEST_HEADER, SELF_TEST_ENTRY, SELF_TESTS = 4, 28, 20
#: Results of the same page that are failures: fatal error, failed segment unknown, failed segment known.
NVME_FAILURES = (5, 6, 7)
#: SPC-4, Self-Test Results log page: 3 is an unknown error, 4 to 7 are failed segments.
SCSI_FAILURES = (3, 4, 5, 6, 7)
#: ACS-4, self-test execution status: the same, and 8 is suspected damage by handling, which SPC-4 reserves.
ATA_FAILURES = (*SCSI_FAILURES, 8)
#: Result of a self-test that runs (ATA, SCSI), or of an entry that is not used (NVMe).
NO_RESULT = 0xF
#: First version of smartctl whose JSON has the self-tests of SCSI drives (scsiprint.cpp of 7.2 and 7.3).
SCSI_SELF_TESTS_SINCE = [7, 3]
#: SSTAT bits 2:0 of log page 81h; 4 is a success without deallocation.
SANITIZE_STATES = {
    0: Sanitizing.NEVER,
    1: Sanitizing.SUCCEEDED,
    2: Sanitizing.IN_PROGRESS,
    3: Sanitizing.FAILED,
    4: Sanitizing.SUCCEEDED,
}
#: NVM Express Base Specification 2.1, status code type of Media and Data Integrity Errors, and of its codes those that
#: say nothing about the media: Access Denied, Deallocated or Unwritten Logical Block.
OF_MEDIA, NOT_OF_MEDIA = 2, (0x86, 0x87)
#: ACS-4, error field of a read: bit 6 is an uncorrectable error.
UNCORRECTABLE = 1 << 6
RATE = re.compile(r"(\d{1,3}(?:\.\d+)?) ?(?:GT/s|Gbps)")
#: Facts of the kernel about a drive that a record has under the same names.
OF_KERNEL = (
    "path", "is_bridged", "is_virtual", "serial", "wwn", "model", "firmware", "logical_block_bytes",
    "physical_block_bytes",
)  # fmt: skip
#: Checks that rest on attributes of ATA, whose names and units smartctl takes from its database.
BY_DATABASE = ("written", "wear", "media", "link_errors", "temperature")
UNKNOWN_MODEL = "smartctl's database does not know this model: run `update-smart-drivedb` on the machine"


def read(machine: Machine, drives: Sequence[Drive]) -> dict[str, tuple[InspectionRecord, str]]:
    """Return the record of every drive by its path, each with smartctl's whole answer.

    Raises ``CommandFailed`` if the answer of the machine was cut short.
    """
    names = [word for drive in drives for word in (drive.sysfs_name, drive.path, drive.smart_type)]
    done = scripts.answer(
        machine, SCRIPT, "inspection", *names, deadline_s=DEADLINE_S + DEADLINE_OF_DRIVE_S * len(drives)
    )
    answers = sections(done.text)
    if answers is None or set(answers) != set(names[::3]):
        raise CommandFailed(f"{machine.name} did not report on all {len(drives)} drives at the inspection.", done)
    found = {}
    for drive, name in zip(drives, names[::3], strict=True):
        smart = answers[name].get("smart", "").strip()
        found[drive.path] = record(drive, answers[name]), smart
    return found


def sections(text: str) -> dict[str, dict[str, str]] | None:
    """Return the sections of each drive by its name; None if the answer was cut short."""
    drives: dict[str, dict[str, str]] = {}
    own: dict[str, str] = {}
    section = ""
    lines = text.split("\n")
    if "==end" not in lines[-2:]:
        return None
    for line in lines:
        if line.startswith("==drive "):
            own = drives.setdefault(line.removeprefix("==drive "), {})
        elif line.startswith("=="):
            section = line.removeprefix("==")
        else:
            own[section] = own.get(section, "") + line + "\n"
    return drives


def record(drive: Drive, answers: Mapping[str, str]) -> InspectionRecord:
    """Return the record of one drive from the sections of its answer."""
    sysfs = dict(line.split(" ", 1) for line in answers.get("sysfs", "").splitlines() if " " in line)
    of_kernel = _of_kernel(drive, sysfs)
    if not drive.has_health:
        return InspectionRecord(**of_kernel, link=_pcie(sysfs), unreadable="its health is not read (--ssd-smart-type)")
    try:
        smart = read_json(answers.get("smart", "").strip())
        known = health.parse(answers.get("smart", "").strip())
    except ValueError as problem:
        why = safe_text.line(str(problem), 200)
        return InspectionRecord(**of_kernel, link=_pcie(sysfs), unreadable=f"smartctl cannot read it: {why}")
    warmth, sata = temperature.parse(smart)
    kind = PROTOCOLS.get(str(at(smart, "device", "protocol")))
    firmware = smart_answer.firmware(smart) or drive.firmware
    # A bridge reports its own model string as the drive's.
    models = (
        (_text(smart, "model_name"), drive.model) if drive.is_bridged else (drive.model, _text(smart, "model_name"))
    )
    of_kernel |= {"firmware": firmware, "model": next(filter(None, models), None)}
    cache = at(smart, "write_cache", "enabled")
    if isinstance(cache, bool):
        of_kernel["write_cache"] = cache
    fields = (
        of_kernel | _of_health(known, smart) | _of_counters(smart, kind) | _of_nvme(smart, answers) | _of_ata(smart)
    )
    return InspectionRecord(
        **fields,
        kind=kind,
        last_self_test=_last_self_test(smart, _log(answers, "self-test")),
        extended_self_test_s=_extended_self_test_s(smart, answers),
        own_serial=_text(smart, "serial_number"),
        temperature_limit_c=None if warmth.limit_c is None else int(warmth.limit_c),
        activity=activity.of(
            drive, smart, _log(answers, "self-test"), _log(answers, "sanitize"),
            printed(parsed(answers.get("id-ns", "")), "fpi"), answers.get("ata-sanitize", ""),
        ),
        doubts=_doubts(smart),
        link=_pcie(sysfs) or _sata(sata, sysfs) or _sas(smart),
    )  # fmt: skip


def _doubts(smart: object) -> dict[str, str]:
    """Return why values are unknown that smartctl does report, by the check that needs them."""
    found: dict[str, str] = {}
    if at(smart, "in_smartctl_database") is False:
        found |= dict.fromkeys(BY_DATABASE, UNKNOWN_MODEL)
    if clause := next(smart_answer.contradictions(smart), ""):
        found["wear"] = clause
    return found


def _of_kernel(drive: Drive, sysfs: Mapping[str, str]) -> dict[str, Any]:
    cache = sysfs.get("write_cache")
    return {name: getattr(drive, name) for name in OF_KERNEL} | {
        "capacity_bytes": drive.size_bytes,
        "read_only": drive.read_only or sysfs.get("ro") == "1",
        "queue_depth": decimal(sysfs.get("queue_depth")) or drive.queue_limit,
        "write_cache": None if cache is None else cache == "write back",
        "namespaces": decimal(sysfs.get("namespaces")) or None,
        "metadata_bytes": decimal(sysfs.get("metadata_bytes")),
    }


def _of_health(known: DriveHealth, smart: object) -> dict[str, Any]:
    bits = known.critical_warning
    warnings = [] if bits is None else [each for at, each in enumerate(CRITICAL_WARNINGS) if bits >> at & 1]
    for entry in items(smart, "ata_smart_attributes", "table"):
        if _text(entry, "when_failed") in ("now", "past"):
            warnings.append(f"attribute {_text(entry, 'name')} is or was below its threshold")
    cycles = first(
        whole(smart, "power_cycle_count"),
        whole(smart, "nvme_smart_health_information_log", "power_cycles"),
        whole(smart, "scsi_start_stop_cycle_counter", "accumulated_start_stop_cycles"),
    )
    return {
        "power_on_hours": known.power_on_hours,
        "power_cycles": cycles,
        "written_bytes": known.data_written_bytes,
        "wear_percent": known.percentage_used,
        "passed": known.passed,
        "warnings": tuple(warnings),
        "temperature_c": known.temperature_c,
    }


def _of_counters(smart: object, kind: DriveKind | None) -> dict[str, Any]:
    media: dict[str, int] = {}
    link: dict[str, int] = {}
    for name, count in _counts(smart):
        if (MEDIA.fullmatch(name) and not RATES.fullmatch(name)) or name in MEDIA_STATISTICS:
            media[name] = count
        elif LINK.fullmatch(name) or name in LINK_STATISTICS:
            link[name] = count
    if (errors := whole(smart, "nvme_smart_health_information_log", "media_errors")) is not None:
        media["media errors"] = errors
    if (defects := whole(smart, "scsi_grown_defect_list")) is not None:
        media["grown defects"] = defects
    for way in ("read", "write", "verify"):
        uncorrected = whole(smart, "scsi_error_counter_log", way, "total_uncorrected_errors")
        if uncorrected is not None:
            media[f"uncorrected {way} errors"] = uncorrected
    entries = first(
        whole(smart, "nvme_smart_health_information_log", "num_err_log_entries"),
        whole(smart, "ata_smart_error_log", "extended", "count"),
        whole(smart, "ata_smart_error_log", "summary", "count"),
    )
    return {
        "media_counters": media,
        "link_counters": link,
        "error_log_entries": entries,
        "media_log_entries": _media_log_entries(smart),
        **({} if kind is DriveKind.NVME else {"failed_self_tests": _failed_self_tests(smart)}),
    }


def _media_log_entries(smart: object) -> int:
    """Return how many entries of the drive's own error log are of its media or of data integrity.

    Most are of commands that a drive does not support: of 106 drives in service 17 have some, and media errors none of
    these. A log is a ring, so it shows only the newest entries; counters of media errors are never lost.
    """
    statuses = [status for entry in items(smart, "nvme_error_information_log", "table") for status in _statuses(entry)]
    nvme = [code for kind, code in statuses if kind == OF_MEDIA and code not in NOT_OF_MEDIA]
    logs = (at(smart, "ata_smart_error_log", name) for name in ("extended", "summary"))
    shown = next((list(items(log, "table")) for log in logs if isinstance(log, dict)), [])
    errors = [whole(entry, "completion_registers", "error") or 0 for entry in shown]
    return len(nvme) + sum(bool(error & UNCORRECTABLE) for error in errors)


def _statuses(entry: object) -> Iterator[tuple[int, int]]:
    """Yield status code type and status code of an entry."""
    value = whole(entry, "status_field", "value")
    if value is not None:
        yield value >> 8 & 0b111, value & 0xFF


def _failed_self_tests(smart: object) -> int | None:
    """Return the failed entries of the self-test log of an ATA or SCSI drive; None if there is no log.

    smartctl before 7.3 has a SCSI drive's log in its text only, so its JSON does not show that there are no failures.
    """
    for log in ("extended", "standard"):
        own = at(smart, "ata_smart_self_test_log", log)
        if isinstance(own, dict):
            return whole(own, "error_count_total") or 0
    results = [whole(smart, f"scsi_self_test_{index}", "result", "value") for index in range(SELF_TESTS)]
    known = [result for result in results if result is not None]
    if known:
        return sum(result in SCSI_FAILURES for result in known)
    version = [number for number in items(smart, "smartctl", "version") if isinstance(number, int)]
    return 0 if at(smart, "device", "protocol") == "SCSI" and version >= SCSI_SELF_TESTS_SINCE else None


def _last_self_test(smart: object, nvme_log: Sequence[int]) -> SelfTest | None:
    ata = whole(smart, "ata_smart_data", "self_test", "status", "value")
    failures: Sequence[int] = ATA_FAILURES
    result: int | None
    if len(nvme_log) > SELF_TEST_HEADER:
        result, failures = nvme_log[SELF_TEST_HEADER] & 0x0F, NVME_FAILURES
    else:
        result = whole(smart, "scsi_self_test_0", "result", "value") if ata is None else ata >> 4
    if result in (None, NO_RESULT):
        return None
    if result in failures:
        return SelfTest.FAILED
    return SelfTest.ABORTED if result else SelfTest.PASSED


def _extended_self_test_s(smart: object, answers: Mapping[str, str]) -> int | None:
    """Return what the drive says of its extended self-test.

    EDSTT of Identify Controller and ACS-4's SMART data are in minutes. smartctl knows the seconds of a SCSI drive that
    has a log of self-tests.
    """
    minutes = first(
        printed(parsed(answers.get("id-ctrl", "")), "edstt"),
        whole(smart, "ata_smart_data", "self_test", "polling_minutes", "extended"),
    )
    seconds = whole(smart, "scsi_extended_self_test_seconds") if minutes is None else 60 * minutes
    return seconds or None


def _of_nvme(smart: object, answers: Mapping[str, str]) -> dict[str, Any]:
    if at(smart, "device", "protocol") != "NVMe":
        return {}
    controller, namespace = parsed(answers.get("id-ctrl", "")), parsed(answers.get("id-ns", ""))
    oacs, sanicap = printed(controller, "oacs"), printed(controller, "sanicap")
    sanitize = _log(answers, "sanitize")
    state = locking.of_discovery(_log(answers, "discovery"))
    format_index = printed(namespace, "flbas")
    formats = list(items(namespace, "lbafs"))
    # FLBAS: bits 3:0 of the index, and above them bits 6:5, which a drive with more than 16 formats has.
    index = None if format_index is None else format_index & 0x0F | (format_index & 0x60) >> 1
    fields: dict[str, Any] = {
        "spare_percent": smart_answer.spare_percent(smart),
        "spare_threshold_percent": whole(smart, "nvme_smart_health_information_log", "available_spare_threshold"),
        "has_self_tests": None if oacs is None else bool(oacs & SELF_TEST),
        "failed_self_tests": _nvme_self_tests(_log(answers, "self-test")),
        "can_sanitize": None if sanicap is None else bool(sanicap & SANITIZE_KINDS),
        "sanitizing": SANITIZE_STATES.get(sanitize[2] & 7) if len(sanitize) >= 4 else None,
        "unallocated_bytes": printed(controller, "unvmcap"),
        # Drives of TCG's Enterprise class leave the factory with locking enabled and no range locked.
        "security_enabled": None if state in (None, Locking.UNLOCKED) else state is Locking.LOCKED,
        "security_locked": state is Locking.LOCKED,
    }
    used = formats[index] if index is not None and index < len(formats) else None
    if (metadata_bytes := printed(used, "ms")) is not None:
        fields["metadata_bytes"] = metadata_bytes
    return fields


def _nvme_self_tests(log: Sequence[int]) -> int | None:
    if len(log) < SELF_TEST_HEADER + SELF_TEST_ENTRY * SELF_TESTS:
        return None
    results = [log[SELF_TEST_HEADER + SELF_TEST_ENTRY * index] & 0x0F for index in range(SELF_TESTS)]
    return sum(result in NVME_FAILURES for result in results)


def _of_ata(smart: object) -> dict[str, Any]:
    supported = at(smart, "ata_smart_data", "capabilities", "self_tests_supported")
    own = {"has_self_tests": supported} if isinstance(supported, bool) else {}
    security = at(smart, "ata_security")
    if not isinstance(security, dict):
        return own
    enabled = security.get("enabled")
    pages = {page for entry in items(smart, "ata_log_directory", "table") if (page := whole(entry, "address"))}
    return own | {
        "security_enabled": enabled if isinstance(enabled, bool) else None,
        "security_locked": security.get("locked") is True,
        "log_pages": tuple(sorted(pages)) or None,
    }


def _pcie(sysfs: Mapping[str, str]) -> InspectedLink | None:
    if "current_link_speed" not in sysfs:
        return None
    return InspectedLink(
        "PCIe",
        _rate(sysfs.get("current_link_speed")),
        decimal(sysfs.get("current_link_width")),
        _rate(sysfs.get("max_link_speed")),
        decimal(sysfs.get("max_link_width")),
        _rate(sysfs.get("slot_max_link_speed")),
        decimal(sysfs.get("slot_max_link_width")),
    )


def _sata(link: object, sysfs: Mapping[str, str]) -> InspectedLink | None:
    speed, most = getattr(link, "speed", None), getattr(link, "max_speed", None)
    if speed is None:
        return None
    return InspectedLink("SATA", speed, None, most, None, _rate(sysfs.get("hw_sata_spd_limit")))


def _sas(smart: object) -> InspectedLink | None:
    """Return the fastest enabled phy; smartctl does not report what a SAS drive can do at most."""
    port = at(smart, "scsi_sas_port_0")
    phys = port.values() if isinstance(port, dict) else ()
    rates = [_rate(_text(phy, "negotiated_logical_link_rate")) for phy in phys]
    known = [rate for rate in rates if rate is not None]
    return InspectedLink("SAS", max(known)) if known else None


def _counts(smart: object) -> Iterator[tuple[str, int]]:
    """Yield the raw values of ATA attributes and the device statistics that are counts, by name."""
    attributes = ((at(entry, "name"), smart_answer.count_of(entry)) for entry in smart_answer.attributes(smart))
    for name, count in (*attributes, *smart_answer.statistics(smart)):
        if isinstance(name, str) and name.strip() and count is not None:
            yield safe_text.line(safe_text.name(name.strip())), count


def _log(answers: Mapping[str, str], name: str) -> Sequence[int]:
    """Return the bytes of a section; none if it is missing or has something else."""
    return bytes_of(answers.get(name, "")) or ()


def _rate(text: str | None) -> float | None:
    found = RATE.search(text or "")
    return float(found[1]) if found else None


def _text(plain: object, *names: str) -> str | None:
    value = at(plain, *names)
    return safe_text.name(value.strip()) if isinstance(value, str) and value.strip() else None
