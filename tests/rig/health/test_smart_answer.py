"""The smallest answers of smartctl in which drives spell the same figure differently."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.spec.health_limits import COUNTERS, KERNEL_MESSAGES, HealthTable
from pytest_ssdqual.rig.health.health import MEDIA_ERRORS
from pytest_ssdqual.rig.health.smart_answer import (
    ATA_ERRORS,
    ATA_STATISTICS,
    counters,
    data_written_bytes,
    percentage_used,
    power_on_hours,
    spare_percent,
    temperature_c,
)
from pytest_ssdqual.rig.observe.repaired import FILES


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
        # Kingston KC400 (smartctl_exporter's test data, smartctl 7.2): which of the two is true is not known.
        ([(231, "SSD_Life_Left", 100, 74)], None),
        ([(231, "SSD_Life_Left", 100, 74), (177, "Wear_Leveling_Count", 99, 210)], None),
        # Transcend MTS400, from the same source.
        ([(169, "Remaining_Lifetime_Perc", 100, 96), (173, "Wear_Leveling_Count", 100, 40)], None),
        # Kingston SA400 and Micron 5300, from the same source.
        ([(231, "SSD_Life_Left", 98, 98)], 2),
        ([(202, "Percent_Lifetime_Remain", 99, 1)], 1),
        # A raw value that is no percentage contradicts nothing, nor does one that was rounded otherwise.
        ([(231, "SSD_Life_Left", 98, 4_000)], 2),
        ([(202, "Percent_Lifetime_Remain", 97, 4)], 3),
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
        ({"temperature": {"current": 0}, "device": {"protocol": "NVMe"}}, None),
        ({"temperature": {"current": -273}, "device": {"protocol": "NVMe"}}, None),
        ({"temperature": {"current": 0}, "device": {"protocol": "ATA"}}, None),
        ({"temperature": {"current": 255}, "device": {"protocol": "ATA"}}, None),
        ({"temperature": {"current": -128}, "device": {"protocol": "ATA"}}, None),
        ({"temperature": {"current": 125}, "device": {"protocol": "ATA"}}, 125),
        ({"nvme_smart_health_information_log": {"temperature": 41}}, 41),
        ({"nvme_smart_health_information_log": {"temperature": -273}}, None),
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
def test_only_a_possible_temperature_is_one(plain: object, expected: float | None) -> None:
    assert temperature_c(plain) == expected


def test_error_counters_have_one_name_for_all_drives() -> None:
    found = counters(
        ata(
            (5, "Reallocate_NAND_Blk_Cnt", 100, 1), (197, "Current_Pending_Sector", 100, 2),
            (197, "Bogus_Current_Pend_Sect", 100, 9), (199, "UDMA_CRC_Error_Count", 100, 3),
            (171, "Program_Fail_Cnt", 100, 4), (181, "Program_Fail_Cnt_Total", 100, 6),
            (172, "Erase_Fail_Count", 100, 5), (184, "End-to-End_Error", 100, 7),
            (198, "Offline_Uncorrectable", 100, 8), (1, "Raw_Read_Error_Rate", 100, 99),
        )
    )  # fmt: skip
    expected = {
        "reallocated blocks": 1, "pending sectors": 2, "CRC errors of the link": 3, "program failures": 6,
        "erase failures": 5, "end-to-end errors": 7, "uncorrectable sectors found offline": 8,
    }  # fmt: skip
    assert found == expected


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
    """Each its own, but the link's of SATA, SAS and PCIe, of which no drive has two, and what the kernel repaired."""
    named = {name for name, _ in ATA_ERRORS} | set(ATA_STATISTICS.values())
    log = dict.fromkeys(("num_err_log_entries", "available_spare", "unsafe_shutdowns"), 0)
    port = {"phy_0": {"invalid_dword_count": 0}}
    others = counters({
        "nvme_smart_health_information_log": log, "scsi_grown_defect_list": 0, "scsi_sas_port_0": port,
    })  # fmt: skip
    assert {*named, *others, MEDIA_ERRORS, *FILES.values(), KERNEL_MESSAGES} == set(COUNTERS)
    assert set(COUNTERS.values()) == set(HealthTable.model_fields)


def test_counters_of_nvme_and_sas_drives() -> None:
    log = {"num_err_log_entries": 12, "available_spare": 98, "unsafe_shutdowns": 3}
    expected = {"entries of the error log": 12, "available spare": 98, "unsafe shutdowns": 3}
    assert counters({"nvme_smart_health_information_log": log}) == expected
    assert counters({"scsi_grown_defect_list": 4}) == {"grown defects": 4}
    assert counters({}) == {}


def test_figure_derived_from_a_contradiction_is_unknown() -> None:
    # smartctl 7.5 takes endurance_used from the normalised value, unless the device statistics have it.
    attribute = (231, "SSD_Life_Left", 100, 74)
    assert percentage_used(ata(attribute, endurance_used={"current_percent": 0})) is None
    page = {"table": [{"name": "Percentage Used Endurance Indicator", "value": 26, "flags": {"valid": True}}]}
    assert percentage_used(ata(attribute, ata_device_statistics={"pages": [page]})) == 26


@given(st.integers(0, 100), st.integers(0, 100))
def test_wear_of_two_values_is_that_of_both_or_unknown(value: int, raw: int) -> None:
    used = percentage_used(ata((231, "SSD_Life_Left", value, raw)))
    agrees = raw == 0 or min(abs(raw - value), abs(raw - (100 - value))) <= 1
    assert used == (100 - value if agrees else None)


LOG = "nvme_smart_health_information_log"
COUNTED = ("data_units_written", "power_on_hours", "percentage_used", "available_spare", "num_err_log_entries")
IMPOSSIBLE = st.integers(max_value=-1) | st.sampled_from([2**bits - 1 for bits in (16, 32, 48, 64, 128)])


@given(st.dictionaries(st.sampled_from(COUNTED), IMPOSSIBLE))
def test_a_value_that_no_drive_can_have_is_unknown(log: dict[str, int]) -> None:
    plain = {LOG: log, "device": {"protocol": "NVMe"}}
    assert [data_written_bytes(plain), power_on_hours(plain), percentage_used(plain), spare_percent(plain)] == [
        None
    ] * 4
    assert counters(plain) == {}


@given(st.integers(0, 400_000), st.sampled_from(["NVMe", "ATA", "SCSI", None]))
def test_no_drive_is_older_than_its_interface(hours: int, protocol: str | None) -> None:
    plain = {"power_on_time": {"hours": hours}, "device": {"protocol": protocol}}
    oldest = date(2011, 3, 1) if protocol == "NVMe" else date(2003, 1, 1)
    # All bits of a counter set are no number of hours; see the values above.
    is_possible = hours <= 24 * (date(2021, 3, 1) - oldest).days and hours != 2**16 - 1
    assert power_on_hours(plain, date(2021, 3, 1)) == (hours if is_possible else None)


@pytest.mark.parametrize(("percent", "expected"), [(0, 0), (101, 101), (255, 255), (256, None), (-1, None)])
def test_endurance_used_is_a_byte(percent: int, expected: int | None) -> None:
    assert percentage_used({LOG: {"percentage_used": percent}}) == expected
