"""Health of drives before and after a run: smartctl's JSON → ``DriveHealth``.

A field that a drive does not report is None, never zero. The whole answer is stored in the run folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.strict_json import LARGEST, read_json
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import CommandFailed, Machine, RigError

#: One command for all drives. Compact JSON is one line; the exit status is in it, so the shell's is not needed.
SCRIPT = scripts.text("health.sh")

#: Number of drives that are identified at a time: sshd's default MaxSessions is 10.
AT_ONCE = 6

#: smartctl(8), EXIT STATUS: bit 0 command line did not parse, bit 1 device open failed. The others are findings.
FAILED_BITS = 0b11

#: NVM Express Base Specification, SMART / Health Information log page, byte 0 (critical warning).
CRITICAL_WARNINGS = (
    "spare capacity is below its threshold",
    "temperature is outside its limits",
    "reliability is degraded by media or internal errors",
    "media is read-only",
    "volatile memory backup failed",
    "persistent memory region is read-only or unreliable",
)

#: Same source: data units are thousands of 512 bytes.
NVME_DATA_UNIT_BYTES = 512_000

#: ATA attribute names of smartmontools' drive database → bytes a unit; the raw unit of 241 differs by vendor.
ATA_WRITTEN_UNIT_BYTES = {
    "Host_Writes_32MiB": 32 * 2**20,
    "Host_Writes_GiB": 2**30,
    "Total_Writes_GiB": 2**30,
    "Total_Writes_GB": 10**9,
    "Lifetime_Writes_GiB": 2**30,
}


@dataclass(frozen=True, slots=True)
class DriveHealth:
    """SMART health of one drive at one moment."""

    #: The drive's own overall assessment.
    passed: bool | None
    temperature_c: int | None
    #: Percentage of the rated endurance; may exceed 100.
    percentage_used: int | None
    #: Bits of NVMe's critical warning; 0 is none.
    critical_warning: int | None
    #: Unrecovered errors, as the drive counts them.
    media_errors: int | None
    power_on_hours: int | None
    #: Bytes that the host wrote.
    data_written_bytes: int | None
    #: The whole answer of smartctl.
    raw_json: str


def read(machine: Machine, drives: Sequence[Drive]) -> Mapping[str, DriveHealth]:
    """The health of every drive, by path.

    Raises ``RigError`` when smartctl is missing or cannot read a drive; findings about a drive are not errors.
    """
    if not drives:
        return {}
    deadline_s = 30.0 + 15.0 * len(drives)
    done = machine.run(
        ["sh", "-c", SCRIPT, "health", *(drive.path for drive in drives)],
        check=False,
        deadline_s=deadline_s,
        repeatable=True,
    )
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
            raise CommandFailed(f"smartctl cannot read {drive.describe()}: {problem}", done) from problem
    return healths


def unidentified(machine: Machine, drives: Sequence[Drive]) -> Mapping[str, str]:
    """Return the drives (by path) that smartctl cannot identify, each with the reason, fit to follow the drive's name.

    ``read`` would fail for them when the run begins. A drive behind a RAID controller, for example, needs an option -d.
    """
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda drive: _identified(machine, drive), drives))
    return {drive.path: why for drive, why in zip(drives, answers, strict=True) if why}


def _identified(machine: Machine, drive: Drive) -> str:
    done = machine.run(["smartctl", "--json=c", "-i", drive.path], check=False, repeatable=True)
    try:
        plain = read_json(done.text)
    except ValueError as problem:
        return f"cannot be identified by smartctl, whose answer is not JSON: {problem}"
    status = _whole(plain, "smartctl", "exit_status")
    if status is None or status & FAILED_BITS:
        return f"cannot be identified by smartctl: {_messages(plain) or 'it gives no reason'}"
    return ""


def parse(answer: str) -> DriveHealth:
    """Parse one answer of ``smartctl --json=c -x`` for an NVMe, ATA or SCSI drive.

    ``ValueError`` with smartctl's own message if it could not read the drive at all.
    """
    plain = read_json(answer)
    status = _whole(plain, "smartctl", "exit_status")
    if status is None or status & FAILED_BITS:
        raise ValueError(_messages(plain) or "no reason given")
    nvme = _at(plain, "nvme_smart_health_information_log")
    passed = _at(plain, "smart_status", "passed")
    return DriveHealth(
        passed=passed if isinstance(passed, bool) else None,
        temperature_c=_first(_whole(plain, "temperature", "current"), _whole(nvme, "temperature")),
        percentage_used=_first(
            _whole(nvme, "percentage_used"),
            _whole(plain, "endurance_used", "current_percent"),
            _whole(plain, "scsi_percentage_used_endurance_indicator"),
            _statistic(plain, "Percentage Used Endurance Indicator"),
            _normalised_wear(plain),
        ),
        critical_warning=_whole(nvme, "critical_warning"),
        media_errors=_first(
            _whole(nvme, "media_errors"),
            _statistic(plain, "Number of Reported Uncorrectable Errors"),
            _attribute(plain, "Reported_Uncorrect", "Uncorrectable_Error_Cnt"),
            _scsi_uncorrected(plain),
        ),
        power_on_hours=_first(_whole(plain, "power_on_time", "hours"), _whole(nvme, "power_on_hours")),
        data_written_bytes=_data_written_bytes(plain),
        raw_json=answer,
    )


def worsened(before: DriveHealth, after: DriveHealth) -> tuple[str, ...]:
    """Return the changes of a drive beyond expected wear; each is fit to follow the drive's name."""
    changes = []
    if after.passed is False and before.passed is not False:
        changes.append("its own SMART health assessment is now FAILED")
    new = (after.critical_warning or 0) & ~(before.critical_warning or 0) & 0xFF
    for bit in range(new.bit_length()):
        if new >> bit & 1:
            known = bit < len(CRITICAL_WARNINGS)
            changes.append(f"new critical warning: {CRITICAL_WARNINGS[bit] if known else f'bit {bit}'}")
    if after.media_errors is not None and after.media_errors > (before.media_errors or 0):
        changes.append(f"media errors rose from {before.media_errors or 0} to {after.media_errors}")
    if (after.percentage_used or 0) >= 100 > (before.percentage_used or 0):
        changes.append(f"its rated endurance is used up ({after.percentage_used} %)")
    for name, old, now in (
        ("power-on hours", before.power_on_hours, after.power_on_hours),
        ("data written", before.data_written_bytes, after.data_written_bytes),
    ):
        if old is not None and now is not None and now < old:
            changes.append(f"{name} went backwards from {old} to {now}")
    return tuple(changes)


