"""The smallest answers of smartctl in which drives spell the same figure differently."""

from __future__ import annotations

import pytest

from pytest_ssdqual.qual.spec.health_limits import COUNTERS, HealthTable
from pytest_ssdqual.rig.drives.health import MEDIA_ERRORS
from pytest_ssdqual.rig.drives.smart_answer import (
    ATA_ERRORS,
    ATA_STATISTICS,
    counters,
    data_written_bytes,
    percentage_used,
    temperature_c,
)


def ata(*attributes: tuple[int, str, int, int], **more: object) -> dict[str, object]:
    """Attributes: number, name, normalised value, raw value."""
    rows = [
        {"id": number, "name": name, "value": value, "raw": {"value": raw}} for number, name, value, raw in attributes
    ]
    return {"ata_smart_attributes": {"table": rows}, **more}


@pytest.mark.parametrize(
    ("plain", "expected"),
    [
        # Both in one answer: attribute 233 of this name counts 32 MiB, too.
        (ata((225, "Host_Writes_32MiB", 100, 129_000), (233, "Total_LBAs_Written", 100, 129_000)), 129_000 << 25),
        (ata((241, "Total_LBAs_Written", 99, 1000), in_smartctl_database=True), 512_000),
        (ata((246, "Total_LBAs_Written", 100, 1000)), 512_000),
        # smartctl does not know this drive, so nobody knows the unit.
        (ata((241, "Total_LBAs_Written", 99, 1000), in_smartctl_database=False), None),
        (ata((241, "Lifetime_Writes_GiB", 100, 7)), 7 << 30),
        ({"scsi_error_counter_log": {"write": {"gigabytes_processed": "28125.113"}}}, 28_125_113_000_000),
        ({"scsi_error_counter_log": {"write": {"gigabytes_processed": 1.5}}}, 1_500_000_000),
        ({"scsi_error_counter_log": {"write": {"gigabytes_processed": "much"}}}, None),
        ({}, None),
    ],
)
def test_bytes_written_are_in_the_unit_that_the_drive_uses(plain: object, expected: int | None) -> None:
    assert data_written_bytes(plain) == expected


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ([(202, "Percent_Lifetime_Remain", 97, 3)], 3),
        ([(245, "Percent_Life_Remaining", 99, 99)], 1),
        ([(231, "SSD_Life_Left", 95, 0)], 5),
        ([(233, "Media_Wearout_Indicator", 97, 0)], 3),
        # The one that names the life goes before indicators of wear.
        ([(177, "Wear_Leveling_Count", 60, 7), (231, "SSD_Life_Left", 95, 95)], 5),
        # SanDisk's counts upwards, and its raw value is packed.
        ([(230, "Media_Wearout_Indicator", 2, 0x2600140026)], None),
        ([(169, "Lifetime_Remaining%", 88, 88)], 12),
        ([(169, "Lifetime_Remaining%", 88, 12)], 12),
        ([(169, "Lifetime_Remaining%", 100, 88)], None),
        ([(202, "Perc_Rated_Life_Used", 93, 7)], 7),
        ([(202, "Perc_Rated_Life_Used", 0, 104)], 104),
        ([(202, "Perc_Rated_Life_Used", 7, 7)], 7),
        ([(202, "Perc_Rated_Life_Used", 50, 7)], None),
        ([(233, "Media_Wearout_Indicator", 200, 0)], None),
        ([(232, "Available_Reservd_Space", 90, 90)], None),
    ],
)
def test_wear_is_known_or_unknown_but_not_wrong(
    attributes: list[tuple[int, str, int, int]], expected: int | None
) -> None:
    assert percentage_used(ata(*attributes)) == expected


@pytest.mark.parametrize(
    ("plain", "expected"),
    [
        ({"temperature": {"current": 38}}, 38),
        ({"temperature": {"current": 38.5}}, 38.5),
        ({"temperature": {"current": 0}, "device": {"protocol": "NVMe"}}, 0),
        ({"temperature": {"current": -3}, "device": {"protocol": "ATA"}}, -3),
        ({"temperature": {"current": 0}, "device": {"protocol": "SCSI"}}, None),
        (
            {
                "temperature": {"current": 0},
                "device": {"protocol": "SCSI"},
                "scsi_environmental_reports": {
                    "temperature_1": {"current": 29}, "temperature_2": {"current": 33}, "relative_humidity_1": {},
                },
            },
            33,
        ),
        ({"temperature": 7}, None),
    ],
)  # fmt: skip
def test_zero_degrees_of_a_sas_drive_is_no_temperature(plain: object, expected: float | None) -> None:
    assert temperature_c(plain) == expected


def test_error_counters_have_one_name_whatever_the_drive_calls_them() -> None:
    found = counters(
        ata(
            (5, "Reallocate_NAND_Blk_Cnt", 100, 1), (197, "Current_Pending_Sector", 100, 2),
            (197, "Bogus_Current_Pend_Sect", 100, 9), (199, "UDMA_CRC_Error_Count", 100, 3),
            (171, "Program_Fail_Cnt", 100, 4), (181, "Program_Fail_Cnt_Total", 100, 6),
            (172, "Erase_Fail_Count", 100, 5), (184, "End-to-End_Error", 100, 7),
            (198, "Offline_Uncorrectable", 100, 8), (1, "Raw_Read_Error_Rate", 100, 99),
        )
    )  # fmt: skip
    assert found == {
        "reallocated blocks": 1, "pending sectors": 2, "CRC errors of the link": 3, "program failures": 6,
        "erase failures": 5, "end-to-end errors": 7, "uncorrectable sectors found offline": 8,
    }  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        "Unsafe_Shutdown_Count", "Unexpect_Power_Loss_Ct", "Unexpected_Power_Loss", "Unexpected_Pwr_Loss_Cnt",
        "Unexpect_PwrLoss_Ct", "Unexpected_Power_Cycle", "POR_Recovery_Count",
    ],
)  # fmt: skip
def test_unsafe_shutdowns_of_sata_drives(name: str) -> None:
    """Names of smartmontools' drive database; Power-Off_Retract_Count also counts ordinary shutdowns."""
    assert counters(ata((174, name, 100, 5), (192, "Power-Off_Retract_Count", 100, 9))) == {"unsafe shutdowns": 5}


def test_every_counter_has_a_limit() -> None:
    """Each its own, but the link's of SATA and of SAS, which no drive has both."""
    named = {name for name, _ in ATA_ERRORS} | set(ATA_STATISTICS.values())
    log = dict.fromkeys(("num_err_log_entries", "available_spare", "unsafe_shutdowns"), 0)
    port = {"phy_0": {"invalid_dword_count": 0}}
    others = counters({
        "nvme_smart_health_information_log": log, "scsi_grown_defect_list": 0, "scsi_sas_port_0": port,
    })  # fmt: skip
    assert {*named, *others, MEDIA_ERRORS} == set(COUNTERS)
    assert len(set(COUNTERS.values())) == len(COUNTERS) - 1 == len(HealthTable.model_fields)


def test_counters_of_nvme_and_sas_drives() -> None:
    log = {"num_err_log_entries": 12, "available_spare": 98, "unsafe_shutdowns": 3}
    assert counters({"nvme_smart_health_information_log": log}) == {
        "entries of the error log": 12, "available spare": 98, "unsafe shutdowns": 3,
    }  # fmt: skip
    assert counters({"scsi_grown_defect_list": 4}) == {"grown defects": 4}
    assert counters({}) == {}
