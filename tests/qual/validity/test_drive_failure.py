from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_ssdqual.qual.measured.environment import KernelLine
from pytest_ssdqual.qual.validity import fault_codes
from pytest_ssdqual.qual.validity.drive_failure import DriveTrace, attribute
from pytest_ssdqual.qual.validity.fault_codes import Fault
from pytest_ssdqual.qual.validity.fault_signatures import NVME_STATUS, signature_of

ERROR = "raid5x3 cannot be measured: degraded by 1 member"


def nvme(number: int, *, present: bool = True, is_faulty: bool = False, smart: tuple[str, ...] = ()) -> DriveTrace:
    kname = f"nvme{number}n1"
    names = (kname, f"nvme{number}", f"0000:0{number}:00.0")
    return DriveTrace(f"S{number}", f"/dev/{kname}", names, present, is_faulty=is_faulty, smart=smart)


def sata(number: int, *, present: bool = True, is_faulty: bool = False) -> DriveTrace:
    kname = f"sd{'abcdefgh'[number]}"
    names = (kname, f"{number}:0:0:0", f"ata{number}.00")
    return DriveTrace(f"S{number}", f"/dev/{kname}", names, present, is_faulty=is_faulty)


def said(*texts: str) -> tuple[KernelLine, ...]:
    return tuple(KernelLine(100.0 + number, 3, text) for number, text in enumerate(texts))


def firmware(severity: str) -> list[str]:
    """What the kernel logs of an error that firmware reported."""
    return [
        "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 0",
        f"{{1}}[Hardware Error]: event severity: {severity}",
        f"{{1}}[Hardware Error]:  Error 0, type: {severity}",
    ]


@pytest.mark.parametrize(
    ("words", "finding"),
    [
        ("nvme1n1: Read(0x2) @ LBA 8, 8 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) DNR", "media errors"),
        ("nvme nvme1: Device not ready; aborting reset, CSTS=0x1", "gave it up"),
        ("nvme nvme1: I/O 12 QID 1 timeout, reset controller", "timed out"),
        ("I/O error, dev nvme1n1, sector 2048 op 0x1:(WRITE)", "requests failed"),
    ],
)
def test_kernel_messages_about_one_drive_name_it(words: str, finding: str) -> None:
    found = attribute(ERROR, [nvme(0), nvme(1), nvme(2)], said(words))
    assert found.origin is Fault.DRIVE
    (drive,) = found.drives
    assert drive.serial == "S1"
    assert finding in drive.sentence
    assert words in drive.sentence


@pytest.mark.parametrize("words", ["ata1.00: disable device", "ata1.00: disabled"])
def test_libata_gives_a_drive_up_in_words_of_its_version(words: str) -> None:
    (drive,) = attribute(ERROR, [sata(1), sata(2)], said(words)).drives
    assert (drive.serial, drive.findings) == ("S1", ("the kernel gave it up",))
    of_ncq = said("ata1.00: NCQ disabled due to excessive errors")
    assert attribute(ERROR, [sata(1), sata(2)], of_ncq).origin is Fault.UNKNOWN


@pytest.mark.parametrize(
    "words",
    [
        "nvme 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)",
        "nvme 0000:01:00.0:    [12] Timeout               ",
        "nvme 0000:01:00.0:    [12] Replay Timer Timeout  ",
    ],
)
def test_corrected_errors_of_the_link_blame_no_drive(words: str) -> None:
    (drive,) = (replace(each, names=(*each.names, "0000:01:00.0")) for each in [nvme(0)])
    assert attribute("a worker of fio was killed by signal 9", [drive], said(words)).origin is Fault.UNKNOWN


def test_lost_drive_is_named_beside_one_with_media_errors() -> None:
    kernel = said("nvme0n1: Read(0x2) @ LBA 8, 8 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) DNR")
    found = attribute(ERROR, [nvme(0), nvme(1, present=False), nvme(2)], kernel)
    assert [each.serial for each in found.drives] == ["S0", "S1"]
    both = attribute(ERROR, [nvme(0), nvme(1, present=False), nvme(2, present=False)], kernel)
    assert [each.serial for each in both.drives] == ["S0"]


@pytest.mark.parametrize(
    ("error", "drive", "findings"),
    [
        (ERROR, nvme(1, present=False), ("it dropped out",)),
        (ERROR, nvme(1, is_faulty=True), None),
        ("I/O error on /dev/nvme1n1: Input/output error (write at byte 4096)", nvme(1), None),
    ],
)
def test_drive_that_is_gone_or_failed_is_named(error: str, drive: DriveTrace, findings: tuple[str, ...] | None) -> None:
    (named,) = attribute(error, [nvme(0), drive, nvme(11)], ()).drives
    assert named.serial == "S1"
    assert findings in (None, named.findings)


def test_failed_assessment_blames_the_drive() -> None:
    drives = [nvme(0, present=False), nvme(1, smart=("its own SMART health assessment is FAILED",))]
    found = attribute(ERROR, drives, said("DMAR: [DMA Write] Request device [01:00.0] fault addr 0"))
    assert [each.serial for each in found.drives] == ["S1"]


