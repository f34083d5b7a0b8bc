"""The reader of the inspection: its script on a made-up /sys with made-up tools, and what it makes of answers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import inspected
from support.documents.wrong_deliveries import drive, nvme_errors
from support.fakes.scripted import ScriptedMachine
from support.shells import SHELLS, run_script

from pytest_ssdqual.qual.inspection import checks
from pytest_ssdqual.qual.inspection.checks import Answer
from pytest_ssdqual.qual.inspection.limits import InspectionTable
from pytest_ssdqual.qual.inspection.record import DriveKind, InspectionRecord, Sanitizing
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.health import inspection, smart_answer
from pytest_ssdqual.rig.health.inspection import SCRIPT, read, record, sections
from pytest_ssdqual.rig.machine.machine import CommandFailed

NVME, SATA, SAS = drive("nvme", 0), drive("sata", 0), drive("sas", 0)
TOOLS = ("od", "readlink", "cat")


#: The drive, its sections and smartctl's answer, by kind.
KINDS = {
    "nvme": (NVME, inspected.nvme, inspected.smart_of_nvme),
    "sata": (SATA, inspected.sata, inspected.smart_of_sata),
    "sas": (SAS, inspected.sas, inspected.smart_of_sas),
}


def of(kind: str, **changed: str) -> InspectionRecord:
    """The record of a new drive, with other sections."""
    drive, sections_of, _ = KINDS[kind]
    return record(drive, {**sections_of(), **changed})


def of_smart(kind: str, **changed: object) -> InspectionRecord:
    return of(kind, smart=json.dumps({**KINDS[kind][2]("S1", "ACME"), **changed}))


class Rig:
    """A machine's /sys, and tools that print their arguments into a log."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "log"
        for name in TOOLS:
            (root / "bin").mkdir(exist_ok=True)
            (root / "bin" / name).symlink_to(shutil.which(name) or name)
        self.tool("smartctl", """printf '{"path": "%s"}' "$*" """)
        self.tool("nvme", """case $1 in get-log) printf '\\001\\002\\003' ;; *) printf '{"nvme": "%s"}' "$1" ;; esac""")

    def tool(self, name: str, body: str) -> None:
        path = self.root / "bin" / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>{self.log}\n{body}\n')
        path.chmod(0o755)

    def write(self, path: str, text: str) -> None:
        (self.root / "sys" / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / "sys" / path).write_text(text + "\n")

    def link(self, path: str, target: str) -> None:
        (self.root / "sys" / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / "sys" / path).symlink_to(self.root / "sys" / target)

    def run(self, shell: str, *arguments: str) -> dict[str, dict[str, str]]:
        environment = {"PATH": str(self.root / "bin"), "sys": str(self.root / "sys")}
        found = sections(run_script(shell, SCRIPT, "inspection", *arguments, env=environment))
        assert found is not None
        return found


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_script_reads_nvme(tmp_path: Path, shell: str) -> None:
    rig, port = Rig(tmp_path), "devices/pci0/0000:00:01.0"
    for name, value in (("speed", "16.0 GT/s PCIe"), ("width", "4")):
        rig.write(f"{port}/0000:01:00.0/current_link_{name}", value)
        rig.write(f"{port}/0000:01:00.0/max_link_{name}", value)
        rig.write(f"{port}/max_link_{name}", value.replace("16", "8"))
    nvme = f"{port}/0000:01:00.0/nvme/nvme0"
    rig.link(f"{nvme}/device", f"{port}/0000:01:00.0")
    for namespace in ("nvme0n1", "nvme0n2", "nvme0c1n1"):
        rig.write(f"{nvme}/{namespace}/ro", "0")
    rig.link(f"{nvme}/nvme0n1/device", nvme)
    rig.link("class/block/nvme0n1", f"{nvme}/nvme0n1")
    found = rig.run(shell, "nvme0n1", "/dev/nvme0n1", "auto")["nvme0n1"]
    lines = dict(line.split(" ", 1) for line in found["sysfs"].split("\n") if line)
    assert lines["current_link_speed"] == "16.0 GT/s PCIe"
    assert (lines["slot_max_link_speed"], lines["slot_max_link_width"]) == ("8.0 GT/s PCIe", "4")
    assert (lines["namespaces"], lines["ro"]) == ("2", "0")
    assert json.loads(found["smart"])["path"].endswith("-d auto /dev/nvme0n1")
    assert found["sanitize"].split() == found["self-test"].split() == ["1", "2", "3"]
    assert json.loads(found["id-ns"]) == {"nvme": "id-ns"}


