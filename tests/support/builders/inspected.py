"""Answers of tools at the inspection of new, healthy drives, made up; tests change single values of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_ssdqual.qual.inspection.checks import Answer, CheckedDrive, InspectionVerdict
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.evidence.inspection import of_inspection

#: Log pages 81h and 06h as ``od`` prints them: never sanitized; no self-test was made (0Fh: entry not used).
NEVER_SANITIZED = "255 255 0 0 0 0 0 0"
NO_SELF_TEST = " ".join(map(str, [0, 0, 0, 0, *([0x0F, *[0] * 27] * 20)]))


def text(name: str, sections: Mapping[str, str]) -> str:
    """The answer of ``inspection.sh`` for one drive, by its sections."""
    return f"==drive {name}\n" + "".join(f"=={section}\n{answer}\n" for section, answer in sections.items())


def smart_of_nvme(serial: str, model: str) -> dict[str, Any]:
    return {
        "json_format_version": [1, 0],
        "smartctl": {"version": [7, 4], "exit_status": 0},
        "device": {"name": "/dev/nvme0", "type": "nvme", "protocol": "NVMe"},
        "model_name": model,
        "serial_number": serial,
        "firmware_version": "2CV1R106",
        "smart_status": {"passed": True},
        "nvme_composite_temperature_threshold": {"warning": 75, "critical": 85},
        "nvme_smart_health_information_log": {
            "critical_warning": 0,
            "temperature": 34,
            "available_spare": 100,
            "available_spare_threshold": 10,
            "percentage_used": 0,
            "data_units_read": 12,
            "data_units_written": 30,
            "power_cycles": 6,
            "power_on_hours": 3,
            "unsafe_shutdowns": 2,
            "media_errors": 0,
            "num_err_log_entries": 0,
        },
        "temperature": {"current": 34},
        "power_cycle_count": 6,
        "power_on_time": {"hours": 3},
    }


def nvme(serial: str = "S1", model: str = "ACME 9000") -> dict[str, str]:
    """Sections of an NVMe drive of PCIe 4.0 x4, 480 GB."""
    lines = {
        "size": 937703088,
        "ro": 0,
        "logical_block_size": 512,
        "physical_block_size": 4096,
        "write_cache": "write through",
        "current_link_speed": "16.0 GT/s PCIe",
        "current_link_width": 4,
        "max_link_speed": "16.0 GT/s PCIe",
        "max_link_width": 4,
        "slot_max_link_speed": "32.0 GT/s PCIe",
        "slot_max_link_width": 4,
        "namespaces": 1,
    }
    return {
        "smart": json.dumps(smart_of_nvme(serial, model)),
        "id-ctrl": json.dumps(
            {"oacs": 0x1E, "sanicap": 3, "tnvmcap": 480 * 10**9, "unvmcap": 0, "nn": 32, "edstt": 30}
        ),
        "id-ns": json.dumps({"flbas": 0, "lbafs": [{"ms": 0, "ds": 9, "rp": 0}, {"ms": 8, "ds": 9, "rp": 0}]}),
        "sanitize": NEVER_SANITIZED,
        "self-test": NO_SELF_TEST,
        "sysfs": "\n".join(f"{name} {value}" for name, value in lines.items()),
    }


def smart_of_sata(serial: str, model: str) -> dict[str, Any]:
    speed = {"units_per_second": 60, "bits_per_unit": 100_000_000}
    attributes = {"Reallocated_Sector_Ct": 0, "Current_Pending_Sector": 0, "UDMA_CRC_Error_Count": 0}
    return {
        "json_format_version": [1, 0],
        "smartctl": {"version": [7, 3], "exit_status": 0},
        "device": {"name": "/dev/sdb", "type": "sat", "protocol": "ATA"},
        "model_name": model,
        "serial_number": serial,
        "firmware_version": "D3MU001F",
        "interface_speed": {"max": speed, "current": dict(speed)},
        "write_cache": {"enabled": True},
        "ata_security": {"state": 41, "enabled": False, "frozen": True},
        "smart_status": {"passed": True},
        "logical_block_size": 512,
        "power_cycle_count": 4,
        "power_on_time": {"hours": 2},
        "temperature": {"current": 27, "op_limit_max": 70},
        "endurance_used": {"current_percent": 0},
        "ata_smart_attributes": {
            "table": [
                {"name": name, "value": 100, "when_failed": "", "raw": {"value": count}}
                for name, count in attributes.items()
            ]
        },
        "ata_device_statistics": {
            "pages": [
                {
                    "number": 1,
                    "table": [{"name": "Logical Sectors Written", "value": 2048, "flags": {"valid": True}}],
                }
            ]
        },
        "ata_smart_error_log": {"extended": {"count": 0}},
        "ata_smart_self_test_log": {"extended": {"count": 0, "error_count_total": 0}},
        "ata_log_directory": {"table": [{"address": 0, "name": "Log Directory"}, {"address": 4, "name": "Statistics"}]},
    }


def sata(serial: str = "S1", model: str = "ACME 500") -> dict[str, str]:
    """Sections of a SATA drive at 6 Gb/s."""
    lines = (
        "size 937703088\nro 0\nwrite_cache write back\nqueue_depth 32\nsata_spd 6.0 Gbps\nhw_sata_spd_limit 6.0 Gbps"
    )
    return {"smart": json.dumps(smart_of_sata(serial, model)), "sysfs": lines}


def smart_of_sas(serial: str, model: str) -> dict[str, Any]:
    rate = {"negotiated_logical_link_rate": "phy enabled; 12 Gbps"}
    errors = {"total_uncorrected_errors": 0, "gigabytes_processed": "1.250"}
    return {
        "json_format_version": [1, 0],
        "smartctl": {"version": [7, 4], "exit_status": 0},
        "device": {"name": "/dev/sdc", "type": "scsi", "protocol": "SCSI"},
        "scsi_revision": "B21A",
        "serial_number": serial,
        "model_name": model,
        "smart_status": {"passed": True},
        "temperature": {"current": 30, "drive_trip": 70},
        "power_on_time": {"hours": 5},
        "scsi_percentage_used_endurance_indicator": 0,
        "scsi_grown_defect_list": 0,
        "scsi_error_counter_log": {"read": dict(errors), "write": dict(errors)},
        "scsi_start_stop_cycle_counter": {"accumulated_start_stop_cycles": 7},
        "scsi_sas_port_0": {"phy_0": rate},
    }


def sas(serial: str = "S1", model: str = "ACME 700") -> dict[str, str]:
    """Sections of a SAS drive at 12 Gb/s."""
    return {
        "smart": json.dumps(smart_of_sas(serial, model)),
        "sysfs": "size 937703088\nro 0\nwrite_cache write back\nqueue_depth 64",
    }


def checked(check: str, bound: str, drives: Mapping[str, tuple[str, Answer]], *, acceptance: bool = True) -> Evidence:
    """Evidence of one check, with the reading and the answer of each drive by serial number; S1 is at /dev/S1."""
    found = tuple(
        CheckedDrive(
            answer, "is here", reading, bound, float(reading.split()[0]) if reading[:1].isdigit() else None,
            drive=serial, path=f"/dev/{serial}",
        )
        for serial, (reading, answer) in drives.items()
    )  # fmt: skip
    inspected = of_inspection(InspectionVerdict(check, found), source="acme")
    return replace(inspected, protocol="quick", acceptance=acceptance)
