"""Figures in smartctl's JSON that drives spell differently: wear, bytes written, temperature, error counters; pure.

Names of ATA attributes are those of smartmontools' drive database (drivedb.h); a raw value's unit is known only where
the name has it. What a drive does not report, what no drive can report, or what could be read in two ways, is None.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.numbers import decimal
from pytest_ssdqual.qual.strict_json import LARGEST, read_json

#: All bits of a field of 16 bits or more: what a bus returns without a device, or a log without a value.
ALL_ONES = frozenset(2**bits - 1 for bits in (16, 32, 48, 64))
#: Temperatures that a running drive can have, °C: the widest range of industrial drives, and 125 at which their
#: controllers switch off. 0 °C and 0 K are what drives without a sensor report.
COLDEST_C, WARMEST_C = -40, 125
#: Largest percentage of the endurance (NVM Express: 255 is that or more; SPC and ACS have a byte, too).
MOST_PERCENT = 255
#: First specification of an interface: no drive has run for longer. NVM Express 1.0; SATA 1.0, SAS is younger.
OLDEST = {"NVMe": date(2011, 3, 1)}
OLDEST_OF_OTHERS = date(2003, 1, 1)

#: NVM Express Base Specification, SMART / Health Information log page: data units are thousands of 512 bytes.
NVME_DATA_UNIT_BYTES = 512_000

#: Names of attributes that count what the host wrote → bytes a unit.
ATA_WRITTEN_UNIT_BYTES = {
    "Host_Writes_32MiB": 32 * 2**20,
    "Host_Writes_MiB": 2**20,
    "Host_Writes_GiB": 2**30,
    "Total_Writes_GiB": 2**30,
    "Total_Writes_GB": 10**9,
    "Lifetime_Writes_GiB": 2**30,
}

#: Attributes whose normalised value is the life that is left, in per cent: number (0: any) and name.
LIFE_LEFT = ((202, "Percent_Lifetime_Remain"), (231, "SSD_Life_Left"), (245, "Percent_Life_Remaining"))
#: The same, but the raw value must agree: it is what is left, or what is used.
LIFE_LEFT_IF_RAW_AGREES = frozenset({
    "DriveLife_Remaining%", "Drive_Life_Remaining%", "Life_Remaining_Percent", "Lifetime_Left", "Lifetime_Remaining%",
    "PCT_Life_Remaining", "Perc_Rated_Life_Remain", "Percent_Life_Remaining", "Percent_Lifetime_Remain",
    "Remaining_Life", "Remaining_Lifetime_Perc", "SSD_Life_Left", "SSD_Life_Left_Perc", "SSD_Remaining_Life_Perc",
})  # fmt: skip
#: The raw value is the life that is used; the normalised value is the rest, or the same.
LIFE_USED_IF_VALUE_AGREES = frozenset({
    "DriveLife_Used%", "Drive_Life_Used%", "Life_Used_Percent", "Perc_Rated_Life_Used", "Percent_Life_Used",
    "Percent_Lifetime_Used",
})  # fmt: skip
#: Any attribute of a share of life, in per cent: its raw value is a percentage, too, if it is one of 1 to 100.
SHARE_OF_LIFE = re.compile(r".*(Life|Endurance).*(Left|Remain|Used).*|.*Remain\w*_(Life|Endurance).*", re.IGNORECASE)
#: Indicators of wear that count down from 100. Attribute 230 of the same name (SanDisk, WD) counts upwards.
WEAR_INDICATORS = ((233, "Media_Wearout_Indicator"), (177, "Wear_Leveling_Count"), (173, "Wear_Leveling_Count"))

#: Name of the count of checksum errors between drive and host: the cable's, the slot's or the drive's.
LINK_ERRORS = "CRC errors of the link"
#: Name of the same of a SAS drive.
PHY_ERRORS = "errors of the SAS link"
#: As smartctl names the fields of each phy.
SAS_PORT = re.compile(r"scsi_sas_port_\d+")
OF_A_PHY = (
    "invalid_dword_count",
    "running_disparity_error_count",
    "loss_of_dword_synchronization_count",
    "phy_reset_problem_count",
)
#: Name of NVMe's count of entries in its error log.
LOG_ENTRIES = "entries of the error log"
#: Name of NVMe's available spare, per cent.
SPARE = "available spare"
#: Name of the count of losses of power without a command before.
UNSAFE_SHUTDOWNS = "unsafe shutdowns"
#: Errors that only grow → names of the attributes, some drives have several; raw values are counts.
ATA_ERRORS = (
    (
        "reallocated blocks",
        re.compile(
            r"Reallocated_Sector_C(oun|n)?t|Reallocated_Block_C(oun|n)?t|Reallocate_NAND_Blk_Cnt|Retired_Block_Count"
        ),
    ),
    ("pending sectors", re.compile(r"Current_Pending_(Sector|ECC_Cnt)|Pending_Sector_Count")),
    ("uncorrectable sectors found offline", re.compile(r"Offline_Uncorrectable")),
    (LINK_ERRORS, re.compile(r"(UDMA_|SATA_)?CRC_Err(or)?(_C(oun|n)?t)?")),
    ("program failures", re.compile(r"Program_Fail_C(oun|n)?t(_Total|_Chip)?")),
    ("erase failures", re.compile(r"Erase_Fail_C(oun|n)?t(_Total|_Chip)?")),
    (
        UNSAFE_SHUTDOWNS,
        re.compile(
            r"Unsafe_Shutdown_Count|POR_Recovery_Count|Unexpect(ed)?_(Power_Loss|Pwr_?Loss|Power_Cycle)(_C(oun|n)?t)?"
        ),
    ),
    ("end-to-end errors", re.compile(r"End[-_]to[-_]End_Err(or)?(_C(oun|n)?t|_Detect)?")),
)
#: ACS-4, log 04h, as smartctl names its fields.
ATA_STATISTICS = {
    "Number of Reallocated Logical Sectors": "reallocated blocks",
    "Number of Interface CRC Errors": LINK_ERRORS,
}


def data_written_bytes(plain: object) -> int | None:
    """Bytes that the host wrote; None if they, or their unit, are unknown."""
    units = whole(plain, "nvme_smart_health_information_log", "data_units_written")
    if units is not None:
        return units * NVME_DATA_UNIT_BYTES
    sectors = statistic(plain, "Logical Sectors Written")
    if sectors is not None:
        return sectors * _sector_bytes(plain)
    for name, unit_bytes in ATA_WRITTEN_UNIT_BYTES.items():
        count = attribute(plain, name)
        if count is not None:
            return count * unit_bytes
    # smartctl gives this name to attribute 241 of every drive that it does not know, whatever its unit.
    if at(plain, "in_smartctl_database") is not False:
        sectors = attribute(plain, "Total_LBAs_Written")
        if sectors is not None:
            return sectors * _sector_bytes(plain)
    return scsi_bytes(plain, "write")


def _sector_bytes(plain: object) -> int:
    return whole(plain, "logical_block_size") or 512


def scsi_bytes(plain: object, way: str) -> int | None:
    """The error counter log of a way (SPC): 10^9 bytes with three decimals, which smartctl prints as text."""
    text = at(plain, "scsi_error_counter_log", way, "gigabytes_processed")
    if isinstance(text, str) and not re.fullmatch(r"\d{1,12}(\.\d{1,9})?", text, re.ASCII):
        return None
    if not isinstance(text, str | int | float) or isinstance(text, bool) or not 0 <= float(text) <= LARGEST / 1e9:
        return None
    return round(float(text) * 1e9)


def percentage_used(plain: object) -> int | None:
    """Percentage of the rated endurance that is used; None if none is known, or attributes contradict themselves."""
    reported = first(
        percent(plain, "nvme_smart_health_information_log", "percentage_used"),
        percent(plain, "scsi_percentage_used_endurance_indicator"),
        statistic(plain, "Percentage Used Endurance Indicator"),
    )
    if reported is not None:
        return reported if reported <= MOST_PERCENT else None
    # smartctl 7.5 derives its own figure from the normalised value of such an attribute (ataprint.cpp).
    if next(contradictions(plain), None):
        return None
    return first(percent(plain, "endurance_used", "current_percent"), _used_by_attribute(plain))


def spare_percent(plain: object) -> int | None:
    """NVMe's available spare, per cent; None beyond 100."""
    spare = whole(plain, "nvme_smart_health_information_log", "available_spare")
    return spare if spare is not None and spare <= 100 else None