def test_script_reads_sata(tmp_path: Path, shell: str) -> None:
    rig = Rig(tmp_path)
    rig.write("devices/ata3/host2/block/sdb/size", "937703088")
    rig.write("devices/ata3/host2/block/sdb/queue/write_cache", "write back")
    rig.write("devices/ata3/host2/queue_depth", "32")
    rig.link("devices/ata3/host2/block/sdb/device", "devices/ata3/host2")
    rig.link("class/block/sdb", "devices/ata3/host2/block/sdb")
    rig.write("class/ata_link/link3/hw_sata_spd_limit", "6.0 Gbps")
    drives = rig.run(shell, "sdb", "/dev/sdb", "sat,12", "sdc", "/dev/sdc", "none")
    assert drives["sdc"]["smart"].strip() == ""
    found = drives["sdb"]
    lines = dict(line.split(" ", 1) for line in found["sysfs"].split("\n") if line)
    assert lines["hw_sata_spd_limit"] == "6.0 Gbps"
    assert (lines["queue_depth"], lines["write_cache"]) == ("32", "write back")
    assert json.loads(found["smart"])["path"].endswith("-d sat,12 /dev/sdb")
    assert "id-ctrl" not in found


def test_script_runs_commands_that_read_only(tmp_path: Path, shell: str) -> None:
    rig = Rig(tmp_path)
    rig.run(shell, "nvme0n1", "/dev/nvme0n1", "auto", "sdb", "/dev/sdb", "scsi")
    commands = {" ".join(line.split()[:2]) for line in rig.log.read_text().splitlines()}
    assert commands == {"smartctl --json=c", "nvme id-ctrl", "nvme id-ns", "nvme get-log"}
    rig.tool("smartctl", """printf '{"device":{"protocol":"ATA"}}'""")
    rig.tool("hdparm", "echo 'State:    SD2 Sanitize operation In Process'")
    assert "SD2" in rig.run(shell, "sdb", "/dev/sdb", "auto")["sdb"]["ata-sanitize"]
    asked = {line for line in rig.log.read_text().splitlines() if line.startswith("hdparm")}
    assert asked == {"hdparm --sanitize-status /dev/sdb"}
    # No bridge of USB is asked.
    rig.write("devices/pci0/usb2/2-1/host6/block/sdb/size", "937703088")
    rig.link("devices/pci0/usb2/2-1/host6/block/sdb/device", "devices/pci0/usb2/2-1/host6")
    rig.link("class/block/sdb", "devices/pci0/usb2/2-1/host6/block/sdb")
    assert "ata-sanitize" not in rig.run(shell, "sdb", "/dev/sdb", "auto")["sdb"]


@pytest.mark.parametrize(
    ("kind", "fields", "link"),
    [
        (
            "nvme",
            {
                "kind": DriveKind.NVME, "firmware": "2CV1R106", "own_serial": "S1", "metadata_bytes": 0,
                "namespaces": 1, "unallocated_bytes": 0, "sanitizing": Sanitizing.NEVER, "failed_self_tests": 0,
                "spare_percent": 100, "temperature_limit_c": 75,
            },
            {"speed": 16.0, "slot_speed": 32.0, "width": 4},
        ),
        (
            "sata",
            {
                "kind": DriveKind.ATA, "firmware": "D3MU001F", "written_bytes": 2048 * 512,
                "media_counters": {"Reallocated_Sector_Ct": 0, "Current_Pending_Sector": 0},
                "link_counters": {"UDMA_CRC_Error_Count": 0}, "security_enabled": False, "write_cache": True,
                "queue_depth": 32,
            },
            {"speed": 6.0, "drive_speed": 6.0, "slot_speed": 6.0},
        ),
        (
            "sas",
            {"kind": DriveKind.SCSI, "firmware": "B21A", "written_bytes": 1_250_000_000, "power_cycles": 7},
            {"speed": 12.0, "drive_speed": None},
        ),
    ],
)  # fmt: skip
def test_record_of_a_new_drive(kind: str, fields: dict[str, object], link: dict[str, float | None]) -> None:
    found = of(kind)
    assert {name: getattr(found, name) for name in fields} == fields
    assert {name: getattr(found.link, name) for name in link} == link
    assert kind != "sas" or found.media_counters["grown defects"] == 0


