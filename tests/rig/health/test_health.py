from __future__ import annotations

import json
import os
import subprocess
from contextlib import nullcontext
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.scripted import ScriptedMachine, completed

from pytest_ssdqual.qual.spec.health_limits import ORDINARY, HealthTable
from pytest_ssdqual.rig.drives.failed import DriveFailures
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.health.health import (
    HYPERVISOR,
    DriveHealth,
    DriveUnread,
    Identification,
    changes,
    emulated_among,
    identify,
    parse,
    read,
)
from pytest_ssdqual.rig.machine.machine import Completed, RigError

DRIVE = Drive("/dev/nvme0n1", "nvme0n1", "ACME", "S", "eui.1", "1", 10**9, 512, 512, False, "nvme")

NVME = {
    "smartctl": {"version": [7, 3], "exit_status": 4},
    "smart_status": {"passed": True, "nvme": {"value": 0}},
    "nvme_smart_health_information_log": {
        "critical_warning": 0,
        "temperature": 41,
        "available_spare": 100,
        "percentage_used": 3,
        "data_units_written": 2_000,
        "power_on_hours": 1234,
        "media_errors": 0,
    },
    "temperature": {"current": 41},
    "power_on_time": {"hours": 1234},
}

ATA = {
    "smartctl": {"exit_status": 0},
    "logical_block_size": 512,
    "smart_status": {"passed": True},
    "temperature": {"current": 30},
    "power_on_time": {"hours": 9},
    "ata_smart_attributes": {
        "table": [
            {"id": 187, "name": "Reported_Uncorrect", "value": 100, "raw": {"value": 2}},
            {"id": 233, "name": "Media_Wearout_Indicator", "value": 97, "raw": {"value": 0}},
            {"id": 241, "name": "Host_Writes_32MiB", "value": 100, "raw": {"value": 5}},
        ]
    },
}

STATISTICS = {
    "pages": [
        {"number": 1, "table": [{"name": "Logical Sectors Written", "value": 1000, "flags": {"valid": True}}]},
        None,
        {
            "number": 7,
            "table": [
                {"name": "Percentage Used Endurance Indicator", "value": 12, "flags": {"valid": True}},
                {"name": "Number of Reported Uncorrectable Errors", "value": 99, "flags": {"valid": False}},
            ],
        },
    ]
}

SCSI = {
    "smartctl": {"exit_status": 0},
    "smart_status": {"passed": False},
    "scsi_percentage_used_endurance_indicator": 7,
    "scsi_error_counter_log": {"read": {"total_uncorrected_errors": 1}, "write": {"total_uncorrected_errors": 2}},
}

HEALTHY = DriveHealth(True, 30, 3, 0, {"nvme": 0}, 100, 10**12, "{}")


REAL = (Path(__file__).parents[2] / "data" / "smartctl" / "qemu-nvme-7.3.json").read_text()
REAL_COUNTERS = {"entries of the error log": 0, "available spare": 0, "unsafe shutdowns": 0}


@pytest.mark.parametrize(
    ("text", "health"),
    [
        (json.dumps(NVME), (True, 41, 3, 0, {"nvme": 0}, 1234, 2_000 * 512_000, {"available spare": 100})),
        (REAL, (True, 50, 0, 0, {"nvme": 0}, 0, 512_000, REAL_COUNTERS)),
        (json.dumps(ATA), (True, 30, 3, None, {"attribute": 2}, 9, 5 * 32 * 2**20, {})),
        ('{"smartctl": {"exit_status": 0}}', (None, None, None, None, {}, None, None, {})),
    ],
    ids=["NVMe", "a real drive", "ATA", "nothing is not zero"],
)
def test_health_is_parsed(text: str, health: tuple[Any, ...]) -> None:
    *figures, counters = health
    assert astuple(parse(text)) == (*figures, text, counters)


def worsened(before: DriveHealth, after: DriveHealth, limits: HealthTable = ORDINARY) -> tuple[str, ...]:
    return tuple(change for change, _ in changes(before, after, limits))


def defects(before: DriveHealth, after: DriveHealth, limits: HealthTable = ORDINARY) -> tuple[str, ...]:
    return tuple(change for change, is_defect in changes(before, after, limits) if is_defect)