def contradictions(plain: object) -> Iterator[str]:
    """Yield a clause for each attribute of a share of life whose raw value contradicts its normalised one.

    Kingston's KC400 has SSD_Life_Left with the value 100 and the raw value 74. Rounding explains a difference of 1.
    """
    for entry in attributes(plain):
        name, value, raw = at(entry, "name"), whole(entry, "value"), whole(entry, "raw", "value")
        if not isinstance(name, str) or not SHARE_OF_LIFE.fullmatch(name) or value is None or raw is None:
            continue
        agrees = min(abs(raw - value), abs(raw - (100 - value))) <= 1
        if 0 <= value <= 100 and 1 <= raw <= 100 and not agrees:
            yield f"its attribute {safe_text.name(name)} is {value} by the normalised value and {raw} by the raw one"


def _used_by_attribute(plain: object) -> int | None:
    for number, name in LIFE_LEFT:
        if (left := _normalised(plain, number, name)) is not None:
            return 100 - left
    for entry in attributes(plain):
        if (used := _agreed(entry)) is not None:
            return used
    for number, name in WEAR_INDICATORS:
        if (left := _normalised(plain, number, name)) is not None:
            return 100 - left
    return None


def _normalised(plain: object, number: int, name: str) -> int | None:
    for entry in attributes(plain):
        if at(entry, "name") == name and at(entry, "id") in (number, None):
            value = whole(entry, "value")
            return None if value is None or value > 100 else value
    return None


