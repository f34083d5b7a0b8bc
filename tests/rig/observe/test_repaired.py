"""Errors that the kernel repaired: its counters through the script on a made-up /sys, and its messages."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.measured.environment import KernelLine
from pytest_ssdqual.qual.spec.health_limits import FAILED_COMMANDS, PCIE_ERRORS, RESETS, TIME_OUTS
from pytest_ssdqual.rig.observe import environment, kernel_log, repaired


def read(root: Path, name: str) -> dict[str, int]:
    """The counters of a drive by the script of a reading after a load, on this /sys."""
    script = environment.SCRIPT.replace("/sys/", f"{root}/sys/")
    argv = ["sh", "-c", script, "environment", kernel_log.PICK, "after", "-", "-", "", name, f"/dev/{name}", "none"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    text = done.stdout.replace(f"{root}/sys/", "/sys/")
    (drive,) = environment.parse(text, "", [name]).drives
    return dict(drive.repaired)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def test_counters_of_a_scsi_drive(tmp_path: Path) -> None:
    device = tmp_path / "sys/block/sdb/device"
    for name, value in (
        ("ioerr_cnt", "0x2a"),
        ("iotmo_cnt", "0x0"),
        ("iodone_cnt", "0xffff"),
        ("iorequest_cnt", "0x1"),
    ):
        write(device / name, value)
    before = read(tmp_path, "sdb")
    write(device / "ioerr_cnt", "0x61")
    assert repaired.grown(before, read(tmp_path, "sdb")) == {FAILED_COMMANDS: 0x61 - 0x2A}
    write(device / "iotmo_cnt", "0x1")
    assert repaired.grown(before, read(tmp_path, "sdb")) == {FAILED_COMMANDS: 0x61 - 0x2A, TIME_OUTS: 1}


def test_counters_of_an_nvme_drive_and_of_both_ends_of_its_link(tmp_path: Path) -> None:
    port = tmp_path / "sys/devices/0000:00:01.0"
    function, controller = port / "0000:01:00.0", port / "0000:01:00.0/nvme/nvme0"
    before_text, after_text = (f"RxErr {n}\nBadTLP 0\nTOTAL_ERR_COR {n}" for n in (2, 5))
    write(function / "aer_dev_correctable", before_text)
    write(port / "aer_dev_correctable", before_text)
    write(controller / "reset_count", "1")
    write(controller / "nvme0n1/command_retries_count", "3")
    (controller / "device").symlink_to(function)
    (controller / "nvme0n1/device").symlink_to(controller)
    (tmp_path / "sys/block").mkdir(parents=True)
    (tmp_path / "sys/block/nvme0n1").symlink_to(controller / "nvme0n1")
    before = read(tmp_path, "nvme0n1")
    assert repaired.grown(before, before) == {}
    write(function / "aer_dev_correctable", after_text)
    write(port / "aer_dev_correctable", after_text)
    write(controller / "reset_count", "2")
    write(controller / "nvme0n1/command_retries_count", "10")
    assert repaired.grown(before, read(tmp_path, "nvme0n1")) == {FAILED_COMMANDS: 7, RESETS: 1, PCIE_ERRORS: 6}


COUNTS = st.dictionaries(st.sampled_from([f"/sys/block/sdb/device/{name}" for name in repaired.FILES]), st.integers(0))


@given(COUNTS, COUNTS)
def test_only_what_rose_between_two_readings_counts(before: dict[str, int], after: dict[str, int]) -> None:
    grown = repaired.grown(before, after)
    assert all(count > 0 for count in grown.values())
    assert sum(grown.values()) == sum(max(0, now - before[path]) for path, now in after.items() if path in before)


@pytest.mark.parametrize(
    ("text", "level", "counts"),
    [
        ("sd 0:0:3:0: [sdd] tag#12 Add. Sense: Information unit iuCRC error detected", 6, True),
        ("sd 0:0:3:0: [sdd] tag#12 Sense Key : Aborted Command [current]", 6, True),
        ("sd 0:0:3:0: [sdd] tag#12 FAILED Result: hostbyte=DID_SOFT_ERROR driverbyte=DRIVER_OK", 6, True),
        ("sd 0:0:3:0: Power-on or device reset occurred", 5, True),
        ("sd 0:0:3:0: something new that nobody knows", 3, True),
        ("sd 0:0:3:0: [sdd] Attached SCSI disk", 5, False),
        ("sd 0:0:3:0: [sdd] Write cache: enabled, read cache: enabled, supports DPO and FUA", 5, False),
        ("sdd: sdd1", 6, False),
        ("sd 0:0:4:0: [sdda] tag#12 Add. Sense: Information unit iuCRC error detected", 6, False),
        ("mpt3sas_cm0: log_info(0x31120303): originator(PL), code(0x12), sub_code(0x0303)", 4, False),
    ],
)
def test_messages_of_errors_that_name_the_drive_count(text: str, level: int, counts: bool) -> None:
    lines = [KernelLine(1.0, level, text)] * 3
    assert repaired.messages(lines, ["sdd", "0:0:3:0"]) == ({text: 3} if counts else {})