def test_sense_data_of_a_hardware_error_are_the_drives() -> None:
    lines = said("sd 1:0:0:0: [sdb] tag#12 Sense Key : Hardware Error [current]", "critical target error, dev sdb")
    (drive,) = attribute(ERROR, [sata(1), sata(2)], lines).drives
    assert (drive.serial, drive.findings[0]) == ("S1", "it reported a hardware error of its own")
    assert "media errors" not in drive.sentence


@pytest.mark.parametrize(
    ("words", "origin"),
    [
        (["mce: [Hardware Error]: Machine check events logged"], Fault.DRIVE),
        (["mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 9: 8c000041000800c0"], Fault.DRIVE),
        (["mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 9: bc000041000800c0"], Fault.HOST),
        (
            [
                "[Hardware Error]: Corrected error, no action required.",
                "[Hardware Error]: CPU:24 (17:31:0) MC17_STATUS[Over|CE|MiscV|AddrV|-|-]: 0xdc2040000400011b",
            ],
            Fault.DRIVE,
        ),
        (firmware("corrected"), Fault.DRIVE),
        (firmware("fatal"), Fault.HOST),
    ],
)
def test_only_an_uncorrected_error_of_the_host_excuses_a_drive(words: list[str], origin: Fault) -> None:
    assert attribute(ERROR, [sata(1, present=False), sata(2)], said(*words)).origin is origin


RIG_FAULT = "a worker of fio was killed by signal 9"


@pytest.mark.parametrize("change", ["reallocated blocks rose from 0 to 1", "available spare fell from 100 to 99 %"])
def test_smart_data_alone_explain_no_fault_of_the_rig(change: str) -> None:
    drives = [nvme(0), nvme(1, smart=(change,))]
    for error in (RIG_FAULT, "raid5x3 cannot be measured: check is running"):
        assert attribute(error, drives, ()).origin is Fault.UNKNOWN
    for error in (ERROR, "I/O error on /dev/md100: Input/output error (read at byte 0)", "fio got stuck"):
        assert [each.serial for each in attribute(error, drives, ()).drives] == ["S1"]


def test_silence_is_no_evidence_without_any_other() -> None:
    silent = replace(nvme(1), is_silent=True)
    assert attribute(RIG_FAULT, [nvme(0), silent], ()).origin is Fault.UNKNOWN
    (drive,) = attribute(ERROR, [nvme(0), silent], said("nvme nvme1: I/O 12 QID 1 timeout, reset controller")).drives
    assert "smartctl" in drive.findings[-1]


@pytest.mark.parametrize("operation", ["0x0:(READ)", "0x1:(WRITE)", "0x9:(WRITE_ZEROES)"])
def test_a_request_that_is_not_supported_proves_no_defect(operation: str) -> None:
    """The kernel turns a drive's Invalid Opcode, Field or Namespace into this error, and its own lack of support."""
    line = said(f"operation not supported error, dev nvme1n1, sector 8 op {operation} flags 0x0")
    for error in ("a read failed on /dev/nvme1n1: Operation not supported", ERROR):
        assert attribute(error, [nvme(0), nvme(1)], line).origin is Fault.UNKNOWN


def test_only_a_status_that_states_a_defect_proves_one() -> None:
    """NVMe base 2.0, figures 96 to 100: Internal Error, Write Fault and Unrecovered Read Error."""
    proof = {
        (kind, code)
        for kind in range(8)
        for code in range(256)
        if fault_codes.of_nvme(kind, code).fault in (Fault.MEDIUM, Fault.DRIVE)
    }
    assert proof == {(0, 0x06), (2, 0x80), (2, 0x81)}


#: Codes of NVMe's status, and words of SCSI's sense data.
MEANT: dict[Fault, list[tuple[Any, Any]]] = {
    Fault.UNKNOWN: [(0, 0x02), (0, 0x80), (2, 0x82), (2, 0x9F), (7, 0xC1), ("Illegal Request", "Invalid field in cdb")],
    Fault.REFUSED: [
        (0, 0x20), (0, 0x23), (0, 0x81), (1, 0x82),
        ("Not Ready", "Logical unit not ready, sanitize in progress"),
        ("Not Ready", "Logical unit not ready, format in progress"),
        ("Not Ready", "Logical unit not ready, self-test in progress"),
        ("Data Protect", "Write protected"),
    ],
    Fault.LINK: [(0, 0x04), ("Hardware Error", "Scsi parity error"), ("Aborted Command", "NAK received")],
    Fault.PATH: [(3, 0x02)],
    Fault.MEDIUM: [("Medium Error", "Unrecovered read error")],
}  # fmt: skip


@pytest.mark.parametrize("fault", MEANT)
def test_each_code_means_its_fault(fault: Fault) -> None:
    of: dict[type, Any] = {int: fault_codes.of_nvme, str: fault_codes.of_sense}
    assert {of[type(code[0])](*code).fault for code in MEANT[fault]} == {fault}


