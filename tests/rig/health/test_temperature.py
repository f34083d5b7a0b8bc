from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_ssdqual.qual.measured.environment import DriveLink, DriveTemperature
from pytest_ssdqual.rig.health.smart_answer import parsed
from pytest_ssdqual.rig.health.temperature import Warmth, between, limit, parse

DATA = Path(__file__).parents[2] / "data"
NVME_CLI = (DATA / "nvme-cli" / "2.3" / "smart-log.json").read_text()
SMARTCTL = (DATA / "smartctl" / "qemu-nvme-7.3.json").read_text()


def smartctl(**more: object) -> str:
    return json.dumps({"json_format_version": [1, 0], **more})


def nvme_cli(**more: object) -> str:
    return json.dumps(json.loads(NVME_CLI) | more)


COUNTED = {
    "critical_warning": 2, "warning_temp_time": 3, "critical_comp_time": 1, "thm_temp1_trans_count": 5,
    "thm_temp2_trans_count": 2, "thm_temp1_total_time": 40, "thm_temp2_total_time": 2,
}  # fmt: skip
SAS = {"device": {"protocol": "SCSI"}, "temperature": {"current": 0, "drive_trip": 65}}
SPEED = {"units_per_second": 60, "bits_per_unit": 100_000_000}
SATA = smartctl(
    interface_speed={"max": SPEED, "current": SPEED | {"units_per_second": 30}},
    temperature={"current": 38, "power_cycle_max": 55, "lifetime_max": 61, "op_limit_max": 70, "limit_max": 75},
    ata_sct_status={"temperature": {"current": 38, "under_limit_count": 0, "over_limit_count": 4}},
)


@pytest.mark.parametrize(
    ("answer", "warmth", "link"),
    [
        (NVME_CLI, Warmth(50, None, False, 0, 0, counted_in_s=0), None),
        # Minutes, seconds and transitions.
        (nvme_cli(**COUNTED), Warmth(50, None, True, 4 * 60 + 42, 7, counted_in_s=42), None),
        # Other versions write numbers as text or floats, and warnings as a structure.
        (
            nvme_cli(temperature="323", critical_warning={"value": 2, "temp_threshold": 1}),
            Warmth(50, None, True, 0, 0, counted_in_s=0),
            None,
        ),
        (
            nvme_cli(temperature=323.0, critical_warning=0.0, thm_temp1_trans_count=5.0),
            Warmth(50, None, False, 0, 5, counted_in_s=0),
            None,
        ),
        *(
            (nvme_cli(temperature=kelvin), Warmth(None, None, False, 0, 0, counted_in_s=0), None)
            for kelvin in (323.7, 0)
        ),
        (nvme_cli(temperature=268), Warmth(-5, None, False, 0, 0, counted_in_s=0), None),
        (SMARTCTL, Warmth(50, None, False, 0, None), None),
        (
            json.dumps(
                json.loads(SMARTCTL) | {"nvme_composite_temperature_threshold": {"warning": 82, "critical": 85}}
            ),
            Warmth(50, 82, False, 0, None),
            None,
        ),
        (SATA, Warmth(38, 70, None, None, 4, 55), DriveLink("SATA", 3.0, 1, 6.0, 1)),
        # Too old for SCT. Before the drive is asked, smartctl knows only what it could do.
        (smartctl(temperature={"current": 38}, interface_speed={"max": SPEED}), Warmth(38), None),
        (smartctl(temperature={"current": 45}, scsi_temperature={"drive_trip": 70}), Warmth(45, 70), None),
        (smartctl(temperature={"current": 45, "drive_trip": 70}), Warmth(45, 70), None),
        # A SAS drive of zero degrees is asked for its environmental reports.
        (smartctl(**SAS), Warmth(None, 65), None),
        (smartctl(**SAS, scsi_environmental_reports={"temperature_1": {"current": 31}}), Warmth(31, 65), None),
        *((answer, Warmth(), None) for answer in ("", "smartctl: not found", "[]", "{}", '"x"', "{")),
        (smartctl(temperature=7), Warmth(), None),
    ],
)
def test_temperature_and_link_are_parsed(answer: str, warmth: Warmth, link: DriveLink | None) -> None:
    assert parse(parsed(answer)) == (warmth, link)


@pytest.mark.parametrize(("celsius", "known"), [(70, 70), (0, None), (-273, None), (65_262, None), (None, None)])
def test_a_threshold_that_says_there_is_none(celsius: float | None, known: float | None) -> None:
    assert limit(celsius) == known


@pytest.mark.parametrize(
    ("before", "after", "alarm_c", "expected"),
    [
        (Warmth(40, 70, False, 60, 3), Warmth(62, 70, False, 300, 5), 68, DriveTemperature(62, 70, False, 240, 2)),
        # It had cooled down again, and says so; what hwmon knows is taken where nothing else is.
        (Warmth(71, None, True), Warmth(60, None, False), 68, DriveTemperature(71, 68, True, None, None)),
        # A maximum that rose was reached meanwhile.
        (Warmth(40, peak_c=55), Warmth(45, peak_c=73), None, DriveTemperature(73, None, None, None, None)),
        (Warmth(40, peak_c=73), Warmth(45, peak_c=73), None, DriveTemperature(45, None, None, None, None)),
        (Warmth(), Warmth(62, 70, False, 300, 5), None, DriveTemperature(62, 70, False, None, None)),
        # A count that went back is another drive's, or one that was reset.
        (Warmth(events=5), Warmth(events=4), None, DriveTemperature(None, None, None, None, None)),
    ],
)
def test_temperature_between_two_readings(
    before: Warmth, after: Warmth, alarm_c: float | None, expected: DriveTemperature
) -> None:
    assert between(before, after, alarm_c) == expected
