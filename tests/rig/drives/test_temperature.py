from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_ssdqual.qual.measured.environment import DriveLink, DriveTemperature
from pytest_ssdqual.rig.drives.temperature import Warmth, between, limit, parse

DATA = Path(__file__).parents[2] / "data"
NVME_CLI = (DATA / "nvme-cli" / "2.3" / "smart-log.json").read_text()
SMARTCTL = (DATA / "smartctl" / "qemu-nvme-7.3.json").read_text()


def smartctl(**more: object) -> str:
    return json.dumps({"json_format_version": [1, 0], **more})


def test_an_nvme_drive_by_nvme_cli() -> None:
    assert parse(NVME_CLI) == (Warmth(50, None, False, 0, 0, counted_in_s=0), None)


def test_its_counts_are_minutes_and_seconds_and_transitions() -> None:
    plain = json.loads(NVME_CLI) | {
        "critical_warning": 2, "warning_temp_time": 3, "critical_comp_time": 1, "thm_temp1_trans_count": 5,
        "thm_temp2_trans_count": 2, "thm_temp1_total_time": 40, "thm_temp2_total_time": 2,
    }  # fmt: skip
    (warmth, _) = parse(json.dumps(plain))
    assert (warmth.too_warm, warmth.too_warm_s, warmth.events) == (True, 4 * 60 + 42, 7)
    assert warmth.counted_in_s == 42


def test_other_versions_write_numbers_as_text_and_warnings_as_a_structure() -> None:
    plain = json.loads(NVME_CLI) | {"temperature": "323", "critical_warning": {"value": 2, "temp_threshold": 1}}
    (warmth, _) = parse(json.dumps(plain))
    assert (warmth.temperature_c, warmth.too_warm) == (50, True)


def test_other_versions_write_whole_numbers_as_floats() -> None:
    plain = json.loads(NVME_CLI) | {"temperature": 323.0, "critical_warning": 0.0, "thm_temp1_trans_count": 5.0}
    (warmth, _) = parse(json.dumps(plain))
    assert (warmth.temperature_c, warmth.too_warm, warmth.events) == (50, False, 5)
    assert parse(json.dumps(plain | {"temperature": 323.7}))[0].temperature_c is None


def test_a_drive_of_zero_kelvin_does_not_report_its_temperature() -> None:
    assert parse(json.dumps(json.loads(NVME_CLI) | {"temperature": 0}))[0].temperature_c is None
    assert parse(json.dumps(json.loads(NVME_CLI) | {"temperature": 268}))[0].temperature_c == -5


def test_a_sas_drive_of_zero_degrees_is_asked_for_its_environmental_reports() -> None:
    sas = {"device": {"protocol": "SCSI"}, "temperature": {"current": 0, "drive_trip": 65}}
    assert parse(smartctl(**sas))[0].temperature_c is None
    reports = {"temperature_1": {"current": 31}}
    assert parse(smartctl(**sas, scsi_environmental_reports=reports))[0].temperature_c == 31


def test_an_nvme_drive_by_smartctl() -> None:
    assert parse(SMARTCTL) == (Warmth(50, None, False, 0, None), None)
    newer = json.loads(SMARTCTL) | {"nvme_composite_temperature_threshold": {"warning": 82, "critical": 85}}
    assert parse(json.dumps(newer))[0].limit_c == 82


def test_a_sata_drive() -> None:
    answer = smartctl(
        interface_speed={
            "max": {"sata_value": 14, "string": "6.0 Gb/s", "units_per_second": 60, "bits_per_unit": 100_000_000},
            "current": {"sata_value": 2, "string": "3.0 Gb/s", "units_per_second": 30, "bits_per_unit": 100_000_000},
        },
        temperature={"current": 38, "power_cycle_max": 55, "lifetime_max": 61, "op_limit_max": 70, "limit_max": 75},
        ata_sct_status={"temperature": {"current": 38, "under_limit_count": 0, "over_limit_count": 4}},
    )
    assert parse(answer) == (Warmth(38, 70, None, None, 4, 55), DriveLink("SATA", 3.0, 1, 6.0, 1))


def test_a_sata_drive_that_is_too_old_for_sct() -> None:
    assert parse(smartctl(temperature={"current": 38})) == (Warmth(38), None)
    # Before the drive is asked, smartctl knows only what it could do.
    speed = {"units_per_second": 60, "bits_per_unit": 100_000_000}
    assert parse(smartctl(interface_speed={"max": speed}))[1] is None


def test_a_sas_drive_has_a_trip_temperature() -> None:
    newer = smartctl(temperature={"current": 45}, scsi_temperature={"drive_trip": 70})
    assert parse(newer)[0].limit_c == 70
    (warmth, link) = parse(smartctl(temperature={"current": 45, "drive_trip": 70}))
    assert (warmth.temperature_c, warmth.limit_c, link) == (45, 70, None)


@pytest.mark.parametrize("answer", ["", "smartctl: not found", "[]", "{}", '"x"', "{", smartctl(temperature=7)])
def test_anything_else_is_not_known(answer: str) -> None:
    assert parse(answer) == (Warmth(), None)


@pytest.mark.parametrize(("celsius", "known"), [(70, 70), (0, None), (-273, None), (65_262, None), (None, None)])
def test_a_threshold_that_says_there_is_none(celsius: float | None, known: float | None) -> None:
    assert limit(celsius) == known


def test_between_two_looks() -> None:
    before, after = Warmth(40, 70, False, 60, 3), Warmth(62, 70, False, 300, 5)
    assert between(before, after, 68) == DriveTemperature(62, 70, False, 240, 2)
    # It had cooled down again, and says so; what hwmon knows is taken where nothing else is.
    assert between(Warmth(71, None, True), Warmth(60, None, False), 68) == DriveTemperature(71, 68, True, None, None)


def test_a_maximum_that_rose_was_reached_meanwhile() -> None:
    assert between(Warmth(40, peak_c=55), Warmth(45, peak_c=73), None).temperature_c == 73
    assert between(Warmth(40, peak_c=73), Warmth(45, peak_c=73), None).temperature_c == 45


def test_what_one_look_does_not_know_is_not_known_of_the_time_between() -> None:
    assert between(Warmth(), Warmth(62, 70, False, 300, 5), None) == DriveTemperature(62, 70, False, None, None)
    # A count that went back is another drive's, or one that was reset.
    assert between(Warmth(events=5), Warmth(events=4), None).events is None