def _data_written_bytes(plain: object) -> int | None:
    units = _whole(plain, "nvme_smart_health_information_log", "data_units_written")
    if units is not None:
        return units * NVME_DATA_UNIT_BYTES
    sectors = _first(_statistic(plain, "Logical Sectors Written"), _attribute(plain, "Total_LBAs_Written"))
    if sectors is not None:
        return sectors * (_whole(plain, "logical_block_size") or 512)
    for name, unit_bytes in ATA_WRITTEN_UNIT_BYTES.items():
        count = _attribute(plain, name)
        if count is not None:
            return count * unit_bytes
    return None


def _statistic(plain: object, name: str) -> int | None:
    """A value of ATA's device statistics (ACS-4, log 04h)."""
    for page in _list(plain, "ata_device_statistics", "pages"):
        for entry in _list(page, "table"):
            valid = _at(entry, "flags", "valid")
            if _at(entry, "name") == name and valid is not False:
                return _whole(entry, "value")
    return None


def _attribute(plain: object, *names: str) -> int | None:
    for entry in _list(plain, "ata_smart_attributes", "table"):
        if _at(entry, "name") in names:
            return _whole(entry, "raw", "value")
    return None


def _normalised_wear(plain: object) -> int | None:
    """Percentage used by a vendor's wear attribute, which counts down from 100 as endurance is used."""
    for entry in _list(plain, "ata_smart_attributes", "table"):
        if _at(entry, "name") in ("Media_Wearout_Indicator", "Wear_Leveling_Count", "SSD_Life_Left"):
            value = _whole(entry, "value")
            return None if value is None or value > 100 else 100 - value
    return None


def _scsi_uncorrected(plain: object) -> int | None:
    counts = [_whole(plain, "scsi_error_counter_log", way, "total_uncorrected_errors") for way in ("read", "write")]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _messages(plain: object) -> str:
    texts = [_at(message, "string") for message in _list(plain, "smartctl", "messages")]
    return safe_text.line("; ".join(text for text in texts if isinstance(text, str)))


def _at(plain: object, *names: str) -> object:
    for name in names:
        plain = plain.get(name) if isinstance(plain, dict) else None
    return plain


def _list(plain: object, *names: str) -> Iterable[object]:
    value = _at(plain, *names)
    return value if isinstance(value, list) else ()


def _whole(plain: object, *names: str) -> int | None:
    value = _at(plain, *names)
    # Temperatures may be below zero; no drive has a counter of more than 64 bits.
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST else None


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