def test_health_of_statistics_and_of_scsi() -> None:
    health = parse(json.dumps({**ATA, "ata_device_statistics": STATISTICS}))
    assert (health.percentage_used, health.data_written_bytes) == (12, 512_000)
    assert health.media_errors == 2, "the statistic is not valid, the attribute counts"
    scsi = parse(json.dumps(SCSI))
    assert (scsi.passed, scsi.percentage_used, scsi.media_errors) == (False, 7, 3)


#: The same bit is set for a log that is missing.
FAILED = {"exit_status": 4, "messages": [{"string": "SMART Health Status: not available"}]}


@pytest.mark.parametrize(
    ("plain", "is_read"),
    [
        ({}, False),
        ({"device": {"protocol": "NVMe"}}, False),
        ({"smart_status": {}}, False),
        ({"power_on_time": {"hours": 100}, "temperature": {"current": 30}}, False),
        ({"smart_status": {"passed": True}}, True),
        ({"scsi_grown_defect_list": 0}, True),
        ({"scsi_percentage_used_endurance_indicator": 3}, True),
        ({"ata_smart_attributes": {"table": [{"name": "Reallocated_Sector_Ct", "raw": {"value": 0}}]}}, True),
    ],
)
def test_assessment_wear_or_defects_are_health(plain: dict[str, object], is_read: bool) -> None:
    text = json.dumps({**plain, "smartctl": FAILED})
    if is_read:
        assert parse(text).passed is ("smart_status" in plain or None)
        return
    with pytest.raises(ValueError, match="not available"):
        parse(text)
    assert "not available" in identify(ScriptedMachine().on("smartctl", answer=text), [DRIVE])[DRIVE.path].problem
    with pytest.raises(DriveUnread):
        read(ScriptedMachine().on("sh", answer=text), [DRIVE])


def ata_counts(*, statistic: int | None = None, attribute: int | None = None) -> DriveHealth:
    """An ATA drive whose device statistics, or whose attributes, smartctl may fail to read."""
    answer: dict[str, object] = {"smartctl": {"exit_status": 0}, "smart_status": {"passed": True}}
    if statistic is not None:
        entry = {"name": "Number of Reported Uncorrectable Errors", "value": statistic, "flags": {"valid": True}}
        answer["ata_device_statistics"] = {"pages": [{"table": [entry]}]}
    if attribute is not None:
        answer["ata_smart_attributes"] = {"table": [{"name": "Reported_Uncorrect", "raw": {"value": attribute}}]}
    return parse(json.dumps(answer))


@pytest.mark.parametrize(
    ("before", "after", "is_worse", "is_defect"),
    [
        (ata_counts(attribute=0), ata_counts(statistic=5, attribute=5), True, True),
        (ata_counts(statistic=0, attribute=0), ata_counts(attribute=5), True, True),
        (ata_counts(attribute=3), ata_counts(statistic=0, attribute=3), False, False),
        (ata_counts(statistic=0, attribute=3), ata_counts(attribute=3), False, False),
        # They are shown.
        (ata_counts(statistic=0), ata_counts(attribute=3), True, False),
        (replace(HEALTHY, media_counts={}), replace(HEALTHY, media_counts={"nvme": 7}), True, False),
        (replace(HEALTHY, media_counts={}), replace(HEALTHY, media_counts={"nvme": 0}), False, False),
    ],
)
def test_media_errors_are_compared_within_one_log(
    before: DriveHealth, after: DriveHealth, is_worse: bool, is_defect: bool
) -> None:
    assert bool(worsened(before, after)) is is_worse
    assert bool(defects(before, after)) is is_defect


def test_other_data_above_a_count_is_left_out() -> None:
    def answer(raw: int) -> str:
        table = [{"name": name, "raw": {"value": raw}} for name in ("Reallocated_Sector_Ct", "Reported_Uncorrect")]
        return json.dumps({"smartctl": {"exit_status": 0}, "ata_smart_attributes": {"table": table}})

    assert not worsened(parse(answer(5)), parse(answer(5 | 7 << 32)))
    assert len(defects(parse(answer(5)), parse(answer(6 | 7 << 32)))) == 2


