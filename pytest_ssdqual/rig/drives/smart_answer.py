"""Figures in smartctl's JSON that drives spell differently: wear, bytes written, temperature, error counters; pure.

Names of ATA attributes are those of smartmontools' drive database (drivedb.h); a raw value's unit is known only where
the name has it. What a drive does not report, or what could be read in two ways, is None.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.strict_json import LARGEST

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
    return _scsi_written_bytes(plain)


def _sector_bytes(plain: object) -> int:
    return whole(plain, "logical_block_size") or 512


def _scsi_written_bytes(plain: object) -> int | None:
    """The error counter log of writes (SPC): 10^9 bytes with three decimals, which smartctl prints as text."""
    text = at(plain, "scsi_error_counter_log", "write", "gigabytes_processed")
    if isinstance(text, str) and not re.fullmatch(r"\d{1,12}(\.\d{1,9})?", text, re.ASCII):
        return None
    if not isinstance(text, str | int | float) or isinstance(text, bool) or not 0 <= float(text) <= LARGEST / 1e9:
        return None
    return round(float(text) * 1e9)


def percentage_used(plain: object) -> int | None:
    """Percentage of the rated endurance that is used, by a vendor's attribute; None if none is known."""
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


def temperature_c(plain: object) -> float | None:
    """Present temperature, °C.

    A SAS drive without a temperature log is reported with 0; its environmental reports have the true value.
    """
    current = _number(at(plain, "temperature", "current"))
    if current or at(plain, "device", "protocol") not in ("SCSI", None):
        return current
    reports = at(plain, "scsi_environmental_reports")
    found = [
        celsius
        for name, report in (reports.items() if isinstance(reports, dict) else ())
        if name.startswith("temperature") and (celsius := _number(at(report, "current"))) is not None
    ]
    if found:
        return max(found)
    return None if at(plain, "device", "protocol") == "SCSI" else current


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
        name, raw = at(entry, "name"), _count(entry)
        for what, names in ATA_ERRORS if isinstance(name, str) and raw is not None else ():
            if isinstance(name, str) and names.fullmatch(name):
                found[what] = max(raw or 0, found.get(what, 0))
    for field, what in ATA_STATISTICS.items():
        if (value := statistic(plain, field)) is not None:
            found[what] = max(value, found.get(what, 0))
    nvme = at(plain, "nvme_smart_health_information_log")
    others = {
        LOG_ENTRIES: whole(nvme, "num_err_log_entries"),
        SPARE: whole(nvme, "available_spare"),
        UNSAFE_SHUTDOWNS: whole(nvme, "unsafe_shutdowns"),
        "grown defects": whole(plain, "scsi_grown_defect_list"),
        PHY_ERRORS: _phy_errors(plain),
    }
    return found | {what: value for what, value in others.items() if value is not None}


def statistic(plain: object, name: str) -> int | None:
    """A value of ATA's device statistics (ACS-4, log 04h)."""
    for page in items(plain, "ata_device_statistics", "pages"):
        for entry in items(page, "table"):
            valid = at(entry, "flags", "valid")
            if at(entry, "name") == name and valid is not False:
                return whole(entry, "value")
    return None


def attribute(plain: object, *names: str) -> int | None:
    """Raw value of the first ATA attribute with one of these names, all its 48 bits."""
    for entry in attributes(plain):
        if at(entry, "name") in names:
            return whole(entry, "raw", "value")
    return None


def error_count(plain: object, *names: str) -> int | None:
    """Count of errors of the first ATA attribute with one of these names."""
    return next((_count(entry) for entry in attributes(plain) if at(entry, "name") in names), None)


def _count(entry: object) -> int | None:
    """Count of an ATA attribute of errors: above its 32 low bits the raw value of some vendors has other data."""
    raw = whole(entry, "raw", "value")
    return None if raw is None else raw & 0xFFFFFFFF


def attributes(plain: object) -> Iterator[object]:
    """The drive's ATA attributes."""
    yield from items(plain, "ata_smart_attributes", "table")


def at(plain: object, *names: str) -> object:
    """What is at this path of names; None if there is nothing."""
    for name in names:
        plain = plain.get(name) if isinstance(plain, dict) else None
    return plain


def items(plain: object, *names: str) -> Iterable[object]:
    """The list at this path of names; empty if there is none."""
    value = at(plain, *names)
    return value if isinstance(value, list) else ()


def whole(plain: object, *names: str) -> int | None:
    """The whole number at this path of names; counters have at most 64 bits."""
    value = at(plain, *names)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST else None


def first(*values: int | None) -> int | None:
    """The first known value; None if none is."""
    return next((value for value in values if value is not None), None)
