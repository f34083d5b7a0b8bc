from __future__ import annotations

import subprocess
from dataclasses import replace
from itertools import pairwise

import pytest
from support.fakes.scripted import ScriptedMachine, completed

from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.machine.machine import CommandFailed, DriveRefused, InvalidMeasurement
from pytest_ssdqual.rig.purge import zero as condition
from pytest_ssdqual.rig.purge.zero import SPOTS, ZEROES, exclusively, until, zero

BUSY = "blkdiscard: /dev/nvme0n1: open failed: Device or resource busy\n"
UNSUPPORTED = "blkdiscard: /dev/nvme0n1: BLKDISCARD ioctl failed: Operation not supported\n"


def drive(number: int = 0, transport: str = "nvme") -> Drive:
    kname = f"nvme{number}n1" if transport == "nvme" else f"sd{'bcdefghij'[number]}"
    return Drive(
        path=f"/dev/{kname}", kname=kname, model="ACME", serial=f"S{number}", wwn=None, firmware=None,
        size_bytes=256 << 20, logical_block_bytes=512, physical_block_bytes=512, rotational=False, transport=transport,
    )  # fmt: skip


def zeroing(limits: str = "131072\n", left: str = "65536\n" * SPOTS) -> ScriptedMachine:
    return ScriptedMachine().on("blkdiscard").on("cat", answer=limits).on("sh", answer=left)


def test_drives_that_can_are_zeroed_and_looked_at() -> None:
    here = zeroing("131072\n2147483648\n")
    assert zero(here, [drive(0), drive(1)])
    assert [argv for argv in here.asked if argv[0] == "blkdiscard"] == [
        ("blkdiscard", "--zeroout", "/dev/nvme0n1"), ("blkdiscard", "--zeroout", "/dev/nvme1n1"),
    ]  # fmt: skip
    assert here.bound == [("itself", f"/dev/nvme{number}n1", ("blkdiscard", "--zeroout")) for number in (0, 1)]
    spots = next(argv for argv in here.asked if argv[2:3] == (ZEROES,))[5:]
    assert spots[0] == "65536"
    places = [int(spot) for spot in spots[1:]]
    assert (len(places), places[0], places[-1]) == (SPOTS, 0, 4095)
    assert {later - earlier for earlier, later in pairwise(places)} == {65}


def test_a_name_with_a_slash_is_looked_up_as_sysfs_spells_it() -> None:
    here = zeroing()
    assert zero(here, [replace(drive(), kname="cciss/c0d0", path="/dev/cciss/c0d0")])
    assert here.asked[0] == ("cat", "/sys/block/cciss!c0d0/queue/write_zeroes_max_bytes")


def test_one_drive_that_would_need_a_whole_write_is_enough_not_to() -> None:
    here = zeroing("131072\n0\n")
    assert not zero(here, [drive(0), drive(1)])
    assert [argv[0] for argv in here.asked] == ["cat"]


def test_a_drive_that_does_not_keep_its_promise_is_found_out() -> None:
    assert not zero(zeroing(left="65535\n" + "65536\n" * (SPOTS - 1)), [drive()])


def test_a_drive_that_cannot_be_read_back_is_an_error() -> None:
    with pytest.raises(InvalidMeasurement, match="could not be read back after it was zeroed"):
        zero(zeroing(left="65536\n65536\n"), [drive()])


def test_a_spot_that_cannot_be_read_is_not_zero() -> None:
    said = subprocess.run(["sh", "-c", ZEROES, "zeroes", "/dev/none", "65536", "0"], capture_output=True, check=True)
    assert said.stdout.strip() == b"0"
    assert not zero(zeroing(left="0\n" + "65536\n" * (SPOTS - 1)), [drive()])


def test_a_drive_in_use_is_not_zeroed() -> None:
    with pytest.raises(DriveRefused, match="is in use"):
        zero(zeroing().on("blkdiscard", answer=completed(["blkdiscard"], status=1, stderr=BUSY)), [drive()])


@pytest.mark.parametrize("check", [True, False])
def test_only_a_drive_in_use_is_refused(check: bool) -> None:
    here = ScriptedMachine().on("blkdiscard", answer=completed(["blkdiscard"], status=1, stderr=BUSY))
    with pytest.raises(DriveRefused, match=r"^/dev/nvme0n1 \(ACME, serial S0\) is in use: blkdiscard could not open"):
        exclusively(here, ["blkdiscard", "/dev/nvme0n1"], drive(), check=check)


def test_every_other_failure_is_the_caller_s_or_an_error() -> None:
    here = ScriptedMachine().on("blkdiscard", answer=completed(["blkdiscard"], status=1, stderr=UNSUPPORTED))
    assert exclusively(here, ["blkdiscard", "/dev/nvme0n1"], drive(), check=False).errors == UNSUPPORTED
    with pytest.raises(CommandFailed):
        exclusively(here, ["blkdiscard", "/dev/nvme0n1"], drive())


def test_what_goes_on_in_a_drive_is_asked_for_until_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condition, "FIRST_PAUSE_S", 0.0)
    answers = [False, False, True]
    assert until(lambda: answers.pop(0), 60.0)
    assert not answers
    assert not until(lambda: False, 0.0)