def test_errors_of_all_phys_of_a_sas_drive_count_for_its_link() -> None:
    phy = {"invalid_dword_count": 2, "phy_reset_problem_count": 1, "negotiated_logical_link_rate": "12 Gbps"}
    plain = {**SCSI, "scsi_sas_port_0": {"relative_target_port_id": 1, "phy_0": phy}, "scsi_sas_port_1": {"phy_0": phy}}
    health = parse(json.dumps(plain))
    link = "errors of the SAS link"
    assert health.counters[link] == 6
    worse = replace(health, counters={**health.counters, link: 7})
    assert worsened(health, worse)
    assert not defects(health, worse)
    assert defects(health, worse, HealthTable(link_errors=0))


@pytest.mark.parametrize("status", [1, 2, 3, 0b110, 4, 8, 16, 32, 64, 128, 252])
def test_findings_are_no_failures_to_read(status: int) -> None:
    failed = {"exit_status": status, "messages": [{"string": "device open failed"}, {"string": "sorry"}]}
    with pytest.raises(ValueError, match="open failed; sorry") if status & 3 else nullcontext():
        assert parse(json.dumps({**NVME, "smartctl": failed})).percentage_used == 3


def test_all_drives_are_read_by_one_command() -> None:
    other = replace(DRIVE, path="/dev/sdb")
    machine = ScriptedMachine().on("sh", answer=f"{json.dumps(NVME)}\n\n{json.dumps(ATA)}\n\n")
    healths = read(machine, [DRIVE, other])
    assert [healths[path].temperature_c for path in ("/dev/nvme0n1", "/dev/sdb")] == [41, 30]
    assert [argv[4:] for argv in machine.asked] == [("auto", "/dev/nvme0n1", "auto", "/dev/sdb")]
    assert read(ScriptedMachine(), []) == {}


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (
            '{"smartctl": {"exit_status": 2, "messages": [{"string": "Permission denied"}]}}',
            r"serial S\): Permission denied",
        ),
        ("Segmentation fault", "cannot read"),
        ("\n", "0 of 1 drives"),
        (completed(["sh"], status=127), "install smartmontools"),
    ],
)
def test_answer_that_is_no_health_is_an_error(answer: str | Completed, cause: str) -> None:
    with pytest.raises(RigError, match=cause):
        read(ScriptedMachine().on("sh", answer=answer), [DRIVE])


@pytest.mark.parametrize(
    ("changes", "told", "is_defect"),
    [
        (
            {"temperature_c": 69, "percentage_used": 5, "power_on_hours": 150, "data_written_bytes": 2 * 10**12},
            (),
            False,
        ),
        ({"passed": False}, ("FAILED",), True),
        ({"passed": None, "critical_warning": None, "media_counts": {}, "percentage_used": None}, (), False),
        ({"critical_warning": 0b1}, ("spare",), True),
        ({"critical_warning": 0b10}, ("temperature",), False),
        ({"critical_warning": 0b1000_0100}, ("reliability", "bit 7"), True),
        ({"media_counts": {"nvme": 2}}, ("from 0 to 2",), True),
        ({"percentage_used": 100}, ("100 %",), False),
        ({"power_on_hours": 7}, ("from 100 to 7",), False),
        ({"data_written_bytes": 7}, ("from 1000000000000 to 7",), False),
    ],
)
def test_what_worsened_is_told_and_a_defect_if_it_is_the_drives_own(
    changes: dict[str, object], told: tuple[str, ...], is_defect: bool
) -> None:
    after = replace(HEALTHY, **changes)  # type: ignore[arg-type]
    assert [word in change for word, change in zip(told, worsened(HEALTHY, after), strict=True)] == [True] * len(told)
    assert bool(defects(HEALTHY, after)) is is_defect


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (
            {"CRC errors of the link": 3},
            {"CRC errors of the link": 103},
            ("drive or its link: CRC errors of the link rose from 3 to 103",),
        ),
        ({"pending sectors": 3}, {"pending sectors": 1}, ()),
        ({}, {"grown defects": 4}, ()),
        ({"grown defects": 4}, {}, ()),
        ({"available spare": 100}, {"available spare": 50}, ("available spare fell from 100 to 50 %",)),
        ({"available spare": 50}, {"available spare": 100}, ()),
        ({"entries of the error log": 7}, {"entries of the error log": 107}, ()),
        (
            {"entries of the error log": 7},
            {"entries of the error log": 507},
            ("entries of the error log rose from 7 to 507",),
        ),
    ],
)
def test_counters_that_worsened(before: dict[str, int], after: dict[str, int], found: tuple[str, ...]) -> None:
    assert worsened(replace(HEALTHY, counters=before), replace(HEALTHY, counters=after)) == found