def test_values_that_are_not_reported_are_unknown() -> None:
    found = of("nvme", **{"id-ctrl": "", "id-ns": "no JSON", "sanitize": "", "self-test": "1 2", "sysfs": ""})
    assert (found.sanitizing, found.failed_self_tests, found.can_sanitize, found.has_self_tests) == (None,) * 4
    assert (found.metadata_bytes, found.namespaces, found.link, found.write_cache) == (None,) * 4


def test_fields_of_nvme_cli() -> None:
    # nvme-cli 2.1 prints a negative sanicap.
    for sanicap, can_sanitize in ((-1610612733, True), (-1610612736, False)):
        controller = json.dumps({"oacs": 6, "sanicap": sanicap})
        assert of("nvme", **{"id-ctrl": controller}).can_sanitize is can_sanitize
    # A format beyond the sixteenth.
    formats = [{"ms": 0, "ds": 9}] * 16 + [{"ms": 8, "ds": 12}]
    assert of("nvme", **{"id-ns": json.dumps({"flbas": 0x20, "lbafs": formats})}).metadata_bytes == 8


@pytest.mark.parametrize("answer", [None, "", "Permission denied", '{"smartctl": {"exit_status": 2}}'])
def test_unreadable_drive_is_a_record_with_the_reason(answer: str | None) -> None:
    without_health = record(replace(SATA, smart_type="none"), inspected.sata())
    found = without_health if answer is None else of("sata", smart=answer)
    assert found.unreadable.startswith("smartctl cannot read") or answer is None
    assert found.unreadable
    assert (found.serial, found.wear_percent, found.passed) == ("S1", None, None)


def test_read_returns_each_drive_by_path() -> None:
    other = replace(NVME, path="/dev/nvme9n1", kname="nvme9n1", serial="S9", smart_type="nvme")
    answer = inspected.text("nvme0n1", inspected.nvme()) + inspected.text("nvme9n1", inspected.nvme("S9")) + "==end\n"
    machine = ScriptedMachine().on("sh", "-c", SCRIPT, answer=answer)
    found = read(machine, (NVME, other))
    assert {path: each.own_serial for path, (each, _) in found.items()} == {"/dev/nvme0n1": "S1", "/dev/nvme9n1": "S9"}
    assert machine.asked[0][3:] == ("inspection", "nvme0n1", "/dev/nvme0n1", "auto", "nvme9n1", "/dev/nvme9n1", "nvme")
    assert json.loads(found["/dev/nvme9n1"][1])["serial_number"] == "S9"


@pytest.mark.parametrize("answer", ["", "==end\n", "==drive nvme0n1\n==smart\n{}\n"])
def test_read_refuses_incomplete_answers(answer: str) -> None:
    with pytest.raises(CommandFailed, match="all 1 drives"):
        read(ScriptedMachine().on("sh", answer=answer), (NVME,))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(["nvme", "sata", "sas"]), st.data())
def test_no_answer_breaks_the_reader(kind: str, data: st.DataObject) -> None:
    drive, sections_of, _ = KINDS[kind]
    answers = sections_of()
    smart = json.loads(answers["smart"])
    smart[data.draw(st.sampled_from(sorted(smart)))] = data.draw(JSON)
    answers["smart"] = json.dumps(smart)
    name = data.draw(st.sampled_from([each for each in answers if each != "smart"]))
    answers[name] = data.draw(st.text() | JSON.map(json.dumps))
    assert record(drive, answers).serial == "S1"


@pytest.mark.parametrize(
    ("own", "kernels", "answer"),
    [
        ("AA 000  S/1", "AA_000_S_1", Answer.CONFORMS),
        ("AA 000  S/1", "AA 000  S/1", Answer.CONFORMS),
        ("AA_000_S_1", "AA_000_S_2", Answer.DEVIATES),
        ("aa1", "AA1", Answer.DEVIATES),
    ],
)
def test_a_serial_that_udev_spells_otherwise_is_the_same(own: str, kernels: str, answer: Answer) -> None:
    of_drive = replace(of("sata"), own_serial=own, serial=kernels)
    (found,) = checks.check("identity", [of_drive], InspectionTable())
    assert found.answer is answer


@pytest.mark.parametrize(("version", "failed"), [([7, 2], None), ([7, 3], 0), ([7, 5], 0), ([8, 0], 0), (None, None)])
def test_old_smartctl_reports_no_self_tests_of_sas(version: list[int] | None, failed: int | None) -> None:
    answer = inspected.smart_of_sas("S1", "ACME 900")
    answer["smartctl"] = {"version": version, "exit_status": 0}
    assert of("sas", smart=json.dumps(answer)).failed_self_tests == failed
    answer["scsi_self_test_0"] = {"result": {"value": 7}}
    assert of("sas", smart=json.dumps(answer)).failed_self_tests == 1