@given(key=st.text(max_size=20), additional=st.text(max_size=40))
def test_sense_data_that_are_unknown_prove_no_defect(key: str, additional: str) -> None:
    assume(key not in ("Medium Error", "Hardware Error"))
    assert fault_codes.of_sense(key, additional).fault not in (Fault.MEDIUM, Fault.DRIVE)


@given(st.lists(st.text(st.characters(codec="ascii"), max_size=60), max_size=12))
def test_words_that_are_in_no_table_blame_no_drive(texts: list[str]) -> None:
    assume(all(signature_of(text) is None for text in texts))
    lines = said(*(f"nvme nvme1: {text}" for text in texts if not NVME_STATUS.search(text)))
    assert attribute("fio wrote no result", [nvme(0), nvme(1)], lines).origin is Fault.UNKNOWN


def test_several_failing_drives_with_media_errors_are_all_named() -> None:
    lines = said("critical medium error, dev sdb, sector 1", "critical medium error, dev sdc, sector 1")
    assert [each.serial for each in attribute(ERROR, [sata(1), sata(2)], lines).drives] == ["S1", "S2"]


def test_reset_that_takes_all_drives_is_the_paths() -> None:
    found = attribute(ERROR, [sata(1, present=False), sata(2, present=False)], ())
    assert (found.origin, found.drives) == (Fault.PATH, ())
    assert "S1, S2" in found.why


@pytest.mark.parametrize(
    ("words", "origin"),
    [
        ("mpt3sas_cm0: sending diag reset !!", Fault.PATH),
        ("DMAR: [DMA Read] Request device [01:00.0] fault addr 0xffe00000", Fault.HOST),
        ("AMD-Vi: Event logged [IO_PAGE_FAULT device=01:00.0 domain=0x0000]", Fault.HOST),
    ],
)
def test_fault_of_host_or_adapter_explains_a_lost_drive(words: str, origin: Fault) -> None:
    found = attribute(ERROR, [sata(1, present=False), sata(2)], said(words))
    assert found.origin is origin
    assert words in found.why


@pytest.mark.parametrize(
    "words",
    [
        "nvme 0000:01:00.0: Removing from iommu group 12",
        "pci 0000:01:00.0: Adding to iommu group 12",
        "iommu: Removing device 0000:01:00.0 from group 12",
        "iommu: Adding device 0000:01:00.0 to group 12",
    ],
)
def test_leaving_an_iommu_group_is_no_fault_of_the_host(words: str) -> None:
    (drive,) = attribute(ERROR, [nvme(1, present=False), nvme(2)], said(words)).drives
    assert (drive.serial, drive.findings) == ("S1", ("it dropped out",))


def test_checksum_errors_of_the_link_blame_no_drive() -> None:
    lines = said("ata1.00: error: { ICRC ABRT }", "I/O error, dev sdb, sector 8 op 0x1:(WRITE)")
    assert attribute(ERROR, [sata(1, is_faulty=True), sata(2)], lines).origin is Fault.LINK


def test_several_drives_behind_a_bad_link_are_behind_one_path() -> None:
    lines = said("ata1: SATA link down", "ata2: SATA link down")
    drives = [replace(each, names=(*each.names, f"ata{number}")) for number, each in ((1, sata(1)), (2, sata(2)))]
    found = attribute(ERROR, [replace(each, present=False) for each in drives], lines)
    assert (found.origin, found.about) == (Fault.PATH, ("S1", "S2"))


def test_all_drives_that_refuse_for_one_reason_are_named() -> None:
    words = "{}: Write(0x1) @ LBA 8, 8 blocks, Access Denied (sct 0x2 / sc 0x86) DNR"
    found = attribute(ERROR, [nvme(0), nvme(1), nvme(2)], said(words.format("nvme0n1"), words.format("nvme2n1")))
    assert (found.origin, found.about) == (Fault.REFUSED, ("S0", "S2"))


@pytest.mark.parametrize(
    "words",
    [
        "nvme nvme0: frozen state error detected, reset controller",
        "nvme0n1: Write(0x1) @ LBA 8, 8 blocks, Access Denied (sct 0x2 / sc 0x86) DNR",
    ],
    ids=["recovered", "locked"],
)
def test_dead_drive_is_named_beside_a_recovered_or_locked_one(words: str) -> None:
    found = attribute(ERROR, [nvme(0), nvme(1, present=False), nvme(2)], said(words))
    assert [drive.serial for drive in found.drives] == ["S1"]


@pytest.mark.parametrize("words", ["nvme nvme11: timeout", "I/O error, dev nvme1c0n1", "ata1.01: disable device"])
def test_messages_of_other_devices_blame_no_drive(words: str) -> None:
    assert attribute(ERROR, [nvme(1), sata(1)], said(words)).origin is Fault.UNKNOWN


def test_most_severe_message_comes_first() -> None:
    warnings = [KernelLine(float(number), 4, f"sd 1:0:0:0: [sdb] warning {number}") for number in range(60)]
    media = KernelLine(99.0, 3, "critical medium error, dev sdb, sector 1")
    (drive,) = attribute(ERROR, [sata(1)], [*warnings, media]).drives
    assert "medium" in drive.kernel[0]