def test_what_was_bad_before_has_not_worsened() -> None:
    ill = replace(HEALTHY, passed=False, critical_warning=5, media_counts={"nvme": 9}, percentage_used=140)
    assert worsened(ill, ill) == ()
    assert len(worsened(replace(ill, critical_warning=4), ill)) == 1


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ('{"smartctl": {"exit_status": 0}, "serial_number": 7}', ""),
        ('{"smartctl": {"exit_status": 64}, "firmware_version": 7}', ""),
        ('{"smartctl": {"exit_status": 2}}', "cannot be identified by smartctl: it gives no reason"),
        ("{}", "cannot be identified by smartctl: it gives no reason"),
        ("", "cannot be identified by smartctl, whose answer is not JSON: "),
    ],
)
def test_identify_names_the_reason(answer: str, why: str) -> None:
    other = replace(DRIVE, path="/dev/sdb")
    here = ScriptedMachine().on("smartctl", answer='{"smartctl": {"exit_status": 0}}')
    here.on("smartctl", "--json=c", "-x", "-d", "auto", DRIVE.path, answer=answer)
    found = identify(here, [DRIVE, other])
    assert found["/dev/sdb"] == Identification(DRIVE.firmware)
    assert bool(found[DRIVE.path].problem) is bool(why)
    assert found[DRIVE.path].problem.startswith(why)
    assert identify(here, []) == {}


def test_identify_gives_the_whole_firmware() -> None:
    """INQUIRY data of a SATA drive have the last four characters only."""
    answer = '{"smartctl": {"exit_status": 0}, "firmware_version": " 540500WD ", "serial_number": "S"}'
    here = ScriptedMachine().on("smartctl", answer=answer)
    drives = [replace(DRIVE, firmware="00WD"), replace(DRIVE, path="/dev/sdb", firmware="1", smart_type="none")]
    found = identify(here, drives)
    assert [each.firmware for each in found.values()] == ["540500WD", "1"]
    assert len(here.asked) == 1


def test_one_serial_behind_two_drives_is_a_problem_of_both() -> None:
    """With one type for all drives of a controller smartctl reads the same disk each time."""
    here = ScriptedMachine().on("smartctl", answer='{"smartctl": {"exit_status": 0}, "serial_number": "S"}')
    drives = [replace(DRIVE, path=f"/dev/sd{letter}", smart_type="megaraid,4") for letter in "ab"]
    assert all(each.problem for each in identify(here, drives).values())
    # Namespaces of one NVMe drive are the guard's subject.
    drives = [replace(each, smart_type="auto") for each in drives]
    assert not any(each.problem for each in identify(here, drives).values())


def test_a_drive_without_health_is_not_read() -> None:
    here = ScriptedMachine().on("sh", answer=json.dumps(NVME) + "\n\n")
    drives = [replace(DRIVE, path="/dev/sdb", smart_type="none"), replace(DRIVE, smart_type="nvme")]
    assert list(read(here, drives)) == [DRIVE.path]
    assert here.asked[0][3:] == ("health", "nvme", DRIVE.path)
    assert read(here, drives[:1]) == {}