@pytest.mark.parametrize(
    ("name", "is_media"),
    [
        ("Retired_Block_Count", True),
        ("End_to_End_Err_Detect", True),
        ("New_Bad_Blk_Count", True),
        ("Added_Bad_Flash_Blk_Ct", True),
        ("Total_Prog_Failures", True),
        ("Reported_Uncorr_Errors", True),
        ("Uncorr_Soft_Read_Err_Rt", False),
        ("Raw_Read_Error_Rate", False),
        ("Initial_Bad_Block_Count", False),
        ("Power_On_Hours", False),
    ],
)
def test_names_of_counts_of_defects(name: str, is_media: bool) -> None:
    assert bool(inspection.MEDIA.fullmatch(name) and not inspection.RATES.fullmatch(name)) is is_media


def test_defects_of_a_run_are_those_of_the_inspection() -> None:
    """By the names of smartmontools' drive database that the health knows, but those of the link and of power cuts."""
    names = {
        "reallocated blocks": ["Reallocated_Sector_Ct", "Reallocate_NAND_Blk_Cnt", "Retired_Block_Count"],
        "pending sectors": ["Current_Pending_Sector", "Current_Pending_ECC_Cnt"],
        "uncorrectable sectors found offline": ["Offline_Uncorrectable"],
        "program failures": ["Program_Fail_Count_Chip"],
        "erase failures": ["Erase_Fail_Cnt_Total"],
        "end-to-end errors": ["End-to-End_Error", "End_to_End_Err_Detect"],
    }
    for what, pattern in smart_answer.ATA_ERRORS:
        for name in names.pop(what, []):
            assert pattern.fullmatch(name)
            assert inspection.MEDIA.fullmatch(name)
    assert not names


def test_what_an_unlike_drive_differs_in_is_its_reading() -> None:
    usual = of("sata")
    *alike, other = checks.check("alike", [usual, usual, replace(usual, model="ACME 501")], InspectionTable())
    assert other.answer is Answer.DEVIATES
    assert "ACME 501" in other.reading
    assert {each.reading for each in alike} == {other.bound}


def judged(name: str, found: InspectionRecord, **limits: object) -> Answer:
    (drive_found,) = checks.check(name, [found], InspectionTable.model_validate(limits))
    return drive_found.answer


@pytest.mark.parametrize(
    ("found", "smart_type", "is_bridged"),
    [
        (replace(SATA, transport="usb"), "auto", True),
        *((SATA, smart_type, True) for smart_type in ("megaraid,4", "sat+megaraid,4", "sntjmicron")),
        *((SATA, smart_type, False) for smart_type in ("auto", "sat", "sat,12", "scsi", "nvme", "none")),
    ],
)
def test_bridge_has_names_of_its_own(found: Drive, smart_type: str, is_bridged: bool) -> None:
    # An NVMe drive in a JMicron bridge: the kernel has the bridge's serial, smartctl the drive's (smartmontools#576).
    named = replace(found, serial="012345670001", wwn=None, model="USB 3.2 Bridge", smart_type=smart_type)
    assert named.is_bridged is is_bridged
    if is_bridged:
        of_bridge = record(named, inspected.nvme("Z1", "ACME 9000"))
        assert judged("identity", of_bridge) is Answer.ABSENT
        assert judged("model", of_bridge, models=["ACME 9000*"]) is Answer.CONFORMS


@pytest.mark.parametrize(
    "found",
    [
        of("nvme", **{"self-test": "2 37 " + "0 " * 562}),
        of_smart("sas", scsi_self_test_0={"result": {"value": 15}, "self_test_in_progress": True}),
        of("nvme", sanitize="0 64 2 0 2 0 0 0"),
        of("nvme", **{"id-ns": '{"flbas": 0, "fpi": 188, "lbafs": [{"ms": 0, "ds": 9}]}'}),
        of("sata", **{"ata-sanitize": "State:    SD2 Sanitize operation In Process\n  Progress: 0x8000 (50%)"}),
    ],
)
def test_what_a_drive_does_by_itself_is_named_and_no_deviation(found: InspectionRecord) -> None:
    assert "wait until" in found.activity
    answers = {name: judged(name, found) for name in checks.CHECKS}
    assert answers["activity"] is answers["temperature"] is Answer.UNKNOWN
    assert Answer.DEVIATES not in answers.values()