def _agreed(entry: object) -> int | None:
    """Life used by an attribute whose normalised and raw values confirm each other."""
    name, value, raw = at(entry, "name"), whole(entry, "value"), whole(entry, "raw", "value")
    if not isinstance(name, str) or value is None or raw is None or not 0 <= value <= 100:
        return None
    if name in LIFE_LEFT_IF_RAW_AGREES and raw in (value, 100 - value):
        return 100 - value
    return raw if name in LIFE_USED_IF_VALUE_AGREES and value in (max(0, 100 - raw), raw) else None


def firmware(plain: object) -> str | None:
    """The drive's whole firmware revision, printable; SAS drives have a revision of four characters."""
    for name in ("firmware_version", "scsi_revision"):
        text = at(plain, name)
        if isinstance(text, str) and text.strip():
            return safe_text.name(text.strip())
    return None


def power_on_hours(plain: object, today: date | None = None) -> int | None:
    """Hours that the drive ran; None if they are not reported, or are more than its interface exists."""
    hours = first(
        whole(plain, "power_on_time", "hours"), whole(plain, "nvme_smart_health_information_log", "power_on_hours")
    )
    oldest = OLDEST.get(str(at(plain, "device", "protocol")), OLDEST_OF_OTHERS)
    most = 24 * ((today or date.today()) - oldest).days  # noqa: DTZ011 (a day more or less is no matter)
    return hours if hours is not None and hours <= most else None


def temperature_c(plain: object) -> float | None:
    """Present temperature, °C.

    A SAS drive without a temperature log is reported with 0; its environmental reports have the true value.
    """
    values = at(plain, "temperature", "current"), at(plain, "nvme_smart_health_information_log", "temperature")
    current = next((celsius for celsius in map(possible_c, map(_number, values)) if celsius is not None), None)
    if current is not None or at(plain, "device", "protocol") not in ("SCSI", None):
        return current
    reports = at(plain, "scsi_environmental_reports")
    found = [
        celsius
        for name, report in (reports.items() if isinstance(reports, dict) else ())
        if name.startswith("temperature") and (celsius := possible_c(_number(at(report, "current")))) is not None
    ]
    return max(found, default=None)


def possible_c(celsius: float | None) -> float | None:
    """Return a temperature; None if no running drive can have it."""
    return celsius if celsius and COLDEST_C <= celsius <= WARMEST_C else None


def _number(value: object) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if known and isinstance(value, int | float) and abs(value) <= LARGEST else None