@pytest.mark.parametrize(
    ("limits", "counter", "rise", "is_defect"),
    [
        ({}, "reallocated blocks", 1, True),
        ({"reallocated_blocks": 2}, "reallocated blocks", 2, False),
        ({"reallocated_blocks": 2}, "reallocated blocks", 3, True),
        ({}, "available spare", -1, True),
        ({"spare": 1}, "available spare", -1, False),
        ({"spare": 1}, "available spare", -2, True),
        ({}, "CRC errors of the link", 7, False),
        ({"link_errors": 0}, "CRC errors of the link", 1, True),
        ({}, "entries of the error log", 500, False),
        ({"error_log_entries": 0}, "entries of the error log", 1, True),
        ({}, "unsafe shutdowns", 2, False),
        ({"unsafe_shutdowns": 1}, "unsafe shutdowns", 2, True),
        ({}, "media", 2, True),
        ({"media_errors": 2}, "media", 2, False),
    ],
)
def test_limits_of_the_spec_decide(limits: dict[str, int], counter: str, rise: int, is_defect: bool) -> None:
    table, kind = HealthTable.model_validate(limits), "media_counts" if counter == "media" else "counters"
    before = replace(HEALTHY, **{kind: {counter: 90}})  # type: ignore[arg-type]
    after = replace(HEALTHY, **{kind: {counter: 90 + rise}})  # type: ignore[arg-type]
    assert bool(defects(before, after, table)) is is_defect
    assert len(worsened(before, after, table)) == 1


@given(st.integers(0, 5), st.integers(-3, 5))
def test_power_cuts_of_the_run_are_no_unsafe_shutdowns(cuts: int, others: int) -> None:
    before = replace(HEALTHY, counters={"unsafe shutdowns": 40})
    after = replace(HEALTHY, counters={"unsafe shutdowns": max(40, 40 + cuts + others)})
    failures = DriveFailures(limits=lambda serial: HealthTable(unsafe_shutdowns=0), power_cuts=cuts)
    assert bool(failures.defects(DRIVE, before, after)) is any(failures.changes(DRIVE, before, after)) is (others > 0)


def test_a_sas_link_that_comes_up_after_a_power_cut_is_no_defect() -> None:
    """A phy counts errors whenever its link comes up, from 0 again after each power-up."""
    before = replace(HEALTHY, counters={"errors of the SAS link": 0})
    after = replace(HEALTHY, counters={"errors of the SAS link": 3})
    for cuts in (0, 1):
        failures = DriveFailures(limits=lambda serial: HealthTable(link_errors=0), power_cuts=cuts)
        assert bool(failures.defects(DRIVE, before, after)) is not cuts


def test_each_drive_has_the_limits_of_its_own_spec() -> None:
    strict, after = HealthTable(link_errors=0), replace(HEALTHY, counters={"CRC errors of the link": 1})
    before = replace(HEALTHY, counters={"CRC errors of the link": 0})
    failures = DriveFailures(limits=lambda serial: strict if serial == "S" else HealthTable())
    assert failures.defects(DRIVE, before, after)
    assert not failures.defects(replace(DRIVE, serial="T"), before, after)


@pytest.mark.parametrize(
    ("device", "vendor", "expected"),
    [
        ("devices/pci0000:00/0000:00:05.0/virtio2/host2/target2:0:0/2:0:0:0", "ACME", True),
        ("devices/pci0000:00/0000:00:04.0/virtio1", None, True),
        ("devices/pci0000:00/0000:00:02.0/host2/target2:0:0/2:0:0:0", "QEMU    ", True),
        ("devices/LNXSYSTM:00/ACPI0004:00/VMBUS:00/f8b3781a/host0/target0:0:0/0:0:0:0", "ACME", True),
        ("devices/vbd-51728", None, True),
        ("devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0", "ATA     ", False),
        ("devices/pci0000:00/0000:01:00.0/nvme/nvme0", None, False),
    ],
)
def test_a_hypervisors_drive_is_known_by_its_bus_or_its_vendor(
    tmp_path: Path, device: str, vendor: str | None, expected: bool
) -> None:
    (tmp_path / device).mkdir(parents=True)
    (tmp_path / "class/block/sdb").mkdir(parents=True)
    (tmp_path / "class/block/sdb/device").symlink_to(tmp_path / device)
    if vendor:
        (tmp_path / device / "vendor").write_text(f"{vendor}\n")
    argv = ["sh", "-c", HYPERVISOR, "hypervisor", "sdb"]
    done = subprocess.run(argv, env={**os.environ, "sys": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert not done.stderr
    machine = ScriptedMachine().on("sh", answer=done.stdout)
    drive = replace(DRIVE, path="/dev/sdb", kname="sdb", model="SSD-300")
    assert bool(emulated_among(machine, [drive])) is expected