@pytest.mark.parametrize(
    "found",
    [
        of("nvme"),
        of("nvme", **{"id-ns": '{"flbas": 0, "fpi": 128, "lbafs": [{"ms": 0, "ds": 9}]}'}),
        of_smart("sas", scsi_self_test_0={"result": {"value": 0}}),
    ],
)
def test_a_drive_at_rest_does_nothing(found: InspectionRecord) -> None:
    assert judged("activity", found) is Answer.CONFORMS


def test_cure_of_a_self_test_names_the_drive_for_smartctl() -> None:
    smart = {**inspected.smart_of_sata("S1", "ACME"), "ata_smart_data": {"self_test": {"status": {"value": 0xF3}}}}
    found = record(replace(SATA, smart_type="megaraid,4"), {"smart": json.dumps(smart)})
    assert "30 % left" in found.activity
    assert "-d megaraid,4 /dev/sdb`" in found.activity


def test_old_entries_of_refused_commands_are_no_deviation() -> None:
    # Micron 7400 in service: 9 to 40 entries, none of the media.
    log = {"nvme_error_information_log": nvme_errors(0x2002, 0x4004, 0x286, 0x287)}
    smart = inspected.smart_of_nvme("S1", "ACME")
    smart["nvme_smart_health_information_log"]["num_err_log_entries"] = 40
    of_refused = of("nvme", smart=json.dumps({**smart, **log}))
    assert judged("error_log", of_refused) is Answer.CONFORMS
    assert judged("error_log", of_refused, error_log_entries=39) is Answer.DEVIATES
    of_media = of("nvme", smart=json.dumps({**smart, "nvme_error_information_log": nvme_errors(0x2002, 0x4281)}))
    assert judged("error_log", of_media) is Answer.DEVIATES
    assert judged("error_log", of_media, error_log_entries=40) is Answer.CONFORMS


@pytest.mark.parametrize(
    ("attribute", "changed", "names", "word"),
    [
        (
            {"id": 241, "name": "Total_LBAs_Written", "value": 99, "raw": {"value": 1000}},
            {"ata_device_statistics": {}, "endurance_used": {}, "in_smartctl_database": False},
            ("written", "wear"),
            "update-smart-drivedb",
        ),
        (
            {"id": 231, "name": "SSD_Life_Left", "value": 100, "raw": {"value": 74}},
            {"endurance_used": {"current_percent": 0}},
            ("wear",),
            "SSD_Life_Left",
        ),
    ],
    ids=["not in the database", "contradiction"],
)
def test_values_that_are_in_doubt_are_unknown_with_the_reason(
    attribute: dict[str, object], changed: dict[str, object], names: Sequence[str], word: str
) -> None:
    found = of_smart("sata", ata_smart_attributes={"table": [attribute]}, **changed)
    for name in names:
        (answer,) = checks.check(name, [found], InspectionTable())
        assert answer.answer is Answer.UNKNOWN
        assert word in answer.words


def test_a_hypervisors_drive_lacks_values_and_deviates_in_none() -> None:
    virtual = replace(SATA, model="QEMU HARDDISK", smart_type="none", wwn=None)
    found = record(virtual, {"sysfs": "size 937703088\nro 0\nwrite_cache write back"})
    answers = {name: judged(name, found) for name in checks.CHECKS}
    assert not {Answer.UNKNOWN, Answer.DEVIATES} & set(answers.values())
    assert answers["wear"] is Answer.ABSENT
    real = replace(virtual, model="ACME 500")
    assert judged("wear", record(real, {"sysfs": ""})) is Answer.UNKNOWN


@pytest.mark.parametrize(("minutes", "seconds"), [(30, 1800), (0, None), (None, None)])
def test_duration_of_an_extended_self_test_of_nvme(minutes: int | None, seconds: int | None) -> None:
    assert of("nvme", **{"id-ctrl": json.dumps({"edstt": minutes})}).extended_self_test_s == seconds


@pytest.mark.parametrize(
    ("kind", "answer", "seconds"),
    [
        ("sata", {"ata_smart_data": {"self_test": {"polling_minutes": {"short": 2, "extended": 85}}}}, 5100),
        ("sata", {"ata_smart_data": {"self_test": {"polling_minutes": {"short": 2}}}}, None),
        ("sas", {"scsi_extended_self_test_seconds": 3600}, 3600),
        ("sas", {}, None),
    ],
)
def test_duration_of_an_extended_self_test(kind: str, answer: dict[str, object], seconds: int | None) -> None:
    assert of_smart(kind, **answer).extended_self_test_s == seconds