def _phy_errors(plain: object) -> int | None:
    """Errors of all phys of a SAS drive since its power-up (SPL, protocol-specific port log page); None without any."""
    ports = [value for name, value in plain.items() if SAS_PORT.fullmatch(name)] if isinstance(plain, dict) else []
    phys = [phy for port in ports if isinstance(port, dict) for phy in port.values()]
    counts = [count for phy in phys for field in OF_A_PHY if (count := whole(phy, field)) is not None]
    return sum(counts) if counts else None


def counters(plain: object) -> Mapping[str, int]:
    """Error counters of the drive's life by name, and NVMe's available spare; only those that it reports."""
    found: dict[str, int] = {}
    for entry in attributes(plain):
        name, raw = at(entry, "name"), count_of(entry)
        for what, names in ATA_ERRORS if isinstance(name, str) and raw is not None else ():
            if isinstance(name, str) and names.fullmatch(name):
                found[what] = max(raw or 0, found.get(what, 0))
    for field, what in ATA_STATISTICS.items():
        if (value := statistic(plain, field)) is not None:
            found[what] = max(value, found.get(what, 0))
    nvme = at(plain, "nvme_smart_health_information_log")
    others = {
        LOG_ENTRIES: whole(nvme, "num_err_log_entries"),
        SPARE: spare_percent(plain),
        UNSAFE_SHUTDOWNS: whole(nvme, "unsafe_shutdowns"),
        "grown defects": whole(plain, "scsi_grown_defect_list"),
        PHY_ERRORS: _phy_errors(plain),
    }
    return found | {what: value for what, value in others.items() if value is not None}


def statistic(plain: object, name: str) -> int | None:
    """A value of ATA's device statistics."""
    return next((value for known, value in statistics(plain) if known == name), None)


def statistics(plain: object) -> Iterator[tuple[object, int | None]]:
    """The valid entries of ATA's device statistics (ACS-4, log 04h): name and value."""
    for page in items(plain, "ata_device_statistics", "pages"):
        for entry in items(page, "table"):
            if at(entry, "flags", "valid") is not False:
                yield at(entry, "name"), whole(entry, "value")


def attribute(plain: object, *names: str) -> int | None:
    """Raw value of the first ATA attribute with one of these names, all its 48 bits."""
    for entry in attributes(plain):
        if at(entry, "name") in names:
            return whole(entry, "raw", "value")
    return None


def error_count(plain: object, *names: str) -> int | None:
    """Count of errors of the first ATA attribute with one of these names."""
    return next((count_of(entry) for entry in attributes(plain) if at(entry, "name") in names), None)


def count_of(entry: object) -> int | None:
    """Count of an ATA attribute of errors: above its 32 low bits the raw value of some vendors has other data."""
    raw = whole(entry, "raw", "value")
    count = None if raw is None else raw & 0xFFFFFFFF
    return None if count in ALL_ONES else count


def attributes(plain: object) -> Iterator[object]:
    """The drive's ATA attributes."""
    yield from items(plain, "ata_smart_attributes", "table")


def parsed(answer: str) -> object:
    """The JSON of a tool's answer; None if it is none."""
    try:
        return read_json(answer.strip())
    except ValueError:
        return None


def at(plain: object, *names: str) -> object:
    """What is at this path of names; None if there is nothing."""
    for name in names:
        plain = plain.get(name) if isinstance(plain, dict) else None
    return plain


def items(plain: object, *names: str) -> Iterable[object]:
    """The list at this path of names; empty if there is none."""
    value = at(plain, *names)
    return value if isinstance(value, list) else ()


def percent(plain: object, *names: str) -> int | None:
    """The percentage at this path of names; None beyond ``MOST_PERCENT``."""
    value = whole(plain, *names)
    return value if value is not None and value <= MOST_PERCENT else None


def whole(plain: object, *names: str) -> int | None:
    """The whole number at this path of names, from 0 on; None for ``ALL_ONES``, and beyond 64 bits."""
    value = at(plain, *names)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= LARGEST and value not in ALL_ONES else None


def printed(plain: object, *names: str) -> int | None:
    """The whole number at this path of names as nvme-cli prints it: some as text or as 323.0, and 32-bit fields as
    negative numbers (2.1, 2.2).
    """
    value = at(plain, *names)
    if isinstance(value, str):
        return decimal(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST else None


def first(*values: int | None) -> int | None:
    """The first known value; None if none is."""
    return next((value for value in values if value is not None), None)
