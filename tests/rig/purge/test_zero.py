from __future__ import annotations

import subprocess
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise

import pytest
from support.builders.drives import drive
from support.fakes.scripted import ScriptedMachine, completed

from pytest_ssdqual.rig.machine.machine import CommandFailed, DriveRefused, InvalidMeasurement
from pytest_ssdqual.rig.purge.zero import SPOTS, ZEROES, exclusively, zero

BUSY = "blkdiscard: /dev/nvme0n1: open failed: Device or resource busy\n"
UNSUPPORTED = "blkdiscard: /dev/nvme0n1: BLKDISCARD ioctl failed: Operation not supported\n"


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
    assert zero(here, [replace(drive(0), kname="cciss/c0d0", path="/dev/cciss/c0d0")])
    assert here.asked[0] == ("cat", "/sys/block/cciss!c0d0/queue/write_zeroes_max_bytes")


def test_one_drive_without_the_command_prevents_zeroing() -> None:
    here = zeroing("131072\n0\n")
    assert not zero(here, [drive(0), drive(1)])
    assert [argv[0] for argv in here.asked] == ["cat"]


@pytest.mark.parametrize("left", ["65535", "0"])
def test_drive_that_does_not_keep_its_promise_is_found_out(left: str) -> None:
    said = subprocess.check_output(["sh", "-c", ZEROES, "zeroes", "/dev/none", "65536", "0"])
    assert said.strip() == b"0", "a spot that cannot be read is not zero"
    assert not zero(zeroing(left=f"{left}\n" + "65536\n" * (SPOTS - 1)), [drive(0)])


def test_drive_that_cannot_be_read_back_is_an_error() -> None:
    with pytest.raises(InvalidMeasurement, match="read back"):
        zero(zeroing(left="65536\n65536\n"), [drive(0)])


@pytest.mark.parametrize("check", [True, False])
def test_drive_in_use_is_refused_and_another_failure_is_none(check: bool) -> None:
    command = ["blkdiscard", "/dev/nvme0n1"]
    here = zeroing().on("blkdiscard", answer=completed(["blkdiscard"], status=1, stderr=BUSY))
    for use in (lambda: exclusively(here, command, drive(0), check=check), lambda: zero(here, [drive(0)])):
        with pytest.raises(DriveRefused, match=r"S0\) is in"):
            use()
    here.on("blkdiscard", answer=completed(["blkdiscard"], status=1, stderr=UNSUPPORTED))
    with pytest.raises(CommandFailed) if check else nullcontext():
        assert exclusively(here, command, drive(0), check=check).errors == UNSUPPORTED
